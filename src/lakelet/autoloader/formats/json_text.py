"""One JSON line as a tree that forgets nothing: literal numbers, repeated keys, source text of nested values.

Strings are `str`, true/false/null are Python's, numbers are `Num` (their literal text), arrays are `Arr`, objects are `Obj` (pairs in
the order of the file, repeated keys included). Uses only the standard library, because it runs on workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

Node = Any  # str | bool | None | Num | Arr | Obj


class Num(str):
    """The literal text of a JSON number, e.g. `1.50`; also `NaN` and the infinities."""

    __slots__ = ()


class Arr(list[Any]):
    """A JSON array; `raw` is its source text where that was asked for."""

    __slots__ = ("raw",)
    raw: str | None


class Obj(list[tuple[str, Any]]):
    """A JSON object as key-value pairs; `raw` is its source text where that was asked for."""

    __slots__ = ("raw",)
    raw: str | None


class BrokenText(ValueError):
    """The text is not one JSON value."""


_DECODER = json.JSONDecoder(parse_float=Num, parse_int=Num, parse_constant=Num, object_pairs_hook=Obj)
_scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
_SPACE = re.compile(r"[ \t\n\r]*")
_LITERALS = {"true": True, "false": False, "null": None}
_SCALAR = re.compile(r"(true|false|null)|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|[+-]?(?:NaN|Infinity|Inf|INF))(?![\w.])")
_SINGLE = re.compile(r"'((?:[^'\\\x00-\x1f]|\\.)*)'")
MAX_DEPTH = 200


def parse(text: str) -> Node:
    """Return the tree of `text`, without source texts of nested values. Raises BrokenText."""
    try:
        start = _skip(text, 0)
        node, end = _scan(text, start)
    except (StopIteration, JSONDecodeError, RecursionError):
        return _parse_tolerant(text)
    if _skip(text, end) != len(text):
        return _parse_tolerant(text)
    _check_characters(text, node)
    return node


def parse_with_source(text: str, *, depth: int = MAX_DEPTH) -> Node:
    """Like `parse`, and arrays and objects down to `depth` levels below the root carry their source text. Raises BrokenText."""
    try:
        node, end = _Scanner(text).value(_skip(text, 0), depth)
    except (StopIteration, JSONDecodeError, RecursionError, IndexError) as error:
        raise BrokenText(str(error)) from None
    if _skip(text, end) != len(text):
        raise BrokenText(f"extra text at {end}")
    _check_characters(text, node)
    return node


def _parse_tolerant(text: str) -> Node:
    """What Spark's reader takes by default beyond strict JSON: single quotes, and NaN and infinities in their other spellings."""
    return parse_with_source(text, depth=MAX_DEPTH)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _check_characters(text: str, node: Node) -> None:
    """A lone surrogate (escape \\ud800 without its partner) has no UTF-8 form: the line is kept as text instead."""
    if "\\u" in text or "\\U" in text:
        try:
            dump(node).encode()
        except UnicodeEncodeError as error:
            raise BrokenText(f"lone surrogate: {error.reason}") from None


class _Scanner:
    """Recursive descent over one text. Slower than the C scanner, used only where source texts or tolerance are needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        first = self.text[at]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        return self._scalar(at)

    def _scalar(self, at: int) -> tuple[Node, int]:
        if self.text[at] in "\"'":
            return self._string(at)
        match = _SCALAR.match(self.text, at)
        if match is None:
            raise BrokenText(f"no value at {at}")
        return (_LITERALS[match[1]] if match[1] else Num(match[2])), match.end()

    def _string(self, at: int) -> tuple[str, int]:
        if self.text[at] == '"':
            text, end = scanstring(self.text, at + 1, True)
            return str(text), int(end)
        match = _SINGLE.match(self.text, at)
        if match is None:
            raise BrokenText(f"no text at {at}")
        body = re.sub(r"\\'", "'", match[1])
        return scanstring('"' + re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', body) + '"', 1, True)[0], match.end()

    def _nested(self, at: int, depth: int) -> tuple[Node, int]:
        if depth > 0:
            return self.value(at, depth - 1)
        if self.text[at] in "{[":
            try:
                return _scan(self.text, at)
            except (StopIteration, JSONDecodeError):
                return self.value(at, MAX_DEPTH)
        return self._scalar(at)

    def _object(self, at: int, depth: int) -> tuple[Obj, int]:
        text, node, start = self.text, Obj(), at
        at = _skip(text, at + 1)
        while text[at] != "}":
            if node:
                if text[at] != ",":
                    raise BrokenText(f"no comma at {at}")
                at = _skip(text, at + 1)
            if text[at] not in "\"'":
                raise BrokenText(f"no key at {at}")
            key, at = self._string(at)
            at = _skip(text, at)
            if text[at] != ":":
                raise BrokenText(f"no colon at {at}")
            value, at = self._nested(_skip(text, at + 1), depth)
            node.append((key, value))
            at = _skip(text, at)
        node.raw = text[start : at + 1]
        return node, at + 1

    def _array(self, at: int, depth: int) -> tuple[Arr, int]:
        text, node, start = self.text, Arr(), at
        at = _skip(text, at + 1)
        while text[at] != "]":
            if node:
                if text[at] != ",":
                    raise BrokenText(f"no comma at {at}")
                at = _skip(text, at + 1)
            value, at = self._nested(at, depth)
            node.append(value)
            at = _skip(text, at)
        node.raw = text[start : at + 1]
        return node, at + 1


def source_text(node: Node) -> str | None:
    """The source text of an object or array, None when it was not asked for."""
    return getattr(node, "raw", None)


def dump(node: Node) -> str:
    """Compact JSON of a tree; numbers keep their literal text, NaN and infinities become strings."""
    if node is None:
        return "null"
    if node is True:
        return "true"
    if node is False:
        return "false"
    if isinstance(node, Num):
        return str(node) if node[-1].isdigit() else json.dumps(str(node))
    if isinstance(node, str):
        return json.dumps(node, ensure_ascii=False)
    if isinstance(node, Obj):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump(v)}" for k, v in node) + "}"
    return "[" + ",".join(dump(v) for v in node) + "]"


def records_of(node: Node) -> Iterator[Obj]:
    """The records of one line: an object is one record, an array of objects is one record per element. Raises BrokenText otherwise."""
    if isinstance(node, Obj):
        yield node
    elif isinstance(node, list) and all(isinstance(item, Obj) for item in node):
        yield from node
    else:
        raise BrokenText("neither an object nor an array of objects")
