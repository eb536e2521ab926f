"""Values that are read from rows and go into the next query as literals: sequences, ends of key ranges.

Python's date and time types cannot carry them. They know no year 0 or 10000. A naive one depends on the time zone of the process and cannot
name the repeated hour of autumn. Days before 1582 go through another calendar. So times travel as numbers or as text.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_DAY_ZERO, _MOMENT_ZERO = date(1970, 1, 1), datetime(1970, 1, 1)


def portable(value: Column, kind: T.DataType) -> Column:
    """The values of a column of type `kind` in a form that Python reads without loss; `literal` takes it back."""
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value)
    if isinstance(kind, T.DateType):
        return F.unix_date(value)
    if isinstance(kind, T.TimestampNTZType):
        return value.cast("string")
    if isinstance(kind, T.StructType):
        fields = [portable(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, T.ArrayType):
        return F.transform(value, lambda element: portable(element, kind.elementType))
    return value


def literal(value: Any, kind: T.DataType) -> Column:
    """A column of type `kind` that holds what `portable` gave."""
    if value is None:
        return F.lit(None).cast(kind)
    if isinstance(kind, T.TimestampType):
        return _moment(value)
    if isinstance(kind, T.DateType):
        return _day(value)
    if isinstance(kind, T.TimestampNTZType):
        return F.expr(f"TIMESTAMP_NTZ '{value}'")
    if isinstance(kind, T.StructType):
        return F.struct(*(literal(v, f.dataType).alias(f.name) for v, f in zip(value, kind.fields, strict=True)))
    if isinstance(kind, T.ArrayType):
        return F.array(*(literal(v, kind.elementType) for v in value)).cast(kind)
    return F.lit(value).cast(kind)


def _moment(micros: int) -> Column:
    """A timestamp literal from microseconds since 1970; as text where possible, because Delta skips files by typed literals only."""
    try:
        return F.expr(f"TIMESTAMP '{(_MOMENT_ZERO + timedelta(microseconds=micros)).isoformat()}Z'")
    except OverflowError:
        return F.timestamp_micros(F.lit(micros).cast("bigint"))


def _day(days: int) -> Column:
    try:
        return F.expr(f"DATE '{(_DAY_ZERO + timedelta(days=days)).isoformat()}'")
    except OverflowError:
        return F.date_from_unix_date(F.lit(days))
