"""Reads SQL of a source without running it: statements by the pipeline's own front end, the names in them, what ANSI mode may stop.

Names are tables, paths, and functions that only Databricks has. Expressions that older runtimes turned into NULL stop an update in ANSI
mode; they are found as far as their text shows, in SQL and in calls of Python. No Spark.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import dotted
from lakelet.language.model import Kind
from lakelet.language.notebook import SourceCells
from lakelet.language.sql.grammar import is_setting, statement
from lakelet.language.sql.values import CreateDataset, CreateFlow, Fragment, Name, Remark, SetStatement, Use
from lakelet.language.sql_text.spark_sql import parameters
from lakelet.language.sql_text.statements import Cell, CellText, StatementText, interpolated, statements
from lakelet.language.sql_text.tokens import OpenToken, Token, closing, name_end, tokens
from lakelet.project.init.findings import (
    CodeLocation,
    DatasetFound,
    FileReading,
    ParameterFound,
    RefusedFeature,
    StrictExpression,
    TableRead,
    UnknownParts,
    is_databricks_path,
    path_found,
)

_WITH_FROM = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION"})
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "MAP", "REDUCE"})
_FORMATS = frozenset({"delta", "parquet", "json", "csv", "text", "orc", "avro", "binaryfile", "xml"})
_FILE_FUNCTIONS = frozenset({"READ_FILES", "CLOUD_FILES"})
_NO_ALIAS = frozenset(
    (
        *("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "LATERAL", "WINDOW", "QUALIFY", "JOIN", "INNER"),
        *("LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ON", "USING", "WITH", "WATERMARK", "TABLESAMPLE", "PIVOT", "UNPIVOT", "SELECT"),
        *("SORT", "CLUSTER", "DISTRIBUTE", "SEMI", "ANTI", "AS", "FOR", "VERSION", "TIMESTAMP"),
    )
)
DATABRICKS_FUNCTIONS = frozenset(
    (
        *("ai_analyze_sentiment", "ai_classify", "ai_extract", "ai_fix_grammar", "ai_forecast", "ai_gen", "ai_generate_text", "ai_mask"),
        *("ai_parse_document", "ai_query", "ai_similarity", "ai_summarize", "ai_translate", "http_request", "remote_query", "secret"),
        *("is_account_group_member", "vector_search", "read_kinesis", "read_pubsub", "read_pulsar", "read_statestore", "list_secrets"),
    )
)
"""Functions of Databricks that Spark does not have and that cannot work without it."""


@dataclass(frozen=True)
class SqlName:
    """Something that SQL names, and the character at which it stands; of files their format, where SQL says it."""

    text: str
    start: int
    format: str = ""


@dataclass(frozen=True)
class SqlNames:
    """Names in one query."""

    tables: tuple[SqlName, ...] = ()
    paths: tuple[SqlName, ...] = ()
    databricks_functions: tuple[SqlName, ...] = ()


def names_of(text: str) -> SqlNames:
    """Return the names in a text; none where it is not SQL."""
    try:
        words = tokens(text)
    except OpenToken:
        return SqlNames()
    defined = {words[at].value.lower() for at in range(len(words)) if _is_cte(words, at)}
    tables, paths = [], [*_paths_in(words)]
    for found in _relations(words):
        first, *more = found.text.split("\0")
        if more and first.lower() in _FORMATS and len(more) == 1:
            paths.append(SqlName(more[0], found.start, first.lower()))
        elif more or first.lower() not in defined:
            tables.append(SqlName(dotted((first, *more)), found.start))
    functions = [
        SqlName(word.value.lower(), word.start)
        for at, word in enumerate(words[:-1])
        if word.kind == "word" and word.value.lower() in DATABRICKS_FUNCTIONS and words[at + 1].upper == "(" and words[at - 1].upper != "."
    ]
    return SqlNames(tuple(dict.fromkeys(tables)), tuple(dict.fromkeys(paths)), tuple(functions))


def _is_cte(words: Sequence[Token], at: int) -> bool:
    """`name AS (SELECT`, `name (columns) AS (SELECT`."""
    if not words[at].is_name:
        return False
    after = at + 1
    if after < len(words) and words[after].upper == "(":
        after = closing(words, after) + 1
    upper = [word.upper for word in words[after : after + 3]]
    return upper[:2] == ["AS", "("] and len(upper) == 3 and (upper[2] in _QUERIES or upper[2] == "(")


def _relations(words: Sequence[Token]) -> Iterator[SqlName]:
    """The names after FROM and JOIN, their parts separated by NUL."""
    opened: list[str] = []
    for at, word in enumerate(words):
        before = words[at - 1].upper if at else ""
        if word.upper == "(":
            opened.append(before)
        elif word.upper == ")" and opened:
            opened.pop()
        elif word.upper == "FROM" and before != "DISTINCT" and not (opened and opened[-1] in _WITH_FROM):
            position: int | None = at + 1
            while position is not None:
                yield from _relation_at(words, position)
                position = _after_comma(words, position)
        elif word.upper == "JOIN":
            yield from _relation_at(words, at + 1)


def _relation_at(words: Sequence[Token], at: int) -> Iterator[SqlName]:
    while at < len(words) and words[at].upper in ("LATERAL", "("):
        if words[at].upper == "(" and at + 1 < len(words) and words[at + 1].upper in _QUERIES:
            return
        at += 1
    if at + 1 < len(words) and words[at].upper == "STREAM" and (words[at + 1].upper == "(" or _is_table_word(words[at + 1])):
        yield from _relation_at(words, at + 1)
        return
    if at >= len(words) or not _is_table_word(words[at]):
        return
    if words[at].upper == "IDENTIFIER" and at + 2 < len(words) and words[at + 1].upper == "(" and words[at + 2].kind == "string":
        yield SqlName("\0".join(part.strip("`") for part in words[at + 2].value.split(".")), words[at].start)
        return
    end = name_end(words, at)
    if end < len(words) and words[end].upper == "(" and words[end - 1].kind == "word":
        return  # a table function
    yield SqlName("\0".join(word.value for word in words[at:end:2]), words[at].start)


def _is_table_word(word: Token) -> bool:
    return word.is_name and word.upper not in (_NO_ALIAS | {"VALUES", "TABLE"})


def _after_comma(words: Sequence[Token], at: int) -> int | None:
    """Where the next relation of a FROM begins; None after the last."""
    if at < len(words) and words[at].upper == "STREAM":
        at += 1
    at = name_end(words, at)
    if at < len(words) and words[at].upper == "(":
        at = closing(words, at) + 1
    if at + 1 < len(words) and words[at].upper == "TABLESAMPLE" and words[at + 1].upper == "(":
        at = closing(words, at + 1) + 1
    if at < len(words) and words[at].upper == "AS":
        at += 1
    if at < len(words) and words[at].is_name and words[at].upper not in _NO_ALIAS:
        at += 1
    return at + 1 if at < len(words) and words[at].upper == "," else None


def _paths_in(words: Sequence[Token]) -> Iterator[SqlName]:
    """Strings that are paths: those of Databricks, and what stands first in a call that reads files."""
    for at, word in enumerate(words):
        if word.kind != "string":
            continue
        first = at > 1 and words[at - 1].upper == "(" and words[at - 2].upper in _FILE_FUNCTIONS
        named = at > 1 and words[at - 1].upper in ("=>", ">") and any(w.upper == "PATH" for w in words[at - 3 : at])
        if first or named or is_databricks_path(word.value):
            yield SqlName(word.value, word.start, _format_behind(words, at) if first or named else "")


def _format_behind(words: Sequence[Token], at: int) -> str:
    """The format in a call that reads files: `format => 'json'`, or the second text of `cloud_files`."""
    depth = 0
    for position in range(at, len(words) - 1):
        depth += {"(": 1, ")": -1}.get(words[position].upper, 0)
        if depth < 0:
            break
        behind = words[position + 1 : position + 4]
        value = next((word.value for word in behind if word.kind == "string"), "")
        if words[position].upper == "FORMAT" and behind[0].upper in ("=>", "="):
            return value.lower()
    plain = at + 2 < len(words) and words[at + 1].upper == "," and words[at + 2].kind == "string"
    return words[at + 2].value.lower() if plain else ""


_TOLERANT_FUNCTIONS = {
    "to_date": "try_to_date",
    "to_timestamp": "try_to_timestamp",
    "unix_timestamp": "try_to_timestamp",
    "to_unix_timestamp": "try_to_timestamp",
    "element_at": "try_element_at",
    "make_date": "try_make_timestamp",
    "make_timestamp": "try_make_timestamp",
    "mod": "try_mod",
    "pmod": "try_mod",
}
_NEVER_FAILS = frozenset({"string", "str", "stringtype", "varchar", "char", "binary", "binarytype", "variant"})
_COLUMN_FUNCTIONS = frozenset({"col", "column", "sum", "avg", "count", "max", "min", "lit"})

Constant = Callable[[ast.expr | None], str | None]


def strict_call(node: ast.expr, constant: Constant) -> str | None:
    """The function that gives NULL where this expression of Python would fail on a row; None for one that does not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mod):
        divided = _is_column(node.left) or _is_column(node.right)
        fixed = isinstance(node.right, ast.Constant)
        return ("try_divide" if isinstance(node.op, ast.Div) else "try_mod") if divided and not fixed else None
    if not isinstance(node, ast.Call):
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    if called in ("cast", "astype") and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return None if _cast_type(node.args[0], constant) in _NEVER_FAILS else "try_cast"
    return _TOLERANT_FUNCTIONS.get(called) if node.args else None


def _cast_type(node: ast.expr, constant: Constant) -> str:
    """The name of the type that a cast is to, in lower case."""
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None
    return (constant(node) or name or "").lower().split("(")[0]


def _is_column(node: ast.expr) -> bool:
    """Whether a call in the expression makes a column."""
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return bool({one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls} & _COLUMN_FUNCTIONS)


def strict_texts(text: str) -> list[SqlName]:
    """The expressions of a text of SQL, each with the function that gives NULL (as `format`) and its character."""
    try:
        words = tokens(text)
    except OpenToken:
        return []
    found = []
    for at, word in enumerate(words):
        name, following = word.value.lower(), words[at + 1].upper if at + 1 < len(words) else ""
        if word.kind == "word" and following == "(" and (name == "cast" or name in _TOLERANT_FUNCTIONS):
            end = closing(words, at + 1)
            kind = words[end - 1].value.lower() if name == "cast" and end < len(words) else ""
            whole = " ".join(text[word.start : words[min(end, len(words) - 1)].start + 1].split())
            found += [] if kind in _NEVER_FAILS else [SqlName(whole, word.start, _TOLERANT_FUNCTIONS.get(name, "try_cast"))]
        elif word.value == "/" and at and following and not following[0].isdigit():
            found.append(SqlName(f"{words[at - 1].value} / {words[at + 1].value}", words[at - 1].start, "try_divide"))
    return found


_REFUSALS = ("NOT_SUPPORTED_YET", "PROTECTION_REFUSED", "SQL_STATEMENT_REFUSED", "SQL_SYNTAX")


def read_sql(source: SourceCells, reading: FileReading, holes: UnknownParts) -> None:
    """Add to `reading` what the SQL of the source says."""
    for cell in source.own():
        text = CellText(Cell(cell.text, cell.line, cell.number), reading.file)
        reader = _Statements(reading, holes, text)
        try:
            for begin, end in statements(text):
                reader.read(begin, end)
        except LakeletError as error:
            reader.refuse(error)
    if reading.scripts and (not reading.stored or reading.scripts > reading.stored):
        reading.declares = False
        reading.left_out = "most of its statements declare nothing: a script"


class _Statements:
    def __init__(self, reading: FileReading, holes: UnknownParts, text: CellText) -> None:
        self.reading, self.holes, self.text = reading, holes, text
        self.settings: dict[str, str] = {}
        self.used: tuple[str, ...] = ()

    def read(self, begin: int, end: int) -> None:
        try:
            text = interpolated(self.text, begin, end, self._value)
            if not is_setting(text):
                text = text.edited(*self._with_parameters(text))
            remarks: list[Remark] = []
            self._take(statement(text, remarks), text)
        except LakeletError as error:
            self.refuse(error)
        except RecursionError:
            location = self._location(self.text.location(begin))
            self.reading.refused.append(RefusedFeature("SQL_SYNTAX", "the statement is nested too deeply", location))

    def refuse(self, error: LakeletError) -> None:
        """Keep an error, unless a parameter with an unknown value may cause it."""
        unsure = error.code == "SQL_SYNTAX" and self.holes.first_in(error.what) is not None
        if error.code in _REFUSALS and error.where is not None and not unsure:
            declares_nothing = error.code == "SQL_STATEMENT_REFUSED"
            self.reading.scripts += declares_nothing
            self.reading.stored += not declares_nothing
            self.reading.refused.append(RefusedFeature(error.code, self.holes.shown(error.what), self._location(error.where)))

    def _value(self, key: str, where: Location, in_list: bool = False) -> str:
        if key in self.settings:
            return self.settings[key]
        if key not in self.reading.given:
            self.reading.parameters.append(ParameterFound(key, None, self._location(where)))
        return self.holes.token(key)

    def _with_parameters(self, text: StatementText) -> tuple[str, tuple[tuple[int, int], ...]]:
        try:
            return parameters(text.text, lambda key, at: self._value(key, text.location(at)))
        except OpenToken:
            return text.text, ()

    def _take(self, found: object, text: StatementText) -> None:
        reading = self.reading
        if isinstance(found, SetStatement):
            self.settings[found.key] = found.value
            reading.given.add(found.key)
        elif isinstance(found, Use):
            self.used = tuple(part for part in (found.catalog, found.schema) if part)
        elif isinstance(found, CreateFlow):
            reading.declares = True
            reading.stored += 1
            self._names(found.query or (found.changes.source if found.changes else None), text, None)
        elif isinstance(found, CreateDataset):
            reading.declares = True
            kind = found.kind.value
            reading.stored += found.kind is not Kind.VIEW or found.view == "live"
            name = self._full(found.name)
            computed = self.holes.first_in(name.split(".")[-1]) is not None
            reading.datasets.append(DatasetFound(self.holes.shown(name), kind, self._location(found.where), computed))
            self._names(found.query or (found.changes.source if found.changes else None), text, self.holes.shown(name))

    def _full(self, name: Name) -> str:
        single = len(name.parts) == 1 and self.used
        parts = (*self.used, *name.parts) if single else name.parts
        return ".".join(parts)

    def _names(self, query: Fragment | None, text: StatementText, within: str | None) -> None:
        if query is None:
            return
        plain = query.text.lstrip().upper().startswith(("SELECT", "WITH", "FROM", "VALUES", "TABLE"))
        lead = "" if plain else "FROM "
        found = names_of(lead + query.text)

        def location(start: int) -> CodeLocation:
            return self._location(text.location(query.start + max(0, start - len(lead))))

        for table in found.tables:
            bare = "." not in table.text
            name = ".".join((*self.used, table.text)) if bare and self.used else table.text
            if self.holes.first_in(table.text) is None or len(table.text.split(".")) > 1:
                self.reading.tables.append(TableRead(self.holes.shown(name), location(table.start), within))
        self.reading.paths += [path_found(path.text, self.holes, location(path.start), path.format) for path in found.paths]
        self.reading.refused += [databricks_function(one.text, location(one.start)) for one in found.databricks_functions]
        strict = [StrictExpression(self.holes.shown(one.text), one.format, location(one.start)) for one in strict_texts(lead + query.text)]
        self.reading.strict += strict

    def _location(self, where: Location) -> CodeLocation:
        return CodeLocation(self.reading.file, where.line, where.cell)


def databricks_function(function: str, location: CodeLocation) -> RefusedFeature:
    """A function that only Databricks has."""
    return RefusedFeature(
        "NOT_SUPPORTED_YET", f"the function {function} belongs to Databricks; register one of this name to run here", location
    )


def relative(path: Path, folder: Path) -> str:
    """The path as the report names it."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
