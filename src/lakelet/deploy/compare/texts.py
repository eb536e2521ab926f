"""Values of both sides as the same exact texts: times in UTC to the microsecond, decimals with all digits, nested values as JSON. Pure."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SYNONYMS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float", "dec": "decimal", "void": "null"}
_WORD = re.compile(r"(?<![\w.])(" + "|".join(_SYNONYMS) + r")(?![\w:])")
_NESTED = ("struct", "array", "map")
_PLAIN = ("tinyint", "smallint", "int", "bigint", "string", "varchar", "char", "date", "decimal")


def type_text(text: str) -> str:
    """A type as Spark writes it in short: `STRUCT<a: INTEGER NOT NULL>` is `struct<a:int>`. Names of nested fields keep their case."""
    text = re.sub(r"\s+(not null|collate \w+)", "", text.strip(), flags=re.IGNORECASE)
    text = re.sub(r"\s*([<>,:()])\s*", r"\1", text)
    pieces = re.split(r"([A-Za-z_0-9`\-]+:)", text)  # names of fields are kept, the words of types are not
    return "".join(piece if piece.endswith(":") else _WORD.sub(lambda found: _SYNONYMS[found[1]], piece.lower()) for piece in pieces)


def comparable(kind: str) -> bool:
    """Whether values of a type (as `type_text` gives it) have an exact text on both sides."""
    base = _base(kind)
    return base in _PLAIN or base in _NESTED or base in ("boolean", "float", "double", "timestamp", "timestamp_ntz", "binary")


def selected(column: str, kind: str) -> str:
    """The SQL expression that the workspace is asked for to get a column's exact text."""
    base, name = _base(kind), quoted(column)
    if base == "timestamp":
        return f"unix_micros({name})"  # whatever time zone the warehouse has
    if base == "binary":
        return f"hex({name})"
    return f"CAST({name} AS STRING)" if base == "timestamp_ntz" else name


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def hosted_text(kind: str) -> Callable[[str], str]:
    """Turns what the workspace answers for a non-null value of a type into its exact text."""
    return _HOSTED.get(_base(kind), _json if _base(kind) in _NESTED else str)


def local_text(kind: str) -> Callable[[Any], str]:
    """Turns a non-null value in the form of `lakelet show --json` into its exact text."""
    return _LOCAL.get(_base(kind), _json if _base(kind) in _NESTED else str)


def order_of(kind: str) -> Callable[[str], Any] | None:
    """Turns an exact text into a value that sorts as the workspace sorts the type; None for a type that is sorted in another way."""
    return _ORDERS.get(_base(kind))


def _base(kind: str) -> str:
    return re.split(r"[(<]", kind, maxsplit=1)[0]


def _micros(text: str) -> str:
    try:
        return _moment(_EPOCH + timedelta(microseconds=int(text)))
    except OverflowError:  # a year that Python's calendar does not have
        return f"{text} us"


def _utc(value: str) -> str:
    return _moment(datetime.fromisoformat(value.replace("Z", "+00:00")))


def _moment(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _wall(text: str) -> str:
    whole, _, fraction = text.replace(" ", "T").partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}"


def _double(value: Any) -> str:
    return repr(float(value))


def _float(value: Any) -> str:
    number = float(value)
    try:
        return repr(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return repr(number)


def _json(value: Any) -> str:
    found = json.loads(value) if isinstance(value, str) else value
    return json.dumps(_without_nulls(found), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _without_nulls(value: Any) -> Any:
    """Fields that are NULL count as absent: `to_json` of Spark leaves them out."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


_HOSTED: Mapping[str, Callable[[str], str]] = {
    "timestamp": _micros,
    "timestamp_ntz": _wall,
    "double": _double,
    "float": _float,
    "binary": str.lower,
}
_LOCAL: Mapping[str, Callable[[Any], str]] = {
    "timestamp": _utc,
    "timestamp_ntz": _wall,
    "double": _double,
    "float": _float,
    "binary": lambda value: base64.b64decode(value).hex(),
    "boolean": lambda value: "true" if value else "false",
}
_ORDERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    **dict.fromkeys(("string", "date", "timestamp"), lambda text: text.encode()),
    "decimal": Decimal,
}
