"""The prose of a Markdown page or a docstring as sentences with their lines. Blocks of code are left out. No Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator

LIST_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
LEAD_IN = re.compile(r"^\*\*[^*]+\*\*")
CODE = "CODE"
CODE_IN_A_ROW = re.compile(rf"{CODE}(?:(?:,| and| or|, and|, or| /)? {CODE})+")
END = re.compile(r"(?<=[.!?])[\"”)*_]*(?:<br>| )(?=[A-Z\"“(*]|\d|$)|<br>")


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """First line and text of each paragraph, item of a list and cell of a table. In a cell a semicolon separates notes."""
    lines: list[str] = []
    start, fenced, before = 1, False, ""
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        stripped = line.strip()
        fence = stripped.startswith(("```", "~~~"))
        item = LIST_ITEM.match(stripped)
        if lines and (not stripped or fence or item or stripped.startswith(("#", "|"))):
            yield start, " ".join(lines)
            lines = []
        code = fenced or fence or (not lines and not item and not before and line.startswith("    "))
        if fence:
            fenced = not fenced
        elif stripped.startswith("|") and not code:
            yield from ((number, cell.strip().replace("; ", "<br>")) for cell in re.split(r"(?<!\\)\|", stripped.strip("|")))
        elif stripped and not code and not stripped.startswith("#"):
            start = start if lines else number
            lines.append(stripped[item.end() if item else 0 :])
        before = "" if code else stripped


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each sentence; links are their texts, and what is in code font is the word CODE."""
    for line, block in blocks(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"``?[^`]+``?", CODE, block))
        yield from ((line, sentence.strip()) for sentence in END.split(plain) if sentence.strip())


def words(sentence: str) -> int:
    """How many words a sentence has. A list of names in code font counts as one word, a bold lead-in and signs as none."""
    prose = CODE_IN_A_ROW.sub(CODE, LEAD_IN.sub("", sentence))
    return sum(any(letter.isalnum() for letter in word) for word in prose.split())
