"""One call of `from_json` with `schemaLocationKey`: its options, and the versions of its schema (JC-1 to JC-5). Runs in the driver.

The schema is that of the JSON objects, without the rescued column; its versions lie in a schema log, as those of files do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.formats.json.file_inference import schema_of
from lakelet.autoloader.formats.json.format import JsonFormat, rules_of
from lakelet.autoloader.formats.options import DROP
from lakelet.autoloader.options import Options, parse_options
from lakelet.autoloader.schema.hints import apply_hints
from lakelet.autoloader.schema.schema_log import SchemaLog
from lakelet.autoloader.schema.source_schema import hints_of
from lakelet.autoloader.spec import ADD, FAIL, NONE, RESCUE, RESCUED_COLUMN, ReaderSpec, SchemaChange, SourceSpec
from lakelet.autoloader.types.growth import grow
from lakelet.base.errors import LakeletError, Location, nearest_names

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.formats.json.inference import Type

KEY = "schemaLocationKey"
MODES = (ADD, RESCUE, FAIL, NONE)
_OURS = ("schemaHints", "schemaEvolutionMode")  # with the prefix they are options of Auto Loader
_OF_READERS = ("rescuedDataColumn", "readerCaseSensitive", "timeZone", "columnNameOfCorruptRecord", "mode")
_OF_FILES = ("multiLine", "lineSep", "encoding", "charset", "singleVariantColumn")


@dataclass(frozen=True)
class JsonCall:
    """What a call says.

    key: of the schema, unique in its query. options: checked. argument: text of the column. notices: about options without effect.
    """

    key: str
    options: Options
    where: Location
    argument: str = ""
    notices: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any], confs: Mapping[str, str], where: Location, argument: str = "") -> JsonCall:
        """Check the options of a call; `confs` are settings of the session, `argument` is the text of the column.

        Raises JSON_COLUMN_INVALID for a key that is missing or empty, and for what `from_json` cannot do; the errors of Auto Loader's
        options for wrong values.
        """
        given = {name.lower(): value for name, value in options.items() if value is not None}
        key = str(given.pop(KEY.lower(), "")).strip()
        if not key:
            raise _invalid(f"from_json without a schema needs the option {KEY}", where, f'For example: {{"{KEY}": "orders"}}')
        mode = str(given.get("schemaevolutionmode", ADD))
        if mode.lower() not in [known.lower() for known in MODES]:
            what = f"schemaEvolutionMode {mode!r} of from_json is unknown; the modes are {', '.join(MODES)}"
            raise _invalid(what, where, nearest=nearest_names(mode, MODES))
        named = {name.lower(): name for name in (*_OF_READERS, *(o.name for o in JsonFormat.options if o.name not in _OF_FILES))}
        plain = {name: str(value) for name, value in given.items() if name in named}
        cloud = {f"cloudFiles.{name}": str(given[name.lower()]) for name in _OURS if name.lower() in given}
        spec = SourceSpec("", {**plain, **cloud, "cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}, where=where)
        try:
            found = parse_options(spec, confs)
            hints = hints_of(found, where)
        except LakeletError as problem:
            problem.what = problem.what.replace("cloudFiles.", "")
            raise
        if found.reader.record_mode == DROP:
            raise _invalid(f"mode {DROP} does not go with from_json, which gives a value for each row", where)
        if any(kind.typeName() == "variant" for kind in hints.values()):
            raise _invalid("a field of from_json cannot be VARIANT here", where, "Hint it as STRING, and use parse_json on it.")
        known = {*named, *(name.lower() for name in _OURS)}
        left = [name for name in options if name.lower() not in known and name.lower() != KEY.lower()]
        return cls(key, found, where, argument, (*found.notices, *(f"option {name} has no effect in from_json" for name in left)))

    @property
    def reader(self) -> ReaderSpec:
        return self.options.reader


@dataclass
class JsonColumn:
    """The schema of a call.

    Args:
        location: folder of its schema log.
        learned: the schema instead of the stored one, where nothing may be written.
        expected: the fields that count while no text was seen.
    """

    call: JsonCall
    location: str
    learned: StructType | None = None
    expected: StructType | None = None
    _stored: StructType | None = field(default=None, init=False)
    _version: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        """Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read."""
        latest = SchemaLog(self.location).latest()
        if latest is not None:
            self._stored, self._version = latest.data, latest.number

    @property
    def pending(self) -> bool:
        """Whether no text was seen yet, so that only the hinted fields are known."""
        return self.learned is None and self._stored is None

    @property
    def guessed(self) -> bool:
        """Whether the query uses fields whose types are guessed, as no text was seen."""
        return self.pending and self.expected is not None

    @property
    def grows(self) -> bool:
        """Whether new fields are taken into the schema: in the mode that adds them, and by the first texts in every mode."""
        return self.pending or self.call.reader.grows

    @property
    def data(self) -> StructType:
        """The fields that are known, hinted types and fields included."""
        from pyspark.sql.types import StructType

        known = next((s for s in (self.learned, self._stored, self.expected) if s is not None), None)
        return apply_hints(known if known is not None else StructType([]), hints_of(self.call.options))

    @property
    def public(self) -> StructType:
        """The type of the struct: the known fields and the rescued column."""
        from pyspark.sql.types import StringType, StructField, StructType

        rescued = self.call.reader.rescued_column
        fields = list(self.data.fields)
        if rescued is None and not fields:
            rescued = RESCUED_COLUMN  # no table has a struct without fields
        if rescued is not None and rescued not in [f.name for f in fields]:
            fields.append(StructField(rescued, StringType(), True))
        return StructType(fields)

    def reader_spec(self) -> ReaderSpec:
        """What workers need: while nothing is known, there is a rescued column whatever the mode."""
        spec = self.call.reader
        return replace(spec, rescued_column=RESCUED_COLUMN) if spec.rescued_column is None and not self.data.fields else spec

    def grown(self, found: Type) -> StructType | None:
        """The fields with those of some texts; None where they bring nothing new."""
        from pyspark.sql.types import StructType

        seen = schema_of(found, rules_of(self.call.reader).typing)
        rescued = (self.call.reader.rescued_column or "").lower()
        seen = StructType([f for f in seen.fields if f.name.lower() != rescued])
        if self.pending:
            return apply_hints(seen, hints_of(self.call.options)) if seen.fields else None
        wider, added, _ = grow(self.data, seen)
        return wider if added else None

    def store(self, found: Type) -> SchemaChange | None:
        """Store the version that some texts need; None where they bring nothing new.

        Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read.
        """
        wider = self.grown(found)
        if wider is None:
            return None
        from pyspark.sql.types import StructType

        _, added, _ = grow(self.data if not self.pending else StructType([]), wider)
        names = [{"name": name, "type": kind} for name, kind in added]
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        source, before = f"from_json:{self.call.key}", self._version
        origin = {"reason": "inferred" if before < 0 else "new fields", "added": names, "at": at, "source": source}
        version = SchemaLog(self.location).append(before + 1, wider, StructType([]), origin)
        self._stored, self._version = version.data, version.number
        return SchemaChange(source, before, version.number, added, (), "")


def changes_since(location: str, since: str) -> list[SchemaChange]:
    """The versions of a schema log that `JsonColumn.store` has stored since a time (ISO 8601, UTC).

    Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read.
    """
    return [
        SchemaChange(
            version.origin["source"],
            version.number - 1,
            version.number,
            tuple((added["name"], added["type"]) for added in version.origin["added"]),
            (),
            "",
        )
        for version in SchemaLog(location).history()
        if version.origin.get("at", "") >= since and {"added", "source"} <= set(version.origin)
    ]


def _invalid(what: str, where: Location, todo: str | None = None, nearest: tuple[str, ...] = ()) -> LakeletError:
    return LakeletError("JSON_COLUMN_INVALID", what, where=where, todo=todo, nearest=nearest)


__all__ = ["KEY", "MODES", "JsonCall", "JsonColumn", "changes_since"]
