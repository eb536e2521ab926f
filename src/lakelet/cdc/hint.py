"""The `where` of a change flow: a condition that every event meets, and what follows from it for the rows of the target.

Events that do not meet it are refused, not filtered (CD-14). Rows of the target are left out of the search for a key's row
where that cannot change the result: conditions on key columns hold for the stored row as for the event, because both have the same key. A
condition on other columns says nothing about the stored row, whatever was promised; a broken promise would give a key a second row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Column, DataFrame

from lakelet.cdc.changes import Layout, expression
from lakelet.jvm.expressions import by_names, column, items, without_rows
from lakelet.language.model import ChangeSpec


def of_keys(spec: ChangeSpec, source: DataFrame, shape: Layout, alias: str) -> Column | None:
    """What `where` says about the key columns, on a table called `alias`; None if it says nothing that is sure."""
    if spec.where is None:
        return None
    plan = without_rows(source).where(expression(spec.where))._jdf.queryExecution().analyzed()
    keys = {key.lower() for key in shape.keys}
    jvm: Any = source.sparkSession._jvm
    target = source.sparkSession.createDataFrame([], shape.columns).alias(alias)
    sure = (part for part in _conjuncts(plan.condition()) if _about(part, keys, source))
    usable = [found for part in sure if (found := _on(target, jvm, part, alias)) is not None]
    return reduce(lambda a, b: a & b, usable) if usable else None


def _on(target: DataFrame, jvm: Any, condition: Any, alias: str) -> Column | None:
    """The condition on the target; None where its columns have other types, on which it cannot be asked."""
    try:
        found = column(jvm, by_names(jvm, condition, alias))
        target.where(found).schema  # noqa: B018 - analyses it
    except (PySparkException, Py4JError):
        return None
    return found


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.nodeName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _about(condition: Any, keys: set[str], source: DataFrame) -> bool:
    """Whether a condition names keys only, and gives the same answer now and when the rows are looked for."""
    jvm: Any = source.sparkSession._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    other = (patterns.CURRENT_LIKE(), patterns.PYTHON_UDF(), patterns.PLAN_EXPRESSION())
    if not condition.deterministic() or any(condition.containsPattern(pattern) for pattern in other):
        return False
    names = {str(attribute.name()).lower() for attribute in items(condition.references().toList())}
    return bool(names) and names <= keys
