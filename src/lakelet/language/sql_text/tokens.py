"""The tokens of SQL text: where strings, quoted names, comments and words begin and end. All readers of SQL text ask here.

sqlglot's tokenizer for Databricks finds them (`dialect.py`). Spark is what runs the text, so where sqlglot reads it otherwise, this module
corrects the token and lets sqlglot go on after it:

| text | sqlglot | Spark, and this module |
|---|---|---|
| comments | left out | tokens with a position |
| `-- a\\` before a line break | the comment ends | it goes on in the next line |
| `{# … #}` | a comment | characters |
| `'it''s'` | two strings | one string |
| `n'a'` | one string | the word `n`, a string |
| `x'1F'` | refuses what is not hexadecimal | left to Spark |
| `$$it's$$`, `$a$…$a$` | signs, an open string | one string |
| `1L`, `1e3BD` | three tokens: a cast | one number |
| `1.a`, `1_000`, `1e`, `0x1F`, `.5` | a number and something | `1` `.` `a`; words; `.5` |
| `user-defined`, `?::` | one word, one sign | three, two |

What Spark cannot read at all is not corrected; it says so when the text is run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from sqlglot import Token as Raw

Kind = Literal["word", "name", "string", "number", "hint", "comment", "open"]

_NUMBER = re.compile(
    r"""(?:[0-9]+\.[0-9]*|\.[0-9]+) (?:E[+-]?[0-9]+)? (?:BD|[FD])? (?![A-Z0-9_])
    |[0-9]+ E[+-][0-9]+ (?:BD|[FD])?
    |[0-9]+ (?:[LSY]|(?:E[0-9]+)? (?:BD|[FD])?) (?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
_WORD = re.compile(r"\w+")
_QUOTES = ("'", '"', "`")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_DOLLARS = re.compile(r"\$[A-Za-z]*\$")


class Token(NamedTuple):
    """One token: `text[start:stop]`.

    `kind`: "word" is also each sign; "name" stands in back quotes; "open" is a string, name or comment that does not end, up to the end of
    the text. `upper`: a word or sign in upper case, empty for anything in quotes. `value`: what a string or name says; otherwise the text.
    """

    upper: str
    value: str
    start: int
    stop: int
    kind: Kind

    @property
    def is_name(self) -> bool:
        """Whether it can be (a part of) a name."""
        return self.kind == "name" or (self.kind == "word" and (self.upper[0].isalnum() or self.upper[0] == "_"))


class OpenToken(ValueError):
    """A string, name or comment does not end."""

    def __init__(self, token: Token) -> None:
        super().__init__(f"{token.value} is not closed")
        self.token = token


def tokens(text: str) -> list[Token]:
    """The tokens without comments. Raises OpenToken."""
    found = plain_tokens(text)
    if found and found[-1].kind == "open":
        raise OpenToken(found[-1])
    return found


@functools.lru_cache(maxsize=32)  # a statement is read for its parameters, its clauses and its paths
def all_tokens(text: str) -> tuple[Token, ...]:
    """The tokens with comments, in order. What does not end is the last one; its `value` is what opens it: a quote, `/*`, or `$tag$`."""
    return tuple(_scanned_tokens(text))


def _scanned_tokens(text: str) -> list[Token]:
    found: list[Token] = []
    position = 0
    while position < len(text):
        position = _read_on(text, position, found)
    return found


def plain_tokens(text: str) -> list[Token]:
    """The tokens without comments, also of a text that Spark will refuse: one that does not end is the last one."""
    return [token for token in all_tokens(text) if token.kind != "comment"]


def name_end(found: Sequence[Token], at: int) -> int:
    """The index after the dotted name that begins at index `at`; `at` itself if none does."""
    if at >= len(found) or not found[at].is_name:
        return at
    end = at + 1
    while end + 1 < len(found) and found[end].upper == "." and found[end + 1].is_name:
        end += 2
    return end


def closing(found: Sequence[Token], at: int) -> int:
    """The index of what closes the parenthesis or bracket at index `at`; the last index where nothing does."""
    depth = 0
    for position in range(at, len(found)):
        depth += 1 if found[position].upper in ("(", "[") else -1 if found[position].upper in (")", "]") else 0
        if depth == 0:
            return position
    return len(found) - 1


def adjacent(text: str, first: str, second: Collection[str]) -> bool:
    """Whether one of the words or signs `second` stands right after `first`, all in upper case. Strings and comments do not count."""
    if not may_have(text, [word for word in (first, *second) if word.isalpha()]):
        return False
    return any(a.upper == first and b.upper in second for a, b in pairwise(plain_tokens(text)))


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with (start, stop, new text) replaced. Edits of one position stay in their order."""
    for start, stop, new in sorted(edits, key=lambda edit: edit[:2])[::-1]:
        text = text[:start] + new + text[stop:]
    return text


def literal(value: str) -> str:
    """A string of SQL that says `value`."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def begins_with(text: str, words: Collection[str]) -> bool:
    """Whether the first word, after comments, is one of these in upper case. Only a text that begins with a comment costs tokens."""
    lead = text.lstrip()
    if lead.startswith(("--", "/*")):
        return next((token.upper for token in plain_tokens(text)), "") in words
    first = _WORD.match(lead)
    return first is not None and first[0].upper() in words


def may_have(text: str, words: Iterable[str]) -> bool:
    """Whether the text has one of these words anywhere, also inside strings: where it has none, no token has to be read."""
    return re.search(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)", text, re.IGNORECASE) is not None


def _read_on(text: str, position: int, found: list[Token]) -> int:
    """Add the tokens from `position` on, as long as sqlglot is in step with Spark; return where to begin again."""
    from lakelet.language.sql_text.dialect import raw_tokens  # here, because it loads sqlglot

    begin, stop = position, position
    for raw in raw_tokens(text[begin:]):
        start, stop = begin + raw.start, begin + raw.end + 1
        position = _skip_comments(text, position, start, found) if position < start else position
        if position < start:
            return _add_sign(text, position, found)
        if position >= stop:
            continue  # part of what was read before
        if position > start:
            return position
        token = _corrected_token(raw, text, start, stop)
        _add_token(found, token, text)
        if token.stop < stop < len(text) and (text[stop] in "._'\"$" or text[stop].isalnum()):
            return token.stop  # the rest of it goes on
        if token.stop < stop:
            found += [_moved_token(rest, token.stop) for rest in _scanned_tokens(text[token.stop : stop])]
        position = max(token.stop, stop)
    if position > stop:
        return position
    position = _skip_comments(text, position, len(text), found)
    if position == len(text):
        return position
    if text[position] not in _QUOTES:  # the letter of r'…
        return _add_sign(text, position, found)
    found.append(Token("", text[position], position, len(text), "open"))  # sqlglot found no end of it
    return len(text)


def _add_sign(text: str, position: int, found: list[Token]) -> int:
    """Add one character that sqlglot takes for the begin of a comment or string."""
    found.append(Token(text[position].upper(), text[position], position, position + 1, "word"))
    return position + 1


def _moved_token(token: Token, by: int) -> Token:
    return token._replace(start=token.start + by, stop=token.stop + by)


def _skip_comments(text: str, position: int, stop: int, found: list[Token]) -> int:
    """Add the comments between two tokens; return where they and the blanks around them end, which may be before `stop` or after it."""
    while True:
        while position < stop and text[position].isspace():
            position += 1
        if position >= stop:
            return position
        comment = _comment_at(text, position)
        if comment is None:
            return position
        found.append(comment)
        position = comment.stop


def _comment_at(text: str, start: int) -> Token | None:
    """The comment that begins here; its line break is not part of it. Those in `/*` may hold others."""
    line = _LINE_COMMENT.match(text, start)
    if line is not None:
        return Token("", line[0], start, line.end(), "comment")
    if not text.startswith("/*", start):
        return None
    depth, position = 0, start
    nests = not text.startswith("/*+", start)
    while (edge := _COMMENT_EDGE.search(text, position)) is not None:
        depth += 1 if edge[0] == "/*" and (nests or not depth) else -1 if edge[0] == "*/" else 0
        position = edge.end()
        if not depth:
            return Token("", text[start:position], start, position, "comment")
    return Token("", "/*", start, len(text), "open")


def _corrected_token(raw: Raw, text: str, start: int, stop: int) -> Token:
    """The token that begins at `start` as Spark reads it; sqlglot lets it end at `stop`."""
    kind, first = raw.token_type.name, text[start]
    if kind in ("STRING", "RAW_STRING"):
        return Token("", raw.text, start, stop, "string")
    if kind == "IDENTIFIER":
        return Token("", raw.text, start, stop, "name")
    if kind == "HINT":
        closed = stop - start > 4 and text.endswith("*/", start, stop)
        return Token("/*+", text[start:stop], start, stop, "hint") if closed else Token("", "/*", start, len(text), "open")
    if first == "$" and (dollars := _DOLLARS.match(text, start)) is not None:
        end = text.find(dollars[0], dollars.end())
        if end < 0:
            return Token("", dollars[0], start, len(text), "open")
        return Token("", text[dollars.end() : end], start, end + len(dollars[0]), "string")
    if (first == "." or first.isdigit()) and (number := _NUMBER.match(text, start)) is not None:
        return Token(number[0].upper(), number[0], start, number.end(), "number")
    word = _WORD.match(text, start)
    if word is not None or kind == "VAR" or first == "?":
        stop = word.end() if word is not None else start + 1
    return Token(text[start:stop].upper(), text[start:stop], start, stop, "word")


def _add_token(found: list[Token], token: Token, text: str) -> None:
    """Add a token; with the one right before it, it may be one: `'it''s'`, `x'1F'`."""
    before = found[-1] if found and found[-1].stop == token.start else None
    if token.kind == "string" and before is not None:
        quote = text[token.start]
        if before.kind == "string" and text[before.start] == quote in "'\"":
            found[-1] = Token("", before.value + quote + token.value, before.start, token.stop, "string")
            return
        hexadecimal = before.upper == "X" or (before.kind == "number" and text[before.start : before.start + 2].upper() == f"X{quote}")
        if hexadecimal and quote in "'\"":
            found[-1] = Token("", text[before.start : token.stop], before.start, token.stop, "number")
            return
    found.append(token)
