"""Texts of several statements: a query, and before it views that count for it. No Spark."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.language.sql_text.tokens import Token, plain_tokens

_BEFORE_VIEW = frozenset((("CREATE",), ("CREATE", "TEMP"), ("CREATE", "TEMPORARY"), ("CREATE", "GLOBAL", "TEMPORARY")))


@dataclass(frozen=True)
class Script:
    """`views`: (name, query) of each `CREATE [OR REPLACE] [TEMP] VIEW name AS query`, in order; `query`: what comes after them."""

    views: tuple[tuple[str, str], ...]
    query: str


def script(text: str) -> Script:
    """Take apart `CREATE VIEW …; … SELECT …`. What is no such view ends the views: the rest is the query, right or wrong."""
    views: list[tuple[str, str]] = []
    begin, statement = 0, list[Token]()
    found = plain_tokens(text)
    for at, token in enumerate(found):
        if token.upper != ";":
            statement.append(token)
            continue
        view = _view(text, statement)
        if view is None or at + 1 == len(found):
            break
        views.append(view)
        begin, statement = token.stop, []
    return Script(tuple(views), text[begin:].strip().rstrip(";").rstrip())


def split(text: str) -> tuple[list[str], str]:
    """Return the texts of `script`, each up to its semicolon, and what comes after the last one; empty if that is nothing but comments.

    A view belongs to the query after it, and is a text of its own if nothing comes after it.
    """
    found: list[str] = []
    begin, views_end, statement = 0, 0, list[Token]()
    for token in plain_tokens(text):
        if token.upper != ";":
            statement.append(token)
            continue
        if _view(text, statement) is not None:
            views_end = token.stop
        elif statement:
            found.append(text[begin : token.stop].strip())
            begin = token.stop
        elif views_end <= begin:
            begin = token.stop
        statement = []
    if views_end > begin and not statement:
        found.append(text[begin:views_end].strip())
    return found, text[begin:].lstrip() if statement else ""


def _view(text: str, statement: list[Token]) -> tuple[str, str] | None:
    words = [token.upper for token in statement]
    at = words.index("VIEW") if "VIEW" in words[:5] else 0
    head = tuple(word for word in words[:at] if word not in ("OR", "REPLACE"))
    if head not in _BEFORE_VIEW or words[at + 2 : at + 3] != ["AS"] or not statement[at + 1].is_name:
        return None
    return statement[at + 1].value, text[statement[at + 2].stop : statement[-1].stop].strip()
