"""Option keys of `format("cloudFiles")` and what this version does with each (AL-1).

Keys are compared without case. An option is read, accepted without effect (with a notice), or refused with a code: never ignored.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.formats import NAMES, Format, format_of
from lakelet.autoloader.formats.option_tables import DROP, FAILFAST, PERMISSIVE, Option, by_name, flag, number, read_options, text, word
from lakelet.autoloader.session_settings import (
    PATH_IN_RESCUED,
    SAMPLE_BYTES,
    SAMPLE_FILES,
    TYPED_FOLDERS,
    case_matters,
    check_settings,
    is_on,
    option_defaults,
    switches_of,
)
from lakelet.autoloader.source_spec import ADD, ADD_WIDEN, MODES, NONE, RESCUE, RESCUED_COLUMN, ReaderSpec, SourceSpec
from lakelet.autoloader.state.cleanup_options import OPTIONS as CLEAN_OPTIONS
from lakelet.autoloader.state.cleanup_options import CleanSource, clean_source, cleanup_notices
from lakelet.base.errors import LakeletError, nearest_names

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PREFIX = "cloudfiles."
_LISTS = "listing is always complete"
_NOT_HERE = "there is no notification service here; files are listed"


def _size_text(value: str) -> int:
    size = _bytes_of(value)
    if not size:
        raise ValueError("must be a size such as 10g")
    return size


_VALIDATE = flag("validateOptions", True)
CLOUD = (
    text("format"),
    text("schemaLocation"),
    text("schemaHints"),
    text("schemaEvolutionMode"),
    flag("inferColumnTypes", False),
    text("partitionColumns"),
    flag("includeExistingFiles", True),
    number("maxFilesPerTrigger", 1000, least=1),
    Option("maxBytesPerTrigger", _size_text),
    flag("allowOverwrites", False),
    text("backfillInterval", notice=_LISTS),
    *CLEAN_OPTIONS,
    flag("useStrictGlobber", False),
    _VALIDATE,
    word("useIncrementalListing", "auto", ("auto", "true", "false"), notice=_LISTS),
    text("rescuedDataColumn"),
    text("inferSchema", notice="it is not an option of Auto Loader; cloudFiles.inferColumnTypes is"),
    flag("useNotifications", False, notice=_NOT_HERE),
    flag("useManagedFileEvents", False, notice=_NOT_HERE),
    number("fetchParallelism", 1, least=1, notice=_LISTS),
)
_CLOUD_ONLY = [
    *("pathRewrites", "queueUrl", "queueName", "subscription", "region", "restrictNotificationSetupToSameAWSAccountId", "roleArn"),
    *("roleExternalId", "roleSessionName", "stsEndpoint", "awsAccessKey", "awsSecretKey", "resourceGroup", "subscriptionId"),
    *("clientId", "clientSecret", "connectionString", "tenantId", "projectId", "client", "clientEmail", "privateKey", "privateKeyId"),
]
PLAIN = (
    text("pathGlobFilter"),
    flag("recursiveFileLookup", False),
    text("modifiedAfter"),
    text("modifiedBefore"),
    flag("ignoreCorruptFiles", False),
    flag("ignoreMissingFiles", False),
    text("ignoredPathSegmentRegex", "^[._]"),
    text("rescuedDataColumn"),
    flag("readerCaseSensitive", True),
    text("timeZone", "UTC"),
    text("columnNameOfCorruptRecord", "_corrupt_record"),
    word("mode", PERMISSIVE, (PERMISSIVE, DROP, FAILFAST)),
    text("badRecordsPath"),
    flag("latestFirst", False),
)
_HIDDEN_KEYS = ("path",)
_MANAGED_CONFLICTS = ("useNotifications", "backfillInterval", "fetchParallelism", "pathRewrites")
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)


@dataclass(frozen=True)
class AutoLoaderOptions:
    """The options of one source, checked and typed. `reader`: what readers need of them."""

    format: Format
    reader: ReaderSpec
    schema_location: str | None
    hints: str | None
    include_existing: bool
    sample_files: int
    sample_bytes: int
    clean: CleanSource | None = None
    notices: tuple[str, ...] = ()
    typed_folders: bool = True


@dataclass(frozen=True)
class _CheckedOptions:
    """The checked options of a call, by lower-case key without prefix.

    given_cloud, given_plain: as they were written. cloud: of cloudFiles. plain: of every file source. of_format: of the format alone.
    """

    format: Format
    given_cloud: Mapping[str, str]
    given_plain: Mapping[str, str]
    cloud: Mapping[str, Any]
    plain: Mapping[str, Any]
    of_format: Mapping[str, Any]


def parse_options(spec: SourceSpec, confs: Mapping[str, str]) -> AutoLoaderOptions:
    """Check every option of a reader call, and the settings that are defaults of options or change how files are read.

    Raises LakeletError naming the key, never the value of an unknown or credential key.
    """
    values = _checked_values(spec, confs)
    cloud = values.cloud
    clean = clean_source(cloud, spec)
    if spec.schema is not None:
        values.format.check_schema(spec.schema, spec.where)
    reader = _reader_spec(values, clean, spec, confs)
    of_settings = check_settings(values.format.name, confs, values.given_plain, inferred=spec.schema is None, where=spec.where)
    return AutoLoaderOptions(
        format=values.format,
        reader=reader,
        schema_location=cloud["schemalocation"],
        hints=cloud["schemahints"] or None,
        include_existing=cloud["includeexistingfiles"],
        sample_files=int(confs.get(SAMPLE_FILES, "1000")),
        sample_bytes=_bytes_of(confs.get(SAMPLE_BYTES, "50gb")) or 50 << 30,
        clean=clean,
        notices=(
            *_notices_of_options(values, spec.options),
            *_lost_notices(reader),
            *_enforced_notices(reader, values.given_plain),
            *cleanup_notices(values.given_cloud, clean),
            *of_settings,
        ),
        typed_folders=is_on(confs, TYPED_FOLDERS),
    )


def _checked_values(spec: SourceSpec, confs: Mapping[str, str]) -> _CheckedOptions:
    """The options of a call with the session's defaults, each checked by itself, and for those that exclude each other."""
    given_cloud, given_plain = _cloud_and_plain(spec.options)
    format = _named_format(given_cloud, spec)
    validate = read_options([_VALIDATE], given_cloud, spec.where, prefix="cloudFiles.")["validateoptions"]
    if validate:
        _check_keys(given_cloud, spec)
    cloud = read_options(CLOUD, given_cloud, spec.where, prefix="cloudFiles.")
    defaults = option_defaults(format.name, confs)
    plain = read_options(PLAIN, given_plain, spec.where, defaults=defaults)
    of_format = read_options(format.options, given_plain, spec.where, defaults=defaults)
    if validate:
        _check_conflicts(given_cloud, spec)
    problem = format.check(of_format)
    if problem:
        raise LakeletError("CF_INCONSISTENT_OPTIONS", problem, where=spec.where)
    return _CheckedOptions(format, given_cloud, given_plain, cloud, plain, of_format)


def _reader_spec(values: _CheckedOptions, clean: CleanSource | None, spec: SourceSpec, confs: Mapping[str, str]) -> ReaderSpec:
    """What readers need of the options. Raises CF_INCONSISTENT_OPTIONS for an evolution mode that does not go with the others."""
    format, cloud, plain, format_options = values.format, values.cloud, values.plain, values.of_format
    explicit = spec.schema is not None
    mode = _evolution_mode(cloud["schemaevolutionmode"], format, explicit, spec)
    if mode == ADD_WIDEN and format_options.get("prefersdecimal") is False:
        what = f"option prefersDecimal cannot be false with cloudFiles.schemaEvolutionMode {mode}"
        raise LakeletError("CF_INCONSISTENT_OPTIONS", what, where=spec.where)
    zone = plain["timezone"]
    rescued = _rescued_column(
        plain["rescueddatacolumn"] or cloud["rescueddatacolumn"],
        mode=mode,
        explicit=explicit or bool(format_options.get("singlevariantcolumn")),
        declared=spec.schema,
    )
    return ReaderSpec(
        path=spec.path,
        state="",
        format=format.name,
        format_options=format_options,
        mode=mode,
        explicit=explicit,
        rescued_column=rescued,
        corrupt_column=plain["columnnameofcorruptrecord"],
        record_mode=plain["mode"],
        bad_records=plain["badrecordspath"],
        case_sensitive=plain["readercasesensitive"] and (rescued is not None or not format.folds_names or case_matters(confs)),
        infer_types=cloud["infercolumntypes"] or explicit,
        time_zone=zone,
        file_path_in_rescued=is_on(confs, PATH_IN_RESCUED),
        max_files=cloud["maxfilespertrigger"],
        max_bytes=cloud["maxbytespertrigger"],
        newest_first=plain["latestfirst"],
        name_glob=plain["pathglobfilter"],
        hidden_segments=_checked_regex(plain["ignoredpathsegmentregex"], spec),
        modified_after=_moment_option(values.given_plain, "modifiedAfter", zone, spec),
        modified_before=_moment_option(values.given_plain, "modifiedBefore", zone, spec),
        strict_glob=cloud["usestrictglobber"],
        recursive=plain["recursivefilelookup"],
        partition_columns=_listed_names(cloud["partitioncolumns"]),
        allow_overwrites=cloud["allowoverwrites"],
        ignore_corrupt=plain["ignorecorruptfiles"],
        ignore_missing=plain["ignoremissingfiles"],
        schema_location=cloud["schemalocation"] or "",
        clean=None if clean is None else asdict(clean),
        hints=cloud["schemahints"] or "",
        switches=switches_of(confs),
    )


def _cloud_and_plain(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    cloud: dict[str, str] = {}
    plain: dict[str, str] = {}
    for key, value in options.items():
        lower = key.lower()
        (cloud if lower.startswith(PREFIX) else plain)[lower.removeprefix(PREFIX)] = str(value)
    return cloud, plain


def _named_format(cloud: Mapping[str, str], spec: SourceSpec) -> Format:
    wanted = cloud.get("format")
    if not wanted:
        todo = f"Set it to one of {', '.join(NAMES)}."
        raise LakeletError("CF_INCORRECT_STREAM_USAGE", "the option cloudFiles.format is missing", where=spec.where, todo=todo)
    if wanted.lower() not in [name.lower() for name in NAMES]:
        near = nearest_names(wanted, NAMES)
        raise LakeletError("CF_INVALID_OPTION_VALUE", f"cloudFiles.format {wanted!r} is unknown", where=spec.where, nearest=near)
    found = format_of(wanted)
    if found is None:
        raise LakeletError("NOT_SUPPORTED_YET", f"cloudFiles.format {wanted!r} is not read yet", where=spec.where)
    return found


def _check_keys(cloud: Mapping[str, str], spec: SourceSpec) -> None:
    known = {name.lower(): name for name in (*(option.name for option in CLOUD), *_CLOUD_ONLY)}
    unknown = [key for key in cloud if key not in known and not key.startswith("resourcetag.")]
    if not unknown:
        return
    plain = {option.name.lower(): option.name for option in PLAIN}
    near = [plain[key] for key in unknown if key in plain]
    for key in unknown:
        near += ["cloudFiles." + known[name.lower()] for name in nearest_names(key, known)] if key not in plain else []
    raise LakeletError(
        "CF_UNKNOWN_OPTION_KEYS_ERROR",
        "unknown option keys: " + ", ".join(PREFIX + key for key in sorted(unknown)),
        where=spec.where,
        nearest=near[:3],
        todo="Correct the key, or set cloudFiles.validateOptions to false to let it pass.",
    )


def _check_conflicts(cloud: Mapping[str, str], spec: SourceSpec) -> None:
    if cloud.get("usemanagedfileevents", "false").lower() != "true":
        return
    clashing = [n for n in _MANAGED_CONFLICTS if cloud.get(n.lower(), "false").lower() != "false"]
    clashing += ["resourceTag"] if any(key.startswith("resourcetag.") for key in cloud) else []
    if clashing:
        names = ", ".join("cloudFiles." + name for name in clashing)
        raise LakeletError("CF_INCONSISTENT_OPTIONS", f"cloudFiles.useManagedFileEvents cannot be combined with {names}", where=spec.where)


def _evolution_mode(wanted: str | None, format: Format, explicit: bool, spec: SourceSpec) -> str:
    if wanted is None:
        return NONE if explicit or format.fixed_schema else ADD
    mode = {name.lower(): name for name in MODES}.get(wanted.lower())
    if mode is None:
        raise LakeletError(
            "CF_INVALID_SCHEMA_EVOLUTION_MODE",
            f"cloudFiles.schemaEvolutionMode {wanted!r} is unknown; the modes are {', '.join(MODES)}",
            where=spec.where,
            nearest=nearest_names(wanted, MODES),
        )
    if (format.fixed_schema or not format.infers) and mode != NONE:
        why = "whose columns never change" if format.fixed_schema else "whose columns are declared"
        raise LakeletError(
            "CF_UNSUPPORTED_SCHEMA_EVOLUTION_MODE",
            f"schemaEvolutionMode {mode} does not go with format {format.name}, {why}",
            where=spec.where,
            todo=f"Leave the option out, or set it to {NONE}.",
        )
    if explicit and mode in (ADD, ADD_WIDEN):
        raise LakeletError(
            "CF_ADD_NEW_NOT_SUPPORTED",
            f"schemaEvolutionMode {mode} cannot be combined with an explicit schema",
            where=spec.where,
            todo="Leave the schema out and fix the types that matter with cloudFiles.schemaHints.",
        )
    return mode


def _rescued_column(named: str | None, *, mode: str, explicit: bool, declared: StructType | None) -> str | None:
    """Inferred schemas have one unless the mode is none. Explicit schemas, and records kept as one VARIANT, have one only when it was
    named, or when mode rescue is asked for and the declared schema has it (FS-3, FS-25)."""
    texts = [f.name for f in declared.fields if f.dataType.typeName() == "string"] if declared is not None and mode == RESCUE else []
    its_own = next((name for name in texts if name.lower() == RESCUED_COLUMN), None)
    return named or its_own or (None if explicit or mode == NONE else RESCUED_COLUMN)


def _listed_names(listed: str | None) -> tuple[str, ...] | None:
    return None if listed is None else tuple(name.strip() for name in listed.split(",") if name.strip())


def _notices_of_options(values: _CheckedOptions, written: Collection[str]) -> list[str]:
    """One sentence for each option that is accepted without effect; values are never shown, they may be secrets.

    `written`: the keys as user code spells them.
    """
    cloud, plain, format = values.given_cloud, values.given_plain, values.format
    spelled = {key.lower(): key for key in written}
    of_files = (*PLAIN, *format.options)
    found = [f"option cloudFiles.{o.name} has no effect here: {o.notice}" for o in CLOUD if o.name.lower() in cloud and o.notice]
    found += [f"option cloudFiles.{name} has no effect here: {_NOT_HERE}" for name in _CLOUD_ONLY if name.lower() in cloud]
    found += [f"option {o.name} has no effect here: {o.notice}" for o in of_files if o.name.lower() in plain and o.notice]
    tags = sum(key.startswith("resourcetag.") for key in cloud)
    found += [f"options cloudFiles.resourceTag.* have no effect here: {_NOT_HERE}"] if tags else []
    found += ["option databricks.serviceCredential has no effect here"] if "databricks.servicecredential" in plain else []
    known = {*by_name(of_files), *_HIDDEN_KEYS, "databricks.servicecredential"}
    found += [f"option {spelled.get(key, key)} has no effect: format {format.name} does not have it" for key in plain if key not in known]
    return found


def _enforced_notices(reader: ReaderSpec, given: Mapping[str, str]) -> list[str]:
    """Databricks has `enforceSchema` only for a declared schema without a rescued column (FF-34)."""
    if reader.format != "csv" or given.get("enforceschema") is None or (reader.explicit and reader.rescued_column is None):
        return []
    why = f"there is the rescued data column {reader.rescued_column}" if reader.rescued_column else "the schema is inferred"
    more = (
        "columns belong to those of each file's header by name. Databricks refuses it with CSV_ENFORCE_SCHEMA_NOT_SUPPORTED; leave it out"
    )
    return [f"option enforceSchema has no effect here: {why}, so {more}"]


def _lost_notices(reader: ReaderSpec) -> list[str]:
    """One sentence where mode rescue has nothing to rescue into."""
    if not reader.explicit or reader.mode != RESCUE or reader.rescued_column is not None:
        return []
    into = f"the schema has no column {RESCUED_COLUMN} STRING and option rescuedDataColumn names none"
    return [f"option cloudFiles.schemaEvolutionMode {RESCUE} has no effect: {into}, so values of new columns are left out"]


def _bytes_of(value: str) -> int | None:
    match = _SIZE.fullmatch(value.strip())
    return int(match[1]) << (10 * " kmgtp".index(match[2].lower() or " ")) if match else None


def _moment_option(group: Mapping[str, str], name: str, zone: str, spec: SourceSpec) -> int | None:
    from lakelet.autoloader.text_values import timestamp_micros  # imports pyarrow

    value = group.get(name.lower())
    if value is None:
        return None
    micros = timestamp_micros(value, zone)
    if micros is None:
        example = datetime.datetime(2026, 3, 1, 8).isoformat(" ")
        raise LakeletError(
            "CF_INVALID_OPTION_VALUE", f"option {name} must be a timestamp such as {example}, not {value!r}", where=spec.where
        )
    return micros


def _checked_regex(pattern: str, spec: SourceSpec) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        what = f"option ignoredPathSegmentRegex is not a regular expression: {error}"
        raise LakeletError("CF_INVALID_OPTION_VALUE", what, where=spec.where) from None
    return pattern


def batch_usage() -> LakeletError:
    """The error for `spark.read.format("cloudFiles")` (case S10)."""
    what = "cloudFiles is a streaming source; it was used in spark.read"
    return LakeletError("CF_INCORRECT_BATCH_USAGE", what, todo='Use spark.readStream.format("cloudFiles").')
