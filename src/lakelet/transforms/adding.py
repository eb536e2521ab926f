"""Columns that say when and where a row comes from, and those to partition by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from .applied import transform
from .columns import listed, place, require_new
from .errors import TransformError, argument_error
from .selecting import drop

OneToOne = Callable[[DataFrame], DataFrame]

_PARTS = {"date": F.to_date, "year": F.year, "quarter": F.quarter, "month": F.month, "day": F.dayofmonth, "hour": F.hour}
_USUAL = ("year", "month", "day")


@transform
def add_current_timestamp(name: str = "_processed_at") -> OneToOne:
    """Add the time at which Spark began to work on the batch or micro-batch, as TIMESTAMP.

    >>> from lakelet.transforms import add_current_timestamp
    >>> spark.range(1).transform(add_current_timestamp()).schema.simpleString()
    'struct<id:bigint,_processed_at:timestamp>'
    """
    listed("add_current_timestamp", name, "name")

    def run(frame: DataFrame) -> DataFrame:
        require_new(frame.columns, [name], "add_current_timestamp")
        return frame.select("*", F.current_timestamp().alias(name))

    return run


@transform
def add_source_file(*, name: str | None = "_file_name", path: str | None = "_file_path") -> OneToOne:
    """Add the name and the whole path of the file that a row was read from, from `_metadata`; None leaves one out.

    Both are spelled as in an address there: a space is `%20`.

    It must be applied to what a reader of files gives, before joins and aggregations.

    Raises:
        TransformError: TRANSFORM_NO_METADATA if the frame was not read from files.

    >>> from lakelet.transforms import add_source_file
    >>> spark.read.text("README.md").transform(add_source_file(path=None)).select("_file_name").first()
    Row(_file_name='README.md')
    """
    wanted = {new: source for new, source in ((name, "file_name"), (path, "file_path")) if new}
    if not wanted:
        raise argument_error("add_source_file", "both columns are left out")

    def run(frame: DataFrame) -> DataFrame:
        require_new(frame.columns, wanted, "add_source_file")
        try:
            found = frame.select("*", *(F.col(f"_metadata.{source}").alias(new) for new, source in wanted.items()))
            _ = found.columns
        except AnalysisException as error:
            raise TransformError(
                "TRANSFORM_NO_METADATA",
                "add_source_file: the frame has no _metadata",
                why="It was not read from files, or a join, union or aggregation came before",
                todo="Apply it directly to what spark.read or spark.readStream gives",
            ) from error
        return found

    return run


@transform
def add_partition_columns(source: str, parts: Sequence[str] = _USUAL, *, prefix: str = "") -> OneToOne:
    """Add parts of a date or timestamp to partition by: date, year, quarter, month, day, hour. Timestamps in the session's time zone.

    A NULL has NULL parts. The columns are called after their part, with the `prefix`.

    >>> from lakelet.transforms import add_partition_columns
    >>> days = spark.sql("SELECT DATE '2026-03-01' AS day_of_order")
    >>> days.transform(add_partition_columns("day_of_order", ["year", "month"], prefix="p_")).first()
    Row(day_of_order=datetime.date(2026, 3, 1), p_year=2026, p_month=3)
    """
    wanted = _parts("add_partition_columns", parts)

    def run(frame: DataFrame) -> DataFrame:
        found = place(frame.schema, source, "add_partition_columns")
        if not isinstance(found.data_type, DateType | TimestampType | TimestampNTZType):
            what = f"add_partition_columns: {source!r} is {found.data_type.simpleString()}, neither date nor timestamp"
            raise TransformError("TRANSFORM_TYPE", what, todo="Cast it first, with alter_types")
        require_new(frame.columns, [prefix + part for part in wanted], "add_partition_columns")
        return frame.select("*", *(_PARTS[part](found.value).alias(prefix + part) for part in wanted))

    return run


@transform
def drop_partition_columns(parts: Sequence[str] = _USUAL, *, prefix: str = "") -> OneToOne:
    """Leave out what `add_partition_columns` with the same arguments added.

    >>> from lakelet.transforms import drop_partition_columns
    >>> spark.sql("SELECT 1 AS id, 2026 AS year").transform(drop_partition_columns(["year"])).columns
    ['id']
    """
    wanted = [prefix + part for part in _parts("drop_partition_columns", parts)]
    return lambda frame: drop(*wanted).run(frame)


def _parts(name: str, parts: Sequence[str]) -> tuple[str, ...]:
    wanted = listed(name, parts, "parts")
    for part in wanted:
        if part not in _PARTS:
            raise argument_error(name, f"{part!r} is none of {', '.join(_PARTS)}")
    if len(set(wanted)) < len(wanted):
        raise argument_error(name, "a part is named twice")
    return wanted
