"""Texts of XML as values and types, and trees of XML in the shape of a schema (FF-19)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lakelet.autoloader.formats.json.inferred_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal_,
    Struct,
    Type,
    merge,
    number_type,
)  # fmt: skip
from lakelet.autoloader.formats.json.syntax_tree import Arr, Node, Obj
from lakelet.autoloader.formats.json.syntax_tree import Num as Literal
from lakelet.autoloader.formats.json.values import DatetimeFormats
from lakelet.autoloader.formats.json.values import scalar as json_scalar
from lakelet.autoloader.formats.xml.elements import Element, XmlRules, trimmed
from lakelet.autoloader.text_values import as_float

_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_FRACTION = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DOUBLE = re.compile(rf"({_FRACTION.pattern})[dDfF]?", re.ASCII)
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[dDfF]?", re.ASCII)
_DAY = "yyyy-MM-dd"
_WORDS = {"true": True, "1": True, "false": False, "0": False}
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf}
_SPECIAL |= {sign + word: float(sign + word) for word in ("NaN", "Infinity") for sign in "+-"}
_MOMENTS: list[Type] = [DATE, TIMESTAMP_NTZ, TIMESTAMP]  # each takes the values of those before it
_NUMBERS = ("byte", "short", "integer", "long")


def xml_scalar(data_type: Any, datetime_formats: DatetimeFormats) -> Callable[[Node], Any]:
    """The reading of a text as a scalar of Spark; None for what does not fit. Raises KeyError for a type that is not a scalar."""
    kind = data_type.typeName()
    if kind == "boolean":
        return lambda value: _WORDS.get(value.lower()) if type(value) is str else None
    if kind in ("double", "float"):
        return _double_value if kind == "double" else lambda value: as_float(_double_value(value))
    inner = json_scalar(data_type, with_strict_dates(datetime_formats))
    if kind in _NUMBERS:
        return lambda value: inner(Literal(value.removeprefix("+"))) if type(value) is str and _INTEGER.fullmatch(value) else None
    return lambda value: inner(value) if type(value) is str else None


def with_strict_dates(formats: DatetimeFormats) -> DatetimeFormats:
    """The formats of XML: without a pattern a date has the form yyyy-MM-dd."""
    return formats if formats.date is not None else replace(formats, date=_DAY)


def _double_value(value: Node) -> float | None:
    """The number of a text that Java's parser of DOUBLE takes as a whole: `1.5`, `1d`, `0x1p3`, `Infinity`."""
    if type(value) is not str:
        return None
    if value in _SPECIAL:
        return _SPECIAL[value]
    decimal, hexadecimal = _DOUBLE.fullmatch(value), _HEXADECIMAL.fullmatch(value)
    if decimal is not None:
        return float(decimal[1])
    try:
        return None if hexadecimal is None else float.fromhex(hexadecimal[1])
    except OverflowError:
        return -math.inf if value.startswith("-") else math.inf


class XmlTyping:
    """How trees get their types.

    Args:
        typed: the texts decide about types (`inferColumnTypes`); otherwise every text is STRING.
        prefers_decimal: fractions are DECIMAL where 38 digits hold them (mode addNewColumnsWithTypeWidening).
        local: a timestamp without zone is TIMESTAMP_NTZ.
    """

    def __init__(
        self, datetime_formats: DatetimeFormats, value_tag: str, *, typed: bool, prefers_decimal: bool, local: bool = False
    ) -> None:
        self._typed, self._decimal, self._value_tag = typed, prefers_decimal, value_tag
        self._dates, self._timestamps = with_strict_dates(datetime_formats).dates(), datetime_formats.timestamps()
        self._local = datetime_formats.local_timestamps() if local else None

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
        if self._dates(text) is not None:
            return DATE
        if self._local is not None and self._local(text) is not None:
            return TIMESTAMP_NTZ
        return TIMESTAMP if self._timestamps(text) is not None else STRING

    def merge(self, a: Type, b: Type) -> Type:
        """The type for both, as Spark finds it: one and many are many.

        A text and an element with a text of its own meet in the element; a text and an element without one in STRING, which takes what
        stands between the tags.
        """
        if a == b or NULL in (a, b):
            return a if b == NULL else b
        if isinstance(a, Array) or isinstance(b, Array):
            left, right = (kind.element if isinstance(kind, Array) else kind for kind in (a, b))
            return Array(self.merge(left, right))
        if isinstance(a, Struct) or isinstance(b, Struct):
            left, right = (kind if isinstance(kind, Struct) else Struct({self._value_tag: kind}) for kind in (a, b))
            if not (isinstance(a, Struct) and isinstance(b, Struct)) and self._value_tag not in (left if left is a else right).fields:
                return STRING
            fields = dict(left.fields)
            for name, kind in right.fields.items():
                fields[name] = self.merge(fields[name], kind) if name in fields else kind
            return Struct(fields)
        if a in _MOMENTS and b in _MOMENTS:
            return max(a, b, key=_MOMENTS.index)
        numbers = all(kind in (BIGINT, DOUBLE) or isinstance(kind, Decimal_) for kind in (a, b))
        return merge(a, b) if numbers else STRING


class Shaper:
    """Brings trees into the shape of a schema, so that they convert like trees of JSON."""

    def __init__(self, rules: XmlRules, *, case_sensitive: bool) -> None:
        self._rules, self._fold = rules, not case_sensitive

    def record(self, node: Obj, fields: dict[str, Any]) -> Obj:
        """`fields`: name → Spark type. Repeated names become one array where the type is one, or where the name is not known.

        Attributes of an element whose column takes its text alone stand in front, under its name: of several values of one name the last
        one fills the column, and the others are rescued.
        """
        kinds = {(name.lower() if self._fold else name): kind for name, kind in fields.items()}
        left, shaped = Obj(), Obj()
        together: dict[str, tuple[Arr, Arr]] = {}
        counts: dict[str, int] = {}
        for name, _ in node:
            counts[name] = counts.get(name, 0) + 1
        for name, value in node:
            key = name.lower() if self._fold else name
            kind = kinds.get(key)
            is_array = kind is not None and kind.typeName() == "array"
            if not is_array and (kind is not None or counts[name] == 1):
                taken, rest = (value, None) if kind is None else self._taken_and_left(value, kind)
                shaped.append((name, taken))
                if rest is not None:
                    left.append((name, rest))
                continue
            group = key if is_array else name
            if group not in together:
                together[group] = (Arr(), Arr())
                shaped.append((name, together[group][0]))
                left.append((name, together[group][1]))
            taken, rest = self._taken_and_left(value, kind.elementType) if kind is not None and is_array else (value, None)
            together[group][0].append(taken)
            together[group][1].append(rest)
        left = Obj([(name, rest) for name, rest in left if isinstance(rest, Obj) or any(one is not None for one in rest)])
        return Obj([*left, *shaped])

    def _taken_and_left(self, node: Node, kind: Any) -> tuple[Node, Node]:
        """What a value of a type takes of an element, and what it leaves: None, or attributes in the place where they stood."""
        name = kind.typeName()
        if name == "struct":
            if node is None or isinstance(node, str):  # blanks alone are no text of a struct
                node = Obj([(self._rules.value_tag, node)] if trimmed(node or "") else [])
            return (self.record(node, {f.name: f.dataType for f in kind.fields}) if isinstance(node, Obj) else node), None
        if name == "array":
            taken, rest = self._taken_and_left(node, kind.elementType)
            return Arr([taken]), None if rest is None else Arr([rest])
        if name == "map":
            return (None, None) if node == "" else self._map_entries(node, kind)
        is_text = name in ("string", "char", "varchar")
        if isinstance(node, Element) and name != "variant" and (is_text or not node.has_children):
            attributes = Obj(node[: node.attributes])
            return self._text(node) if is_text else self._text(node) or None, attributes or None
        return (None if node == "" and not is_text and name != "variant" else node), None

    def _text(self, element: Element) -> str | None:
        """The text of an element without its attributes: of one with children what stands between its tags."""
        texts = element[element.attributes :]
        return texts[0][1] if texts and not element.has_children else self._rules.value(element.inner())

    def _map_entries(self, node: Node, kind: Any) -> tuple[Node, Node]:
        if not isinstance(node, Obj):
            return node, None
        found = [(key, *self._taken_and_left(item, kind.valueType)) for key, item in node]
        left = Obj([(key, rest) for key, _, rest in found if rest is not None])
        return Obj([(key, taken) for key, taken, _ in found]), left or None
