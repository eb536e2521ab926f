"""The hidden `_metadata` column and the counts that a stream reports about itself (AL-22, AL-24)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lakelet.autoloader.source_spec import (
    BAD_BYTES,
    LEFT_OUT,
    LINE_INTERNAL,
    METADATA_COLUMN,
    METADATA_INTERNAL,
    PASSED_OVER,
    UNRESCUED,
    FilePart,
)
from lakelet.base.names import quoted
from lakelet.jvm.expressions import with_hidden
from lakelet.jvm.frames import analyzed, replanned
from lakelet.jvm.sessions import java_process

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

METADATA_TYPE = StructType(
    [
        StructField("file_path", StringType()),
        StructField("file_name", StringType()),
        StructField("file_size", LongType()),
        StructField("file_block_start", LongType()),
        StructField("file_block_length", LongType()),
        StructField("file_modification_time", TimestampType()),
    ]
)
METADATA_FIELD = StructField(METADATA_INTERNAL, METADATA_TYPE)
LINE_FIELD = StructField(LINE_INTERNAL, LongType())
_TIMESTAMP = pa.timestamp("us", tz="UTC")


def metadata_arrays(part: FilePart, uri: str, count: int, nulls: Any = None) -> Any:
    """The struct column of `count` rows of one file part. `nulls`: a boolean for each row, true where the struct is NULL."""
    names, kinds = (
        [field.name for field in METADATA_TYPE.fields],
        (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64(), _TIMESTAMP),
    )
    fields = [pa.field(n, k) for n, k in zip(names, kinds, strict=True)]
    if nulls is not None and not nulls.false_count:
        return pa.nulls(count, pa.struct(fields))
    length = part.size if part.length is None else part.length
    values = (uri, uri.rsplit("/", 1)[-1], part.size, part.start, length, part.modified)
    arrays = [pa.repeat(pa.scalar(value, kind), count) for value, kind in zip(values, kinds, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=nulls)


MOST_TEXT = 500
"""Characters of the text of a record that are observed."""


def observe(df: DataFrame, name: str, texts: Sequence[str] = ()) -> DataFrame:
    """Count records, and those that are rescued, corrupt, left out, read in part or undecodable, in an observation `name`.

    It names the first of them, the first undecodable one if there is one, and the first corrupt and the first rescued one. `texts`: the
    columns that have the text of what does not fit, the first of them that has one counts; without them no text is observed.
    """
    held = tuple(field.name for field in df.schema.fields if field.name in texts and isinstance(field.dataType, StringType))
    return df.observe(name, *_count_columns(java_process(df.sparkSession), tuple(sorted(held, key=texts.index))))


def without_left_out(df: DataFrame) -> DataFrame:
    """The rows without those that were only there to be counted."""
    return df.where(f"{LINE_INTERNAL} IS NULL OR {LINE_INTERNAL} > {-LEFT_OUT}")


@functools.lru_cache(maxsize=8)  # Java's objects are made once for each Java process
def _count_columns(_: Any, texts: tuple[str, ...]) -> tuple[Column, ...]:
    from pyspark.sql import functions as f

    line, path = f.col(LINE_INTERNAL), f.col(f"{METADATA_INTERNAL}.file_path")
    flags = f.abs(line)
    spoilt, more = flags.bitwiseAND(BAD_BYTES) != 0, flags.bitwiseAND(PASSED_OVER) != 0
    held = [f.substring(f.coalesce(*(f.col(quoted(name)) for name in texts)), 1, MOST_TEXT).alias("text")] if texts else []
    place = f.struct((~spoilt).alias("readable"), path.alias("file"), flags.bitwiseAND(PASSED_OVER - 1).alias("line"), *held)
    first = f.min(f.when(line.isNotNull(), place))
    is_rescued = (line > 0) & (flags.bitwiseAND(UNRESCUED) == 0)
    parts = ("file", "line", "text") if texts else ("file", "line")
    by_kind = {"corrupt": f.min(f.when(line < 0, place)), "rescued": f.min(f.when(is_rescued, place))}
    return (
        f.count(f.lit(1)).alias("records"),
        f.count(f.when(is_rescued, 1)).alias("rescued"),
        f.count(f.when(line < 0, 1)).alias("corrupt"),
        first.getField("file").alias("first_file"),
        first.getField("line").alias("first_line"),
        f.count(f.when(line <= -LEFT_OUT, 1)).alias("left_out"),
        f.count(f.when((line > 0) & more, 1)).alias("passed_over"),
        f.count(f.when(spoilt, 1)).alias("undecodable"),
        *(place.getField(part).alias(f"{kind}_{part}") for kind, place in by_kind.items() for part in parts),
        *([first.getField("text").alias("first_text")] if texts else []),
    )


def dry_stream(schema: StructType, make: Callable[[StructType], DataFrame]) -> DataFrame:
    """A placeholder for `read_stream`: the same columns, `_metadata` among them, over what `make` returns for them. It counts nothing."""
    columns = [StructField(field.name, field.dataType, True) for field in schema.fields]
    if _has_own_metadata(schema):
        return make(StructType(columns))
    return _hide_last(make(StructType([*columns, StructField(METADATA_COLUMN, METADATA_TYPE)])))


def _has_own_metadata(schema: StructType) -> bool:
    """Whether the data has a column `_metadata`, which hides the other one."""
    return METADATA_COLUMN.lower() in (name.lower() for name in schema.fieldNames())


def emitted_columns(schema: StructType) -> StructType:
    """What readers return for the columns of a source: VARIANT travels as JSON text."""
    from pyspark.sql.types import VariantType

    fields = [StructField(f.name, StringType() if isinstance(f.dataType, VariantType) else f.dataType, True) for f in schema.fields]
    return StructType(fields)


def hide_metadata(df: DataFrame, schema: StructType, *, metadata: bool = True) -> DataFrame:
    """The columns `schema` of a source from what its readers return; `_metadata` resolves by name and is invisible to `*`.

    `metadata`: false leaves it out, so that a query which names it is refused. The plan gets a Project that carries the attribute in
    `Project.hiddenOutputTag`, as Spark's own rules do for hidden columns. A data column called `_metadata` hides it.
    """
    from pyspark.sql.types import VariantType

    internal = (METADATA_INTERNAL, LINE_INTERNAL)
    if any(isinstance(field.dataType, VariantType) for field in schema.fields):
        columns = [_variant_column(field) for field in schema.fields]
        df = df.selectExpr(*columns, *internal)
    if not metadata or _has_own_metadata(schema):
        return df.drop(*internal)
    return _hide_last(df.drop(LINE_INTERNAL).withColumnRenamed(METADATA_INTERNAL, METADATA_COLUMN))


def _variant_column(field: StructField) -> str:
    """The SQL of a column; text that is not JSON for Spark (repeated keys, too deep) is kept whole, as a text inside the variant."""
    from pyspark.sql.types import VariantType

    name = quoted(field.name)
    if not isinstance(field.dataType, VariantType):
        return name
    return f"coalesce(try_parse_json({name}), cast({name} AS VARIANT)) AS {name}"


def _hide_last(df: DataFrame) -> DataFrame:
    return replanned(df, with_hidden(df.sparkSession, analyzed(df)))
