"""From the text of a landed line to the values that the contract's columns hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

import orjson

from sampledata.contract import NESTED_FIELDS, SILVER_OWN, Columns, Type

Json = dict[str, Any]
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?")
_BIGINT = range(-(2**63), 2**63)


def parse_line(line: bytes) -> Json | None:
    """The entry of a line, or None if the line is broken."""
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) else None


def as_text(value: Any) -> str | None:
    """A JSON value in a STRING column: text as it is, anything else as its JSON text."""
    if value is None or type(value) is str:
        return value
    return orjson.dumps(value).decode()


def as_micros(value: Any) -> int | None:
    """RFC 3339 text as microseconds since 1970 in UTC, without a zone read as UTC; None for anything else."""
    match = _TIME.fullmatch(value) if type(value) is str else None
    if match is None:
        return None
    whole, fraction, zone = match.groups()
    seconds = _seconds(whole)
    if seconds is None:
        return None
    if zone and zone != "Z":
        shift = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        seconds += shift if zone[0] == "-" else -shift
    return seconds * 1_000_000 + (int(fraction[1:].ljust(6, "0")) if fraction else 0)


@lru_cache(maxsize=50_000)
def _seconds(text: str) -> int | None:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(parsed.replace(tzinfo=timezone.utc).timestamp())


def _as_bigint(value: Any) -> int | None:
    return value if type(value) is int and value in _BIGINT else None


def _as_double(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) else None


def _as_boolean(value: Any) -> bool | None:
    return value if type(value) is bool else None


CASTS: Mapping[Type, Callable[[Any], Any]] = {
    "STRING": as_text,
    "BIGINT": _as_bigint,
    "DOUBLE": _as_double,
    "BOOLEAN": _as_boolean,
    "TIMESTAMP": as_micros,
}


def own_values(payload: Json, columns: Columns) -> dict[str, Any]:
    """The own columns of a silver row, taken from the payload and cast; what does not cast is NULL."""
    values = {}
    for name, kind in columns.items():
        values[name] = CASTS[kind](_field(payload, name))
    return values


def _field(payload: Json, column: str) -> Any:
    if column not in NESTED_FIELDS:
        return payload.get(column)
    outer, inner = NESTED_FIELDS[column]
    nested = payload.get(outer)
    return nested.get(inner) if type(nested) is dict else None


# JSON types that a payload field of the contract can hold without being rescued; a STRING column holds anything
_JSON_TYPES: Mapping[Type, tuple[type, ...]] = {"BIGINT": (int,), "DOUBLE": (int, float), "BOOLEAN": (bool,)}
_TYPED_FIELDS = {outer: (dict,) for outer, _ in NESTED_FIELDS.values()} | {
    name: _JSON_TYPES[kind] for columns in SILVER_OWN.values() for name, kind in columns.items() if kind in _JSON_TYPES
}


def drifted_fields(payload: Json) -> list[str]:
    """Payload fields whose value has another JSON type than their column."""
    present = _TYPED_FIELDS.keys() & payload.keys()
    return [name for name in sorted(present) if payload[name] is not None and type(payload[name]) not in _TYPED_FIELDS[name]]
