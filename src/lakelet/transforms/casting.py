"""Types changed so that no value disappears: what does not fit is kept beside, or is an error."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    AtomicType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from .applied import OneToOne, transform
from .columns import column, find, place, require_new
from .errors import TransformError, argument_error

_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_INFINITE = r"(?i)^\s*[+-]?inf(inity)?\s*$"
_YEAR = r"^[\s\p{Cntrl}]*[+-]?[0-9]{4}"
_DATE = _YEAR + r"[0-9]{0,3}(-[0-9]{1,2}){0,2}[\s\p{Cntrl}]*\z"


@transform
def alter_types(types: Mapping[str, str | DataType], *, misfits: str | None = "_misfits") -> OneToOne:
    """Change the types of columns: name to type (`"DECIMAL(10, 2)"`, `DateType()`). A value that does not fit is never lost.

    Args:
        types: The columns to change. From and to simple types only; nested columns are flattened, exploded or turned to JSON first.
        misfits: Name of a column MAP<STRING, STRING> that gets, for the values of a row that do not fit, column name and original text;
            NULL for the rows where all fit. None: such a value fails the query when it runs (`[TRANSFORM_VALUE]` in the message).

    A value fits if Spark can cast it and nothing of a number is cut off: 1.5 does not fit INT, 0.125 not DECIMAL(10, 2), 2⁵³ + 1 not
    DOUBLE, neither as number nor as text. Only 0 and 1 fit BOOLEAN, only whole seconds a whole number. A text fits DATE if it is a date
    or a timestamp, TIMESTAMP if it begins with a year. A timestamp as DATE loses its time: that is what the type asks for.

    Raises:
        TransformError: TRANSFORM_TYPE for nested types, TRANSFORM_COLUMN_EXISTS if there is a column `misfits`.

    >>> from lakelet.transforms import alter_types
    >>> texts = spark.createDataFrame([("7", "2026-03-01"), ("7.5", None), (None, None)], "n STRING, day STRING")
    >>> for row in texts.transform(alter_types({"n": "INT", "day": "DATE"})).collect():
    ...     print(row)
    Row(n=7, day=datetime.date(2026, 3, 1), _misfits=None)
    Row(n=None, day=None, _misfits={'n': '7.5'})
    Row(n=None, day=None, _misfits=None)
    """
    if not types:
        raise argument_error("alter_types", "no column is named")

    def run(frame: DataFrame) -> DataFrame:
        if misfits is not None:
            require_new(frame.columns, [misfits], "alter_types")
        wanted = {find(frame.columns, name, "alter_types"): _parsed(frame, data_type) for name, data_type in types.items()}
        results = {name: _checked(frame.schema, name, data_type) for name, data_type in wanted.items()}
        if misfits is None:
            changed = {name: _or_error(name, wanted[name], value, fits) for name, (value, fits) in results.items()}
        else:
            changed = {name: F.when(fits, value) for name, (value, fits) in results.items()}
        columns = [changed[name].alias(name) if name in changed else column(name) for name in frame.columns]
        return frame.select(*columns, *([] if misfits is None else [_misfits(results).alias(misfits)]))

    return run


def _parsed(frame: DataFrame, data_type: str | DataType) -> DataType:
    if isinstance(data_type, DataType):
        found = data_type
    else:
        found = frame.sparkSession.range(0).select(F.lit(None).cast(data_type)).schema.fields[0].dataType
    return found


def _checked(schema: StructType, name: str, wanted: DataType) -> tuple[Column, Column]:
    """The value in its new type, and whether it holds all that the old one said. NULL fits."""
    before = place(schema, name, "alter_types").data_type
    for data_type in (before, wanted):
        if not isinstance(data_type, AtomicType):
            raise TransformError(
                "TRANSFORM_TYPE",
                f"alter_types: {name!r} cannot go from {before.simpleString()} to {wanted.simpleString()}",
                why="What does not fit inside a nested value would be lost",
                todo="Use flatten, explode, parse_json or to_json first",
            )
    old = column(name)
    new = _cast(old, wanted)
    fits = new.isNotNull()
    if isinstance(before, NumericType) and isinstance(wanted, NumericType):
        fits = fits & F.coalesce(_cast(new, before).eqNullSafe(old), F.lit(False))
        if isinstance(before, IntegralType) and isinstance(wanted, DoubleType | FloatType):
            fits = fits & _within(new, before)
        elif isinstance(wanted, IntegralType) and isinstance(before, DoubleType | FloatType):
            fits = fits & _within(old, wanted)
    elif isinstance(before, NumericType) and isinstance(wanted, BooleanType):
        fits = fits & ((old == 0) | (old == 1))
    elif isinstance(before, TimestampType) and isinstance(wanted, IntegralType | DecimalType):
        fits = fits & F.coalesce(_cast(new, before) == old, F.lit(False))
    elif isinstance(before, StringType) and isinstance(wanted, DateType):
        fits = fits & (old.rlike(_DATE) | _cast(old, TimestampType()).isNotNull())
    elif isinstance(before, StringType) and isinstance(wanted, TimestampType):
        fits = fits & old.rlike(_YEAR)  # Spark takes a time alone for one of today
    elif isinstance(before, StringType) and isinstance(wanted, DecimalType):
        wide = DecimalType(38, 38 - (wanted.precision - wanted.scale))  # as many digits before the point
        fits = fits & F.coalesce(_cast(old, wide) == new, F.lit(False))
    elif isinstance(before, StringType) and isinstance(wanted, DoubleType | FloatType):
        finite = (F.abs(new) != float("inf")) | old.rlike(_INFINITE)
        fits = fits & finite & _whole_kept(old, new)
    return new, old.isNull() | fits


def _within(number: Column, whole: DataType) -> Column:
    """Whether a floating number lies below the first that a type of whole numbers cannot hold. Spark's casts take that one for the last."""
    return number.cast("double") < float(2 ** (_BITS[type(whole)] - 1))


def _whole_kept(text: Column, new: Column) -> Column:
    """Whether a text of digits only is still the same whole number."""
    long, exact = LongType(), DecimalType(38, 0)
    as_long = (_cast(new, long) == _cast(text, long)) & _within(new, long)
    same = F.coalesce(as_long, F.lit(False)) | F.coalesce(_cast(new, exact) == _cast(text, exact), F.lit(False))
    return ~text.rlike(r"^\s*[+-]?\d{1,38}\s*$") | same


def _cast(value: Column, data_type: DataType) -> Column:
    return value.try_cast(data_type) if hasattr(value, "try_cast") else value.cast(data_type)


def _or_error(name: str, wanted: DataType, value: Column, fits: Column) -> Column:
    said = F.concat(
        F.lit(f"[TRANSFORM_VALUE] alter_types: column {name!r} cannot be {wanted.simpleString()}: "), column(name).cast("string")
    )
    return F.when(fits, value).otherwise(F.raise_error(said).cast(wanted))


def _misfits(results: Mapping[str, tuple[Column, Column]]) -> Column:
    """Names and original texts of the values that do not fit; NULL if there are none."""
    pairs = [
        F.when(~fits, F.struct(F.lit(name).alias("key"), column(name).cast("string").alias("value"))) for name, (_, fits) in results.items()
    ]
    found = F.filter(F.array(*pairs), lambda pair: pair.isNotNull())
    return F.when(F.size(found) > 0, F.map_from_entries(found)).cast(MapType(StringType(), StringType()))
