"""Option keys of `format("cloudFiles")` and what this version does with each (spec 1).

Keys are compared without case. An option is read, accepted without effect (where the result cannot differ), or refused with a code:
never ignored.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakelet.autoloader.spec import RESCUED_COLUMN, SourceSpec
from lakelet.errors import LakeletError, nearest_names

PREFIX = "cloudfiles."
FORMATS = ("avro", "binaryFile", "csv", "json", "orc", "parquet", "text", "xml")
ADD, ADD_WIDEN, RESCUE, FAIL, NONE = "addNewColumns", "addNewColumnsWithTypeWidening", "rescue", "failOnNewColumns", "none"
MODES = (ADD, ADD_WIDEN, RESCUE, FAIL, NONE)

READ = [
    "format",
    "schemaLocation",
    "schemaHints",
    "schemaEvolutionMode",
    "inferColumnTypes",
    "includeExistingFiles",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "validateOptions",
    "rescuedDataColumn",
]
# accepted without effect: listing is always complete and nothing is ever forgotten
NO_EFFECT = [
    "maxFileAge",
    "backfillInterval",
    "useIncrementalListing",
    "useNotifications",
    "useManagedFileEvents",
    "fetchParallelism",
    "pathRewrites",
    "queueUrl",
    "queueName",
    "subscription",
    "region",
    "restrictNotificationSetupToSameAWSAccountId",
    "roleArn",
    "roleExternalId",
    "roleSessionName",
    "stsEndpoint",
    "awsAccessKey",
    "awsSecretKey",
    "resourceGroup",
    "subscriptionId",
    "clientId",
    "clientSecret",
    "connectionString",
    "tenantId",
    "projectId",
    "client",
    "clientEmail",
    "privateKey",
    "privateKeyId",
    "inferSchema",
]
LATER: Mapping[str, tuple[str, ...]] = {  # key → values that mean the same as leaving it out
    "partitionColumns": ("",),
    "allowOverwrites": ("false",),
    "cleanSource": ("off",),
    "cleanSource.retentionDuration": (),
    "cleanSource.moveDestination": (),
    "useStrictGlobber": ("false",),
}
# options without the prefix that this version reads
PLAIN_READ = (
    "pathGlobFilter",
    "modifiedAfter",
    "modifiedBefore",
    "ignoredPathSegmentRegex",
    "rescuedDataColumn",
    "readerCaseSensitive",
    "timeZone",
    "columnNameOfCorruptRecord",
    "recursiveFileLookup",
)
# options without the prefix whose listed values change nothing; any other value is refused
PLAIN_DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "ignoreCorruptFiles": ("false",),
    "ignoreMissingFiles": ("false",),
    "allowBackslashEscapingAnyCharacter": ("false",),
    "allowComments": ("false",),
    "allowNonNumericNumbers": ("true",),
    "allowNumericLeadingZeros": ("false",),
    "allowSingleQuotes": ("true",),
    "allowUnquotedControlChars": ("false",),
    "allowUnquotedFieldNames": ("false",),
    "badRecordsPath": (),
    "dateFormat": (),
    "dropFieldIfAllNull": ("false",),
    "encoding": ("utf-8", "utf8"),
    "charset": ("utf-8", "utf8"),
    "inferTimestamp": ("false",),
    "lineSep": ("\n",),
    "locale": ("us", "en-us", "en"),
    "mode": ("permissive",),
    "multiLine": ("false",),
    "prefersDecimal": ("false",),
    "primitivesAsString": ("false",),
    "singleVariantColumn": (),
    "timestampFormat": (),
    "timestampNTZFormat": (),
}
_MANAGED_CONFLICTS = ("useNotifications", "backfillInterval", "fetchParallelism", "pathRewrites")
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_HIDDEN = "^[._]"


@dataclass(frozen=True)
class Options:
    """The options of one source, checked and typed."""

    schema_location: str | None
    hints: str | None
    mode: str
    infer_types: bool
    include_existing: bool
    max_files: int
    max_bytes: int | None
    rescued_column: str | None
    corrupt_column: str
    case_sensitive: bool
    time_zone: str
    name_glob: str | None
    hidden_segments: str
    modified_after: int | None
    modified_before: int | None
    file_path_in_rescued: bool
    sample_files: int
    sample_bytes: int
    notices: tuple[str, ...] = ()


def parse_options(spec: SourceSpec, confs: Mapping[str, str]) -> Options:
    """Check every option of a reader call. Raises LakeletError naming the key, never the value of an unknown or credential key."""
    cloud, plain = _split(spec.options)
    _check_format(cloud, spec)
    if _flag(cloud, "validateOptions", True, spec):
        _check_keys(cloud, spec)
    _check_later(cloud, plain, spec)
    _check_conflicts(cloud, spec)
    mode = _mode(cloud, spec)
    zone = plain.get("timezone") or confs.get("spark.sql.session.timeZone") or "UTC"
    return Options(
        schema_location=cloud.get("schemalocation"),
        hints=cloud.get("schemahints") or None,
        mode=mode,
        infer_types=_flag(cloud, "inferColumnTypes", False, spec),
        include_existing=_flag(cloud, "includeExistingFiles", True, spec),
        max_files=_positive(cloud, "maxFilesPerTrigger", 1000, spec),
        max_bytes=_size(cloud, "maxBytesPerTrigger", spec),
        rescued_column=_rescued_column(cloud, plain, mode=mode, explicit=spec.schema is not None),
        corrupt_column=plain.get("columnnameofcorruptrecord", "_corrupt_record"),
        case_sensitive=_flag(plain, "readerCaseSensitive", True, spec),
        time_zone=zone,
        name_glob=plain.get("pathglobfilter"),
        hidden_segments=_regex(plain.get("ignoredpathsegmentregex", _HIDDEN), spec),
        modified_after=_moment(plain, "modifiedAfter", zone, spec),
        modified_before=_moment(plain, "modifiedBefore", zone, spec),
        file_path_in_rescued=confs.get("spark.databricks.sql.rescuedDataColumn.filePath.enabled", "true").lower() != "false",
        sample_files=int(confs.get("spark.databricks.cloudFiles.schemaInference.sampleSize.numFiles", "1000")),
        sample_bytes=_bytes_of(confs.get("spark.databricks.cloudFiles.schemaInference.sampleSize.numBytes", "50gb")) or 50 << 30,
        notices=_notices(cloud),
    )


def _split(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    cloud: dict[str, str] = {}
    plain: dict[str, str] = {}
    for key, value in options.items():
        lower = key.lower()
        (cloud if lower.startswith(PREFIX) else plain)[lower.removeprefix(PREFIX)] = str(value)
    return cloud, plain


def _check_format(cloud: Mapping[str, str], spec: SourceSpec) -> None:
    wanted = cloud.get("format")
    if not wanted:
        raise LakeletError("CF_INCORRECT_STREAM_USAGE", "the option cloudFiles.format is missing", where=spec.where, todo="Set it to json.")
    if wanted.lower() not in [name.lower() for name in FORMATS]:
        near = nearest_names(wanted, FORMATS)
        raise LakeletError("CF_INVALID_OPTION_VALUE", f"cloudFiles.format {wanted!r} is unknown", where=spec.where, nearest=near)
    if wanted.lower() != "json":
        raise LakeletError("NOT_SUPPORTED_YET", f"cloudFiles.format {wanted!r} is not read yet, only json", where=spec.where)


def _check_keys(cloud: Mapping[str, str], spec: SourceSpec) -> None:
    known = {name.lower(): name for name in [*READ, *NO_EFFECT, *LATER]}
    unknown = [key for key in cloud if key not in known and not key.startswith("resourcetag.")]
    if not unknown:
        return
    plain = {name.lower(): name for name in [*PLAIN_READ, *PLAIN_DEFAULTS]}
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


def _check_later(cloud: Mapping[str, str], plain: Mapping[str, str], spec: SourceSpec) -> None:
    for group, table, prefix in ((cloud, LATER, "cloudFiles."), (plain, PLAIN_DEFAULTS, "")):
        for name, harmless in table.items():
            value = group.get(name.lower())
            if value is not None and value.strip(" ").lower() not in harmless:
                raise LakeletError("NOT_SUPPORTED_YET", f"option {prefix}{name} is not supported yet with this value", where=spec.where)


def _check_conflicts(cloud: Mapping[str, str], spec: SourceSpec) -> None:
    if cloud.get("usemanagedfileevents", "false").lower() != "true":
        return
    clashing = [n for n in _MANAGED_CONFLICTS if cloud.get(n.lower(), "false").lower() != "false"]
    clashing += ["resourceTag"] if any(key.startswith("resourcetag.") for key in cloud) else []
    if clashing:
        names = ", ".join("cloudFiles." + name for name in clashing)
        raise LakeletError("CF_INCONSISTENT_OPTIONS", f"cloudFiles.useManagedFileEvents cannot be combined with {names}", where=spec.where)


def _mode(cloud: Mapping[str, str], spec: SourceSpec) -> str:
    wanted = cloud.get("schemaevolutionmode")
    explicit = spec.schema is not None
    if wanted is None:
        return NONE if explicit else ADD
    mode = {name.lower(): name for name in MODES}.get(wanted.lower())
    if mode is None:
        raise LakeletError(
            "CF_INVALID_SCHEMA_EVOLUTION_MODE",
            f"cloudFiles.schemaEvolutionMode {wanted!r} is unknown; the modes are {', '.join(MODES)}",
            where=spec.where,
            nearest=nearest_names(wanted, MODES),
        )
    if explicit and mode in (ADD, ADD_WIDEN):
        raise LakeletError(
            "CF_ADD_NEW_NOT_SUPPORTED",
            f"schemaEvolutionMode {mode} cannot be combined with an explicit schema",
            where=spec.where,
            todo="Leave the schema out and fix the types that matter with cloudFiles.schemaHints.",
        )
    if mode == ADD_WIDEN:
        raise LakeletError("NOT_SUPPORTED_YET", f"schemaEvolutionMode {mode} is not supported yet", where=spec.where, todo=f"Use {ADD}.")
    return mode


def _rescued_column(cloud: Mapping[str, str], plain: Mapping[str, str], *, mode: str, explicit: bool) -> str | None:
    """Inferred schemas have one unless the mode is none; explicit schemas only when it was named (2.1, 3.1)."""
    named = plain.get("rescueddatacolumn") or cloud.get("rescueddatacolumn")
    return named or (None if explicit or mode == NONE else RESCUED_COLUMN)


def _notices(cloud: Mapping[str, str]) -> tuple[str, ...]:
    named = [name for name in NO_EFFECT if name.lower() in cloud]
    return tuple(f"option cloudFiles.{name} is accepted and has no effect here" for name in named)


def _flag(group: Mapping[str, str], name: str, default: bool, spec: SourceSpec) -> bool:
    value = group.get(name.lower())
    if value is None:
        return default
    if value.strip().lower() not in ("true", "false"):
        raise LakeletError("CF_INVALID_OPTION_VALUE", f"option {name} must be true or false, not {value!r}", where=spec.where)
    return value.strip().lower() == "true"


def _positive(group: Mapping[str, str], name: str, default: int, spec: SourceSpec) -> int:
    value = group.get(name.lower())
    if value is None:
        return default
    if not value.strip().isdigit() or int(value) < 1:
        raise LakeletError("CF_INVALID_OPTION_VALUE", f"option {name} must be a positive whole number, not {value!r}", where=spec.where)
    return int(value)


def _size(group: Mapping[str, str], name: str, spec: SourceSpec) -> int | None:
    value = group.get(name.lower())
    if value is None:
        return None
    size = _bytes_of(value)
    if not size:
        raise LakeletError("CF_INVALID_OPTION_VALUE", f"option {name} must be a size such as 10g, not {value!r}", where=spec.where)
    return size


def _bytes_of(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    return int(match[1]) << (10 * " kmgtp".index(match[2].lower() or " ")) if match else None


def _moment(group: Mapping[str, str], name: str, zone: str, spec: SourceSpec) -> int | None:
    from lakelet.autoloader.moments import timestamp_micros  # imports pyarrow

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


def _regex(text: str, spec: SourceSpec) -> str:
    try:
        re.compile(text)
    except re.error as error:
        what = f"option ignoredPathSegmentRegex is not a regular expression: {error}"
        raise LakeletError("CF_INVALID_OPTION_VALUE", what, where=spec.where) from None
    return text
