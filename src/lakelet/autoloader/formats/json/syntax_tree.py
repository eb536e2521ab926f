"""One JSON value as a tree that forgets nothing: literal numbers, repeated keys, source text of nested values.

Strings are `str`, true/false/null are Python's, numbers are `Num` (their literal text), arrays are `Arr`, objects are `Obj` (pairs in
the order of the file, repeated keys included). Uses only the standard library, because it runs on workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

Node = Any  # str | bool | None | Num | Arr | Obj


@dataclass(frozen=True)
class Syntax:
    """What is taken beyond strict JSON (the `allow…` options, FF-7); the defaults are Spark's."""

    backslash_any: bool = False
    comments: bool = False
    non_numeric: bool = True
    leading_zeros: bool = False
    single_quotes: bool = True
    control_chars: bool = False
    bare_names: bool = False


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


MAX_DEPTH = 200
_DEFAULT = Syntax()
_DECODER = json.JSONDecoder(parse_float=Num, parse_int=Num, parse_constant=Num, object_pairs_hook=Obj)
_scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
_SPACE = re.compile(r"[ \t\n\r]*")
_SPACE_OR_COMMENT = re.compile(r"(?:[ \t\n\r]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_LITERALS = {"true": True, "false": False, "null": None}
_NUMBER = r"(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?"
_WORD = r"(true|false|null)"
_SPECIAL = r"NaN|[+-]?Infinity|[+-]INF"
_BARE_NAME = re.compile(r"[\w$@#*+-]+")
_PLAIN_CHARACTERS = {False: r"[^{0}\\\x00-\x1f]", True: r"[^{0}\\]"}
_ESCAPE = re.compile(r'\\([^"\\/bfnrtu])', re.DOTALL)
_MEMBER = r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*'
_FIRST = re.compile(r"[ \t\n\r]*\{" + _MEMBER)
_NEXT = re.compile(r"[ \t\n\r]*," + _MEMBER)
_LAST = re.compile(r"[ \t\n\r]*\}")
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(text: str, syntax: Syntax = _DEFAULT) -> Node:
    """Return the tree of a text that is one value, without source texts of nested values. Raises BrokenText."""
    node, end = first_value(text, syntax)
    if has_more(text, end, syntax):
        raise BrokenText(f"extra text at {end}")
    return node


def first_value(text: str, syntax: Syntax = _DEFAULT) -> tuple[Node, int]:
    """The tree of the first value in a text, without source texts of nested values, and where the value ends. Raises BrokenText."""
    if syntax.non_numeric:
        try:
            node, end = _scan(text, _skip_blanks(text, 0))
        except (StopIteration, JSONDecodeError, RecursionError):
            node = None
        if isinstance(node, list):  # of a scalar the scanner does not say whether it ends here
            return _with_characters(text, node), end
    return first_with_source(text, syntax=syntax)


def first_with_source(text: str, *, depth: int = MAX_DEPTH, syntax: Syntax = _DEFAULT) -> tuple[Node, int]:
    """Like `first_value`, and arrays and objects down to `depth` levels below the root carry their source text. Raises BrokenText.

    Takes also what strict JSON does not have and `syntax` allows.
    """
    found = _strict_object(text) if depth == 1 and syntax.non_numeric else None
    node, end = found if found is not None else parse_prefix(text, 0, depth=depth, syntax=syntax)
    return _with_characters(text, node), end


def has_more(text: str, at: int, syntax: Syntax = _DEFAULT) -> bool:
    """Whether anything but blanks and comments stands at a position or after it."""
    return at < len(text) and Scanner(text, syntax).skip(at) < len(text)


def _strict_object(text: str) -> tuple[Obj, int] | None:
    """A strict object whose arrays and objects carry their source texts, and its end; None where it is not surely one."""
    node = Obj()
    found = _FIRST.match(text)
    try:
        while found is not None:
            value, end = _scan(text, found.end())
            if isinstance(value, list):
                value = value if isinstance(value, Obj) else Arr(value)
                value.raw = text[found.end() : end]
            node.append((found[1], value))
            found = _NEXT.match(text, end)
            if found is None:
                last = _LAST.match(text, end)
                return None if last is None else (node, last.end())
    except (StopIteration, JSONDecodeError, RecursionError):
        return None
    return None


def parse_prefix(text: str, at: int, *, depth: int = MAX_DEPTH, syntax: Syntax = _DEFAULT) -> tuple[Node, int]:
    """The value that begins at `at`, after blanks, and the position after it. Raises BrokenText."""
    scanner = Scanner(text, syntax)
    try:
        return scanner.value(scanner.skip(at), depth)
    except (StopIteration, JSONDecodeError, RecursionError, IndexError) as error:
        raise BrokenText(str(error)) from None


def _skip_blanks(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _with_characters(text: str, node: Node) -> Node:
    """The tree with `?` for each half of a surrogate pair (\\ud800 without its partner), as in Spark. Raises BrokenText for a key."""
    return _without_surrogates(node) if _SURROGATE_ESCAPE.search(text) else node


def _without_surrogates(node: Node) -> Node:
    """The node with its texts, and those inside it, replaced in place."""
    if isinstance(node, Obj):
        if any(_SURROGATE.search(key) for key, _ in node):
            raise BrokenText("half of a surrogate pair in a key")
        node[:] = [(key, _without_surrogates(value)) for key, value in node]
    elif isinstance(node, list):
        node[:] = [_without_surrogates(item) for item in node]
    elif type(node) is str:
        return _SURROGATE.sub("?", node)
    return node


@cache
def _forms_of(syntax: Syntax) -> tuple[re.Pattern[str], re.Pattern[str], dict[str, re.Pattern[str]]]:
    """What a syntax takes as blanks, as a scalar, and as a text in each kind of quotes."""
    number = ("0*" if syntax.leading_zeros else "") + _NUMBER
    special = "|" + _SPECIAL if syntax.non_numeric else ""
    scalar = re.compile(rf"(?:{_WORD}|(-?{number}{special}))(?![\w.])")
    plain = _PLAIN_CHARACTERS[syntax.control_chars]
    quoted = {quote: re.compile(rf"{quote}((?:{plain.replace('{0}', quote)}|\\.)*){quote}", re.DOTALL) for quote in "\"'"}
    return _SPACE_OR_COMMENT if syntax.comments else _SPACE, scalar, quoted


class Scanner:
    """Recursive descent over one text. Slower than the C scanner, used only where source texts or tolerance are needed."""

    def __init__(self, text: str, syntax: Syntax = _DEFAULT) -> None:
        self.text, self._syntax = text, syntax
        self._space, self._scalar_form, self._quoted = _forms_of(syntax)

    def skip(self, at: int) -> int:
        """The next position that holds no blank (and no comment)."""
        match = self._space.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        """The value at a position, and the position after it."""
        first = self.text[at]
        if depth <= 0 and first in "{[" and self._syntax.non_numeric:
            try:
                return self._strict_value(at)
            except (StopIteration, JSONDecodeError):
                pass  # not strict JSON: tried again with tolerance
        if first == "{":
            return self._object_at(at, depth)
        if first == "[":
            return self._array_at(at, depth)
        return self._scalar_at(at)

    def _strict_value(self, at: int) -> tuple[Node, int]:
        """A strict object or array by the C scanner, with its own source text only."""
        node, end = _scan(self.text, at)
        if not isinstance(node, Obj):
            node = Arr(node)
        node.raw = self.text[at:end]
        return node, end

    def _scalar_at(self, at: int) -> tuple[Node, int]:
        if self.text[at] in "\"'":
            return self._string_at(at)
        match = self._scalar_form.match(self.text, at)
        if match is None:
            raise BrokenText(f"no value at {at}")
        return (_LITERALS[match[1]] if match[1] else Num(match[2])), match.end()

    def _string_at(self, at: int) -> tuple[str, int]:
        quote, syntax = self.text[at], self._syntax
        if quote == '"' and not (syntax.backslash_any or syntax.control_chars):
            text, end = scanstring(self.text, at + 1, True)
            return str(text), int(end)
        match = self._quoted[quote].match(self.text, at) if quote == '"' or syntax.single_quotes else None
        if match is None:
            raise BrokenText(f"no text at {at}")
        body = match[1]
        if quote == "'":
            body = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', re.sub(r"\\'", "'", body))
        if syntax.control_chars:
            body = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", body)
        if syntax.backslash_any:
            body = re.sub(r"\\\\|" + _ESCAPE.pattern, lambda found: found[1] or found[0], body, flags=re.DOTALL)
        return scanstring('"' + body + '"', 1, True)[0], match.end()

    def _key_at(self, at: int) -> tuple[str, int]:
        if self.text[at] in "\"'":
            return self._string_at(at)
        match = _BARE_NAME.match(self.text, at) if self._syntax.bare_names else None
        if match is None:
            raise BrokenText(f"no key at {at}")
        return match[0], match.end()

    def _nested_value(self, at: int, depth: int) -> tuple[Node, int]:
        if depth > 0:
            return self.value(at, depth - 1)
        if self.text[at] in "{[":
            try:
                if self._syntax.non_numeric:
                    return _scan(self.text, at)
            except (StopIteration, JSONDecodeError):
                pass  # not strict JSON: tried again with tolerance
            return self.value(at, MAX_DEPTH)
        return self._scalar_at(at)

    def _object_at(self, at: int, depth: int) -> tuple[Obj, int]:
        text, node, start = self.text, Obj(), at
        at = self.skip(at + 1)
        while text[at] != "}":
            if node:
                if text[at] != ",":
                    raise BrokenText(f"no comma at {at}")
                at = self.skip(at + 1)
            key, at = self._key_at(at)
            at = self.skip(at)
            if text[at] != ":":
                raise BrokenText(f"no colon at {at}")
            value, at = self._nested_value(self.skip(at + 1), depth)
            node.append((key, value))
            at = self.skip(at)
        node.raw = text[start : at + 1]
        return node, at + 1

    def _array_at(self, at: int, depth: int) -> tuple[Arr, int]:
        text, node, start = self.text, Arr(), at
        at = self.skip(at + 1)
        while text[at] != "]":
            if node:
                if text[at] != ",":
                    raise BrokenText(f"no comma at {at}")
                at = self.skip(at + 1)
            value, at = self._nested_value(at, depth)
            node.append(value)
            at = self.skip(at)
        node.raw = text[start : at + 1]
        return node, at + 1


def repeats_key(node: Node) -> bool:
    """Whether an object in the tree has a key twice: Spark makes no VARIANT of it."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Obj):
            if len({key for key, _ in found}) < len(found):
                return True
            waiting += [value for _, value in found]
        elif isinstance(found, list):
            waiting += found
    return False


def source_text(node: Node) -> str | None:
    """The source text of an object or array, None when it was not asked for."""
    return getattr(node, "raw", None)


def dump(node: Node) -> str:
    """Compact JSON of a tree; numbers keep their literal text (without leading zeros), NaN and infinities become strings."""
    if node is None:
        return "null"
    if node is True:
        return "true"
    if node is False:
        return "false"
    if isinstance(node, Num):
        return _number_text(node) if node[-1].isdigit() else json.dumps(str(node))
    if isinstance(node, str):
        return json.dumps(node, ensure_ascii=False)
    if isinstance(node, Obj):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump(v)}" for k, v in node) + "}"
    return "[" + ",".join(dump(v) for v in node) + "]"


def _number_text(number: Num) -> str:
    sign = "-" if number[0] == "-" else ""
    digits = number[len(sign) :]
    return sign + re.sub(r"^0+(?=\d)", "", digits) if digits[0] == "0" else str(number)


def objects_of(node: Node) -> Iterator[Obj]:
    """The objects whose fields are columns under inference: those in arrays at one depth, with NULLs between them. Raises BrokenText."""
    level = [node]
    while level:
        some = [item for item in level if item is not None]
        if all(isinstance(item, Obj) for item in some):
            yield from some
            return
        if any(isinstance(item, Obj) or not isinstance(item, list) for item in some):
            raise BrokenText("neither an object nor arrays of objects")
        level = [inner for item in some for inner in item]


def records_of(node: Node) -> Iterator[Obj]:
    """The records of one line: an object is one record, an array of objects is one record per element. Raises BrokenText otherwise."""
    if isinstance(node, Obj):
        yield node
    elif isinstance(node, list) and all(isinstance(item, Obj) for item in node):
        yield from node
    else:
        raise BrokenText("neither an object nor an array of objects")
