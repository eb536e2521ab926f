"""Finds the names in a piece of SQL: tables, paths, functions that only Databricks has. No Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakelet.base.names import dotted
from lakelet.language.sql_text.tokens import OpenToken, Token, closing, name_end, tokens
from lakelet.project.init.paths import is_hosted

_WITH_FROM = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION"})
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "MAP", "REDUCE"})
_FORMATS = frozenset({"delta", "parquet", "json", "csv", "text", "orc", "avro", "binaryfile", "xml"})
_FILES = frozenset({"READ_FILES", "CLOUD_FILES"})
_NO_ALIAS = frozenset(
    (
        *("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "LATERAL", "WINDOW", "QUALIFY", "JOIN", "INNER"),
        *("LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ON", "USING", "WITH", "WATERMARK", "TABLESAMPLE", "PIVOT", "UNPIVOT", "SELECT"),
        *("SORT", "CLUSTER", "DISTRIBUTE", "SEMI", "ANTI", "AS", "FOR", "VERSION", "TIMESTAMP"),
    )
)
HOSTED_FUNCTIONS = frozenset(
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
    hosted: tuple[SqlName, ...] = ()


def names_of(text: str) -> SqlNames:
    """Return the names in a text; none where it is not SQL."""
    try:
        words = tokens(text)
    except OpenToken:
        return SqlNames()
    defined = {words[at].value.lower() for at in range(len(words)) if _is_cte(words, at)}
    tables, paths = [], [*_paths(words)]
    for found in _relations(words):
        first, *more = found.text.split("\0")
        if more and first.lower() in _FORMATS and len(more) == 1:
            paths.append(SqlName(more[0], found.start, first.lower()))
        elif more or first.lower() not in defined:
            tables.append(SqlName(dotted((first, *more)), found.start))
    hosted = [
        SqlName(word.value.lower(), word.start)
        for at, word in enumerate(words[:-1])
        if word.kind == "word" and word.value.lower() in HOSTED_FUNCTIONS and words[at + 1].upper == "(" and words[at - 1].upper != "."
    ]
    return SqlNames(tuple(dict.fromkeys(tables)), tuple(dict.fromkeys(paths)), tuple(hosted))


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
                yield from _relation(words, position)
                position = _after_comma(words, position)
        elif word.upper == "JOIN":
            yield from _relation(words, at + 1)


def _relation(words: Sequence[Token], at: int) -> Iterator[SqlName]:
    while at < len(words) and words[at].upper in ("LATERAL", "("):
        if words[at].upper == "(" and at + 1 < len(words) and words[at + 1].upper in _QUERIES:
            return
        at += 1
    if at + 1 < len(words) and words[at].upper == "STREAM" and (words[at + 1].upper == "(" or _is_table_word(words[at + 1])):
        yield from _relation(words, at + 1)
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


def _paths(words: Sequence[Token]) -> Iterator[SqlName]:
    """Strings that are paths: those of Databricks, and what stands first in a call that reads files."""
    for at, word in enumerate(words):
        if word.kind != "string":
            continue
        first = at > 1 and words[at - 1].upper == "(" and words[at - 2].upper in _FILES
        named = at > 1 and words[at - 1].upper in ("=>", ">") and any(w.upper == "PATH" for w in words[at - 3 : at])
        if first or named or is_hosted(word.value):
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
