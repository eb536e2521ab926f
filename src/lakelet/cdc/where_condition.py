"""The `where` of a change flow: a condition that every event meets, and what follows from it for the rows of the target.

Events that do not meet it are refused, not filtered (CD-14). Rows of the target are left out of the search for a key's row
where that cannot change the result. Conditions on key columns hold for the stored row as for the event, because both have the same key. A
condition on other columns says nothing about the stored row, whatever was promised; a broken promise would give a key a second row.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Column, DataFrame

from lakelet.cdc.changes import Layout, expression
from lakelet.jvm.errors import Py4JError
from lakelet.jvm.expressions import by_names, column, conjuncts, uses
from lakelet.jvm.frames import analyzed, without_rows
from lakelet.jvm.scala import items
from lakelet.language.model import ChangeSpec


def of_keys(spec: ChangeSpec, source: DataFrame, shape: Layout, alias: str) -> Column | None:
    """What `where` says about the key columns, on a table called `alias`; None if it says nothing that is sure."""
    if spec.where is None:
        return None
    plan = analyzed(without_rows(source).where(expression(spec.where)))
    keys = {key.lower() for key in shape.keys}
    target = source.sparkSession.createDataFrame([], shape.columns).alias(alias)
    sure = (part for part in conjuncts(plan.condition()) if _about(part, keys, source))
    usable = [found for part in sure if (found := _on(target, part, alias)) is not None]
    return reduce(lambda a, b: a & b, usable) if usable else None


def _on(target: DataFrame, condition: Any, alias: str) -> Column | None:
    """The condition on the target; None where its columns have other types, on which it cannot be asked."""
    try:
        found = column(target.sparkSession, by_names(target.sparkSession, condition, alias))
        target.where(found).schema  # noqa: B018 - analyses it
    except (PySparkException, Py4JError):
        return None
    return found


def _about(condition: Any, keys: set[str], source: DataFrame) -> bool:
    """Whether a condition names keys only, and gives the same answer now and when the rows are searched for."""
    if not condition.deterministic() or uses(source.sparkSession, condition, "CURRENT_LIKE", "PYTHON_UDF", "PLAN_EXPRESSION"):
        return False
    names = {str(attribute.name()).lower() for attribute in items(condition.references().toList())}
    return bool(names) and names <= keys
