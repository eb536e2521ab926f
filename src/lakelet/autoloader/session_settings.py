"""Session settings that a source honours: one list for every place where a source is opened (AL-4).

Spark's readers take the default of many options from the session. A setting of this list counts, or brings a notice, or is refused by name.
Settings that concern speed, writing or the splitting of files are not in it, nor those that Spark's readers do not read, as ANSI.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError, Location
from lakelet.jvm.sessions import all_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE_FILES = "spark.databricks.cloudFiles.schemaInference.sampleSize.numFiles"
SAMPLE_BYTES = "spark.databricks.cloudFiles.schemaInference.sampleSize.numBytes"
PATH_IN_RESCUED = "spark.databricks.sql.rescuedDataColumn.filePath.enabled"
TYPED_FOLDERS = "spark.sql.sources.partitionColumnTypeInference.enabled"
TIME_ZONE = "spark.sql.session.timeZone"

LOCAL_TIMESTAMPS = "spark.sql.timestampType"
"""Switch: a timestamp without zone, in a file or in schema hints, is TIMESTAMP_NTZ."""
NO_LOCAL_PARQUET = "spark.sql.parquet.inferTimestampNTZ.enabled"
"""Switch: Parquet's timestamps without zone are TIMESTAMP."""
BINARY_AS_STRING = "spark.sql.parquet.binaryAsString"
NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"

_TEXTS = ("json", "csv", "xml")
_PATTERNS = ("dateformat", "timestampformat", "timestampntzformat")


@dataclass(frozen=True)
class OptionDefault:
    """A setting that is the default of an option of some formats; none named: of all. `values`: setting → option where they differ."""

    key: str
    option: str
    formats: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)


DEFAULTS = (
    OptionDefault(TIME_ZONE, "timeZone"),
    OptionDefault("spark.sql.columnNameOfCorruptRecord", "columnNameOfCorruptRecord"),
    OptionDefault("spark.sql.files.ignoreCorruptFiles", "ignoreCorruptFiles"),
    OptionDefault("spark.sql.files.ignoreMissingFiles", "ignoreMissingFiles"),
    OptionDefault("spark.sql.parquet.datetimeRebaseModeInRead", "datetimeRebaseMode", ("parquet",)),
    OptionDefault("spark.sql.parquet.int96RebaseModeInRead", "int96RebaseMode", ("parquet",)),
    OptionDefault("spark.sql.avro.datetimeRebaseModeInRead", "datetimeRebaseMode", ("avro",)),
    OptionDefault("spark.sql.json.enableExactStringParsing", "nestedText", ("json",), {"true": "source", "false": "compact"}),
)
_SWITCHES = {LOCAL_TIMESTAMPS: "timestamp_ntz", NO_LOCAL_PARQUET: "false", BINARY_AS_STRING: "true", NANOS_AS_LONG: "true"}
"""Settings without an option, with the value that is not Spark's default; `ReaderSpec.switches` has those that have it."""
_ONLY: Mapping[str, tuple[tuple[str, ...], str]] = {
    "spark.sql.parquet.int96AsTimestamp": (("parquet",), "true"),
    "spark.sql.parquet.int96TimestampConversion": (("parquet",), "false"),
    "spark.sql.parquet.reader.respectUnknownTypeAnnotation.enabled": (("parquet",), "false"),
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": (("parquet",), "false"),
    "spark.sql.legacy.avro.allowIncompatibleSchema": (("avro",), "false"),
    "spark.sql.json.enablePartialResults": (("json",), "true"),
    "spark.sql.legacy.json.allowEmptyString.enabled": (("json",), "false"),
    "spark.sql.legacy.useLegacyXMLParser": (("xml",), "false"),
    "spark.sql.files.supportSecondOffsetFormat": (_TEXTS, "true"),
    "spark.sql.sources.binaryFile.maxLength": (("binaryFile",), "2147483647"),
}
"""Settings that formats read by one value only; any other one is refused."""
_WITH_PATTERNS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "spark.sql.legacy.timeParserPolicy": (_TEXTS, "corrected"),
    "spark.sql.legacy.csv.enableDateTimeParsingFallback": (("csv",), "false"),
    "spark.sql.legacy.json.enableDateTimeParsingFallback": (("json",), "false"),
}
"""As `_ONLY`, where dates or timestamps have a pattern; without one texts that fit mean the same, and there is a notice."""
_CASE = "spark.sql.caseSensitive"

KEYS: Sequence[str] = (
    *(SAMPLE_FILES, SAMPLE_BYTES, PATH_IN_RESCUED, TYPED_FOLDERS, _CASE),
    *(one.key for one in DEFAULTS),
    *_SWITCHES,
    *_ONLY,
    *_WITH_PATTERNS,
)


def source_settings(spark: SparkSession) -> dict[str, str]:
    """The settings of a session that sources honour. What nobody has set is left out, but for the time zone, which has no fixed default."""
    found = all_settings(spark)
    zone = {TIME_ZONE: str(spark.conf.get("spark.sql.session.timeZone"))}
    return zone | {key: found[key] for key in KEYS if key in found}


def option_defaults(format: str, settings: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Lower-case option → the setting that its default comes from, and the text of the default."""
    return {
        one.option.lower(): (one.key, one.values.get(settings[one.key].strip().lower(), settings[one.key]))
        for one in DEFAULTS
        if one.key in settings and (not one.formats or format in one.formats)
    }


def switches_of(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The switches that are on."""
    return tuple(key for key, value in _SWITCHES.items() if settings.get(key, "").strip().lower() == value)


def is_on(settings: Mapping[str, str], key: str) -> bool:
    """Whether a setting is true, which is its default."""
    return settings.get(key, "true").strip().lower() != "false"


def case_matters(settings: Mapping[str, str]) -> bool:
    """Whether names that differ by case only are different names for Spark, which is not its default."""
    return settings.get(_CASE, "").strip().lower() == "true"


def check_settings(
    format: str, settings: Mapping[str, str], given: Collection[str], *, inferred: bool, where: Location | None
) -> list[str]:
    """One sentence for each setting without effect on a source. `given`: its options in lower case.

    Raises NOT_SUPPORTED_YET for a setting with a value that this format cannot be read by.
    """
    patterns = [name for name in given if name in _PATTERNS]
    notices = []
    for key, (formats, only) in {**_ONLY, **_WITH_PATTERNS}.items():
        value = settings.get(key, only).strip()
        if format not in formats or value.lower() == only:
            continue
        if key in _ONLY or patterns:
            beside = "" if key in _ONLY else f" beside the option {patterns[0]}"
            what = f"the setting {key} = {value} is not supported yet for files of format {format}{beside}"
            todo = f'Set it to {only} for the dataset: spark_conf={{"{key}": "{only}"}}.'
            raise LakeletError("NOT_SUPPORTED_YET", what, where=where, todo=todo)
        notices.append(f"setting {key} = {value} has no effect on files of format {format}: they are read as with {only}")
    if inferred and case_matters(settings):
        notices.append(f"setting {_CASE} = true has no effect on inferred columns: names that differ by case only are one column")
    return notices
