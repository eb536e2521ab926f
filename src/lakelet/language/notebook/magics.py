"""Magic commands within Python cells: `%pip`, `%run`, `!ls` and their like, each a line of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMAND = re.compile(r"^\s*(?:%{1,2}(?P<name>[A-Za-z]\w*)|(?P<bare>pip)(?= install )|!)(?P<rest>.*)$", re.DOTALL)
_RUN = re.compile(r"""^\s*(?P<path>"[^"]*"|'[^']*'|[^\s$"']+)\s*(?P<arguments>.*)$""", re.DOTALL)
_ARGUMENT = re.compile(r"""\$(?P<name>[\w.-]+)\s*=\s*(?P<value>"[^"]*"|'[^']*'|\S+)""")
_OPTION_VALUES = frozenset({"-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"})


@dataclass(frozen=True)
class Magic:
    """One command: `name` without `%` (`!` for a shell line), the rest of its line, and that line's number within the cell, from 1."""

    name: str
    rest: str
    line: int


@dataclass(frozen=True)
class Code:
    """Python between two commands that interrupt it; `line` is its first line within the cell."""

    text: str
    line: int


def pieces(text: str, filename: str) -> Iterator[Code | Magic]:
    """Cut the text of a Python cell where commands stand, in order. Only `%run` interrupts the code; the others take no part in it.

    A line is a command where Python cannot read it: `%` and `!` within expressions and strings stay what they are. `pip install` needs no
    `%`, as on Databricks. Raises SyntaxError.
    """
    lines = text.split("\n")
    found: list[Magic] = []
    while True:
        try:
            compile("\n".join(lines), filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            break
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            magic = _magic_at(lines, at)
            if magic is None:
                raise
            found.append(magic)
    start = 0
    for magic in sorted(found, key=lambda one: one.line):
        if magic.name == "run":
            yield Code("\n".join(lines[start : magic.line - 1]), start + 1)
            start = magic.line
        yield magic
    yield Code("\n".join(lines[start:]), start + 1)


def _magic_at(lines: list[str], at: int) -> Magic | None:
    """Take the command on line `at` out of the code; None if there is none. Line ends after a backslash belong to it."""
    if not 0 <= at < len(lines) or not (match := _COMMAND.match(lines[at])):
        return None
    rest, last = match["rest"], at
    while rest.endswith("\\") and last + 1 < len(lines):
        last += 1
        rest = rest[:-1] + lines[last]
        lines[last] = ""
    lines[at] = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + "pass"
    return Magic(match["name"] or match["bare"] or "!", rest.strip(), at + 1)


def packages(rest: str) -> list[str]:
    """The packages that `%pip install …` names, without options. None for other uses of pip."""
    words = re.split(r"\s#", rest, maxsplit=1)[0].split()
    if not words or words[0] != "install":
        return []
    taken = zip(words[1:], words, strict=False)
    return [word.strip("\"'") for word, before in taken if not word.startswith("-") and before not in _OPTION_VALUES]


def run_target(rest: str) -> tuple[str, dict[str, str]]:
    """Path and arguments of `%run path $name="value"`. The path is empty if none is written."""
    match = _RUN.match(rest)
    if not match:
        return "", {}
    given = {found["name"]: found["value"].strip("\"'") for found in _ARGUMENT.finditer(match["arguments"])}
    return match["path"].strip("\"'"), given
