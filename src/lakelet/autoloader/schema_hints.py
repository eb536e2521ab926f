"""`cloudFiles.schemaHints`: a list of `name type` that overrides inference (FS-12).

Spark's own parser refuses dotted names and needs a JVM, so names and types are read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[^\s<>(),:]+|[<>(),:])")
_IN_QUOTES = re.compile(r"\s*(['\"]).*\1\s*", re.DOTALL)
_NAME = re.compile(r"\s*((?:`(?:[^`]|``)*`|[^\s`.,<>():]+)(?:\.(?:`(?:[^`]|``)*`|[^\s`.,<>():]+))*)\s*:?\s+(.+)", re.DOTALL)


def parse_hints(text: str, where: Location | None = None, *, local: bool = False) -> Mapping[str, Any]:
    """Path → Spark data type, in the order written. `local`: TIMESTAMP means TIMESTAMP_NTZ (`spark.sql.timestampType`).

    A path is a column name, or a dotted one of a field inside it; segments that hold dots themselves keep their backticks. Raises
    CF_INVALID_SCHEMA_HINTS_OPTION for what does not parse, CF_INVALID_SCHEMA_HINT_COLUMN for hints that contradict each other.
    """
    if _IN_QUOTES.fullmatch(text):
        raise LakeletError(
            "CF_INVALID_SCHEMA_HINTS_OPTION",
            "the schema hints lie within quotation marks that belong to their text",
            where=where,
            why="In Spark 4's SQL two quotation marks in a row stand for one inside a text; before, they ended one and began another.",
            todo="Put one quotation mark, not three, at each end of the hints, or set\n"
            "spark.sql.legacy.consecutiveStringLiterals.enabled=true in the pipeline's configuration.",
        )
    hints: dict[str, Any] = {}
    tree = _HintTree()
    for item in _split_hints(text):
        match = _NAME.fullmatch(item)
        if match is None:
            raise _invalid_hint(f"schema hint {item.strip()!r} is not a name and a type", where)
        segments = segments_of(match[1])
        kind = _Types(match[2], item, where, local).whole()
        problem = tree.add(segments, kind)
        if problem:
            raise LakeletError("CF_INVALID_SCHEMA_HINT_COLUMN", f"the schema hint {item.strip()!r} {problem}", where=where)
        hints[".".join(quoted(segment) if "." in segment else segment for segment in segments)] = kind
    return hints


def apply_hints(schema: StructType, hints: Mapping[str, Any]) -> StructType:
    """The schema with hinted types and spellings; hinted columns that it does not have come last (FS-13, FS-17)."""
    tree = _HintTree()
    for path, kind in hints.items():
        tree.add(segments_of(path), kind)
    return _hinted_struct(schema.fields, tree)


def segments_of(path: str) -> list[str]:
    """The names in a dotted path, without backticks."""
    return [_without_backticks(segment) for segment in re.findall(r"`(?:[^`]|``)*`|[^.`]+", path)]


class _HintTree:
    """Hints by path: a node has a type, or children by their names in lower case (with the spelling of the hint)."""

    def __init__(self) -> None:
        self.kind: Any | None = None
        self.children: dict[str, tuple[str, _HintTree]] = {}

    def add(self, segments: Sequence[str], kind: Any) -> str | None:
        """Take in one hint; what is wrong with it, None if nothing is."""
        if not segments:
            if self.kind is not None or self.children:
                return "hints a column twice" if self.kind is not None else "contradicts a hint for a field inside it"
            self.kind = kind
            return None
        if self.kind is not None:
            return "contradicts the hint for what it is inside of"
        name, *below = segments
        child = self.children.setdefault(name.lower(), (name, _HintTree()))[1]
        if "element" in self.children and len(self.children) > 1:
            return "takes for a struct what another hint takes for an array"
        return child.add(below, kind)


def _hinted_type(known: Any | None, tree: _HintTree) -> Any:
    """The type of a column or field under its hints; `known`: what was inferred, None when it is absent."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if tree.kind is not None:
        return tree.kind
    names = set(tree.children)
    fields = known.fields if isinstance(known, StructType) else []
    has_them = bool(names & {field.name.lower() for field in fields})
    if names == {"element"} and not has_them:
        return ArrayType(_hinted_type(known.elementType if isinstance(known, ArrayType) else None, tree.children["element"][1]), True)
    if names <= {"key", "value"} and not has_them:
        key, value = (known.keyType, known.valueType) if isinstance(known, MapType) else (StringType(), _common_type(fields))
        key = _hinted_type(key, tree.children["key"][1]) if "key" in names else key
        value = _hinted_type(value, tree.children["value"][1]) if "value" in names else value
        return MapType(key, value, True)
    return _hinted_struct(fields, tree)


def _hinted_struct(known: Sequence[Any], tree: _HintTree) -> StructType:
    from pyspark.sql.types import StructField, StructType

    left = dict(tree.children)
    fields = []
    for field in known:
        found = left.pop(field.name.lower(), None)
        fields.append(field if found is None else StructField(found[0], _hinted_type(field.dataType, found[1]), True))
    return StructType(fields + [StructField(name, _hinted_type(None, child), True) for name, child in left.values()])


def _common_type(fields: Sequence[Any]) -> Any:
    """The type of the values of a map that was inferred as a struct: that of all its fields, else STRING."""
    from pyspark.sql.types import StringType

    kinds = [field.dataType for field in fields]
    return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else StringType()


def _split_hints(text: str) -> list[str]:
    """The parts between top-level commas."""
    parts, depth, inside = [""], 0, False
    for char in text:
        inside ^= char == "`"
        depth += 0 if inside else (char in "<(") - (char in ">)")
        if char == "," and depth == 0 and not inside:
            parts.append("")
        else:
            parts[-1] += char
    return parts if len(parts) > 1 or parts[0].strip() else []


def _without_backticks(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _invalid_hint(what: str, where: Location | None) -> LakeletError:
    return LakeletError("CF_INVALID_SCHEMA_HINTS_OPTION", what, where=where, todo="Write hints like: id BIGINT, tags ARRAY<STRING>.")


class _Types:
    """Recursive descent over the type of one hint."""

    def __init__(self, text: str, item: str, where: Location | None, local: bool) -> None:
        self._tokens, self._local = _TOKEN.findall(text), local
        self._at, self._item, self._where = 0, item.strip(), where

    def whole(self) -> Any:
        kind = self._parse_type()
        if [token.lower() for token in self._tokens[self._at :]] == ["not", "null"]:  # a file may lack the column all the same
            self._at += 2
        if self._at != len(self._tokens):
            raise self._not_understood()
        return kind

    def _not_understood(self) -> LakeletError:
        return _invalid_hint(f"the type in schema hint {self._item!r} is not understood", self._where)

    def _peek_token(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next_token(self, wanted: str | None = None) -> str:
        token = self._peek_token()
        if not token or (wanted is not None and token != wanted):
            raise self._not_understood()
        self._at += 1
        return str(token)

    def _parse_type(self) -> Any:
        from pyspark.sql import types as t

        word = self._next_token().lower()
        if word == "array":
            self._next_token("<")
            element = self._parse_type()
            self._next_token(">")
            return t.ArrayType(element, True)
        if word == "map":
            self._next_token("<")
            key = self._parse_type()
            self._next_token(",")
            value = self._parse_type()
            self._next_token(">")
            return t.MapType(key, value, True)
        if word == "struct":
            return self._parse_struct()
        numbers = self._parse_numbers()
        if word in ("decimal", "dec", "numeric") and len(numbers) <= 2:
            return t.DecimalType(*(numbers or [10, 0]))
        if word in ("char", "varchar") and len(numbers) == 1:
            return t.StringType()
        simple = _SIMPLE.get(word)
        if simple is None or numbers:
            raise self._not_understood()
        return t.TimestampNTZType() if self._local and word == "timestamp" else getattr(t, simple)()

    def _parse_numbers(self) -> list[int]:
        if self._peek_token() != "(":
            return []
        self._next_token("(")
        numbers = []
        while self._peek_token() != ")":
            token = self._next_token()
            if token.isdigit():
                numbers.append(int(token))
            elif token != ",":
                raise self._not_understood()
        self._next_token(")")
        return numbers

    def _parse_struct(self) -> Any:
        from pyspark.sql import types as t

        self._next_token("<")
        fields: list[Any] = []
        while self._peek_token() != ">":
            if fields:
                self._next_token(",")
            name = _without_backticks(self._next_token())
            if self._peek_token() == ":":
                self._next_token(":")
            fields.append(t.StructField(name, self._parse_type(), True))
        self._next_token(">")
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
