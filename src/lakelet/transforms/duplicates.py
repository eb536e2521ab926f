"""Rows that are there more than once, and how long a stream waits for late ones."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DateType, StructType, TimestampNTZType, TimestampType

from .applied import OneToOne, transform
from .columns import column, find, listed, place, quoted
from .errors import TransformError, argument_error, streaming_error

_NUMBER = "__lakelet_number"


@transform
def add_watermark(timestamp: str, delay: str) -> OneToOne:
    """Say that rows of a stream come at most `delay` (as `10 minutes`) later than the latest `timestamp` seen. Batches are unchanged.

    Raises:
        TransformError: TRANSFORM_TYPE if the column is not a timestamp.

    >>> from lakelet.transforms import add_watermark
    >>> spark.sql("SELECT current_timestamp() AS at").transform(add_watermark("at", "10 minutes")).columns
    ['at']
    """
    if not delay.strip():
        raise argument_error("add_watermark", "the delay is empty")

    def run(frame: DataFrame) -> DataFrame:
        name = find(frame.columns, timestamp, "add_watermark")
        data_type = place(frame.schema, name, "add_watermark").data_type
        if not isinstance(data_type, TimestampType | TimestampNTZType):
            what = f"add_watermark: column {name!r} is {data_type.simpleString()}, not a timestamp"
            raise TransformError("TRANSFORM_TYPE", what, todo="Cast it first, with alter_types")
        return frame.withWatermark(quoted(name), delay)

    return run


@transform
def drop_duplicates(*columns: str, within_watermark: bool = False) -> OneToOne:
    """Keep one row of those that are equal in `columns` (none given: in all). Which one is Spark's choice; `deduplicate` chooses.

    On a stream Spark remembers every key for ever; with `within_watermark` (which needs `add_watermark` before) only until the watermark
    has passed it, so that a duplicate that comes later than that is kept. A batch has no watermark: all its duplicates go.

    >>> from lakelet.transforms import drop_duplicates
    >>> spark.createDataFrame([(1, "a"), (1, "a"), (2, "a")], "id INT, a STRING").transform(drop_duplicates("ID")).count()
    2
    """

    def run(frame: DataFrame) -> DataFrame:
        names = [find(frame.columns, name, "drop_duplicates") for name in columns or frame.columns]
        return frame.dropDuplicatesWithinWatermark(names) if within_watermark and frame.isStreaming else frame.dropDuplicates(names)

    return run


@transform
def deduplicate(keys: str | Sequence[str], order_by: str | Column | Sequence[str | Column]) -> OneToOne:
    """Keep the first row of each key in the order of `order_by`, as `F.desc("updated_at")`.

    Rows that are equal in `order_by` are ordered by their other columns (arrays, maps and structs by their JSON), so that the result
    depends on the set of rows alone.

    NULL is a key like any other. All rows must be at hand: a stream is refused; `drop_duplicates` and `apply_changes` do it there.

    Raises:
        TransformError: TRANSFORM_STREAMING, TRANSFORM_UNKNOWN_COLUMN.

    >>> from lakelet.transforms import deduplicate
    >>> rows = spark.createDataFrame([(1, 10, "old"), (1, 20, "new")], "id INT, seq INT, a STRING")
    >>> rows.transform(deduplicate("id", order_by=F.desc("seq"))).collect()
    [Row(id=1, seq=20, a='new')]
    """
    why = "The first row of a key is not known before the last row has come"
    todo = "Use drop_duplicates with a watermark, apply_changes, or deduplicate_micro_batch in a foreachBatch function"
    return _first_of_each("deduplicate", keys, order_by, why, todo)


@transform
def deduplicate_micro_batch(keys: str | Sequence[str], order_by: str | Column | Sequence[str | Column]) -> OneToOne:
    """As `deduplicate`, for the frame that a `foreachBatch` function (`@dlt.foreach_batch_sink`) gets.

    Duplicates within one micro-batch go, those in different micro-batches stay.

    Raises:
        TransformError: TRANSFORM_STREAMING for the stream itself.

    >>> from lakelet.transforms import deduplicate_micro_batch
    >>> def write(batch, batch_id):
    ...     return batch.transform(deduplicate_micro_batch("id", F.desc("seq"))).collect()
    >>> write(spark.createDataFrame([(1, 10), (1, 20)], "id INT, seq INT"), 0)
    [Row(id=1, seq=20)]
    """
    why = "A stream is one endless frame; its micro-batches are seen only by a foreachBatch function"
    todo = "Call it in the function of a foreach_batch_sink, or use drop_duplicates with a watermark"
    return _first_of_each("deduplicate_micro_batch", keys, order_by, why, todo)


def _first_of_each(name: str, keys: str | Sequence[str], order_by: str | Column | Sequence[str | Column], why: str, todo: str) -> OneToOne:
    wanted = listed(name, keys, "keys")
    order = [order_by] if isinstance(order_by, str | Column) else list(order_by)
    if not order:
        raise argument_error(name, "order_by is empty")

    def run(frame: DataFrame) -> DataFrame:
        if frame.isStreaming:
            raise streaming_error(name, why, todo)
        found = [find(frame.columns, key, name) for key in wanted]
        first = [column(find(frame.columns, one, name)) if isinstance(one, str) else one for one in order]
        rest = [_orderable(frame.schema, one) for one in frame.columns if one not in found]
        window = Window.partitionBy(*map(column, found)).orderBy(*first, *rest)
        numbered = frame.select("*", F.row_number().over(window).alias(_NUMBER))
        return numbered.where(F.col(_NUMBER) == 1).select(*map(column, frame.columns))

    return run


def _orderable(schema: StructType, name: str) -> Column:
    """A value to order rows by, for columns of every type."""
    data_type = place(schema, name, "deduplicate").data_type
    if isinstance(data_type, AtomicType | DateType):
        return column(name)
    return F.to_json(F.struct(column(name)), {"ignoreNullFields": "false"})
