"""Maps partitions of a materialized view to those of its input, by the analysed plan.

A view whose rows of a day depend only on one table's rows of that day can be refreshed day by day (docs/semantics/updates.md, UP-8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from lakelet.analysis.plan_facts import Placeholders
from lakelet.jvm.frames import analyzed
from lakelet.jvm.scala import items

_UNCHANGED = {"Filter", "SubqueryAlias", "View"}
_LISTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_TYPES = {"date", "string", "tinyint", "smallint", "int", "bigint"}
"""Types with one spelling of each value in a Delta log."""


@dataclass(frozen=True)
class PartitionSource:
    """Rows of a view with a value of `column` depend only on rows of the dataset `key` with the same value of `source_column`.

    `column`: a partition column of the view. `type`: Spark's name of the type of both.
    """

    column: str
    key: str
    source_column: str
    type: str


def partition_source(frame: DataFrame, placeholders: Placeholders, partition_cols: Sequence[str]) -> PartitionSource | None:
    """Return the source of the first partition column that can be traced; None if the query does more than filter, compute and group."""
    plan = analyzed(frame)
    if not partition_cols or plan.subqueriesAll().size():
        return None
    columns = {str(a.name()).lower(): a for a in items(plan.output())}
    for name in partition_cols:
        attribute = columns.get(name.lower())
        if attribute is not None and attribute.dataType().simpleString() in _TYPES:
            found = _traced(plan, int(attribute.exprId().id()), placeholders)
            if found is not None:
                return PartitionSource(name, *found, str(attribute.dataType().simpleString()))
    return None


def _traced(node: Any, column: int, placeholders: Placeholders) -> tuple[str, str] | None:
    """Return key and column of the table whose column passes unchanged to the column with this id; None if there is none."""
    while True:
        key = placeholders.key_of(node)
        if key is not None:
            return next(((key, str(a.name())) for a in items(node.output()) if int(a.exprId().id()) == column), None)
        name = str(node.nodeName())
        if name in _LISTS:
            inner = _passed(items(getattr(node, _LISTS[name])()), column)
            if inner is None or (name == "Aggregate" and inner not in _grouped(node)):
                return None
            column = inner
        elif name not in _UNCHANGED:
            return None
        node = node.children().apply(0)


def _passed(expressions: Sequence[Any], column: int) -> int | None:
    """Return the id of the column that a list of expressions passes on as the id `column`; None if it is computed."""
    for expression in expressions:
        if int(expression.exprId().id()) == column:
            inner = expression.child() if expression.nodeName() == "Alias" else expression
            return int(inner.exprId().id()) if inner.nodeName() == "AttributeReference" else None
    return None


def _grouped(aggregate: Any) -> set[int]:
    return {int(e.exprId().id()) for e in items(aggregate.groupingExpressions()) if e.nodeName() == "AttributeReference"}
