"""Query functions of SQL datasets: the user's text, run on the session when it is called. No Spark of its own.

The text keeps the line it has in the file, so that Spark's `line 12, pos 3` is a position in the file. The function's code carries file and
line too, so that tracebacks and `caller_location` name the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace, quoted
from lakelet.base.raised import innermost_location
from lakelet.base.sentences import POSITION
from lakelet.base.user_code import cell_filename
from lakelet.language.model import QueryFunction
from lakelet.language.registry import active_reader, names_in
from lakelet.language.sql.values import ColumnDefinition, Fragment
from lakelet.language.sql_text.statements import StatementText
from lakelet.language.sql_text.tokens import literal, name_end, plain_tokens


@dataclass(frozen=True)
class RequiredKind:
    """Whether a query must be a stream or must not, and what is said to the user if it is not so."""

    streaming: bool
    what: str
    todo: str


@dataclass(frozen=True)
class SqlQuery:
    """Query of a dataset or flow.

    `prefix` goes before the text, where the text is the source of changes and no query. `namespace`: what USE said, None without.
    `names`: columns by position, renamed; `filled`: columns that are computed where the query does not return them.
    """

    text: Fragment
    statement: StatementText
    namespace: Namespace | None = None
    wanted: RequiredKind | None = None
    prefix: str = ""
    names: tuple[ColumnDefinition, ...] = ()
    filled: tuple[ColumnDefinition, ...] = ()

    def function(self, session: Any, file: Path, where: Location) -> QueryFunction:
        """The function that gives the query's DataFrame when it is called inside of an update."""
        found = _function_at_line(lambda: self._run_query(session), cell_filename(str(file), where.cell), where.line)
        vars(found)["sql"] = self.text.text
        vars(found)["declared_with"] = (self.prefix, self.namespace, self.names, self.filled)
        return found

    def _run_query(self, session: Any) -> Any:
        try:
            with names_in(self.namespace):
                frame = session.sql(self._in_its_line())
            frame = self._with_declared_names(frame)
            for column in self.filled:
                frame = with_filled(frame, column)
        except LakeletError as error:
            for one in (error, *getattr(error, "others", ())):
                one.where = self._location_of_missing(one)
            raise
        except Exception as error:  # of Spark, or of a function that the query calls; only its location is added
            location = self._location_of(error)
            if location is not None:
                vars(error).setdefault("lakelet_where", location)  # that of an inner query stays
            raise
        wanted = None if getattr(active_reader(), "reads_batches", False) else self.wanted
        if wanted is not None and bool(frame.isStreaming) is not wanted.streaming:
            raise LakeletError("QUERY_KIND", wanted.what, where=self.text.where, todo=wanted.todo)
        return frame

    def _in_its_line(self) -> str:
        where = self.text.where
        column = (where.column or 1) - 1
        if not self.prefix:
            return "\n" * (where.line - 1) + " " * column + self.text.text
        if where.line == 1:
            return self.prefix.ljust(column) + " " + self.text.text
        return "\n" * (where.line - 2) + self.prefix + "\n" + " " * column + self.text.text

    def _with_declared_names(self, frame: Any) -> Any:
        if not self.names:
            return frame
        if len(frame.columns) != len(self.names):
            raise LakeletError(
                "SCHEMA_MISMATCH",
                f"the list has {len(self.names)} columns, the query returns {len(frame.columns)}",
                where=self.names[0].where,
                why=f"it returns {', '.join(frame.columns)}",
            )
        if not any(column.comment for column in self.names):
            return frame.toDF(*(column.name for column in self.names))
        frame = frame.toDF(*(f"c{at}" for at in range(len(self.names))))  # the query's own names may be twice the same
        metadata = [{"metadata": {"comment": column.comment}} if column.comment else {} for column in self.names]
        return frame.select(*(frame[f"c{at}"].alias(column.name, **metadata[at]) for at, column in enumerate(self.names)))

    # ---------------------------------------------------------------------------------------------------- locations

    def _location_of(self, error: BaseException) -> Location | None:
        """The line of the file that Spark's message names."""
        position = POSITION.find(str(error))
        if position is None:  # in the traceback of what the query calls, if that is the user's; else the place of what the message names
            name = re.search(r'"([^"]+)"', str(error).split("\n")[0])
            return None if innermost_location(error) else self._location_of_name(name[1] if name else "")
        line, column = int(position[1]) - self.text.where.line, int(position[2])
        if line < 0:
            return None
        lines = self.text.text.splitlines(keepends=True)
        if line >= len(lines):
            return self.text.where
        start = sum(map(len, lines[:line]))
        column -= (self.text.where.column or 1) - 1 if line == 0 else 0
        at = _nearest_fragment(lines[line], _query_fragments(error), column)
        return self.statement.location(self.text.start + start + at)

    def _location_of_missing(self, error: LakeletError) -> Location | None:
        """The position of a name that the query reads and nobody knows; else the error's own, if it is more than the statement's line."""
        if error.where is not None and (error.where.column is not None or error.where.file != self.text.where.file):
            return error.where
        name = re.search(r'"([^"]+)"', error.what) if error.code == "UNKNOWN_DATASET" else None
        return self._location_of_name(name[1] if name else "")

    def _location_of_name(self, name: str) -> Location:
        """Where the text has a name; where it begins if it does not have it."""
        parts = name.split(".")
        for first in range(len(parts)):  # what USE added is not in the text
            start = _name_at(self.text.text, parts[first:])
            if start is not None:
                return self.statement.location(self.text.start + start)
        return self.text.where


def _name_at(text: str, parts: Sequence[str]) -> int | None:
    """Where the text first has this dotted name, or one that begins with it."""
    found, wanted = plain_tokens(text), [part.lower() for part in parts]
    for at, token in enumerate(found):
        if [part.value.lower() for part in found[at : name_end(found, at) : 2]][: len(wanted)] == wanted:
            return token.start
    return None


def _query_fragments(error: BaseException) -> list[str]:
    contexts: Callable[[], Sequence[Any]] | None = getattr(error, "getQueryContext", None)
    try:
        return [str(context.fragment()) for context in contexts()] if contexts else []
    except Exception:  # contexts of other kinds than SQL text have no fragment
        return []


def _nearest_fragment(line: str, fragments: Sequence[str], column: int) -> int:
    """Where in the line the fragment stands that is meant: names before it may have had another length when Spark saw them."""
    column = max(0, min(column, len(line.rstrip("\n"))))
    for fragment in fragments:
        starts = [found.start() for found in re.finditer(re.escape(fragment.split("\n")[0]), line)]
        if starts and fragment:
            return min(starts, key=lambda start: abs(start - column))
    return column


def with_filled(frame: Any, column: ColumnDefinition) -> Any:
    """The rows with a computed column after them.

    Rows that have it keep its values; those of a generated column must be the ones that it computes, as Delta demands, or the query fails.
    Raises SCHEMA_MISMATCH for rows with numbers of an identity column that gives them itself.
    """
    name = quoted(column.name)
    if column.name.lower() not in (other.lower() for other in frame.columns):
        return frame.selectExpr("*", f"{column.value} AS {name}")
    if not column.generated:
        return frame
    if column.identity is not None:
        raise LakeletError(
            "SCHEMA_MISMATCH",
            f"column {column.name!r} is generated, and the query returns it too",
            where=column.where,
            todo="Leave it out of the query, or write it without GENERATED.",
        )
    computed = " ".join(column.value.split())
    said = f"column {column.name!r} is generated as {computed}, and the query returns another value for it: "
    other = f"raise_error(concat({literal(said)}, coalesce(CAST({name} AS STRING), 'NULL')))"
    checked = f"CASE WHEN {name} <=> ({column.value}) THEN {name} ELSE {other} END AS {name}"
    return frame.selectExpr(*(checked if one.lower() == column.name.lower() else quoted(one) for one in frame.columns))


def _function_at_line(function: Callable[[], Any], file: str, line: int) -> QueryFunction:
    """A function that calls `function`, and whose code stands in `line` of `file`."""
    found = lambda: function()  # noqa: E731 - one line, so that its only line is the one given
    found.__code__ = found.__code__.replace(co_filename=file, co_firstlineno=line, co_name="query")
    found.__name__ = "query"
    return found
