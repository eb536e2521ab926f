"""`cloudFiles.schemaHints`: a list of `name type` that overrides inference (spec 2.4).

Spark's own parser refuses dotted names and needs a JVM, so names and types are read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakelet.errors import LakeletError, Location

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[^\s<>(),:]+|[<>(),:])")
_NAME = re.compile(r"\s*((?:`(?:[^`]|``)*`|[^\s`.,<>():]+)(?:\.(?:`(?:[^`]|``)*`|[^\s`.,<>():]+))*)\s*:?\s+(.+)", re.DOTALL)


def parse_hints(text: str, where: Location | None = None) -> Mapping[str, Any]:
    """Column name → Spark data type, in the order written. Raises for what does not parse, repeats a column, or is dotted."""
    hints: dict[str, Any] = {}
    for item in _split(text):
        match = _NAME.fullmatch(item)
        if match is None:
            raise _bad(f"schema hint {item.strip()!r} is not a name and a type", where)
        segments = re.findall(r"`(?:[^`]|``)*`|[^.`]+", match[1])
        if len(segments) > 1:
            what = f"schema hint {match[1]!r} names a field inside a column; only whole columns are supported yet"
            raise LakeletError("NOT_SUPPORTED_YET", what, where=where, todo=f"Hint the type of the whole column {segments[0]}.")
        name = _unquote(segments[0])
        if name.lower() in (known.lower() for known in hints):
            raise LakeletError("CF_INVALID_SCHEMA_HINT_COLUMN", f"the column {name!r} is hinted twice", where=where)
        hints[name] = _Types(match[2], item, where).whole()
    return hints


def apply_hints(schema: StructType, hints: Mapping[str, Any]) -> StructType:
    """The schema with hinted types and spellings; hinted columns that it does not have come last."""
    from pyspark.sql.types import StructField, StructType

    by_lower = {name.lower(): name for name in hints}
    fields = []
    for known in schema.fields:
        name = by_lower.pop(known.name.lower(), None)
        fields.append(known if name is None else StructField(name, hints[name], True))
    return StructType(fields + [StructField(name, hints[name], True) for name in hints if name.lower() in by_lower])


def _split(text: str) -> list[str]:
    """The parts between top-level commas."""
    parts, depth, quoted = [""], 0, False
    for char in text:
        quoted ^= char == "`"
        depth += 0 if quoted else (char in "<(") - (char in ">)")
        if char == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    return parts if len(parts) > 1 or parts[0].strip() else []


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _bad(what: str, where: Location | None) -> LakeletError:
    return LakeletError("CF_INVALID_SCHEMA_HINTS_OPTION", what, where=where, todo="Write hints like: id BIGINT, tags ARRAY<STRING>.")


class _Types:
    """Recursive descent over the type of one hint."""

    def __init__(self, text: str, item: str, where: Location | None) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at, self._item, self._where = 0, item.strip(), where

    def whole(self) -> Any:
        kind = self._type()
        if self._at != len(self._tokens):
            raise self._error()
        return kind

    def _error(self) -> LakeletError:
        return _bad(f"the type in schema hint {self._item!r} is not understood", self._where)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self, wanted: str | None = None) -> str:
        token = self._peek()
        if not token or (wanted is not None and token != wanted):
            raise self._error()
        self._at += 1
        return str(token)

    def _type(self) -> Any:
        from pyspark.sql import types as t

        word = self._next().lower()
        if word == "array":
            self._next("<")
            element = self._type()
            self._next(">")
            return t.ArrayType(element, True)
        if word == "map":
            self._next("<")
            key = self._type()
            self._next(",")
            value = self._type()
            self._next(">")
            return t.MapType(key, value, True)
        if word == "struct":
            return self._struct()
        numbers = self._numbers()
        if word in ("decimal", "dec", "numeric") and len(numbers) <= 2:
            return t.DecimalType(*(numbers or [10, 0]))
        if word in ("char", "varchar") and len(numbers) == 1:
            return t.StringType()
        simple = _SIMPLE.get(word)
        if simple is None or numbers:
            raise self._error()
        return getattr(t, simple)()

    def _numbers(self) -> list[int]:
        if self._peek() != "(":
            return []
        self._next("(")
        numbers = []
        while self._peek() != ")":
            token = self._next()
            if token.isdigit():
                numbers.append(int(token))
            elif token != ",":
                raise self._error()
        self._next(")")
        return numbers

    def _struct(self) -> Any:
        from pyspark.sql import types as t

        self._next("<")
        fields: list[Any] = []
        while self._peek() != ">":
            if fields:
                self._next(",")
            name = _unquote(self._next())
            if self._peek() == ":":
                self._next(":")
            fields.append(t.StructField(name, self._type(), True))
        self._next(">")
        return t.StructType(fields)


_SIMPLE = {
    "string": "StringType",
    "boolean": "BooleanType",
    "tinyint": "ByteType",
    "byte": "ByteType",
    "smallint": "ShortType",
    "short": "ShortType",
    "int": "IntegerType",
    "integer": "IntegerType",
    "bigint": "LongType",
    "long": "LongType",
    "float": "FloatType",
    "real": "FloatType",
    "double": "DoubleType",
    "date": "DateType",
    "timestamp": "TimestampType",
    "timestamp_ltz": "TimestampType",
    "timestamp_ntz": "TimestampNTZType",
    "binary": "BinaryType",
    "variant": "VariantType",
}
