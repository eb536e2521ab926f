"""Table functions in SQL text that Spark does not have, or not for tables of a pipeline: `read_files`, `table_changes` and others.

Their arguments are constants, so each call is turned into the description of a source (AL-29 to AL-32);
the caller opens the source and replaces the call by a view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.autoloader.loading import struct_of
from lakelet.autoloader.spec import SourceSpec
from lakelet.base.errors import LakeletError, Location
from lakelet.base.text import option_text
from lakelet.language.sql_text.table_names import CallRef
from lakelet.language.sql_text.tokens import Token, name_end, plain_tokens
from lakelet.spark.names.change_functions import TABLE_CHANGES
from lakelet.spark.names.kafka_functions import READ_KAFKA

READ_FILES, CLOUD_FILES, STATE = "read_files", "cloud_files", "cloud_files_state"
EVENT_LOG = "event_log"
FUNCTIONS = frozenset((READ_FILES, CLOUD_FILES, STATE, READ_KAFKA, EVENT_LOG, TABLE_CHANGES))

Evaluate = Callable[[Sequence[str]], Sequence[Any]]
"""SQL texts of constant expressions → their values."""

_OURS = ("format", "schemaHints", "inferColumnTypes", "partitionColumns", "useStrictGlobber", "schemaEvolutionMode", "useManagedFileEvents")
_STREAM_ONLY = ("allowOverwrites", "includeExistingFiles", "maxBytesPerTrigger", "maxFilesPerTrigger", "schemaLocation")
_DEFAULTS = {"cloudFiles.inferColumnTypes": "true", "cloudFiles.useStrictGlobber": "true"}


@dataclass(frozen=True)
class StateOf:
    """What `cloud_files_state` asks about: the table of that name, or the checkpoint in that folder."""

    table: str | None = None
    checkpoint: str | None = None


def evaluated(run: Callable[[str], Any]) -> Evaluate:
    """Evaluates constant expressions: plain literals at once, others by running a query over them."""

    def evaluate(expressions: Sequence[str]) -> Sequence[Any]:
        plain = [_literal(expression) for expression in expressions]
        if None not in plain:
            return [value for found in plain for value in found or ()]
        row = run("SELECT " + ", ".join(f"{expression} AS a{at}" for at, expression in enumerate(expressions))).first()
        return list(row or ())

    return evaluate


def _literal(text: str) -> tuple[Any] | None:
    """Return the value of a literal in a tuple; None for another expression.

    Only literals that every SQL dialect reads alike: text without escapes, whole numbers, truth values, and maps of them.
    """
    found = plain_tokens(text)
    if len(found) == 1:
        return _plain(text, found[0])
    if [token.upper for token in found[:1]] == ["-"] and len(found) == 2 and found[1].kind == "number":
        number = _plain(text, found[1])
        return None if number is None else (-number[0],)
    return _map(text, found)


def _plain(text: str, token: Token) -> tuple[Any] | None:
    if token.kind == "string" and token.value == text[token.start + 1 : token.stop - 1]:
        return (token.value,)
    if token.kind == "number" and token.value.isdecimal() and len(token.value) < 10:
        return (int(token.value),)
    return (token.upper == "TRUE",) if token.upper in ("TRUE", "FALSE") else None


def _map(text: str, found: Sequence[Token]) -> tuple[Any] | None:
    """`map('a', 'b', …)`: strings, of which an even number is there, with commas between them."""
    inside = found[2:-1]
    signs = [token.upper for token in (*found[:2], *inside[1::2], *found[-1:])]
    if signs != ["MAP", "(", *[","] * (len(inside) // 2), ")"] or len(inside) % 4 != 3:
        return None
    values = [_plain(text, token) if token.kind == "string" else None for token in inside[::2]]
    if None in values:
        return None
    flat = [value[0] for value in values if value is not None]
    return (dict(zip(flat[::2], flat[1::2], strict=True)),)


def source_of(call: CallRef, spark: Any, evaluate: Evaluate, where: Location | None) -> SourceSpec:
    """The source that a call of `read_files` or `cloud_files` means.

    Raises CF_INCORRECT_SQL_PARAMS where arguments have a wrong shape, CF_INCONSISTENT_OPTIONS for an option of streams in a batch read.
    """
    names = [name for name, _ in call.arguments]
    values = list(evaluate([text for _, text in call.arguments])) if call.arguments else []
    positional = [value for name, value in zip(names, values, strict=True) if name is None]
    named = {name: value for name, value in zip(names, values, strict=True) if name is not None}
    if call.name == CLOUD_FILES:
        return _cloud_files(positional, named, spark, where)
    return _read_files(positional, named, call.streaming, spark, where)


def state_of(call: CallRef, evaluate: Evaluate, where: Location | None) -> StateOf:
    """What a call of `cloud_files_state` asks about. Raises CF_STATE_INCORRECT_SQL_PARAMS."""
    if len(call.arguments) == 1:
        ((_, text),) = call.arguments
        table = _table(text)
        if table is not None:
            return StateOf(table=table)
        (value,) = evaluate([text])
        if isinstance(value, str):
            return StateOf(checkpoint=value)
    what = f"{STATE} takes one argument: TABLE(name), or the path of a checkpoint"
    raise LakeletError("CF_STATE_INCORRECT_SQL_PARAMS", what, where=where)


def _table(text: str) -> str | None:
    """The name in `TABLE(name)` or `TABLE name`; None for anything else."""
    found = plain_tokens(text)
    if not found or found[0].upper != "TABLE":
        return None
    named = found[2:-1] if [token.upper for token in (*found[1:2], *found[-1:])] == ["(", ")"] else found[1:]
    return text[named[0].start : named[-1].stop] if named and name_end(named, 0) == len(named) else None


def no_event_log(where: Location | None) -> LakeletError:
    """The error for `event_log(…)` in a query of the pipeline itself."""
    return LakeletError(
        "NOT_SUPPORTED_YET",
        f"{EVENT_LOG}(…) cannot be read by the pipeline that writes it",
        where=where,
        why="The log grows while the query runs.",
        todo='Query it from outside: lakelet sql "SELECT * FROM event_log"',
    )


def _cloud_files(positional: Sequence[Any], named: Mapping[str, Any], spark: Any, where: Location | None) -> SourceSpec:
    shaped = len(positional) in (2, 3) and not named and all(isinstance(value, str) for value in positional[:2])
    if not shaped or not isinstance(positional[2] if len(positional) == 3 else {}, dict):
        what = f"{CLOUD_FILES} takes a path, a format, and perhaps a map of options"
        todo = """For example: cloud_files("/data", "json", map("cloudFiles.inferColumnTypes", "true"))"""
        raise LakeletError("CF_INCORRECT_SQL_PARAMS", what, where=where, todo=todo)
    given = {str(k): option_text(v) for k, v in (positional[2] if len(positional) == 3 else {}).items() if v is not None}
    schema = next((given.pop(key) for key in list(given) if key.lower() == "schema"), None)
    options = {**given, "cloudFiles.format": positional[1]}
    return SourceSpec(positional[0], options, struct_of(schema, spark), where)


def _read_files(positional: Sequence[Any], named: Mapping[str, Any], streaming: bool, spark: Any, where: Location | None) -> SourceSpec:
    named = dict(named)
    path = positional[0] if positional else named.pop("path", None)
    if len(positional) > 1 or not isinstance(path, str):
        what = f"{READ_FILES} takes a path, and options by name"
        raise LakeletError("CF_INCORRECT_SQL_PARAMS", what, where=where, todo="For example: read_files('/data', format => 'json')")
    bare = {name.lower(): name for name in (*_OURS, *_STREAM_ONLY)}
    inferring = _inferring_of_xml(named)
    options = {**_DEFAULTS, **inferring}
    schema = None
    for name, value in named.items():
        key = name.lower()
        if value is None or (key == "inferschema" and inferring):
            continue
        if key == "schema":
            schema = option_text(value)
        elif key in bare:
            _put(options, f"cloudFiles.{bare[key]}", value)
        else:
            _put(options, "pathGlobFilter" if key == "filenamepattern" else name, value)
    refused = [name for name in _STREAM_ONLY if not streaming and f"cloudfiles.{name.lower()}" in {key.lower() for key in options}]
    if refused:
        what = f"{READ_FILES}: {refused[0]} is an option of streams"
        raise LakeletError("CF_INCONSISTENT_OPTIONS", what, where=where, todo="Write STREAM read_files(…), or leave it out.")
    detect = "cloudfiles.format" not in {key.lower() for key in options}
    return SourceSpec(path, options, struct_of(schema, spark), where, detect)


def _inferring_of_xml(named: Mapping[str, Any]) -> dict[str, str]:
    """What `inferSchema`, an option of Spark's reader of XML, says about types, where `inferColumnTypes` does not say more (FF-29)."""
    given = {name.lower(): option_text(value) for name, value in named.items() if value is not None}
    if given.get("format", "").lower() != "xml" or "inferschema" not in given or "infercolumntypes" in given:
        return {}
    return {"cloudFiles.inferColumnTypes": given["inferschema"]}


def _put(options: dict[str, str], key: str, value: Any) -> None:
    """Set an option; a key that differs by case only is the same one."""
    same = next((known for known in options if known.lower() == key.lower()), key)
    options[same] = option_text(value)
