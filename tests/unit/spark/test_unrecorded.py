"""Questions to Spark that nothing compares later are a doubt if code of the user's asks them (IF-5). No Spark session."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.base.user_code import PACKAGE
from lakelet.files.reads import Reads
from lakelet.spark.patches import owners
from lakelet.spark.patches.actions import note_call
from lakelet.spark.patches.doors import Door


def doubts(file: str, module: str, method: str = "collect") -> list[str]:
    """The doubts about code of one file that calls a method of Spark."""
    owner = owners.FRAME if method == "collect" else owners.BATCH_READER
    patch = Door(owner, method, "1.3.0", (note_call,)).patch()
    names: dict[str, Any] = {"__name__": module, "call": patch.make(lambda self: "rows", None)}
    reads = Reads()
    with reads.watching():
        exec(compile("found = call(None)", file, "exec"), names)
    assert names["found"] == "rows"
    return reads.stale_reasons


@pytest.mark.parametrize("folder", ["/home/jo/shop", "/home/jo/pyspark-demo", "/srv/pyspark/jobs"])
@pytest.mark.parametrize("method", ["collect", "parquet"])
def test_code_of_the_user_is_noted_wherever_it_lies(folder: str, method: str) -> None:
    (doubt,) = doubts(f"{folder}/orders.py", "orders", method)
    assert doubt.endswith(f"orders.py, line 1 calls {method}")


@pytest.mark.parametrize(
    ("file", "module"), [("/venv/lib/site-packages/pyspark/sql/session.py", "pyspark.sql.session"), (f"{PACKAGE}x.py", "x")]
)
def test_what_spark_and_lakelet_ask_is_not(file: str, module: str) -> None:
    assert doubts(file, module) == []
