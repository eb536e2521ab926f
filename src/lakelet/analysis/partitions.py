"""Which partitions of its input a partition of a materialized view is made of, read off the analysed plan.

A view whose rows of one day are made of one day's rows of one table can be brought up to date day by day (docs/semantics/updates.md, UP-8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from lakelet.analysis.plan_facts import Placeholders

_UNCHANGED = {"Filter", "SubqueryAlias", "View"}
_LISTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_TYPES = {"date", "string", "tinyint", "smallint", "int", "bigint"}
"""Types whose values a Delta log spells in one way."""


@dataclass(frozen=True)
class PartitionSource:
    """A view's row with a value of `column` is made of rows of the dataset `key` with the same value of `source_column`, and of no others.

    `column`: a partition column of the view. `type`: of both, in Spark's words.
    """

    column: str
    key: str
    source_column: str
    type: str


def partition_source(frame: DataFrame, placeholders: Placeholders, partition_cols: Sequence[str]) -> PartitionSource | None:
    """What the first partition column that can be traced says; None if the query does more than filter, compute and group."""
    plan = frame._jdf.queryExecution().analyzed()
    if not partition_cols or plan.subqueriesAll().size():
        return None
    columns = {str(a.name()).lower(): a for a in _each(plan.output())}
    for name in partition_cols:
        attribute = columns.get(name.lower())
        if attribute is not None and attribute.dataType().simpleString() in _TYPES:
            found = _traced(plan, int(attribute.exprId().id()), placeholders)
            if found is not None:
                return PartitionSource(name, *found, str(attribute.dataType().simpleString()))
    return None


def _traced(node: Any, column: int, placeholders: Placeholders) -> tuple[str, str] | None:
    """Key and column of the table from which the column with this id comes as it is."""
    while True:
        key = placeholders.key_of(node)
        if key is not None:
            return next(((key, str(a.name())) for a in _each(node.output()) if int(a.exprId().id()) == column), None)
        name = str(node.nodeName())
        if name in _LISTS:
            inner = _passed(_each(getattr(node, _LISTS[name])()), column)
            if inner is None or (name == "Aggregate" and inner not in _grouped(node)):
                return None
            column = inner
        elif name not in _UNCHANGED:
            return None
        node = node.children().apply(0)


def _passed(expressions: Sequence[Any], column: int) -> int | None:
    """Id of the column that a list of expressions passes on under the id `column`, as it is or under another name."""
    for expression in expressions:
        if int(expression.exprId().id()) == column:
            inner = expression.child() if expression.nodeName() == "Alias" else expression
            return int(inner.exprId().id()) if inner.nodeName() == "AttributeReference" else None
    return None


def _grouped(aggregate: Any) -> set[int]:
    return {int(e.exprId().id()) for e in _each(aggregate.groupingExpressions()) if e.nodeName() == "AttributeReference"}


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
