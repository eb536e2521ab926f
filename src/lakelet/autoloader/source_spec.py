"""The values that pass between the runtime, the driver side of a source and its readers on workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import Location, unknown_format

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SPEC_FORMAT = 2
ADD, ADD_WIDEN, RESCUE, FAIL, NONE = "addNewColumns", "addNewColumnsWithTypeWidening", "rescue", "failOnNewColumns", "none"
MODES = (ADD, ADD_WIDEN, RESCUE, FAIL, NONE)
RAISE, IGNORE = "raise", "ignore"  # with RESCUE: what a reader does with a field that the schema does not know
SPEC_OPTION = "lakelet.source"  # the one option a reader sees
RESCUED_COLUMN = "_rescued_data"
LOCATION_FILE = "schema_location"  # in a state folder: where the schema log lies, when cloudFiles.schemaLocation says so
METADATA_COLUMN = "_metadata"
METADATA_INTERNAL = "__lakelet_metadata"  # what the reader emits; renamed and hidden by autoloader/metadata_column.py
LINE_INTERNAL = "__lakelet_line"  # NULL, line number of a row with rescued values, or minus that of a broken line, with these flags:
LEFT_OUT = 1 << 60  # subtracted from the number of a broken line that is counted and then left out of the rows
UNRESCUED = 1 << 59  # added to the number of a line that is counted although no value of it was rescued
BAD_BYTES = 1 << 58  # added to the number of a line with bytes that are not of the encoding
PASSED_OVER = 1 << 57  # added to the number of a line with unread text after its first value; numbers are smaller


@dataclass(frozen=True)
class SourceSpec:
    """Arguments of a user's reader call: path, options as written, explicit schema, and the location of the call."""

    path: str
    options: Mapping[str, str] = field(repr=False)  # may hold credentials
    schema: StructType | None = None
    where: Location | None = None
    detect: bool = False  # detect the format from the files (read_files without `format`)
    batch: bool = False  # a batch read: the path may be a single file, no state is kept


def names_pattern(spec: SourceSpec) -> str:
    """The pattern for names of files that the options give; empty for none."""
    return next((value for key, value in sorted(spec.options.items()) if key.lower() in ("pathglobfilter", "filenamepattern")), "")


@dataclass(frozen=True)
class Columns:
    """Columns of a source without the rescued column: `data` from the files, `partitions` from folder names."""

    data: StructType
    partitions: StructType


@dataclass(frozen=True)
class PendingFiles:
    """What the source would read if it was started: new files and their bytes; files and duration of the listing."""

    files: int
    bytes: int
    listed: int
    seconds: float


@dataclass(frozen=True)
class SchemaEvolution:
    """One new version of a schema log (FS-24)."""

    source: str
    version_before: int
    version_after: int
    added: tuple[tuple[str, str], ...]
    widened: tuple[tuple[str, str, str], ...]
    first_file: str


@dataclass(frozen=True)
class ReaderSpec:
    """Everything a reader process knows; travels as JSON in one option. Holds no credentials."""

    path: str
    state: str  # folder of the ledger; empty: a batch read, or nothing may be written
    format: str
    format_options: Mapping[str, Any]  # the format's own options by lower-case name, typed; see autoloader/formats/option_tables.py
    mode: str  # schema evolution mode
    explicit: bool  # the schema was given, not inferred
    rescued_column: str | None
    corrupt_column: str
    record_mode: str  # PERMISSIVE, DROPMALFORMED or FAILFAST
    bad_records: str | None  # folder for broken records and files
    case_sensitive: bool
    infer_types: bool
    time_zone: str
    file_path_in_rescued: bool
    max_files: int | None
    max_bytes: int | None
    name_glob: str | None
    hidden_segments: str
    modified_after: int | None
    modified_before: int | None
    strict_glob: bool
    recursive: bool  # recursiveFileLookup: folder names are never columns
    partition_columns: tuple[str, ...] | None  # the option cloudFiles.partitionColumns; None: not given
    allow_overwrites: bool
    ignore_corrupt: bool
    ignore_missing: bool
    schema_location: str = ""
    newest_first: bool = False  # latestFirst: each batch takes the newest files that no batch has
    schema_json: str = ""  # data columns, partition columns, rescued column: what the stream returns without internal columns
    hints: str = ""  # cloudFiles.schemaHints as written, for a reader that evolves the schema
    hinted: tuple[str, ...] = ()  # lower-case paths of hinted columns and fields: their types are fixed
    partitions: tuple[str, ...] = ()  # columns whose value comes from folder names; of an explicit schema: those that may
    parallelism: int = 1
    internal: bool = True  # emit the columns METADATA_INTERNAL and LINE_INTERNAL too
    metadata: bool = True  # METADATA_INTERNAL is in each row; else only where LINE_INTERNAL is, for the counts that a stream reports
    counted: bool = False  # whoever reads the rows counts those that are left out (`LEFT_OUT`), and then takes them away
    evolve_here: bool = False  # Lakelet does not run the query: the reader that finds new columns writes the next schema version
    committed: int = -1  # batches up to this one are in the table: what is read of them again is not written
    changing: bool = False  # files changed during earlier attempts: read each as a whole, even if it changes
    rounds: str = (
        ""  # address of the update that says when the files are listed (`continuous_rounds.QueryRounds`); empty: whenever Spark asks
    )
    newest: int = 0  # of a batch read only so many files are read, the newest ones; 0: all
    switches: tuple[
        str, ...
    ] = ()  # settings of the session that change how files are read and have no option (`session_settings.switches_of`)
    clean: Mapping[str, Any] | None = None  # `CleanSource`; done here only where `evolve_here` says that there is no driver

    @property
    def stops_at_unknown(self) -> bool:
        """Whether a field that the schema does not know ends the query (FS-23)."""
        return self.mode in (ADD, ADD_WIDEN, FAIL)

    @property
    def unknown_fields(self) -> str:
        """What readers do with a field that the schema does not know: RAISE, RESCUE or IGNORE (FS-23, FS-25)."""
        return RAISE if self.stops_at_unknown else RESCUE if self.rescued_column else IGNORE

    def is_on(self, switch: str) -> bool:
        """Whether a switch is on (`settings`)."""
        return switch in self.switches

    @property
    def grows(self) -> bool:
        """Whether the schema takes such a field in, and the query begins again."""
        return self.mode in (ADD, ADD_WIDEN)

    @property
    def rounds_decimals(self) -> bool:
        """Whether a DECIMAL takes digits beyond its scale, as in Spark: where neither a rescued column nor a wider type takes them."""
        return self.rescued_column is None and not self.widens

    @property
    def widens(self) -> bool:
        return self.mode == ADD_WIDEN

    def to_json(self) -> str:
        return json.dumps({"format_version": SPEC_FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> ReaderSpec:
        values: dict[str, Any] = json.loads(text)
        version = values.pop("format_version", None)
        if version != SPEC_FORMAT:
            raise unknown_format("the description of a source", version, SPEC_FORMAT)
        for name in ("partition_columns", "partitions", "hinted", "switches"):
            values[name] = None if values[name] is None else tuple(values[name])
        return cls(**values)


@dataclass(frozen=True)
class FilePart:
    """A byte range of one file; `length` None means all of it.

    `checked`: the file must still have this size and time when the part was read.
    """

    path: str
    size: int
    modified: int
    start: int = 0
    length: int | None = None
    checked: bool = True
