"""The text of a SQL source: its statements, `${key}` put in, and the way back from a character to file, line and column."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakelet.base.errors import LakeletError, Location
from lakelet.language.sql_text.tokens import all_tokens, plain_tokens

_REFERENCE = re.compile(r"\$\{\s*(?P<key>[^\s{}]+)\s*\}")  # no SQL: it is replaced before anything is read
_UNCLOSED = {"/*": "comment", "'": "string", '"': "string", "`": "name in back quotes", "$": "string"}


@dataclass(frozen=True)
class Cell:
    """A part of a source: its SQL text, and the line of the file on which it begins (1-based). Statements do not cross cells.

    `number`: the cell's position in a Jupyter notebook, where `line` is within the cell; it belongs into every location.
    """

    text: str
    line: int = 1
    number: int | None = None


@dataclass(frozen=True)
class CellText:
    """A cell and the file it stands in, as the user would name it."""

    cell: Cell
    file: str

    def location(self, offset: int) -> Location:
        """The position of a character of the cell."""
        text = self.cell.text
        begin = text.rfind("\n", 0, offset) + 1
        end = text.find("\n", offset)
        line = self.cell.line + text.count("\n", 0, offset)
        source = text[begin : end if end >= 0 else len(text)]
        return Location(self.file, line, offset - begin + 1, source, self.cell.number)


@dataclass(frozen=True)
class StatementText:
    """One statement: `text` with every `${key}` replaced.

    `anchors`: pairs of a position in `text` and one in what it was made from, the cell or the statement `before`; between two of them
    both run in step, or stand still inside a value.
    """

    within: CellText
    text: str
    anchors: tuple[tuple[int, int], ...]
    before: StatementText | None = None

    def offset(self, position: int) -> int:
        """The character of the cell that a character of `text` comes from."""
        length = len(self.before.text if self.before else self.within.cell.text)
        at = bisect.bisect_right(self.anchors, (position, length + 1)) - 1
        ours, theirs = self.anchors[max(at, 0)]
        limit = self.anchors[at + 1][1] if at + 1 < len(self.anchors) else length
        found = min(theirs + position - ours, limit)
        return self.before.offset(found) if self.before else found

    def location(self, position: int) -> Location:
        return self.within.location(self.offset(position))

    def edited(self, text: str, anchors: tuple[tuple[int, int], ...]) -> StatementText:
        """The statement with another text, whose positions `anchors` relate to this one's."""
        return StatementText(self.within, text, anchors, self) if anchors else self


def statements(cell: CellText) -> Iterator[tuple[int, int]]:
    """The spans of the statements of a cell, without what holds only comments. Raises SQL_SYNTAX where a quote or comment is not closed."""
    begin, speaks = 0, False
    for token in plain_tokens(cell.cell.text):
        if token.kind == "open":
            what = f"this {_UNCLOSED.get(token.value, _UNCLOSED['$'])} is not closed"
            end = "*/" if token.value == "/*" else token.value
            raise LakeletError("SQL_SYNTAX", what, where=cell.location(token.start), todo=f"Close it with {end}.")
        if token.upper != ";":
            speaks = True
            continue
        if speaks:
            yield begin, token.start
        begin, speaks = token.stop, False
    if speaks:
        yield begin, len(cell.cell.text)


Value = Callable[[str, Location, bool], str]
"""(key, where it stands, whether in the list after the name of what a statement creates) → the text for `${key}`. May raise."""


def interpolated(cell: CellText, begin: int, end: int, value_of: Value) -> StatementText:
    """The statement in `text[begin:end]` of the cell, each `${key}` outside of comments replaced by what `value_of` gives for it."""
    text = cell.cell.text
    begin += len(text[begin:end]) - len(text[begin:end].lstrip())
    parts: list[str] = []
    anchors = [(0, begin)]
    done, length = begin, 0
    for found in _parameter_references(text, begin, end):
        value = value_of(found["key"], cell.location(found.start()), _in_list(text[begin : found.start()]))
        parts += [text[done : found.start()], value]
        length += found.start() - done
        anchors += [(length, found.start())]
        length += len(value)
        anchors += [(length, found.end())]
        done = found.end()
    parts.append(text[done:end].rstrip())
    return StatementText(cell, "".join(parts), tuple(anchors))


def _in_list(before: str) -> bool:
    """Whether a statement that begins so is in the list of columns and rules of what it creates, outside of strings and quoted names."""
    found, depth = plain_tokens(before), 0
    if not found or found[0].upper != "CREATE" or found[-1].kind == "open":
        return False
    for token in found:
        depth += {"(": 1, ")": -1}.get(token.upper, 0)
        if depth == 0 and token.upper == "AS":
            return False
    return depth > 0


def _parameter_references(text: str, begin: int, end: int) -> Iterator[re.Match[str]]:
    """Each `${key}`, also inside of strings and quoted names, but not inside of comments."""
    comments = [(token.start, token.stop) for token in all_tokens(text) if token.kind == "comment"]
    for found in _REFERENCE.finditer(text, begin, end):
        at = bisect.bisect_right(comments, (found.start(), len(text))) - 1
        if at < 0 or comments[at][1] <= found.start():
            yield found
