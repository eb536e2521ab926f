"""Constants in rules that Spark casts to the type of what they are compared with, and cannot: `amount = 'EUR'` on a number.

Spark analyses such a rule, and fails at the first row that it judges. A cast that is not evaluated for each row, in a branch of CASE for
example, counts too. Without ANSI mode the result is NULL, and nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelet.jvm.errors import Py4JJavaError
from lakelet.jvm.expressions import uses
from lakelet.jvm.frames import analyzed
from lakelet.jvm.scala import items
from lakelet.spark.expectations.resolution import RESULT

_LITERAL = re.compile(r"""['"]""")


@dataclass(frozen=True)
class ImpossibleCast:
    """A constant, as SQL writes it, and the type that it cannot be cast to."""

    value: str
    kind: str


def impossible_casts(with_checks: DataFrame, texts: Sequence[str | None]) -> list[ImpossibleCast | None]:
    """The first such cast of each condition of `resolution.checked`. `texts`: of the conditions, None for one that is a Column.

    Looks only at conditions with a quoted text: each look at a node is a call to Java.
    """
    asked = [i for i, text in enumerate(texts) if text is None or _LITERAL.search(text)]
    found: list[ImpossibleCast | None] = [None] * len(texts)
    if asked:
        plan = analyzed(with_checks)
        struct = plan.projectList().last().child().children()  # name, value, name, value …
        spark = with_checks.sparkSession
        for i in asked:
            found[i] = next(_of(spark, _condition(plan, struct.apply(2 * i + 1))), None)
    return found


def _condition(plan: Any, value: Any) -> Any:
    """The condition itself, where `value` is the column in which a projection below has put its result (EP-12, EP-14)."""
    name = str(value.name()) if value.nodeName() == "AttributeReference" else ""
    while name.startswith(RESULT) and plan.children().size() == 1:
        plan = plan.children().apply(0)
        if plan.nodeName() == "Project":
            made = next((one for one in items(plan.projectList()) if one.nodeName() == "Alias" and str(one.name()) == name), None)
            if made is not None:
                return made.child()
    return value


def _of(spark: SparkSession, expression: Any) -> Iterator[ImpossibleCast]:
    if not uses(spark, expression, "CAST"):
        return
    if expression.nodeName() == "Cast" and expression.foldable():
        try:
            expression.eval(None)
        except (Py4JJavaError, PySparkException):
            yield ImpossibleCast(str(expression.child().sql()), str(expression.dataType().sql()))
        return
    for child in items(expression.children()):
        yield from _of(spark, child)


__all__ = ["ImpossibleCast", "impossible_casts"]
