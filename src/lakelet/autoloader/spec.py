"""The values that pass between the runtime, the driver side of a source and its readers on workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from lakelet.errors import LakeletError, Location

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SPEC_FORMAT = 1
SPEC_OPTION = "lakelet.source"  # the one option a reader sees
RESCUED_COLUMN = "_rescued_data"
METADATA_COLUMN = "_metadata"
METADATA_INTERNAL = "__lakelet_metadata"  # what the reader emits; renamed and hidden by metadata.py
LINE_INTERNAL = "__lakelet_line"  # NULL, line number of a row with rescued values, or minus the line number of a broken line


@dataclass(frozen=True)
class SourceSpec:
    """What a user's reader call said: path, options as written, explicit schema, and where in the user's sources."""

    path: str
    options: Mapping[str, str] = field(repr=False)  # may hold credentials
    schema: StructType | None = None
    where: Location | None = None


@dataclass(frozen=True)
class Pending:
    """What a start of the source would read: new files, their bytes, how many files the listing saw, and what it took."""

    files: int
    bytes: int
    listed: int
    seconds: float


@dataclass(frozen=True)
class SchemaChange:
    """One new version of a schema log (spec 11.16)."""

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
    state: str
    schema_json: str  # data columns, partition columns, rescued column: what the stream returns without internal columns
    mode: str
    rescued_column: str | None
    corrupt_column: str
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
    parallelism: int
    refuse_path_columns: bool = False  # explicit schema: a folder key=value must not name one of its columns, that is not read yet

    def to_json(self) -> str:
        return json.dumps({"format": SPEC_FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> ReaderSpec:
        values: dict[str, Any] = json.loads(text)
        version = values.pop("format")
        if version != SPEC_FORMAT:
            raise LakeletError("FORMAT_NEWER", f"a reader of format {SPEC_FORMAT} was given a source description of format {version}")
        return cls(**values)
