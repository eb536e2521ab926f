"""Table functions in SQL text that Spark does not have, or not for tables of a pipeline: `read_files`, `read_kafka`, `table_changes` and
others.

Their arguments are constants, so each call is turned into the description of a source (AL-29 to AL-32); the caller opens the source and
replaces the call by a view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.reader_arguments import struct_of
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base import sentences
from lakelet.base.errors import LakeletError, Location
from lakelet.base.redaction import remember_secrets
from lakelet.base.text import kafka_option, option_text
from lakelet.config.tool_settings import package_missing
from lakelet.language.sql_text.table_names import CallRef
from lakelet.language.sql_text.tokens import Token, name_end, plain_tokens

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# ----------------------------------------------------------------------------------------------- the change feed of a table (SQ-14)


TABLE_CHANGES = "table_changes"
_MOST_ARGUMENTS = 3
"""A name, and from where to where."""


def feed_of(names: Sequence[str | None], values: Sequence[Any], where: Location | None) -> tuple[str, Mapping[str, str]]:
    """Return the name of the table, and the options of Delta's reader of its feed, that the arguments of a call mean.

    A number is a version, anything else a time. Raises CF_INCORRECT_SQL_PARAMS for arguments of another shape.
    """
    shaped = 2 <= len(values) <= _MOST_ARGUMENTS and not any(names) and isinstance(values[0], str) and values[1] is not None
    bounds = values[1:]
    if not shaped or not all(isinstance(bound, int | str | date | None) and not isinstance(bound, bool) for bound in bounds):
        what = f"{TABLE_CHANGES} takes the name of a table as a text, a version or time to begin with, and perhaps one to end with"
        todo = f"For example: {TABLE_CHANGES}('silver.orders', 0)"
        raise LakeletError("CF_INCORRECT_SQL_PARAMS", what, where=where, todo=todo)
    options = {"readChangeFeed": "true"}
    for side, bound in zip(("starting", "ending"), bounds, strict=False):
        if bound is not None:
            options[f"{side}Version" if isinstance(bound, int) else f"{side}Timestamp"] = str(bound)
    return values[0], options


# -------------------------------------------------------------------------------------------------- topics of Kafka (SQ-12)


READ_KAFKA = "read_kafka"
_KAFKA_OPTIONS = {
    name.lower(): name
    for name in (
        *("subscribe", "subscribePattern", "assign", "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "endingOffsets"),
        *("endingTimestamp", "endingOffsetsByTimestamp", "failOnDataLoss", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix"),
        *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "includeHeaders", "fetchOffset.numRetries"),
        *("fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs"),
    )
}


def kafka_options(names: Sequence[str | None], values: Sequence[Any], where: Location | None) -> Mapping[str, str]:
    """The options of Spark's source `kafka` that the arguments of a call mean.

    Raises CF_INCORRECT_SQL_PARAMS for an argument without a name, and where no topic or no server is named.
    """
    if None in names:
        raise _wrong_kafka_arguments("takes arguments by name", where)
    options: dict[str, str] = {}
    for name, value in zip(names, values, strict=True):
        if value is not None and name is not None:
            options[_kafka_option(name)] = option_text(value)
    if "kafka.bootstrap.servers" not in options:
        raise _wrong_kafka_arguments("needs bootstrapServers", where)
    if not {"subscribe", "subscribePattern", "assign"} & set(options):
        raise _wrong_kafka_arguments("needs subscribe, subscribePattern or assign", where)
    return options


def _kafka_option(name: str) -> str:
    if name.lower() == "bootstrapservers":
        return "kafka.bootstrap.servers"
    return _KAFKA_OPTIONS.get(name.lower(), name)


def _wrong_kafka_arguments(what: str, where: Location | None) -> LakeletError:
    todo = "For example: read_kafka(bootstrapServers => 'host:9092', subscribe => 'topic')"
    return LakeletError("CF_INCORRECT_SQL_PARAMS", f"{READ_KAFKA} {what}", where=where, todo=todo)


def open_kafka(spark: SparkSession, options: Mapping[str, str], *, streaming: bool, where: Location | None) -> DataFrame:
    """The topics as a stream or as a batch. Raises PACKAGE_MISSING where the session has no connector for Kafka."""
    from pyspark.errors import PySparkException

    remember_secrets(options)
    options = {key: str(kafka_option(key, value)) for key, value in options.items()}
    reader = spark.readStream if streaming else spark.read
    try:
        return reader.format("kafka").options(**options).load()
    except PySparkException as problem:
        if not sentences.FORMAT_MISSING.is_in(str(problem)):
            raise
        raise package_missing("kafka", where) from problem


# ---------------------------------------------------------------------------------- calls and their constant arguments


READ_FILES, CLOUD_FILES, STATE = "read_files", "cloud_files", "cloud_files_state"
EVENT_LOG = "event_log"
FUNCTIONS = frozenset((READ_FILES, CLOUD_FILES, STATE, READ_KAFKA, EVENT_LOG, TABLE_CHANGES))

Evaluate = Callable[[Sequence[str]], Sequence[Any]]
"""SQL texts of constant expressions → their values."""

_CLOUD_FILES_OPTIONS = (
    "format",
    "schemaHints",
    "inferColumnTypes",
    "partitionColumns",
    "useStrictGlobber",
    "schemaEvolutionMode",
    "useManagedFileEvents",
)
_STREAM_ONLY_OPTIONS = ("allowOverwrites", "includeExistingFiles", "maxBytesPerTrigger", "maxFilesPerTrigger", "schemaLocation")
_READ_FILES_DEFAULTS = {"cloudFiles.inferColumnTypes": "true", "cloudFiles.useStrictGlobber": "true"}


@dataclass(frozen=True)
class FileStateCall:
    """What `cloud_files_state` asks about: the table of that name, or the checkpoint in that folder."""

    table: str | None = None
    checkpoint: str | None = None


def evaluated(run: Callable[[str], Any]) -> Evaluate:
    """Evaluates constant expressions: plain literals at once, others by running a query over them."""

    def evaluate(expressions: Sequence[str]) -> Sequence[Any]:
        plain = [_literal_value(expression) for expression in expressions]
        if None not in plain:
            return [value for found in plain for value in found or ()]
        row = run("SELECT " + ", ".join(f"{expression} AS a{at}" for at, expression in enumerate(expressions))).first()
        return list(row or ())

    return evaluate


def _literal_value(text: str) -> tuple[Any] | None:
    """Return the value of a literal in a tuple; None for another expression.

    Only literals that every SQL dialect reads alike: text without escapes, whole numbers, truth values, and maps of them.
    """
    found = plain_tokens(text)
    if len(found) == 1:
        return _plain_literal(text, found[0])
    if [token.upper for token in found[:1]] == ["-"] and len(found) == 2 and found[1].kind == "number":
        number = _plain_literal(text, found[1])
        return None if number is None else (-number[0],)
    return _map_literal(text, found)


def _plain_literal(text: str, token: Token) -> tuple[Any] | None:
    if token.kind == "string" and token.value == text[token.start + 1 : token.stop - 1]:
        return (token.value,)
    if token.kind == "number" and token.value.isdecimal() and len(token.value) < 10:
        return (int(token.value),)
    return (token.upper == "TRUE",) if token.upper in ("TRUE", "FALSE") else None


def _map_literal(text: str, found: Sequence[Token]) -> tuple[Any] | None:
    """`map('a', 'b', …)`: strings, of which an even number is there, with commas between them."""
    inside = found[2:-1]
    signs = [token.upper for token in (*found[:2], *inside[1::2], *found[-1:])]
    if signs != ["MAP", "(", *[","] * (len(inside) // 2), ")"] or len(inside) % 4 != 3:
        return None
    values = [_plain_literal(text, token) if token.kind == "string" else None for token in inside[::2]]
    if None in values:
        return None
    flat = [value[0] for value in values if value is not None]
    return (dict(zip(flat[::2], flat[1::2], strict=True)),)


def arguments_of(call: CallRef, evaluate: Evaluate) -> tuple[list[str | None], Sequence[Any]]:
    """The names and the values of a call's arguments; None for an argument without a name."""
    texts = [text for _, text in call.arguments]
    return [name for name, _ in call.arguments], evaluate(texts) if texts else []


def source_of(call: CallRef, spark: Any, evaluate: Evaluate, where: Location | None) -> SourceSpec:
    """The source that a call of `read_files` or `cloud_files` means.

    Raises CF_INCORRECT_SQL_PARAMS where arguments have a wrong shape, CF_INCONSISTENT_OPTIONS for an option of streams in a batch read.
    """
    names, values = arguments_of(call, evaluate)
    positional = [value for name, value in zip(names, values, strict=True) if name is None]
    named = {name: value for name, value in zip(names, values, strict=True) if name is not None}
    if call.name == CLOUD_FILES:
        return _source_of_cloud_files(positional, named, spark, where)
    return _source_of_read_files(positional, named, call.streaming, spark, where)


def state_of(call: CallRef, evaluate: Evaluate, where: Location | None) -> FileStateCall:
    """What a call of `cloud_files_state` asks about. Raises CF_STATE_INCORRECT_SQL_PARAMS."""
    if len(call.arguments) == 1:
        ((_, text),) = call.arguments
        table = _table_argument(text)
        if table is not None:
            return FileStateCall(table=table)
        (value,) = evaluate([text])
        if isinstance(value, str):
            return FileStateCall(checkpoint=value)
    what = f"{STATE} takes one argument: TABLE(name), or the path of a checkpoint"
    raise LakeletError("CF_STATE_INCORRECT_SQL_PARAMS", what, where=where)


def _table_argument(text: str) -> str | None:
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


def _source_of_cloud_files(positional: Sequence[Any], named: Mapping[str, Any], spark: Any, where: Location | None) -> SourceSpec:
    shaped = len(positional) in (2, 3) and not named and all(isinstance(value, str) for value in positional[:2])
    if not shaped or not isinstance(positional[2] if len(positional) == 3 else {}, dict):
        what = f"{CLOUD_FILES} takes a path, a format, and perhaps a map of options"
        todo = """For example: cloud_files("/data", "json", map("cloudFiles.inferColumnTypes", "true"))"""
        raise LakeletError("CF_INCORRECT_SQL_PARAMS", what, where=where, todo=todo)
    given = {str(k): option_text(v) for k, v in (positional[2] if len(positional) == 3 else {}).items() if v is not None}
    schema = next((given.pop(key) for key in list(given) if key.lower() == "schema"), None)
    options = {**given, "cloudFiles.format": positional[1]}
    return SourceSpec(positional[0], options, struct_of(schema, spark), where)


def _source_of_read_files(
    positional: Sequence[Any], named: Mapping[str, Any], streaming: bool, spark: Any, where: Location | None
) -> SourceSpec:
    named = dict(named)
    path = positional[0] if positional else named.pop("path", None)
    if len(positional) > 1 or not isinstance(path, str):
        what = f"{READ_FILES} takes a path, and options by name"
        raise LakeletError("CF_INCORRECT_SQL_PARAMS", what, where=where, todo="For example: read_files('/data', format => 'json')")
    bare = {name.lower(): name for name in (*_CLOUD_FILES_OPTIONS, *_STREAM_ONLY_OPTIONS)}
    inferring = _inferring_of_xml(named)
    options = {**_READ_FILES_DEFAULTS, **inferring}
    schema = None
    for name, value in named.items():
        key = name.lower()
        if value is None or (key == "inferschema" and inferring):
            continue
        if key == "schema":
            schema = option_text(value)
        elif key in bare:
            _set_option(options, f"cloudFiles.{bare[key]}", value)
        else:
            _set_option(options, "pathGlobFilter" if key == "filenamepattern" else name, value)
    refused = [name for name in _STREAM_ONLY_OPTIONS if not streaming and f"cloudfiles.{name.lower()}" in {key.lower() for key in options}]
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


def _set_option(options: dict[str, str], key: str, value: Any) -> None:
    """Set an option; a key that differs by case only is the same one."""
    same = next((known for known in options if known.lower() == key.lower()), key)
    options[same] = option_text(value)


__all__ = [
    "CLOUD_FILES",
    "EVENT_LOG",
    "FUNCTIONS",
    "READ_FILES",
    "READ_KAFKA",
    "STATE",
    "TABLE_CHANGES",
    "Evaluate",
    "FileStateCall",
    "arguments_of",
    "evaluated",
    "feed_of",
    "kafka_options",
    "no_event_log",
    "open_kafka",
    "source_of",
    "state_of",
]
