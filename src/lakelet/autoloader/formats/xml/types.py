"""Texts of XML as values and types, and trees of XML in the shape of a schema (FF-19)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from lakelet.autoloader.formats.json.inference import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    Array,
    Decimal_,
    Struct,
    Type,
    merge,
    number_type,
)  # fmt: skip
from lakelet.autoloader.formats.json.text import Arr, Node, Obj
from lakelet.autoloader.formats.json.text import Num as Literal
from lakelet.autoloader.formats.json.values import DatetimeFormats
from lakelet.autoloader.formats.json.values import scalar as json_scalar

_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_FRACTION = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d.*", re.ASCII)
_ANY = re.compile(r".*", re.DOTALL)
_WORDS = {"true": True, "1": True, "false": False, "0": False}
_SPECIAL = {"NaN": math.nan, "INF": math.inf, "-INF": -math.inf, "Infinity": math.inf, "-Infinity": -math.inf}
_NUMBERS = ("byte", "short", "integer", "long")


def xml_scalar(data_type: Any, datetime_formats: DatetimeFormats) -> Callable[[Node], Any]:
    """The reading of a text as a scalar of Spark; None for what does not fit. Raises KeyError for a type that is not a scalar."""
    kind = data_type.typeName()
    if kind == "boolean":
        return lambda value: _WORDS.get(value.lower()) if type(value) is str else None
    inner = json_scalar(data_type, datetime_formats)
    if kind in ("double", "float"):
        return lambda value: _double(value, inner)
    if kind in _NUMBERS:
        return lambda value: inner(Literal(value.removeprefix("+"))) if type(value) is str and _INTEGER.fullmatch(value) else None
    return lambda value: inner(value) if type(value) is str else None


def _double(value: Node, inner: Callable[[Node], Any]) -> float | None:
    if type(value) is not str:
        return None
    if value in _SPECIAL:
        return _SPECIAL[value]
    found: float | None = inner(Literal(value)) if _FRACTION.fullmatch(value) else None
    return found


class XmlTyping:
    """How trees get their types.

    Args:
        typed: look into texts (`inferColumnTypes`); otherwise every text is STRING.
        prefers_decimal: fractions are DECIMAL where 38 digits hold them (mode addNewColumnsWithTypeWidening).
    """

    def __init__(self, datetime_formats: DatetimeFormats, value_tag: str, *, typed: bool, prefers_decimal: bool) -> None:
        self._typed, self._decimal, self._value_tag = typed, prefers_decimal, value_tag
        self._dates, self._timestamps = datetime_formats.dates(), datetime_formats.timestamps()
        self._date_form = _DATE if datetime_formats.date is None else _ANY
        self._timestamp_form = _TIMESTAMP if datetime_formats.timestamp is None else _ANY

    def type_of(self, node: Node) -> Type:
        """Type of a tree; a name that is repeated inside an element is an array."""
        if node is None or node == "":
            return NULL
        if isinstance(node, str):
            return self._text(node)
        if not isinstance(node, Obj):
            element: Type = NULL
            for item in node:
                element = self.merge(element, self.type_of(item))
            return Array(element)
        fields: dict[str, Type] = {}
        for name, value in node:
            kind = self.type_of(value)
            if name in fields:
                known = fields[name]
                kind = Array(self.merge(known.element if isinstance(known, Array) else known, kind))
            fields[name] = kind
        return Struct(fields)

    def _text(self, text: str) -> Type:
        if not self._typed:
            return STRING
        if _FRACTION.fullmatch(text):
            kind = number_type(text.removeprefix("+"), decimal=self._decimal)
            return kind if kind == BIGINT or self._decimal else DOUBLE
        if text.lower() in ("true", "false"):
            return BOOLEAN
        if self._date_form.fullmatch(text) and self._dates(text) is not None:
            return DATE
        return TIMESTAMP if self._timestamp_form.fullmatch(text) and self._timestamps(text) is not None else STRING

    def merge(self, a: Type, b: Type) -> Type:
        """The narrowest type for both: one and many are many, a text and an element with attributes are an element with a value."""
        if a == b or NULL in (a, b):
            return a if b == NULL else b
        if isinstance(a, Array) or isinstance(b, Array):
            left, right = (kind.element if isinstance(kind, Array) else kind for kind in (a, b))
            return Array(self.merge(left, right))
        if isinstance(a, Struct) or isinstance(b, Struct):
            left, right = (kind if isinstance(kind, Struct) else Struct({self._value_tag: kind}) for kind in (a, b))
            fields = dict(left.fields)
            for name, kind in right.fields.items():
                fields[name] = self.merge(fields[name], kind) if name in fields else kind
            return Struct(fields)
        if {a, b} == {DATE, TIMESTAMP}:
            return TIMESTAMP
        numbers = all(kind in (BIGINT, DOUBLE) or isinstance(kind, Decimal_) for kind in (a, b))
        return merge(a, b) if numbers else STRING


class Shaper:
    """Brings trees into the shape of a schema, so that they convert like trees of JSON."""

    def __init__(self, value_tag: str, *, case_sensitive: bool) -> None:
        self._value_tag, self._fold = value_tag, not case_sensitive

    def record(self, node: Obj, fields: dict[str, Any]) -> Obj:
        """`fields`: name → Spark type. Repeated names become one array where the type is one, or where the name is not known."""
        kinds = {(name.lower() if self._fold else name): kind for name, kind in fields.items()}
        shaped = Obj()
        together: dict[str, Arr] = {}
        counts: dict[str, int] = {}
        for name, _ in node:
            counts[name] = counts.get(name, 0) + 1
        for name, value in node:
            key = name.lower() if self._fold else name
            kind = kinds.get(key)
            is_array = kind is not None and kind.typeName() == "array"
            if not is_array and (kind is not None or counts[name] == 1):
                shaped.append((name, value if kind is None else self.value(value, kind)))
                continue
            group = key if is_array else name
            if group not in together:
                together[group] = Arr()
                shaped.append((name, together[group]))
            together[group].append(self.value(value, kind.elementType) if kind is not None and is_array else value)
        return shaped

    def value(self, node: Node, kind: Any) -> Node:
        """One value in the shape of a type."""
        name = kind.typeName()
        if name == "struct":
            if node == "":
                return None
            if isinstance(node, str):
                node = Obj([(self._value_tag, node)])
            return self.record(node, {f.name: f.dataType for f in kind.fields}) if isinstance(node, Obj) else node
        if name == "array":
            return Arr([self.value(node, kind.elementType)])
        if name == "map":
            return None if node == "" else self._map(node, kind)
        return None if node == "" and name not in ("string", "char", "varchar", "variant") else node

    def _map(self, node: Node, kind: Any) -> Node:
        return Obj([(key, self.value(item, kind.valueType)) for key, item in node]) if isinstance(node, Obj) else node
