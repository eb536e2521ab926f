"""Heads: the last event of each key, by which a batch knows the keys whose stored events it needs.

An event that comes after all others of its key changes only the row that is open. That row has the values of the last upsert, and the
hidden column `__lakelet_seq` its sequence. Open rows of a history are a part of their own, so that a batch in order reads nothing that has
ended. The part `last` has the sequence of a last event that no open row says: of a delete, or of an upsert that changed nothing. Rows are
only added to it; of several for one key the highest counts. Keys with an event that is not after their last one are late: all their events
are read (docs/decisions/0094-cost-of-change-batches.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.cdc.changes import AUTHORED, DELETED, END, RULE, SEQ, START, TRUNCATES, Layout, col
from lakelet.cdc.literals import portable
from lakelet.cdc.mirror import LAST, OPEN, PART, ROWS, STATE, VISIBLE
from lakelet.cdc.state import ALL_LEAVES, ChangeState
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.storage.delta.transaction import Transaction
from lakelet.storage.root import INTERNAL

SINCE = "__head_since"
"""Column of events that stand for a head: the start of its version."""

REACHED = "lakelet.reached"
"""Key in the user metadata of commits: the highest sequence of all stored events, in its portable form."""

_LOOK_BACK = 5  # commits


@dataclass(frozen=True)
class Reach:
    """What a batch needs of the stored events of its keys: of the `late` ones all (None: there are no late keys), of the others the head.

    whole: all events of every touched key. everything: all keys are touched.
    """

    whole: bool
    late: DataFrame | None = None
    everything: bool = False

    @property
    def in_order(self) -> bool:
        """Whether heads are all that is needed."""
        return not self.whole and self.late is None


WHOLE, EVERYTHING, IN_ORDER = Reach(True), Reach(True, everything=True), Reach(False)


def current(shape: Layout) -> str:
    """The part that has the rows of heads."""
    return OPEN if shape.history else ROWS


def in_parts(rows: DataFrame, state: ChangeState, shape: Layout) -> DataFrame:
    """Visible rows with their parts."""
    return rows.withColumn(PART, part_of_rows(state, shape))


def part_of_rows(state: ChangeState, shape: Layout) -> Column:
    """The part of a visible row."""
    if not (state.heads and shape.history):
        return F.lit(ROWS)
    return F.when(col(END).isNull(), F.lit(OPEN)).otherwise(F.lit(ROWS))


def last_events(events: DataFrame, shape: Layout) -> DataFrame:
    """Rows of the part `last`: of each key the last one of all its `events`; of a delete and an upsert of type 1, the upsert."""
    newest = F.max(F.struct(SEQ, (~F.col(DELETED)).alias("live")))
    found = events.groupBy(*map(col, shape.keys)).agg(newest.alias("__last"))
    last = F.col("__last")
    return found.select(*map(col, shape.keys), last[SEQ].alias(SEQ), (~last["live"]).alias(DELETED), F.lit(LAST).alias(PART))


def as_events(rows: DataFrame, state: ChangeState, shape: Layout) -> DataFrame:
    """Rows of heads as the events that they stand for: each sets every column."""
    marks = {DELETED: F.lit(False), "__fresh": F.lit(False)}
    if state.ruled:
        marks[RULE] = F.lit(ALL_LEAVES)
    if state.named:
        marks[AUTHORED] = F.lit(None).cast("array<string>")
    since = [col(START).alias(SINCE)] if shape.history else []
    return rows.select(*map(col, shape.columns.fieldNames()), SEQ, *since).withColumns(marks)


def late_keys(batch: DataFrame, stored: DataFrame, shape: Layout) -> DataFrame:
    """The keys of a batch with an event that is not after their last stored one."""
    keys = list(shape.keys)
    first = batch.where(~F.col(TRUNCATES)).groupBy(*map(col, keys)).agg(F.min(SEQ).alias("__first"))
    heads = stored.where(F.col(PART).isin(current(shape), LAST)).select(*map(col, keys), SEQ)
    last = heads.groupBy(*map(col, keys)).agg(F.max(SEQ).alias("__last"))
    return first.join(last, keys).where(F.col("__first") <= F.col("__last")).select(*map(col, keys))


def in_order_heads(stored: DataFrame, touched: DataFrame, late: DataFrame | None, shape: Layout) -> DataFrame:
    """The rows of the heads of touched keys that are not late."""
    keys = list(shape.keys)
    found = stored.where(F.col(PART) == current(shape)).join(touched, keys, "left_semi")
    return found if late is None else found.join(late, keys, "left_anti")


def open_rows(session: SparkSession, target: AnyPath) -> DataFrame:
    """The rows of a history that have no end, with the columns of its internal table. Of the other rows nothing is read."""
    transaction = Transaction(session, target / INTERNAL)
    rows = transaction.rows()
    if ChangeState.from_properties(transaction.properties).heads:
        return rows.where(F.col(PART) == OPEN)
    return rows.where(F.col(PART).isin(*VISIBLE) & col(END).isNull())


# --- the highest sequence so far ----------------------------------------------------------------------------------------------------------


def reached_by(inner: AnyPath) -> Any:
    """The highest sequence of all stored events as the newest commit with rows says it; None where it does not."""
    log = TableLog(inner)
    newest = log.version()
    for version in range(newest, max(-1, newest - _LOOK_BACK), -1):
        commit = log.commit(version)
        if commit is None or (commit.user_metadata or {}).get(REACHED) is not None or commit.added or commit.changed:
            return None if commit is None else (commit.user_metadata or {}).get(REACHED)
    return None


def reached_in(stored: DataFrame, shape: Layout) -> Any:
    """The highest sequence of all stored events, by reading them."""
    found = stored.where(F.col(PART) == STATE).agg(portable(F.max(SEQ), shape.sequence)).first()
    return None if found is None else as_json(found[0])


def is_kept(kind: T.DataType) -> bool:
    """Whether commits keep the highest sequence of a type: JSON gives its values back as they were."""
    if isinstance(kind, T.StructType):
        return all(is_kept(field.dataType) for field in kind.fields)
    return isinstance(kind, T.IntegralType | T.StringType | T.DateType | T.TimestampType | T.TimestampNTZType)


def as_json(value: Any) -> Any:
    """A portable sequence as the metadata of a commit keeps it."""
    return [as_json(part) for part in value] if isinstance(value, tuple) else value


def kept(reached: Any, state: ChangeState, shape: Layout) -> Mapping[str, Any]:
    """The user metadata that says it; nothing for tables that do not need it. `reached`: in portable form."""
    return {REACHED: as_json(reached)} if state.heads and reached is not None and is_kept(shape.sequence) else {}


__all__ = [
    "EVERYTHING",
    "IN_ORDER",
    "SINCE",
    "WHOLE",
    "Reach",
    "as_events",
    "as_json",
    "current",
    "in_order_heads",
    "in_parts",
    "is_kept",
    "kept",
    "last_events",
    "late_keys",
    "open_rows",
    "part_of_rows",
    "reached_by",
    "reached_in",
]
