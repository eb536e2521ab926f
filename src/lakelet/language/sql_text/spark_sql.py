"""SQL text of Databricks as text that Spark takes: paths into JSON text, parameters, options without a value (SQ-7, SQ-8).

The colon has two meanings: `raw:a.b[0]` takes a value out of JSON text, `:key` is a parameter. Spark knows the first on VARIANT only, so
that a query over text is rewritten with `get_json_object`. Everything stays in its line. Names are found whatever their case, as on
Databricks; those in brackets only as they are. A field that is there as it is written costs nothing more; the keys of the text are searched
only where it is not, and the text has the name at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lakelet.base.names import quoted
from lakelet.language.sql_text.tokens import OpenToken, Token, edited, literal, may_have, plain_tokens, tokens

_SWITCH_OPTION = "SKIPCHANGECOMMITS"
_MAY_BE_PATH = re.compile(r"(?<!:):(?!:)\s*(?:[^\W\d]|\d+[^\W\d]|[`\['\"])")  # also in strings; no time of day


_WRITTEN_TEXT = "lakelet_written"


def note_written(column: object, text: str) -> None:
    """Keep the text of `F.expr(text)` with its column, if it may be a path into JSON text, which the column itself cannot be."""
    if _MAY_BE_PATH.search(text):
        vars(column)[_WRITTEN_TEXT] = text


def written_text(condition: Any) -> str | None:
    """The text of a condition: as given, or of a column that `note_written` noted; None for any other column."""
    found = condition if isinstance(condition, str) else getattr(condition, "__dict__", {}).get(_WRITTEN_TEXT)
    return None if found is None else str(found)


def in_spark_sql(text: str) -> str:
    """Return SQL text with each path into JSON (`raw:a.b`) as the call that Spark has for it; other text comes back unchanged."""
    return json_paths(text) if _MAY_BE_PATH.search(text) else text


def with_values(text: str) -> str:
    """Return SQL text with the value of each option that may go without: `STREAM t WITH (SKIPCHANGECOMMITS)` means `= TRUE`."""
    if not may_have(text, [_SWITCH_OPTION]):
        return text
    found = plain_tokens(text)
    bare = [
        token.stop
        for before, token, after in zip(found, found[1:], found[2:], strict=False)
        if token.upper == _SWITCH_OPTION and before.upper in ("(", ",") and after.upper in (")", ",")
    ]
    return edited(text, [(at, at, " = TRUE") for at in bare])


# ----------------------------------------------------------------------------------------------------------- the colon


_PLAIN = re.compile(r"\w+")
_WRITTEN_ONE_WAY = re.compile(r"[ !#-.0-\[\]-~]*")
"""Names that JSON text cannot hold in another form, such as `\\u00e4` for ä."""
_OPENING = {")": "(", "]": "["}
_LIST_ENDS = frozenset(
    ("FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "LATERAL", "WINDOW", "QUALIFY")
)
_JOINING = (
    "SELECT",
    "DISTINCT",
    "ALL",
    "AND",
    "OR",
    "NOT",
    "THEN",
    "WHEN",
    "ELSE",
    "CASE",
    "BY",
    "IN",
    "LIKE",
    "ILIKE",
    "RLIKE",
    "BETWEEN",
)
_KEYWORDS = frozenset((*_JOINING, *_LIST_ENDS, "BETWEEN", "QUALIFY", "ON", "OFFSET", "AS", "IS", "JOIN", "USING", "END", "STREAM"))
_CLAUSES = (
    *("INTERVAL", "ESCAPE", "VALUES", "DIV", "SET", "OF", "TO", "ROWS", "DEFAULT", "WITH", "FOR", "INTO", "FETCH", "FIRST", "NEXT"),
    *("COMMENT", "LOCATION", "SCHEMA", "CATALOG", "TABLE", "VIEW", "FLOW", "EVERY", "CRON", "AT", "ZONE", "DATE", "TIMESTAMP", "EXISTS"),
)
_BEFORE_PARAMETERS = _KEYWORDS.union(_CLAUSES)


class _PathStep(NamedTuple):
    """One step of a path, in the form of Spark's function. `name`: of a field that is found whatever its case, as it is written."""

    text: str
    name: str | None = None


_BASE = "\0"
"""Stands for the base of a path."""


@dataclass(frozen=True)
class _JsonPath:
    """`base:path`: where the base begins, where colon and path stand, the steps of the path, and the last name in it."""

    base: int
    colon: int
    stop: int
    steps: tuple[_PathStep, ...]
    name: str

    @property
    def exact(self) -> str:
        return "$" + "".join(step.text for step in self.steps)

    def value(self, document: str) -> str:
        """SQL for the value in the text that the SQL `document` gives."""
        found = f"get_json_object({document}, {literal(self.exact)})"
        names = [step.name for step in self.steps if step.name is not None]
        if not names:
            return found
        inner, rest = document, ""
        for step in self.steps:
            if step.name is None:
                rest += step.text
                continue
            inner, rest = _value_of_field(_value_at_path(inner, rest), step.name), ""
        other = _value_at_path(inner, rest)
        if _WRITTEN_ONE_WAY.fullmatch(names[-1]):
            search = literal(f'"{names[-1].lower()}"')
            other = f"CASE WHEN contains(lower({document}), {search}) THEN {other} END"
        return f"coalesce({found}, {other})"


def _value_at_path(document: str, path: str) -> str:
    return f"get_json_object({document}, {literal('$' + path)})" if path else document


def _value_of_field(document: str, name: str) -> str:
    """SQL for the field of an object that has this name, else for the first one that has it in another case; NULL where there is none."""
    written = f"filter(json_object_keys(j), k -> k = {literal(name)})"
    key = f"get(concat({written}, filter(json_object_keys(j), k -> lower(k) = {literal(name.lower())})), 0)"
    return f"element_at(transform(array({document}), j -> get_json_object(j, concat('$[\\'', {key}, '\\']'))), 1)"


def json_paths(text: str) -> str:
    """The text with each path into JSON as an expression of Spark's; unchanged where it has none or is not SQL."""
    if ":" not in text:
        return text
    try:
        words = tokens(text)
    except OpenToken:
        return text
    edits: list[tuple[int, int, str]] = []
    done = 0
    for at, item in _path_colons(words):
        found = _path_at(words, at) if words[at].start >= done else None
        if found is None:
            continue
        done = found.stop
        before, after = _call_around(text, words, found)
        edits.append((words[found.base].start, words[found.base].start, before))
        breaks = "\n" * text.count("\n", words[found.colon].start, found.stop)
        edits.append((words[found.colon].start, found.stop, breaks + after))
        if item and (end := _item_end(words, found)) is not None:
            edits.append((end, end, f" AS {quoted(found.name)}"))
    return edited(text, edits)


def _call_around(text: str, words: Sequence[Token], path: _JsonPath) -> tuple[str, str]:
    """What goes before and after the base of a path. Only a name may be said twice."""
    base = words[path.base : path.colon]
    written = text[base[0].start : base[-1].stop]
    named = all(word.is_name or word.upper in (".", "::") for word in base)
    if named or not any(step.name for step in path.steps):
        before, _, after = path.value(f"CAST({_BASE} AS STRING)").partition(_BASE)
        return before, after.replace(_BASE, written)
    return "element_at(transform(array(CAST(", f" AS STRING)), j -> {path.value('j')}), 1)"


def parameters(text: str, value_of: Callable[[str, int], str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text with each `:key` as a string literal of what `value_of(key, position)` gives, and the anchors of the new text in the old."""
    if ":" not in text:
        return text, ()
    words = tokens(text)
    edits = []
    for at, _ in _path_colons(words):
        after = words[at + 1] if at + 1 < len(words) else None
        is_parameter = after is not None and after.is_name and after.kind == "word" and after.start == words[at].stop
        if is_parameter and after is not None and not _ends_value(words, at):
            edits.append((words[at].start, after.stop, literal(value_of(after.value, words[at].start))))
    anchors, shift = [(0, 0)], 0
    for start, stop, new in edits:
        anchors += [(start + shift, start), (start + shift + len(new), stop)]
        shift += len(new) - (stop - start)
    return edited(text, edits), tuple(anchors) if edits else ()


def _path_colons(words: Sequence[Token]) -> Iterator[tuple[int, bool]]:
    """The positions of single colons outside of types, and whether each stands in a list after SELECT."""
    lists, types = [False], 0
    for at, word in enumerate(words):
        if word.upper in ("(", "["):
            lists.append(False)
        elif word.upper in (")", "]") and len(lists) > 1:
            lists.pop()
        elif word.upper == "SELECT":
            lists[-1] = True
        elif word.upper in _LIST_ENDS:
            lists[-1] = False
        elif word.upper == "<" and (types or words[at - 1].upper in ("STRUCT", "ARRAY", "MAP")):
            types += 1
        elif word.upper == ">" and types:
            types -= 1
        elif word.upper == ":" and at and not types:
            yield at, lists[-1]


def _ends_value(words: Sequence[Token], at: int) -> bool:
    """Whether a value that has a path ends before the word at `at`; Databricks' own formatter puts a blank between (`raw :a :b`)."""
    before = words[at - 1]
    not_values = _KEYWORDS if before.stop == words[at].start else _BEFORE_PARAMETERS
    return before.upper in (")", "]") or (before.is_name and (before.kind == "name" or before.upper not in not_values))


def _path_at(words: Sequence[Token], at: int) -> _JsonPath | None:
    if not _ends_value(words, at):
        return None
    steps: list[_PathStep] = []
    name, position = "", at + 1
    while position < len(words):
        word = words[position]
        if position == at + 1 and word.is_name:
            steps.append(_field_step(word.value, found=not any(step.text == "[*]" for step in steps)))
            name, position = word.value, position + 1
        elif word.upper in (".", ":") and position + 1 < len(words) and words[position + 1].is_name:
            name = words[position + 1].value
            steps.append(_field_step(name, found=not any(step.text == "[*]" for step in steps)))
            position += 2
        elif word.upper == "[" and position + 2 < len(words) and words[position + 2].upper == "]":
            inside = words[position + 1]
            name = inside.value if inside.kind == "string" else name
            steps.append(_PathStep(_step_text(inside.value) if inside.kind == "string" else f"[{inside.value}]"))
            position += 3
        elif word.upper == ":" and steps and position + 1 < len(words) and words[position + 1].upper == "[":
            position += 1  # `a:b:[0]` is `a:b[0]`
        else:
            break
    if not steps:
        return None
    return _JsonPath(_first_word_of_value(words, at), at, words[position - 1].stop, tuple(steps), name)


def _field_step(name: str, *, found: bool) -> _PathStep:
    """A step to a field. `found`: whatever its case; not behind `[*]`, where each element has keys of its own."""
    return _PathStep(_step_text(name), name if found and name.lower() != name.upper() else None)


def _step_text(name: str) -> str:
    return f".{name}" if _PLAIN.fullmatch(name) else f"['{name}']"


def _first_word_of_value(words: Sequence[Token], at: int) -> int:
    """The first word of the value that ends before `at`: a dotted name, a call, an index, something in parentheses; with a cast (`::`)."""
    position = at - 1
    while True:
        closing = words[position].upper
        if closing in _OPENING:
            position = _opening_bracket(words, position)
            before = words[position - 1] if position else None
            index = closing == "]" and before is not None
            call = before is not None and before.is_name and before.upper not in _KEYWORDS and before.stop == words[position].start
            if index or call:
                position -= 1
                continue
        if position >= 2 and words[position - 1].upper in (".", "::") and words[position].is_name:
            position -= 2
            continue
        return position


def _opening_bracket(words: Sequence[Token], position: int) -> int:
    depth = 0
    for at in range(position, -1, -1):
        depth += 1 if words[at].upper in _OPENING else -1 if words[at].upper in _OPENING.values() else 0
        if depth == 0:
            return at
    return 0


def _item_end(words: Sequence[Token], path: _JsonPath) -> int | None:
    """Where the name of a column can be put: the path, with a cast or without, is all of an item of a list after SELECT."""
    before = words[path.base - 1].upper if path.base else ""
    if before not in ("SELECT", "DISTINCT", "ALL", ","):
        return None
    position = next(at for at in range(path.colon, len(words)) if words[at].stop >= path.stop) + 1
    if position + 1 < len(words) and words[position].upper == "::":
        position += 2
        if position < len(words) and words[position].upper in ("(", "<"):
            close = ")" if words[position].upper == "(" else ">"
            depth = 0
            while position < len(words):
                depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(words[position].upper, 0)
                position += 1
                if depth == 0 and words[position - 1].upper == close:
                    break
    follows = words[position].upper if position < len(words) else ""
    return words[position - 1].stop if follows in ("", ",", "FROM", ")", "UNION", "WHERE") else None
