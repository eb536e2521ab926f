"""Values of Databricks SQL in SQLite and in answers, and the functions that SQLite lacks."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

_MOMENT = "%Y-%m-%d %H:%M:%S.%f"
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
        return float(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=str)
    return int(value) if isinstance(value, bool) else value


def shown(value: Any, type: str) -> str | None:
    """A value as an answer holds it: every value is a string or null (ecosystem 1.2)."""
    if value is None:
        return None
    base = type.partition("(")[0].partition("<")[0]
    if base == "BOOLEAN":
        return "true" if value else "false"
    if base in _WHOLE:
        return str(int(value))
    if base == "DECIMAL":
        scale = int(type.rpartition(",")[2].rstrip(") ")) if "," in type else 0
        return str(Decimal(str(value)).quantize(Decimal(1).scaleb(-scale)))
    if base in ("DOUBLE", "FLOAT"):
        return str(float(value))
    if base == "TIMESTAMP":
        return str(value)[:23].replace(" ", "T").ljust(23, "0") + "Z"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def type_of(values: list[Any]) -> str:
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
        return float(Decimal(str(value)).quantize(Decimal(1).scaleb(-int(type.rpartition(",")[2].rstrip(") ")) if "," in type else 0)))
    if base in ("DOUBLE", "FLOAT"):
        return float(value)
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


def _json(text: Any, path: str) -> Any:
    """A part of JSON text by a path of keys and positions; objects and lists come back as text."""
    try:
        value = json.loads(text)
        for key, place in re.findall(r"""\.?([A-Za-z_][\w]*)|\[['"]?([^\]'"]+)['"]?\]""", path.lstrip("$")):
            value = value[key] if key else value[int(place)] if isinstance(value, list) else value[place]
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    return json.dumps(value) if isinstance(value, dict | list) else int(value) if isinstance(value, bool) else value


def _trunc(unit: str, text: Any) -> Any:
    moment = datetime.fromisoformat(text) if text else None
    if moment is None:
        return None
    low: dict[str, Any] = {"microsecond": 0, "second": 0, "minute": 0, "hour": 0, "day": 1, "month": 1}
    units = ["second", "minute", "hour", "day", "month", "year"]
    cut = ["microsecond", *units[: units.index(unit.lower())]]
    return stored(moment.replace(**{name: low[name] for name in cut}))


def _hashed(name: str) -> Callable[[Any], Any]:
    return lambda value: (
        None if value is None else hashlib.new(name, value if isinstance(value, bytes) else str(value).encode()).hexdigest()
    )


def _sha2(value: Any, bits: int) -> Any:
    return _hashed({0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}[bits])(value)


def _extreme(choose: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *values: choose([value for value in values if value is not None] or [None])


class Functions:
    """The functions that a connection gets; `error`: the last error that one of them raised, which SQLite swallows."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.error: SqlError | None = None
        functions: dict[str, tuple[int, Callable[..., Any]]] = {
            "_cast": (2, cast),
            "_try_cast": (2, _try_cast),
            "_divide": (2, _divide),
            "_json": (2, _json),
            "_trunc": (2, _trunc),
            "_greatest": (-1, _extreme(max)),
            "_least": (-1, _extreme(min)),
            "md5": (1, _hashed("md5")),
            "sha": (1, _hashed("sha1")),
            "sha2": (2, _sha2),
            "concat_ws": (-1, lambda mark, *parts: mark.join(str(part) for part in parts if part is not None)),
            "regexp": (2, lambda pattern, text: None if text is None else int(bool(re.search(pattern, text)))),
        }
        for name, (arguments, function) in functions.items():
            connection.create_function(name, arguments, self._kept(function), deterministic=True)

    def _kept(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            try:
                return function(*values)
            except SqlError as error:
                self.error = error
                raise

        return call
