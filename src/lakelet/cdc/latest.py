"""Type 1 in row mode: the latest event of a key is its row (CD-2). Needs the winners' sequences and tombstones only.

A batch becomes actions, one row each, that one MERGE carries out. Tombstones lie in the part `state`, so that a deleted row leaves the part
that readers see as a true delete; they are also written for deletes that lost, which does no harm.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from lakelet.base.names import quoted
from lakelet.cdc.change_table import Retention, dated
from lakelet.cdc.changes import BURIED, DELETED, SEQ, TRUNCATES, Layout, col, same_values
from lakelet.cdc.counts import BURY, CLEAR, TRUNCATE
from lakelet.cdc.literals import literal, portable
from lakelet.cdc.mirror import PART, ROWS, STATE

ACTION = "__lakelet_action"
_FRESH = "__lakelet_fresh"
UPSERT, DELETE = "upsert", "delete"


def folded(events: DataFrame, shape: Layout) -> DataFrame:
    """Of the events of a key the one that counts: the highest sequence; of a delete and an upsert with the same one, the upsert.

    Same columns as before. Truncates and events without sequence stay beside them, so that the result shows both.
    """
    rest = [col(f.name) for f in shape.columns.fields if f.name not in shape.keys]
    latest = F.max_by(F.struct(*rest, SEQ, DELETED), F.struct(F.col(SEQ), (~F.col(DELETED)).alias("live")))
    groups = [*(col(key) for key in shape.keys), F.col(TRUNCATES), F.col(SEQ).isNull().alias("__none")]
    found = events.groupBy(*groups).agg(latest.alias("__latest"))
    kept = [col(n) if n in shape.keys else F.col("__latest")[n].alias(n) for n in shape.columns.fieldNames()]
    return found.select(*kept, *(F.col("__latest")[n].alias(n) for n in (SEQ, DELETED)), TRUNCATES)


def winners(events: DataFrame) -> DataFrame:
    """The rows of `folded` that are events of a key."""
    return events.where(~F.col(TRUNCATES)).drop(TRUNCATES)


def first_rows(events: DataFrame, shape: Layout, truncate: Any, retention: Retention | None) -> DataFrame:
    """Rows of an empty internal table after its first batch, of which `events` are folded."""
    won = dated(winners(events), retention)
    if truncate is not None:
        won = won.where(F.col(DELETED) | ~_before(F.col(SEQ), truncate, shape))
    placed = won.withColumn(PART, F.when(F.col(DELETED), F.lit(STATE)).otherwise(F.lit(ROWS)))
    return placed if truncate is None else placed.unionByName(truncate_row(placed, truncate, shape))


def refolded(
    events: DataFrame, inner: DataFrame, shape: Layout, truncate: Any, retention: Retention | None, counted: Observation, *, marks: bool
) -> DataFrame:
    """All rows of the internal table after a batch, in one pass: the latest event of each key, stored or new.

    For a table so small that writing it again costs less than looking for the files to change.

    Args:
        events: of the batch, not folded.
        truncate: the highest truncate's sequence so far, this batch's included; None if there was none.
        counted: gets `upserted` and `deleted`, rows of the target.
        retention: how long tombstones count; None for ever.
        marks: the truncate is of this batch and replaces what was remembered of earlier ones.
    """
    live, fresh = ~F.col(DELETED), F.col(_FRESH)
    keyed = col(shape.keys[0]).isNotNull()
    kept_ones = inner.where(keyed if retention is None else keyed & ~retention.expired())
    stored, new = kept_ones.drop(PART).withColumn(_FRESH, F.lit(False)), dated(winners(events), retention).withColumn(_FRESH, F.lit(True))
    both = stored.unionByName(new, allowMissingColumns=True)
    others = [n for n in both.columns if n not in shape.keys]
    latest = F.max_by(F.struct(*map(col, others)), F.struct(F.col(SEQ), live.alias("live"), fresh))
    found = both.groupBy(*map(col, shape.keys)).agg(latest.alias("__latest"), F.max(~fresh & live).alias("__had"))
    found = found.select(*map(col, shape.keys), *(F.col("__latest")[n].alias(n) for n in others), "__had")
    gone = F.lit(False) if truncate is None else live & _before(F.col(SEQ), truncate, shape)
    placed = found.withColumns({PART: F.when(F.col(DELETED), F.lit(STATE)).otherwise(F.lit(ROWS)), "__gone": gone})
    lost, kept = F.col("__had") & (F.col("__gone") | (fresh & F.col(DELETED))), ~F.col("__gone")
    counts = {"upserted": fresh & live & kept, "deleted": lost}
    observed = placed.observe(counted, *(F.sum(value.cast("long")).alias(name) for name, value in counts.items()))
    rows = observed.where(kept).drop(_FRESH, "__had", "__gone")
    if truncate is None:
        return rows
    known = truncate_row(rows, truncate, shape) if marks else inner.where(~keyed)
    return rows.unionByName(known, allowMissingColumns=True)


def actions(
    events: DataFrame, inner: DataFrame, shape: Layout, truncate: Any, retention: Retention | None, *, buries: bool, marks: bool
) -> DataFrame:
    """What a batch does to the internal table: its columns and ACTION.

    Args:
        events: of the batch, folded.
        truncate: the highest truncate's sequence so far, this batch's included; None if there was none.
        retention: how long tombstones count; None for ever.
        buries: the flow can delete, so there may be tombstones.
        marks: the truncate is of this batch and must be remembered.
    """
    won = dated(winners(events), retention)
    if truncate is not None:
        won = won.where(F.col(DELETED) | ~_before(F.col(SEQ), truncate, shape))
    if not buries:
        found = won.select("*", F.lit(ROWS).alias(PART), F.lit(UPSERT).alias(ACTION))
    else:
        keys = list(shape.keys)
        stored = inner.where((F.col(PART) == STATE) & col(keys[0]).isNotNull())
        old = F.lit(False) if retention is None else retention.expired()
        graves = stored.where(~old).select(*map(col, keys), F.col(SEQ).alias("__grave"))
        grave, columns = F.col("__grave"), [col(n) for n in won.columns]
        steps = (
            F.when(F.col(DELETED) & (grave.isNull() | (F.col(SEQ) > grave)), _steps((ROWS, DELETE), (STATE, BURY)))
            .when(F.col(DELETED), _steps())
            .when(grave.isNull(), _steps((ROWS, UPSERT)))
            .when(F.col(SEQ) >= grave, _steps((ROWS, UPSERT), (STATE, CLEAR)))
        )
        each = won.join(graves, keys, "left").select(*columns, F.explode(steps).alias("__step"))
        found = each.select(*columns, F.col("__step")[PART].alias(PART), F.col("__step")[ACTION].alias(ACTION))
        if retention is not None:
            forgotten = stored.where(old).select(*map(col, keys), PART).join(won, keys, "left_anti")
            found = found.unionByName(forgotten.withColumn(ACTION, F.lit(CLEAR)), allowMissingColumns=True)
    if truncate is None or not marks:
        return found
    return found.unionByName(truncate_row(found.drop(ACTION), truncate, shape).withColumn(ACTION, F.lit(TRUNCATE)))


def changing(actions: DataFrame, inner: DataFrame, shape: Layout) -> DataFrame:
    """The actions without upserts that a row stands against or is equal to: MERGE would write the files of such rows again."""
    keys, columns = list(shape.keys), shape.columns.fieldNames()
    known = {name.lower() for name in inner.columns}
    values = F.struct(*(col(name) if name.lower() in known else F.lit(None).alias(name) for name in columns))
    rows = inner.where(F.col(PART) == ROWS).select(*map(col, keys), F.col(SEQ).alias("__old"), same_values(values).alias("__values"))
    same = (F.col(SEQ) == F.col("__old")) & (same_values(F.struct(*map(col, columns))) == F.col("__values"))
    stands = (F.col(ACTION) == UPSERT) & F.coalesce((F.col("__old") > F.col(SEQ)) | same, F.lit(False))
    return actions.join(rows, keys, "left").where(~stands).drop("__old", "__values")


def _steps(*steps: tuple[str, str]) -> Column:
    if not steps:
        return F.lit(None)
    return F.array(*(F.struct(F.lit(part).alias(PART), F.lit(action).alias(ACTION)) for part, action in steps))


def last_truncate(inner: DataFrame, shape: Layout, now: Any) -> tuple[Any, bool]:
    """The highest truncate's sequence so far, `now` (of the batch, or None) included; None if there was none. And whether it is `now`."""
    stored = F.max(SEQ)
    higher = F.lit(False) if now is None else F.coalesce(stored < literal(now, shape.sequence), F.lit(True))
    marks = inner.where((F.col(PART) == STATE) & col(shape.keys[0]).isNull())
    found = marks.agg(portable(stored, shape.sequence), higher).first()
    assert found is not None
    return (now, True) if found[1] else (found[0], False)


def merge(table: Any, source: DataFrame, shape: Layout, retention: Retention | None, *, condition: Column, truncate: Any) -> Any:
    """The MERGE, ready to be executed. `condition`: when a row of the table (`t`) and an action (`s`) belong together."""
    seq, old = F.col(f"s.{SEQ}"), F.col(f"t.{SEQ}")
    action = F.col(f"s.{ACTION}")
    first = old.isNull()  # a row put there by hand, which counts as before all events
    dead = first | (seq > old)
    if truncate is not None:
        dead = dead | _before(old, truncate, shape)
    digs = seq > old if retention is None else (seq > old) | retention.expired("t.")
    grave = {n: F.col(f"s.{n}") for n in (SEQ, BURIED) if n in source.columns}
    values = {quoted(n): F.col(f"s.{quoted(n)}") for n in source.columns if n != ACTION}
    built = (
        table.alias("t")
        .merge(source.alias("s"), condition)
        .whenMatchedDelete((action == CLEAR) | ((action == DELETE) & dead))
        .whenMatchedUpdate((action == UPSERT) & (first | (seq >= old)), values)
        .whenMatchedUpdate((action == BURY) & digs, grave)
        .whenNotMatchedInsert(action.isin(UPSERT, BURY, TRUNCATE), values)
    )
    if truncate is None:
        return built
    return built.whenNotMatchedBySourceDelete((F.col(f"t.{PART}") == ROWS) & _before(old, truncate, shape))


def _before(seq: Column, truncate: Any, shape: Layout) -> Column:
    return seq.isNull() | (seq < literal(truncate, shape.sequence))


def truncate_row(like: DataFrame, truncate: Any, shape: Layout) -> DataFrame:
    """The state row that remembers a truncate: no keys, its sequence."""
    known = {SEQ: literal(truncate, shape.sequence), DELETED: F.lit(True), PART: F.lit(STATE)}
    columns = [known.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in like.schema.fields]
    return like.sparkSession.range(1).select(*columns)
