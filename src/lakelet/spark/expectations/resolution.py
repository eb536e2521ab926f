"""Which columns the constraint of a rule sees. Analysis and runs both ask here, so what passes analysis resolves in the run.

First the columns that the query returns, then those that a join by name hides (EP-12), then those that the last projections of the query
leave out or rename (EP-14). A condition of Spark's `filter` sees the last ones, a selected column does not: Spark adds them to the
projections below the filter. The rows below the filter are taken, and the result of the rule is selected there.

A query that fails analysis ends the observations in it, those of the views that it reads. So what may fail is tried on the plan without
observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.jvm.expressions import column, with_children
from lakelet.jvm.frames import analyzed, replanned, without_rows
from lakelet.jvm.scala import items

CHECKS = "__lakelet_checks"
"""The column that `checked` adds."""
RESULT = "__lakelet_result_"
"""How the columns begin that `on_own_columns` adds."""

_ONE_OF_ONE = frozenset(
    {
        *("Project", "Filter", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Generate", "Window", "CollectMetrics"),
        *("EventTimeWatermark", "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint"),
    }
)
"""Operators each of whose rows is made of one row below."""
_OBSERVES = "CollectMetrics"


@dataclass(frozen=True)
class ResolvedConditions:
    """Conditions that name columns of `rows` only, which have a column `RESULT`… for each condition that needed more.

    `below`: the positions of those that name a column which the last projections of the query leave out or rename.
    """

    rows: DataFrame
    conditions: tuple[Column, ...]
    below: frozenset[int] = frozenset()


def checked(rows: DataFrame, conditions: Sequence[Column]) -> tuple[DataFrame, ResolvedConditions]:
    """Return the rows with the struct `CHECKS` of the conditions as `r0`, `r1` …, and what the struct is made of.

    Raises what Spark raises about a condition that finds its columns nowhere.
    """
    tried = _unobserved(rows)
    with suppress(PySparkException):
        checks = _with_checks(tried, conditions)
        return checks if tried is rows else _with_checks(rows, conditions), ResolvedConditions(rows, tuple(conditions))
    found = on_own_columns(rows, conditions)
    return _with_checks(found.rows, found.conditions), found


def on_own_columns(rows: DataFrame, conditions: Sequence[Column]) -> ResolvedConditions:
    """Return conditions that the rows answer wherever they are, in a micro-batch too: by the columns they return and results in others.

    Raises what Spark raises about a condition that finds its columns nowhere.
    """
    bare = without_rows(rows)
    tried = _unobserved(rows)
    hidden = [i for i, condition in enumerate(conditions) if not _all_resolve(bare, [condition])]
    below = frozenset(i for i in hidden if not _all_resolve(tried, [conditions[i]]))
    for i in sorted(hidden, key=lambda i: (i in below, i)):  # another projection can hide what a join by name shows
        name = f"{RESULT}{i}"
        rows = _with_result_below(rows, name, conditions[i]) if i in below else rows.withColumn(name, conditions[i])
    results = {i: F.col(f"{RESULT}{i}") for i in hidden}
    return ResolvedConditions(rows, tuple(results.get(i, condition) for i, condition in enumerate(conditions)), below)


def _with_checks(rows: DataFrame, conditions: Sequence[Column]) -> DataFrame:
    return rows.withColumn(CHECKS, F.struct(*(condition.alias(f"r{i}") for i, condition in enumerate(conditions))))


def _all_resolve(rows: DataFrame, conditions: Sequence[Column]) -> bool:
    try:
        _with_checks(rows, conditions)
    except PySparkException:
        return False
    return True


def _with_result_below(rows: DataFrame, name: str, condition: Column) -> DataFrame:
    """Return the rows with the result of a condition on columns below their last projections. Raises what Spark raises about the rows."""
    tried, plan = _unobserved(rows), None
    with suppress(PySparkException):
        plan = analyzed(tried.filter(condition))
    if plan is None or not _finds_below(plan, analyzed(tried)):
        return _with_checks(tried, [condition])  # raises
    filtered, spark = analyzed(rows.filter(condition)).child(), rows.sparkSession
    columns = [column(spark, attribute) for attribute in items(analyzed(rows).output())]
    return replanned(rows, filtered.child()).select(*columns, column(spark, filtered.condition()).alias(name))


def _finds_below(plan: Any, own: Any) -> bool:
    """Whether a filter over the plan `own` found each column of its condition in the one row below that a row of `own` is made of."""
    if plan.nodeName() != "Project" or plan.child().nodeName() != "Filter" or _OBSERVES in own.toString():
        return False
    named = {_id(attribute) for attribute in items(plan.child().condition().references().toSeq())}
    return named <= _columns_of_rows(own)


def _columns_of_rows(plan: Any) -> set[int]:
    found = {_id(attribute) for attribute in items(plan.output())}
    while plan.nodeName() in _ONE_OF_ONE:
        plan = plan.child()
        found |= {_id(attribute) for attribute in items(plan.output())}
    return found


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _unobserved(rows: DataFrame) -> DataFrame:
    """Return the rows without the observations in their plan; those inside of a subquery stay."""
    plan = analyzed(rows)
    return replanned(rows, _without_observations(rows.sparkSession, plan)) if _OBSERVES in plan.toString() else rows


def _without_observations(spark: SparkSession, plan: Any) -> Any:
    before = items(plan.children())
    after = [_without_observations(spark, child) for child in before]
    if plan.nodeName() == _OBSERVES:
        return after[0]
    return plan if all(new is old for new, old in zip(after, before, strict=True)) else with_children(spark, plan, after)


def lost_in(rows: DataFrame, name: str) -> str | None:
    """Return the operator that makes one row of several, such as `Aggregate`, if a column called `name` is below it in the query."""
    plan, operator = analyzed(rows), None
    while plan.children().size() == 1 and plan.nodeName() != "SubqueryAlias":
        if operator is None and plan.nodeName() not in _ONE_OF_ONE:
            operator = str(plan.nodeName())
        plan = plan.children().apply(0)
        if operator is not None and name.lower() in {str(attribute.name()).lower() for attribute in items(plan.output())}:
            return operator
    return None


__all__ = ["CHECKS", "RESULT", "ResolvedConditions", "checked", "lost_in", "on_own_columns"]
