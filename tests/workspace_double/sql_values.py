"""Values of Databricks SQL in SQLite and in answers, and the functions that SQLite lacks."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sqlite3
import zlib
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from tests.workspace_double.wire import ApiError, unmodelled

_MOMENT = "%Y-%m-%d %H:%M:%S.%f"
_STEP = r"\[(?:'([^']*)'|(\d+))\]"
_WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class SqlError(Exception):
    """An error of the statement: `[CLASS] text SQLSTATE: 00000`, as Databricks words it."""


def stored(value: Any) -> Any:
    """A value as SQLite keeps it: times as text in UTC, decimals as numbers, whatever is nested as JSON."""
    if isinstance(value, datetime):
        return (value.astimezone(timezone.utc) if value.tzinfo else value).strftime(_MOMENT)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        if len(value.as_tuple().digits) > 15:
            raise unmodelled("decimals of more than 15 digits")
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        raise unmodelled("NaN in SQL")
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=str)
    return int(value) if isinstance(value, bool) else value


def text(value: Any, type: str) -> str | None:
    """A value as Databricks casts it to text (documentation page "cast function")."""
    if value is None:
        return None
    base = type.partition("(")[0].partition("<")[0]
    if base == "BOOLEAN":
        return "true" if value else "false"
    if base in _WHOLE:
        return str(int(value))
    if base == "DECIMAL":
        return str(Decimal(str(value)).quantize(Decimal(1).scaleb(-_scale(type))))
    if base in ("DOUBLE", "FLOAT"):
        return _java(float(value))
    if base.startswith("TIMESTAMP"):
        return str(value).rstrip("0").rstrip(".") if "." in str(value) else str(value)
    if base == "BINARY":
        raise unmodelled("binary values as text")
    return str(value)


def shown(value: Any, type: str) -> str | None:
    """A value as an answer holds it: every value is a string or null (facts 1.2); times in ISO 8601, bytes in base64."""
    if value is not None and type == "TIMESTAMP":
        return datetime.fromisoformat(str(value)).isoformat(timespec="milliseconds") + "Z"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else text(value, type)


def _scale(type: str) -> int:
    return int(type.rpartition(",")[2].rstrip(") ")) if "," in type else 0


def _java(value: float) -> str:
    """A number as the Java virtual machine writes it: `1.0E10`, `0.5`, `1.0E-4`."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return str(value)
    digits, _, exponent = f"{Decimal(repr(value)):E}".partition("E")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def type_by_values(values: list[Any]) -> str:
    """The type of a column by its values, where the statement does not say it."""
    kinds = {type(value) for value in values if value is not None}
    return "BIGINT" if kinds == {int} else "DOUBLE" if kinds and kinds <= {int, float} else "STRING"


def cast(value: Any, type: str) -> Any:
    """ANSI cast; raises CAST_INVALID_INPUT (documentation page "CAST_INVALID_INPUT error class")."""
    if value is None:
        return None
    base = type.partition("(")[0]
    try:
        return _cast(value, base, type)
    except (ValueError, TypeError, InvalidOperation):
        text = f'[CAST_INVALID_INPUT] The value \'{value}\' of the type "STRING" cannot be cast to "{type}" because it is malformed.'
        raise SqlError(f"{text} SQLSTATE: 22018") from None


def _cast(value: Any, base: str, type: str) -> Any:
    if base in _WHOLE:
        number = int(str(value).strip()) if isinstance(value, str) else int(value)
        if not -(2 ** (_WHOLE[base] - 1)) <= number < 2 ** (_WHOLE[base] - 1):
            raise ValueError(number)
        return number
    if base == "DECIMAL":
        return float(Decimal(str(value)).quantize(Decimal(1).scaleb(-_scale(type)), ROUND_HALF_UP))
    if base in ("DOUBLE", "FLOAT"):
        return float(value)
    if base == "BOOLEAN" and not isinstance(value, str):
        return int(value != 0)
    if base == "BOOLEAN":
        known = {"true": 1, "t": 1, "1": 1, "yes": 1, "false": 0, "f": 0, "0": 0, "no": 0}
        if str(value).lower() not in known:
            raise ValueError(value)
        return known[str(value).lower()]
    if base == "DATE":
        return date.fromisoformat(str(value)[:10]).isoformat()
    if base in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return stored(datetime.fromisoformat(str(value).replace("Z", "+00:00")))
    return value if base == "BINARY" else str(value)


def _try_cast(value: Any, type: str) -> Any:
    try:
        return cast(value, type)
    except SqlError:
        return None


def _divide(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if right == 0:
        raise SqlError("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    return left / right


def _field(value: Any, path: str) -> Any:
    """A part of a nested value by a path of keys and positions: `['a'][0]`."""
    try:
        value = json.loads(value)
        for key, place in re.findall(_STEP, path):
            value = value[int(place)] if place else value[key]
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    return json.dumps(value) if isinstance(value, dict | list) else int(value) if isinstance(value, bool) else value


def _json(value: Any, path: str) -> Any:
    """A part of JSON text as text (documentation page "get_json_object function")."""
    try:
        found = json.loads(value)
        for key, place in re.findall(_STEP, path):
            found = found[int(place)] if place else found[key]
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    return found if isinstance(found, str) or found is None else json.dumps(found, separators=(",", ":"))


def _trunc(unit: str, text: Any) -> Any:
    moment = datetime.fromisoformat(text) if text else None
    if moment is None:
        return None
    low: dict[str, Any] = {"microsecond": 0, "second": 0, "minute": 0, "hour": 0, "day": 1, "month": 1}
    units = ["second", "minute", "hour", "day", "month", "year"]
    cut = ["microsecond", *units[: units.index(unit.lower())]]
    return stored(moment.replace(**{name: low[name] for name in cut}))


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise SqlError("[REMAINDER_BY_ZERO] Remainder by zero. SQLSTATE: 22012")
    return int(math.copysign(abs(left) % abs(right), left))


def _substring(value: Any, start: int, length: int | None = None) -> Any:
    """Positions count from 1, from the end if they are negative; 0 is 1 (documentation page "substring function")."""
    if value is None:
        return None
    begin = start - 1 if start > 0 else max(0, len(value) + start) if start < 0 else 0
    return value[begin:] if length is None else value[begin : begin + max(0, length)]


def _nullable(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)


def _hex(value: Any) -> str:
    """Documentation page "hex function": of a number, or of the bytes of text and binary values."""
    if isinstance(value, int):
        return f"{value:X}"
    return (value if isinstance(value, bytes) else str(value).encode()).hex().upper()


def _unix_micros(text: Any) -> int:
    """Documentation page "unix_micros function": microseconds since 1970 of a TIMESTAMP, which is UTC here."""
    moment = datetime.fromisoformat(str(text)).replace(tzinfo=timezone.utc)
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)


def _hashed(name: str) -> Callable[[Any], Any]:
    return lambda value: (
        None if value is None else hashlib.new(name, value if isinstance(value, bytes) else str(value).encode()).hexdigest()
    )


def _sha2(value: Any, bits: int) -> Any:
    return _hashed({0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}[bits])(value)


def _extreme(choose: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *values: choose([value for value in values if value is not None] or [None])


class Functions:
    """The functions that a connection gets; `error`: the last error that one of them raised, which SQLite does not hand on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.error: SqlError | ApiError | None = None
        functions: dict[str, tuple[int, Callable[..., Any]]] = {
            "_text": (2, text),
            "_cast": (2, cast),
            "_try_cast": (2, _try_cast),
            "_divide": (2, _divide),
            "_modulo": (2, lambda a, b: None if a is None or b is None else math.fmod(a, b) if isinstance(a, float) else _modulo(a, b)),
            "_pmod": (2, lambda a, b: None if a is None or b is None else a % b),
            "_json": (2, _json),
            "_field": (2, _field),
            "_trunc": (2, _trunc),
            "_greatest": (-1, _extreme(max)),
            "_least": (-1, _extreme(min)),
            "_unixmicros": (1, _nullable(_unix_micros)),
            "_md5": (1, _hashed("md5")),
            "_sha": (1, _hashed("sha1")),
            "_sha2": (2, _sha2),
            "_crc32": (1, _nullable(lambda value: zlib.crc32(value if isinstance(value, bytes) else str(value).encode()))),
            "_hex": (1, _nullable(_hex)),
            "_concat": (-1, lambda *parts: None if None in parts else "".join(parts)),
            "_concat_ws": (-1, lambda mark, *parts: mark.join(part for part in parts if part is not None)),
            "_regexp": (2, lambda pattern, value: None if value is None else int(bool(re.search(pattern, value)))),
            "_upper": (1, _nullable(str.upper)),
            "_lower": (1, _nullable(str.lower)),
            "_length": (1, _nullable(len)),
            "_substring": (-1, _substring),
            "_year": (1, _nullable(lambda value: int(value[:4]))),
            "_month": (1, _nullable(lambda value: int(value[5:7]))),
            "_day": (1, _nullable(lambda value: int(value[8:10]))),
            "_date_add": (2, lambda day, n: None if day is None else (date.fromisoformat(day[:10]) + timedelta(days=n)).isoformat()),
            "_currenttimestamp": (0, lambda: stored(datetime.now(timezone.utc))),
            "_isnull": (1, lambda value: int(value is None)),
            "_isnotnull": (1, lambda value: int(value is not None)),
        }
        for name, (arguments, function) in functions.items():
            connection.create_function(name, arguments, self._kept(function), deterministic=True)

    def _kept(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            try:
                return function(*values)
            except (SqlError, ApiError) as error:
                self.error = error
                raise

        return call
