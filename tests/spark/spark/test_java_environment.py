"""Java, and what it starts, sees the variables of the command that uses it, and its own ones again afterwards (decision 99)."""

from __future__ import annotations

import os
from typing import Any

import pytest

from lakelet.jvm.environment import can_replace, replace_variables, variables
from lakelet.jvm.leftovers import Leftovers


def seen(spark: Any, name: str) -> list[Any]:
    """What Java, SQL text, and a script that Spark starts see of a variable."""
    java = spark.sparkContext._jvm.java.lang.System.getenv(name)
    text = spark.sql(f"SELECT '${{env:{name}}}' AS value").first().value
    script = spark.sql(f"SELECT TRANSFORM (id) USING 'echo ${name}' AS (value) FROM range(1)").first().value
    return [java, text, script]


@pytest.mark.long
def test_code_in_java_and_scripts_see_other_variables_and_then_those_of_the_start_again(spark: Any) -> None:
    context, leftovers = spark.sparkContext, Leftovers.of(spark)
    before = variables(context)
    assert before["HOME"] == os.environ["HOME"]
    assert can_replace(context)
    assert variables(context) == before
    replace_variables(context, {"SHOP": "münchen", "EMPTY": ""}, without=lambda name: name == "HOME")
    assert variables(context) == {**{name: value for name, value in before.items() if name != "HOME"}, "SHOP": "münchen", "EMPTY": ""}
    assert seen(spark, "SHOP") == ["münchen"] * 3
    assert leftovers.unlike() is None
    assert leftovers.cleaned() is None
    assert variables(context) == before
