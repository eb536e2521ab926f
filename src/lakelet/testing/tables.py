"""Makes tables from rows as tests write them: dictionaries in YAML or Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.base.errors import LakeletError
from lakelet.base.imports import unless_imported
from lakelet.testing.row_comparison import Row, converted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__tracebackhide__ = True

VARIANT = "variant"
_MOMENT = pa.timestamp("us", tz="UTC")
_KINDS: tuple[tuple[type | tuple[type, ...], pa.DataType], ...] = (
    (bool, pa.bool_()),
    (int, pa.int64()),
    ((int, float), pa.float64()),
    (str, pa.string()),
    (Decimal, pa.decimal128(38, 18)),
    (bytes, pa.binary()),
)


def table_of(rows: Sequence[Row], kinds: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Return the rows as a table. Columns without a type in `kinds` get one from their values, as pyspark would infer it.

    Raises ROWS_INVALID where the values of a column have no common type, or do not fit the given type.
    """
    given, columns = kinds or {}, list(dict.fromkeys(name for row in rows for name in row))
    arrays = {}
    for name in [*columns, *(extra for extra in given if extra not in columns)]:
        values = [row.get(name) for row in rows]
        kind = given.get(name) or _kind(values, name)
        try:
            arrays[name] = pa.array([converted(value, kind) for value in values], kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as problem:
            raise LakeletError("ROWS_INVALID", f"a value of the column {name!r} does not fit the type {kind}", why=str(problem)) from None
    return pa.table(arrays)


def _kind(values: Iterable[Any], name: str) -> pa.DataType:
    present = [value for value in values if value is not None]
    if not present:
        return pa.string()
    if all(isinstance(value, list) for value in present):
        return pa.list_(_kind([inner for value in present for inner in value], name))
    if all(isinstance(value, Mapping) for value in present):
        return _nested(present, name)
    if all(isinstance(value, date) for value in present):
        return _MOMENT if any(isinstance(value, datetime) for value in present) else pa.date32()
    for classes, kind in _KINDS:
        if all(isinstance(value, classes) and not (isinstance(value, bool) and classes is not bool) for value in present):
            return kind
    kinds = sorted({type(value).__name__ for value in present})
    todo = f"Write them alike, or give the type: schema: {{{name}: string}}"
    raise LakeletError("ROWS_INVALID", f"the values of the column {name!r} are of several types: {', '.join(kinds)}", todo=todo)


def _nested(values: Sequence[Mapping[str, Any]], name: str) -> pa.DataType:
    """A map where all values are of one type, as pyspark has it, else a struct."""
    try:
        return pa.map_(pa.string(), _kind([inner for value in values for inner in value.values()], name))
    except LakeletError:
        keys = dict.fromkeys(key for value in values for key in value)
        return pa.struct([(key, _kind([value.get(key) for value in values], f"{name}.{key}")) for key in keys])


def kinds_of(schema: Mapping[str, str]) -> dict[str, pa.DataType]:
    """Arrow types of Spark's type names; VARIANT columns hold JSON text. Needs an active session. Raises ROWS_INVALID."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import DataType

    kinds = {}
    for name, text in schema.items():
        try:
            kinds[name] = pa.string() if text.lower() == VARIANT else to_arrow_type(DataType.fromDDL(text), timezone="UTC")
        except PySparkException as problem:
            raise LakeletError("ROWS_INVALID", f"the column {name!r} has no type {text!r}", why=str(problem).splitlines()[0]) from None
    return kinds


def frame_of(spark: SparkSession, rows: Sequence[Row], schema: Mapping[str, str]) -> DataFrame:
    """Return the rows as a data frame; `schema` names types of columns as Spark writes them. Raises like `table_of`."""
    from pyspark.sql import functions as F

    variants = [name for name, text in schema.items() if text.lower() == VARIANT]
    with unless_imported("pandas"):  # half a second of a first test
        frame = spark.createDataFrame(table_of(with_json(rows, variants), kinds_of(schema)))
    return frame.withColumns({name: F.parse_json(F.col(f"`{name}`")) for name in variants}) if variants else frame


def with_json(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """The rows with the values of the columns as JSON text."""
    import json

    return [{k: json.dumps(v, default=str) if k in columns and v is not None else v for k, v in row.items()} for row in rows]
