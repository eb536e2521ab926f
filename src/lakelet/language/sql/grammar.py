"""One statement of a SQL source: which one it is, and why others are not for a pipeline (SQ-1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.language.sql.changes import refuse_snapshots
from lakelet.language.sql.create import create, into
from lakelet.language.sql.cursor import Cursor
from lakelet.language.sql.values import CreateFlow, Remark, SetStatement, Statement, Use
from lakelet.language.sql_text.statements import StatementText
from lakelet.language.sql_text.tokens import all_tokens, plain_tokens

_BEGINNINGS = ("CREATE", "SET", "USE", "APPLY", "AUTO")
_KEY = re.compile(r"[\w.\-]+")

_WRITES = "a pipeline's tables are written by its own queries only"
_READS = "its rows would go nowhere"
_QUERY = "Put the query into CREATE MATERIALIZED VIEW name AS …, or run it with `lakelet sql`."
_FLOW = "Write CREATE FLOW name AS INSERT INTO target BY NAME query, or the query after CREATE STREAMING TABLE name AS."
_OUTSIDE = "Do it before the update, with a script or with `lakelet sql`."
_REFUSED: dict[str, tuple[str, str]] = {
    "INSERT": (_WRITES, _FLOW),
    "MERGE": (_WRITES, "Write CREATE FLOW name AS AUTO CDC INTO target FROM STREAM(source) KEYS (…) SEQUENCE BY …."),
    "UPDATE": (_WRITES, "Compute the new values in the query of a dataset."),
    "DELETE": (_WRITES, "Leave the rows out in the query of a dataset, or drop them with an expectation."),
    "TRUNCATE": (_WRITES, "Refresh the table in full: lakelet run --full-refresh NAME."),
    "COPY": (_WRITES, "Read the files with STREAM read_files('path', format => '…')."),
    "LOAD": (_WRITES, "Read the files with STREAM read_files('path', format => '…')."),
    **dict.fromkeys(("SELECT", "WITH", "FROM", "VALUES", "TABLE", "("), (_READS, _QUERY)),
    **dict.fromkeys(("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "LIST"), (_READS, "Use `lakelet sql`, `lakelet show` or `lakelet plan`.")),
    "DROP": ("a dataset that is no longer defined stays as it is", "Remove the definition; drop the table outside of the pipeline."),
    "ALTER": ("a definition says all that a table is", "Change the definition."),
    "OPTIMIZE": ("maintenance is not part of a pipeline", _OUTSIDE),
    "VACUUM": ("maintenance is not part of a pipeline", _OUTSIDE),
    "ANALYZE": ("maintenance is not part of a pipeline", _OUTSIDE),
    "REFRESH": ("an update brings all datasets up to date", "Leave it out; lakelet run --select NAME updates one of them."),
    "DECLARE": ("a pipeline has no variables", "Write SET key = value and ${key}, or a parameter :key."),
    **dict.fromkeys(
        ("GRANT", "REVOKE", "CALL", "EXECUTE", "COMMENT", "MSCK", "CACHE", "UNCACHE", "CLEAR", "RESET", "RESTORE", "UNDROP", "SYNC", "ADD"),
        ("a pipeline source declares datasets and flows only", _OUTSIDE),
    ),
    "BEGIN": ("a pipeline has no scripts, it declares datasets", "Write one statement for each dataset."),
}
_CREATED: dict[str, tuple[str, str]] = {
    "TABLE": (
        _WRITES,
        "Write CREATE STREAMING TABLE for a stream, CREATE MATERIALIZED VIEW for a batch query. "
        "A table from outside has its place by --table.",
    ),
    "FUNCTION": ("functions are not datasets", "Register it in a Python file of the pipeline: spark.udf.register(…)."),
}
_SEVERAL = ("a pipeline source declares datasets and flows only", _OUTSIDE)


def statement(text: StatementText, remarks: list[Remark]) -> Statement | None:
    """Read one statement; None if it does nothing. What has no effect here is added to `remarks`.

    Raises SQL_SYNTAX where it is not understood, SQL_STATEMENT_REFUSED for a statement that declares nothing, and the refusals of clauses.
    """
    setting = _set_text(text)
    if setting is not None and setting.value is not None:
        return SetStatement(setting.key, setting.value, text.location(setting.start))
    if setting is not None:
        remarks.append(Remark("SET without a value has no effect here: it only shows one", text.location(setting.start)))
        return None
    cursor = Cursor(text)
    where = cursor.where()
    if cursor.skip("CREATE"):
        created = create(cursor, remarks)
        if created is None:
            what = next((w.upper for w in cursor.words[cursor.at :] if w.upper in _CREATED), "")
            _refuse_statement(cursor, f"CREATE {what or cursor.words[cursor.at].upper}", *_CREATED.get(what, _SEVERAL))
        cursor.end()
        return created
    if cursor.skip("APPLY") or cursor.skip("AUTO"):
        cursor.expect("CHANGES" if cursor.words[0].upper == "APPLY" else "CDC", purpose=f" after {cursor.words[0].upper}")
        refuse_snapshots(cursor)
        changed = CreateFlow(where=where, **into(cursor))
        cursor.end()
        return changed
    if cursor.skip("USE"):
        return _read_use(cursor)
    return _refuse_unknown(cursor)


def is_setting(text: StatementText) -> bool:
    """Whether the statement is SET, whose value is any text."""
    found = _set_text(text)
    return found is not None and found.value is not None


@dataclass(frozen=True)
class _SetText:
    """`SET key` or `SET key = value`, which begins at `start`."""

    key: str
    value: str | None
    start: int


def _set_text(statement: StatementText) -> _SetText | None:
    """The parts of SET; None for any other statement. The value is all text after the sign, whatever it is, without comments around it."""
    text = statement.text
    found = plain_tokens(text)
    if not found or found[0].upper != "SET":
        return None
    sign = next((token for token in found if text[token.start] == "=" and token.kind == "word"), None)
    named = [token for token in found[1:] if sign is None or token.stop <= sign.start]
    key = text[named[0].start : named[-1].stop] if named else ""
    if len(named) == 1 and named[0].kind == "name":
        key = named[0].value
    elif _KEY.fullmatch(key) is None:
        return None
    return _SetText(key, None if sign is None else _set_value(text, sign.start + 1), found[0].start)


def _set_value(text: str, start: int) -> str:
    """The text from `start` on, without blanks and comments around it; `--` begins one only after a blank."""
    stop = len(text)
    comments = [token for token in all_tokens(text) if token.kind == "comment" and token.start >= start]
    for comment in comments:
        if not text[start : comment.start].strip():
            start = comment.stop
    for comment in reversed(comments):
        apart = text[comment.start] == "/" or text[comment.start - 1].isspace()
        if comment.start >= start and apart and not text[comment.stop : stop].strip():
            stop = comment.start
    value = text[start:stop].strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "`" else value


def _read_use(cursor: Cursor) -> Use:
    where = cursor.where()
    if cursor.skip("CATALOG"):
        found = Use(_read_single_name(cursor, "the catalog"), None, where)
    else:
        _ = cursor.skip("SCHEMA") or cursor.skip("DATABASE") or cursor.skip("NAMESPACE")
        found = _read_schema(cursor)
    cursor.end()
    return found


def _read_schema(cursor: Cursor) -> Use:
    where = cursor.where()
    parts = _name_or_string(cursor, "the schema")
    if len(parts) > 2:
        raise cursor.error("USE takes a schema, or a catalog and a schema", where=where)
    return Use(parts[0] if len(parts) == 2 else None, parts[-1], where)


def _read_single_name(cursor: Cursor, what: str) -> str:
    where = cursor.where()
    parts = _name_or_string(cursor, what)
    if len(parts) > 1:
        raise cursor.error(f"the name of {what} has one part", where=where)
    return parts[0]


def _name_or_string(cursor: Cursor, what: str) -> tuple[str, ...]:
    word = cursor.word()
    if word is not None and word.kind == "string":
        return (cursor.string(what),)
    return cursor.name(what).parts


def _refuse_unknown(cursor: Cursor) -> NoReturn:
    first = cursor.word()
    keyword = first.upper if first else ""
    if keyword == "SET":
        todo = "Write SET key = value; one key in each statement."
        raise cursor.error("SET needs a key, = and a value", where=cursor.where(), todo=todo)
    if keyword in _REFUSED:
        _refuse_statement(cursor, "a query" if _REFUSED[keyword][1] is _QUERY else keyword, *_REFUSED[keyword])
    nearest = nearest_names(keyword, (*_BEGINNINGS, *(k for k in _REFUSED if k.isalpha())))
    raise cursor.error(
        "no statement of a pipeline begins like this" + (f": {first.value!r}" if first else ""),
        where=cursor.where(),
        nearest=nearest,
        todo="A source holds CREATE …, APPLY CHANGES or AUTO CDC, SET and USE.",
    )


def _refuse_statement(cursor: Cursor, statement: str, why: str, todo: str) -> NoReturn:
    raise LakeletError(
        "SQL_STATEMENT_REFUSED",
        f"{statement} cannot stand in a pipeline source",
        where=cursor.where(cursor.words[0]),
        why=why,
        todo=todo,
    )
