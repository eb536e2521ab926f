"""Flows whose rows take the place of others (docs/semantics/replacing.md).

REPLACE WHERE (RP-1) computes a part of its table in each update: `decide_part`, `run_part`. REPLACE USING (RP-2) replaces the rows with
the same keys in each micro-batch: `arrived`. There the table itself is the state: of each key it has the rows with the greatest sequence
that has arrived, and that is computed from them. In: rows of the flow. Out: an exchange, which `storage.delta.replaced_rows` commits.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.base.names import quoted
from lakelet.flows.context import FlowTask
from lakelet.flows.failures import failures_of
from lakelet.flows.key_ranges import KeyRanges
from lakelet.flows.metrics import Totals, counted_query, emit_batch, query_metrics
from lakelet.flows.target_table import emit_mapping, finish
from lakelet.flows.views import view_state
from lakelet.jvm.expressions import by_names, column, with_constants
from lakelet.jvm.frames import analyzed, without_rows
from lakelet.language.model import Replacement
from lakelet.plan.decisions import Decision, Strategy, view_decision
from lakelet.spark.expectations.measure import judged
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta.replaced_rows import GOES, replace_rows

_ROW = "__lakelet_row"


def decide_part(task: FlowTask) -> Decision:
    """Whether the part of the table that the condition names must be computed."""
    stored, log = task.stored(), task.environment.memory.log(task.path())
    exists = log.version() >= 0 and stored.version is not None
    found = view_state(task, stored.input_versions)
    decision = view_decision(stored.fingerprint if exists else None, stored.input_versions, found)
    if decision.strategy is Strategy.SKIP and stored.version is not None and log.content_version(stored.version) != stored.version:
        return Decision(Strategy.REPLACE, "its table changed")
    return decision if decision.strategy is Strategy.SKIP else Decision(Strategy.REPLACE, decision.reason)


def run_part(task: FlowTask) -> Totals:
    """Compute the rows for which the condition is true, and replace by them those that the table has (RP-1).

    Raises LakeletError; then the table is as before.
    """
    environment, totals = task.environment, Totals()
    replaces = task.declared.replaces
    assert replaces is not None
    state = view_state(task, task.stored().input_versions)  # before reading: newer data only means one more run
    with flow_session(environment.spark, task.conf) as spark:
        observation = Observation(f"lakelet_{uuid.uuid4().hex}")
        with failures_of(task), counted_query(task, spark) as (reader, frame):
            measure = partial(query_metrics, task, reader, observation, event_id=str(uuid.uuid4()))
            condition = at_one_time(frame, replaces.where)
            rows = judged(frame.alias(_ROW).where(condition), task.dataset.expectations, observation, samples=task.samples)
            spec = task.table_spec(frame.schema)
            written = replace_rows(spark, task.path(), _Part(condition, rows), spec, measure=measure)
    assert written is not None  # nothing is looked up without `replayed`
    if written.mapped:
        emit_mapping(task, spec.schema)
    totals.add(written.metrics)
    finish(task, totals)
    version = environment.memory.log(task.path()).version() if written.version is None else written.version
    stored = replace(task.stored(), fingerprint=state.fingerprint, input_versions=dict(state.inputs), version=version)
    environment.storage.remember(stored)
    reached("view.recorded")
    emit_batch(environment.reporter, written.metrics)
    return totals


def at_one_time(frame: DataFrame, condition: Any) -> Column:
    """The condition as a Column for every frame with these columns and the alias `_ROW`; `current_date()` and its like are constants in it.

    Spark evaluates them once for each query: if midnight passed between two queries, rows would be left out or doubled.
    """
    spark = frame.sparkSession
    plan = with_constants(spark, analyzed(without_rows(frame).where(condition)), at_one_time=True)
    return column(spark, by_names(spark, plan.condition(), _ROW))


@dataclass(frozen=True)
class _Part:
    """One exchange of a part of a table (`replaced_rows.Exchange`): `rows` replace those for which `condition` is true."""

    condition: Column
    rows: DataFrame

    def within(self, stored: DataFrame) -> DataFrame:
        return stored.alias(_ROW).where(self.condition)

    def with_stored_rows(self, stored: DataFrame) -> _Part:
        return self

    def leaving(self, stored: DataFrame) -> DataFrame:
        return stored.alias(_ROW).withColumn(GOES, F.coalesce(self.condition, F.lit(False)))

    def arriving(self) -> DataFrame:
        return self.rows


_SEQUENCE, _NEWEST, _STORED = "__lakelet_sequence", "__lakelet_newest", "__lakelet_stored"


@contextmanager
def arrived(batch: DataFrame, replaces: Replacement) -> Iterator[ArrivedKeys]:
    """The exchange of one micro-batch, usable in the context. Raises REPLACE_NULL_SEQUENCE; then nothing was written."""
    rows = batch.withColumn(_SEQUENCE, _sequence(replaces)).persist()
    try:
        ranges = _ranges(rows, replaces.keys)
        newest = rows.groupBy(*(_column(key).alias(_key(at)) for at, key in enumerate(replaces.keys))).agg(F.max(_SEQUENCE).alias(_NEWEST))
        yield ArrivedKeys(replaces, rows, newest, ranges)
    finally:
        rows.unpersist()


@dataclass(frozen=True)
class ArrivedKeys:
    """The exchange of one micro-batch (`replaced_rows.Exchange`).

    rows: the batch, with the sequence of each row. newest: its keys, each with its greatest sequence. ranges: a condition on the keys that
    is true for all of these. compared: `newest` with the greatest sequence that the table has of each key, NULL for none.
    """

    replaces: Replacement
    rows: DataFrame
    newest: DataFrame
    ranges: Column
    compared: DataFrame | None = None

    def within(self, stored: DataFrame) -> DataFrame:
        return stored.where(self.ranges)

    def with_stored_rows(self, stored: DataFrame) -> ArrivedKeys:
        sequences = stored.withColumn(_SEQUENCE, _sequence(self.replaces))
        known = sequences.join(self.newest, self._same_key()).groupBy(*self._keys()).agg(F.max(_SEQUENCE).alias(_STORED))
        theirs = known.toDF(*(f"{name}_known" for name in self._keys()), _STORED)
        same = reduce(lambda a, b: a & b, [F.col(name).eqNullSafe(F.col(f"{name}_known")) for name in self._keys()])
        compared = self.newest.join(theirs, same, "left").select(*self._keys(), _NEWEST, _STORED)
        return dataclasses.replace(self, compared=compared.localCheckpoint())

    def leaving(self, stored: DataFrame) -> DataFrame:
        """The rows of a key go if all that the table has of it are older than the newest that arrived."""
        assert self.compared is not None
        goes = F.col(_NEWEST).isNotNull() & (F.col(_STORED).isNull() | (F.col(_NEWEST) > F.col(_STORED)))
        joined = stored.join(self.compared, self._same_key(), "left")
        return joined.select(*map(_column, stored.columns), goes.alias(GOES))

    def arriving(self) -> DataFrame:
        """The newest rows of each key that are not older than what the table has of it."""
        newest = F.max(_SEQUENCE).over(Window.partitionBy(*map(_column, self.replaces.keys)))
        rows = self.rows.withColumn(_NEWEST, newest).where(F.col(_SEQUENCE) == F.col(_NEWEST)).drop(_NEWEST)
        if self.compared is not None:
            rows = rows.join(self.compared.where(F.col(_NEWEST) < F.col(_STORED)), self._same_key(), "left_anti")
        return rows.drop(_SEQUENCE)

    def _keys(self) -> list[str]:
        return [_key(at) for at in range(len(self.replaces.keys))]

    def _same_key(self) -> Column:
        """When a row of the batch or table has the key of a row of `newest`; NULL is a value like others."""
        pairs = zip(self.replaces.keys, self._keys(), strict=True)
        return reduce(lambda a, b: a & b, [_column(key).eqNullSafe(F.col(name)) for key, name in pairs])


def _ranges(rows: DataFrame, keys: tuple[str, ...]) -> Column:
    """A condition on the keys that is true for those of all the rows; literals in it let Delta leave files out."""
    kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
    columns = [_column(key) for key in keys]
    unknown = F.sum(F.col(_SEQUENCE).isNull().cast("long"))
    found = KeyRanges.of(rows, columns, [kinds[key.lower()] for key in keys], unknown)
    (unordered,) = found.more
    if unordered:
        raise LakeletError(
            "REPLACE_NULL_SEQUENCE",
            f"{unordered} row(s) have no value for SEQUENCE BY",
            todo="Filter them out with an expectation or in the query, or give them a value.",
        )
    return found.condition(columns)


def _sequence(replaces: Replacement) -> Column:
    given = replaces.sequence_by
    return F.expr(given) if isinstance(given, str) else given


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _key(at: int) -> str:
    return f"__lakelet_key_{at}"


__all__ = ["ArrivedKeys", "arrived", "at_one_time", "decide_part", "run_part"]
