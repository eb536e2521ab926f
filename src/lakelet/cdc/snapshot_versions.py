"""Results of snapshot functions: a full copy of the source and the copy's version (CD-19)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError
from lakelet.cdc.changes import START
from lakelet.cdc.literals import literal

_KINDS: Mapping[str, Any] = {"int": int, "str": str, "float": float, "Decimal": Decimal}


def copy_of(given: Any) -> tuple[Any, Any] | None:
    """(DataFrame, version) of what the function returned; None after the last copy. Raises CDC_SNAPSHOT_INVALID for anything else."""
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise LakeletError(
            "CDC_SNAPSHOT_INVALID",
            f"the snapshot function returned {type(given).__name__}, not a DataFrame and its version",
            todo="Return (data_frame, version), and None after the last snapshot.",
        )
    frame, version = given
    if frame is None:
        return None
    if version is None:
        raise LakeletError("CDC_SNAPSHOT_INVALID", "the snapshot function gave a snapshot without a version", todo="Return (df, version).")
    return frame, version


def sequence_of(version: Any, declared: T.StructType | None) -> Column:
    """A version instead of the sequence. Whole numbers have the type that `declared`, the table's own schema, gives `__START_AT`.

    Without one they are BIGINT, so that the type does not change when they grow.
    """
    if type(version) is int:
        given = [f.dataType for f in declared or () if f.name.lower() == START.lower() and isinstance(f.dataType, T.IntegralType)]
        return F.lit(version).cast(given[0] if given else T.LongType())
    if isinstance(version, datetime):
        return literal(_micros(version), T.TimestampType())
    if isinstance(version, date):
        return literal((version - date(1970, 1, 1)).days, T.DateType())
    return F.lit(version)


def is_after(version: Any, last: Any) -> bool:
    """Whether a version is above the one before it. Points in time are compared, not clock readings: an hour of autumn occurs twice."""
    if isinstance(version, datetime) and isinstance(last, datetime):
        return _micros(version) > _micros(last)
    return bool(version > last)


def _micros(value: datetime) -> int:
    """Microseconds since 1970; a value without time zone is in that of the process, as everywhere in PySpark."""
    offset = value.utcoffset()
    if offset is None:
        try:
            offset = value.astimezone().utcoffset()
        except (OverflowError, ValueError):  # the first and the last day that Python knows: the zone's offset near to them
            offset = datetime(min(max(value.year, 2), 9998), 1, 1).astimezone().utcoffset()
    return (value.replace(tzinfo=None) - datetime(1970, 1, 1) - (offset or timedelta())) // timedelta(microseconds=1)


def to_stored(version: Any) -> Mapping[str, Any]:
    """A version as JSON. Raises CDC_SNAPSHOT_INVALID for a kind of value that cannot be kept."""
    kind = type(version).__name__
    if isinstance(version, datetime):
        return {"type": "datetime", "value": version.isoformat(), **({"fold": 1} if version.fold else {})}
    if isinstance(version, date):
        return {"type": "date", "value": version.isoformat()}
    if kind in _KINDS:
        return {"type": kind, "value": str(version)}
    todo = "Return a number, a text, a date or a timestamp as version."
    raise LakeletError("CDC_SNAPSHOT_INVALID", f"a snapshot has a version of type {kind}", todo=todo)


def from_stored(stored: Mapping[str, Any]) -> Any:
    """What `to_stored` was given."""
    kind, value = stored["type"], stored["value"]
    if kind == "datetime":
        return datetime.fromisoformat(value).replace(fold=stored.get("fold", 0))
    return date.fromisoformat(value) if kind == "date" else _KINDS[kind](value)
