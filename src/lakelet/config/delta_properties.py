"""Table properties `delta.*`: which there are, how they are spelt, what their values may be (docs/semantics/table-properties.md, TP-10 ff).

The table is that of Delta itself (`DeltaConfigs`, with which a test compares it), with the properties and values beside it that
the documentation of Databricks or Microsoft Fabric has and Delta does not. No Spark: errors are found while source files are loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lakelet.base.errors import nearest_names

ANY_NAME = "spark.databricks.delta.allowArbitraryProperties.enabled"
"""Setting of Delta: names that it does not know are accepted."""
DEFAULTS = "spark.databricks.delta.properties.defaults."
"""Start of the settings that say which properties new tables get."""

_PREFIX = "delta."
_FEATURE = "delta.feature."
_FREE = ("delta.constraints.", "delta.universalformat.config.")
_PROTOCOL = ("delta.minreaderversion", "delta.minwriterversion", "delta.ignoreprotocoldefaults")
_UNITS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1, "millisecond": 1e-3, "microsecond": 1e-6}
_LOG_RETENTION, _FILE_RETENTION = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_BY_DELTA = "Delta sets it itself"


# -------------------------------------------------------------------------------------------------------------- values


def _boolean(text: str) -> None:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false is expected")


def _integer(least: int | None = None, most: int | None = None, *, bits: int = 32) -> Callable[[str], None]:
    low, high = -(2 ** (bits - 1)) if least is None else least, 2 ** (bits - 1) - 1 if most is None else most
    more = "" if least is None else f" from {least} on" if most is None else f" from {least} to {most}"

    def read(text: str) -> None:
        if not re.fullmatch(r"[+-]?[0-9]+", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number{more} is expected")

    return read


def _serializable(text: str) -> None:
    if text.lower() != "serializable":
        raise ValueError("Serializable is expected")


def _one_of(*words: str, any_case: bool = False) -> Callable[[str], None]:
    def read(text: str) -> None:
        if (text.lower() if any_case else text) not in words:
            raise ValueError(f"{' or '.join(words)} is expected")

    return read


def _formats(text: str) -> None:
    if text and not {part.strip() for part in text.split(",")} <= {"iceberg", "hudi"}:
        raise ValueError("iceberg, hudi, or both with a comma, is expected")


def _columns(text: str) -> None:
    if text.strip() and not re.match(r"\s*(?:[A-Za-z_`]|[0-9]+[A-Za-z_])", text):  # Delta finds out later about other wrong names
        raise ValueError("column names with commas between them are expected")


def seconds(text: str) -> float:
    """A length of time as Delta writes it: `interval 30 days`, `7 days 12 hours`. Raises ValueError."""
    rest = re.sub(r"^interval\s+", "", text.strip().lower())
    units = "|".join(_UNITS)
    one = rf"([+-]?\s*\d+(?:\.\d+(?=\s+seconds?))?)\s+({units})s?"
    if not re.fullmatch(rf"{one}(?:\s+{one})*", rest):
        raise ValueError("a length of time without months is expected, for example 'interval 7 days' or '12 hours'")
    total = sum(float(number.replace(" ", "")) * _UNITS[unit] for number, unit in re.findall(one, rest))
    if total < 0:
        raise ValueError("a length of time is not negative")
    return total


def _anything(text: str) -> None:
    """Any text."""


def _json(text: str) -> None:
    if not text.strip().startswith("{"):
        raise ValueError("a JSON object is expected")


# --------------------------------------------------------------------------------------------------------------- names


@dataclass(frozen=True)
class _KnownDeltaProperty:
    """One property of Delta. `read`: refuses a value that it cannot have. `databricks_only`: values that only Databricks takes, and why
    they change nothing here; they are not stored. `fixed`: why it cannot be declared."""

    name: str
    read: Callable[[str], object] = _boolean
    databricks_only: Mapping[str, str] | None = None
    fixed: str | None = None


_SWITCHES = """
    appendOnly autoOptimize autoOptimize.optimizeWrite castIcebergTimeType checkpoint.writeStatsAsJson checkpoint.writeStatsAsStruct
    compatibility.symlinkFormatManifest.enabled enableChangeDataCapture enableChangeDataFeed enableDeletionVectors enableExpiredLogCleanup
    enableFullRetentionRollback enableIcebergCompatV1 enableIcebergCompatV2 enableIcebergCompatV3 enableInCommitTimestamps
    enableMaterializePartitionColumnsFeature enableRowTracking enableTypeWidening enableVariantShredding ignoreIcebergBucketPartition
    ignoreProtocolDefaults randomizeFilePrefixes rowTrackingSuspended universalFormat.iceberg.atomicConversion.supported
    writePartitionColumnsToParquet
"""
_TIMES = """
    logRetentionDuration deletedFileRetentionDuration checkpointRetentionDuration sampleRetentionDuration setTransactionRetentionDuration
    dropFeatureTruncateHistory.retentionDuration
"""
_NO_MODULE = "Delta's module that writes this metadata is not there for Spark 4.2"
_NOT_WRITTEN = {
    "compatibility": "the tables of a storage are read as Delta",
    **dict.fromkeys(("iceberg", "hudi", "iceberg,hudi", "hudi,iceberg"), _NO_MODULE),
}
_SIZED = "a table is compacted as with true, or not"
_ALL = (
    *(_KnownDeltaProperty(f"delta.{name}") for name in _SWITCHES.split()),
    *(_KnownDeltaProperty(f"delta.{name}", seconds) for name in _TIMES.split()),
    _KnownDeltaProperty("delta.autoOptimize.autoCompact", databricks_only={"auto": _SIZED, "legacy": _SIZED}),
    _KnownDeltaProperty("delta.isolationLevel", _serializable, {"WriteSerializable": "one writer at a time writes a table of a pipeline"}),
    _KnownDeltaProperty("delta.checkpointInterval", _integer(1)),
    _KnownDeltaProperty("delta.checkpointPolicy", _one_of("classic", "v2")),
    _KnownDeltaProperty("delta.columnMapping.mode", _one_of("none", "name", "id", any_case=True)),
    _KnownDeltaProperty("delta.columnMapping.maxColumnId", _anything, fixed=_BY_DELTA),
    _KnownDeltaProperty("delta.coordinatedCommits.commitCoordinator-preview", _anything),
    _KnownDeltaProperty("delta.coordinatedCommits.commitCoordinatorConf-preview", _json),
    _KnownDeltaProperty("delta.coordinatedCommits.tableConf-preview", _json),
    _KnownDeltaProperty("delta.dataSkippingNumIndexedCols", _integer(-1)),
    _KnownDeltaProperty("delta.dataSkippingStatsColumns", _columns),
    _KnownDeltaProperty("delta.dataSkippingStringPrefixLength", _integer(0)),
    _KnownDeltaProperty("delta.inCommitTimestampEnablementTimestamp", _integer(bits=64)),
    _KnownDeltaProperty("delta.inCommitTimestampEnablementVersion", _integer(bits=64)),
    _KnownDeltaProperty("delta.minReaderVersion", _integer(1, 3)),
    _KnownDeltaProperty("delta.minWriterVersion", _integer(1, 7)),
    _KnownDeltaProperty("delta.parquet.format.version", _one_of("1.0.0", "2.12.0")),
    _KnownDeltaProperty("delta.randomPrefixLength", _integer(1)),
    _KnownDeltaProperty("delta.redirectReaderWriter-preview", _anything),
    _KnownDeltaProperty("delta.redirectWriterOnly-preview", _anything),
    _KnownDeltaProperty("delta.requireCheckpointProtectionBeforeVersion", _integer(0, bits=64)),
    _KnownDeltaProperty("delta.universalFormat.enabledFormats", _formats, _NOT_WRITTEN),
)
KNOWN = {known.name.lower(): known for known in _ALL}
"""The properties of Delta, by their names in lower case."""

_FILES = "files have the sizes that Delta gives them"
_ICEBERG = "the tables of a storage are read as Delta"
HOSTED: Mapping[str, str] = {
    "delta.targetFileSize": "an update writes files in the sizes that Delta gives them; `lakelet maintain` follows it",
    "delta.targetFileSize.adaptive": _FILES,
    "delta.tuneFileSizesForRewrites": _FILES,
    "delta.parquet.compression.codec": "the setting spark.sql.parquet.compression.codec decides how files are compressed",
    "delta.parquet.vorder.default": "files are written in Spark's order",
    "delta.parquet.vorder.enabled": "files are written in Spark's order",
    "delta.timeUntilArchived": "files are not archived",
    "delta.universalFormat.compatibility.location": _ICEBERG,
    "delta.universalFormat.compatibility.targetRefreshInterval": _ICEBERG,
    "delta.lastCommitTimestamp": _BY_DELTA,
    "delta.lastUpdateVersion": _BY_DELTA,
    "delta.rowTracking.materializedRowCommitVersionColumnName": _BY_DELTA,
    "delta.rowTracking.materializedRowIdColumnName": _BY_DELTA,
}
"""Properties that Delta does not know and Databricks or Microsoft Fabric documents, or shows for a table: why they have no effect here."""
_HOSTED_BY_LOWER = {name.lower(): name for name in HOSTED}

_FEATURES = """
    allowColumnDefaults appendOnly changeDataFeed checkConstraints checkpointProtection clustering columnMapping deletionVectors
    domainMetadata generatedColumns geospatial icebergCompatV1 icebergCompatV2 icebergCompatV3 identityColumns inCommitTimestamp invariants
    materializePartitionColumns rowTracking timestampNtz typeWidening typeWidening-preview v2Checkpoint vacuumProtocolCheck
    variantShredding variantShredding-preview variantType variantType-preview
"""
FEATURES = frozenset(_FEATURES.split())
"""Table features of Delta that a property may switch on. Other ones are left out with a notice."""
_FEATURES_BY_LOWER = {feature.lower() for feature in FEATURES}


# ------------------------------------------------------------------------------------------------------------- examined


@dataclass(frozen=True)
class PropertyRemark:
    """Finding about one property: a notice, or why it is refused (`code`, with the nearest names)."""

    text: str
    code: str | None = None
    nearest: tuple[str, ...] = ()


def examine(properties: Mapping[str, str], *, any_name: bool = False) -> Iterator[PropertyRemark]:
    """Return the findings about the `delta.*` among a table's properties. `any_name`: names that nobody knows give a notice only."""
    spelt: dict[str, str] = {}
    for key, value in properties.items():
        lower = key.lower()
        if lower.startswith(_PREFIX):
            first = spelt.setdefault(lower, key)
            if first != key:
                yield PropertyRemark(f"{first} and {key} are one property", "PROPERTY_INVALID")
                continue
            yield from _remark(key, value, any_name)
        elif name := _meant(lower):
            yield PropertyRemark(f"the property {key} means nothing to Delta; did you mean {name}?")
    yield from _retention(properties)


def _meant(key: str) -> str | None:
    """The property of Delta that a key without its prefix, or with a misspelt one, may mean."""
    prefix, _, rest = key.partition(".")
    misspelt = KNOWN.get(f"{_PREFIX}{rest}") if nearest_names(prefix, ["delta"]) else None
    known = KNOWN.get(f"{_PREFIX}{key}") or misspelt
    return known.name if known else None


def examine_default(key: str, value: str) -> Iterator[PropertyRemark]:
    """Return the finding about a setting of the pipeline that begins with `DEFAULTS`."""
    name = _PREFIX + key[len(DEFAULTS) :]
    known = KNOWN.get(name.lower())
    if known is None and not name.lower().startswith(_FEATURE):
        near = "".join(nearest_names(name, [k.name for k in _ALL], limit=1)).removeprefix(_PREFIX)
        yield PropertyRemark(
            f"{key} has no effect here: Delta has no such property" + (f"; did you mean {DEFAULTS}{near}?" if near else "")
        )
    elif known is not None and key != DEFAULTS + known.name.removeprefix(_PREFIX):
        yield PropertyRemark(f"{key} has no effect here: Delta reads {DEFAULTS}{known.name.removeprefix(_PREFIX)}")
    elif known is not None:
        yield from (_about(remark, name, key) for remark in _remark(name, value, any_name=True))


def _about(remark: PropertyRemark, name: str, key: str) -> PropertyRemark:
    """The same remark about `key`."""
    return PropertyRemark(remark.text.replace(name, key), remark.code, remark.nearest)


def _remark(key: str, value: str, any_name: bool) -> Iterator[PropertyRemark]:
    lower = key.lower()
    known = KNOWN.get(lower)
    if known is not None:
        yield from _of_value(key, value, known)
    elif lower.startswith(_FEATURE):
        feature = lower[len(_FEATURE) :]
        if value.lower() not in ("supported", "enabled"):
            yield PropertyRemark(f"{key} is {value!r}: supported or enabled is expected", "PROPERTY_INVALID")
        elif feature not in _FEATURES_BY_LOWER:
            yield PropertyRemark(f"{key} has no effect here: Delta without Databricks does not have this feature")
    elif lower in _HOSTED_BY_LOWER:
        yield PropertyRemark(f"{key} has no effect here: {HOSTED[_HOSTED_BY_LOWER[lower]]}")
    elif not lower.startswith(_FREE):
        text = f"Delta has no property {key}"
        near = nearest_names(key, [k.name for k in _ALL if k.fixed is None]) or nearest_names(key, HOSTED)
        yield PropertyRemark(f"{key} has no effect here: {text}") if any_name else PropertyRemark(text, "PROPERTY_UNKNOWN", near)


def _of_value(key: str, value: str, known: _KnownDeltaProperty) -> Iterator[PropertyRemark]:
    if known.fixed is not None:
        yield PropertyRemark(f"{key} cannot be declared: {known.fixed}", "PROPERTY_INVALID")
        return
    idle = _hosted_value(known, value)
    if idle is not None:
        yield PropertyRemark(f"{key} = {value} has no effect here: {idle}")
        return
    try:
        known.read(value)
    except ValueError as problem:
        yield PropertyRemark(f"{key} is {value!r}: {problem}", "PROPERTY_INVALID")


def _hosted_value(known: _KnownDeltaProperty, value: str) -> str | None:
    """Why a value that Databricks takes has no effect here; None for a value of Delta's own, or of nobody's."""
    return next((why for word, why in (known.databricks_only or {}).items() if word.lower() == value.strip().lower()), None)


def _retention(properties: Mapping[str, str]) -> Iterator[PropertyRemark]:
    """A notice where files that the log still names may be deleted, which newer versions of Databricks refuse."""
    by_lower = {key.lower(): value for key, value in properties.items()}
    log, files = by_lower.get(_LOG_RETENTION.lower()), by_lower.get(_FILE_RETENTION.lower())
    if log is None and files is None:
        return
    try:
        shorter = seconds(log or "30 days") < seconds(files or "1 week")
    except ValueError:
        return  # reported already
    if shorter:
        yield PropertyRemark(f"{_LOG_RETENTION} is shorter than {_FILE_RETENTION}, which Databricks Runtime 18.0 and later refuses")


# -------------------------------------------------------------------------------------------------------------- stored


def stored(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as a table gets them: those of Delta in Delta's spelling, without what it would fail with (TP-12)."""
    found = {}
    for key, value in properties.items():
        lower = key.lower()
        known = KNOWN.get(lower)
        if known is not None and _hosted_value(known, value) is not None:
            continue
        if lower.startswith(_FEATURE):
            if lower[len(_FEATURE) :] in _FEATURES_BY_LOWER:
                found[lower] = "supported"
            continue
        found[known.name if known is not None else _HOSTED_BY_LOWER.get(lower, key)] = value
    return found


def is_of_protocol(name: str) -> bool:
    """Whether Delta applies a property to the table's protocol and does not store it."""
    return name.lower() in _PROTOCOL or name.lower().startswith(_FEATURE)


def passes_commands(name: str) -> bool:
    """Whether Delta's own commands take the property whatever the others are; they compare those of `_retention`."""
    lower = name.lower()
    compared = lower in (_LOG_RETENTION.lower(), _FILE_RETENTION.lower())
    return not lower.startswith(_PREFIX) or lower.startswith((_FEATURE, *_FREE)) or (lower in KNOWN and not compared)


__all__ = ["ANY_NAME", "DEFAULTS", "HOSTED", "KNOWN", "examine", "examine_default", "is_of_protocol", "passes_commands", "stored"]
