"""Texts of several statements: a query, and before it views and `USE`, which count for it. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace, split_name
from lakelet.language.sql_text import commands
from lakelet.language.sql_text.tokens import Token, name_end, plain_tokens

_BEFORE_VIEW = frozenset((("CREATE",), ("CREATE", "TEMP"), ("CREATE", "TEMPORARY"), ("CREATE", "GLOBAL", "TEMPORARY")))


@dataclass(frozen=True)
class ScopedQuery:
    """A query, and (CATALOG, SCHEMA, DATABASE or nothing, name) of each USE before it."""

    query: str
    uses: tuple[tuple[str, str], ...] = ()

    def namespace(self, own: Namespace) -> Namespace:
        """What completes the names of the query: `own`, and what USE said; USE CATALOG means its schema `default`.

        Raises ValueError for a name of too many parts.
        """
        for kind, name in self.uses:
            parts = split_name(name)
            if len(parts) > (1 if kind == "CATALOG" else 2):
                raise ValueError(f"USE {kind} {name}: a name of {len(parts)} parts")
            own = Namespace(parts[0]) if kind == "CATALOG" else Namespace(*(own.catalog, *parts)[-2:])
        return own


@dataclass(frozen=True)
class Script:
    """A query and what stands before it.

    `views`: parts of the name and the query of each `CREATE [OR REPLACE] [TEMP] VIEW name AS query`, in order; `query`: the one after them.
    """

    views: tuple[tuple[tuple[str, ...], ScopedQuery], ...]
    query: ScopedQuery


def script(text: str) -> Script:
    """Take apart `USE …; CREATE VIEW …; … SELECT …`. What is neither ends them: the rest is the query, right or wrong."""
    views: list[tuple[tuple[str, ...], ScopedQuery]] = []
    uses: tuple[tuple[str, str], ...] = ()
    begin, statement = 0, list[Token]()
    found = plain_tokens(text)
    for at, token in enumerate(found):
        if token.upper != ";":
            statement.append(token)
            continue
        view, used = _view(text, statement), _use(text, statement)
        if (view is None and used is None) or at + 1 == len(found):
            break
        views += [(view[0], ScopedQuery(view[1], uses))] if view is not None else []
        uses += (used,) if used is not None else ()
        begin, statement = token.stop, []
    return Script(tuple(views), ScopedQuery(text[begin:].strip().rstrip(";").rstrip(), uses))


def no_query() -> LakeletError:
    """The error for a text that holds comments at most."""
    return LakeletError("SQL_FAILED", "the text holds no query", todo='For example: lakelet sql "SELECT * FROM …"')


def only_queries(nearest: Sequence[str] = ()) -> LakeletError:
    """The error for a statement that is not a query. `nearest`: words that its first one may mean."""
    todo = None if nearest else 'For example: lakelet sql "SELECT * FROM …"'
    return LakeletError("SQL_FAILED", "only queries are allowed here", nearest=nearest, todo=todo)


def split(text: str) -> tuple[list[str], str]:
    """Return the texts of `script`, each up to its semicolon, and what comes after the last one; empty if that is nothing but comments.

    A view or USE belongs to the query after it, and is a text of its own if nothing comes after it.
    """
    found: list[str] = []
    begin, views_end, statement = 0, 0, list[Token]()
    for token in plain_tokens(text):
        if token.upper != ";":
            statement.append(token)
            continue
        if _view(text, statement) is not None or _use(text, statement) is not None:
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


def _use(text: str, statement: list[Token]) -> tuple[str, str] | None:
    return commands.use(text[statement[0].start : statement[-1].stop]) if statement else None


def _view(text: str, statement: list[Token]) -> tuple[tuple[str, ...], str] | None:
    words = [token.upper for token in statement]
    at = words.index("VIEW") if "VIEW" in words[:5] else 0
    head = tuple(word for word in words[:at] if word not in ("OR", "REPLACE"))
    end = name_end(statement, at + 1) if at else 0
    if head not in _BEFORE_VIEW or words[end : end + 1] != ["AS"]:
        return None
    return tuple(token.value for token in statement[at + 1 : end : 2]), text[statement[end].stop : statement[-1].stop].strip()
