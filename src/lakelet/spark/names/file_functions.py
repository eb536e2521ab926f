"""The table functions in SQL text that Spark does not have: `read_files`, `cloud_files`, `read_kafka` and others.

Spark does not know them. Their arguments are constants, so each call is turned into the description of a source (AL-29 to AL-32);
whoever runs the text opens the source and puts a view in the call's place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.autoloader.loading import option_text, struct_of
from lakelet.autoloader.spec import SourceSpec
from lakelet.base.errors import LakeletError, Location
from lakelet.language.sql_text import table_names
from lakelet.language.sql_text.table_names import CallRef
from lakelet.spark.names.kafka_functions import READ_KAFKA

READ_FILES, CLOUD_FILES, STATE = "read_files", "cloud_files", "cloud_files_state"
EVENT_LOG = "event_log"
FUNCTIONS = frozenset((READ_FILES, CLOUD_FILES, STATE, READ_KAFKA, EVENT_LOG))

Evaluate = Callable[[Sequence[str]], Sequence[Any]]
"""SQL texts of constant expressions → their values."""

_MENTIONED = re.compile("|".join(rf"\b{name}\b" for name in FUNCTIONS), re.IGNORECASE)
_OURS = ("format", "schemaHints", "inferColumnTypes", "partitionColumns", "useStrictGlobber", "schemaEvolutionMode")
_STREAM_ONLY = ("allowOverwrites", "includeExistingFiles", "maxBytesPerTrigger", "maxFilesPerTrigger", "schemaLocation")
_DEFAULTS = {"cloudFiles.inferColumnTypes": "true", "cloudFiles.useStrictGlobber": "true"}
_STRING = r"""'[^'\\]*'|"[^"\\]*\""""
_STRINGS = re.compile(_STRING)
_PLAIN = re.compile(rf"(?P<text>{_STRING})|(?P<number>-?\d{{1,9}})|(?P<truth>true|false)", re.IGNORECASE)
_MAP = re.compile(rf"map\s*\((?P<inside>\s*(?:{_STRING})(?:\s*,\s*(?:{_STRING}))*\s*)\)", re.IGNORECASE)
_TABLE = re.compile(r"\s*TABLE\s*(?:\(\s*(?P<inside>[^()]+?)\s*\)|(?P<bare>[^()\s]+))\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class StateOf:
    """What `cloud_files_state` asks about: the table of that name, or the checkpoint in that folder."""

    table: str | None = None
    checkpoint: str | None = None


def replaced(spark: Any, text: str, view: Callable[[CallRef], str]) -> str:
    """The text with the name that `view` gives instead of each call, asked in the order of the text. Raises ParseException."""
    if not _MENTIONED.search(text):
        return text
    text = table_names.substitute(spark, text)
    edits = [(call, view(call)) for call in table_names.calls(spark, text, FUNCTIONS)]
    for call, name in reversed(edits):
        text = text[: call.start] + name + text[call.stop :]
    return text


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
    """What a literal means that says the same in every SQL: text without escapes, a whole number, a truth value, a map of them."""
    text = text.strip()
    if found := _PLAIN.fullmatch(text):
        if found["number"]:
            return (int(found["number"]),)
        return (found["truth"].lower() == "true",) if found["truth"] else (text[1:-1],)
    entries = _MAP.fullmatch(text)
    values = [_literal(piece) for piece in _STRINGS.findall(entries["inside"])] if entries else [None]
    if None in values or len(values) % 2:
        return None
    flat = [found[0] for found in values if found]
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
        table = _TABLE.fullmatch(text)
        if table is not None:
            return StateOf(table=table["inside"] or table["bare"])
        (value,) = evaluate([text])
        if isinstance(value, str):
            return StateOf(checkpoint=value)
    what = f"{STATE} takes one argument: TABLE(name), or the path of a checkpoint"
    raise LakeletError("CF_STATE_INCORRECT_SQL_PARAMS", what, where=where)


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
    options = dict(_DEFAULTS)
    schema = None
    for name, value in named.items():
        key = name.lower()
        if value is None:
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


def _put(options: dict[str, str], key: str, value: Any) -> None:
    """Set an option; a key that differs by case only is the same one."""
    same = next((known for known in options if known.lower() == key.lower()), key)
    options[same] = option_text(value)
