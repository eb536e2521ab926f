"""The `where` of a change flow: a condition that every event meets, and what follows from it for the rows of the target.

Events that do not meet it are refused, not filtered (CD-14). Rows of the target are left out of the search for a key's row
where that cannot change the result: conditions on key columns hold for the stored row as for the event, because both have the same key. A
condition on other columns says nothing about the stored row, whatever was promised; a broken promise would give a key a second row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.cdc.changes import Layout, expression
from lakelet.language.model import ChangeSpec


def of_keys(spec: ChangeSpec, source: DataFrame, shape: Layout, alias: str) -> Column | None:
    """What `where` says about the key columns, on a table called `alias`; None if it says nothing that is sure."""
    if spec.where is None:
        return None
    empty = source.sparkSession.createDataFrame([], source.schema).alias(alias)
    plan = empty.where(expression(spec.where))._jdf.queryExecution().analyzed()
    keys = {key.lower() for key in shape.keys}
    usable = " AND ".join(f"({part.sql()})" for part in _conjuncts(plan.condition()) if _about(part, keys, source))
    try:
        empty.where(usable or "true").schema  # noqa: B018 - analyses it: not every expression has a text that is SQL
    except PySparkException:
        return None
    return F.expr(usable) if usable else None


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
    if not condition.deterministic() or any(condition.containsPattern(p) for p in (patterns.CURRENT_LIKE(), patterns.PYTHON_UDF())):
        return False
    named = condition.references().toList()
    names = {str(named.apply(i).name()).lower() for i in range(named.size())}
    return bool(names) and names <= keys
