"""What a file format has to answer, and the values that pass between a format and the source (docs/decisions/0009-formats.md).

A format infers a schema from files and reads parts of files into chunks of Arrow columns. `part_reader.PartReader` does what is the same
for all formats: partition columns, the text of the rescued column, modes for broken records, `_metadata`, unreadable files.

This package runs on workers: standard library, pyarrow and `pyspark.sql.types` only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.option_tables import Option
from lakelet.autoloader.source_spec import BAD_BYTES, PASSED_OVER, UNRESCUED
from lakelet.base.errors import LakeletError, Location

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.source_spec import FilePart, ReaderSpec

DataField = tuple[str, Any, Any]
"""(name, Spark type, Arrow type) of one data column."""


@dataclass(frozen=True)
class Chunk:
    """Some rows of one file part.

    columns: one Arrow array per field that the reader was made for, in their order and of their Arrow types.
    rescued: per row the members of the rescued column as JSON without braces (`"k":1,"m":2`), None where a row has none. None: no row has.
    marks: per row None or `mark_of` its line (or record). None: every row is clean.
    raw: row index → text of the record, for broken records only.
    """

    columns: Sequence[Any]
    rescued: Sequence[str | None] | None = None
    marks: Sequence[int | None] | None = None
    raw: Mapping[int, str] = field(default_factory=dict)


def mark_of(number: int, *, broken: bool = False, rescued: bool = False, passed_over: bool = False, bad_bytes: bool = False) -> int | None:
    """The mark of a row that is counted, by the 1-based number of its line or record; None for a clean row."""
    if broken:
        return -(number + BAD_BYTES * bad_bytes)
    if not (rescued or passed_over or bad_bytes):
        return None
    return number + UNRESCUED * (not rescued) + PASSED_OVER * passed_over + BAD_BYTES * bad_bytes


class UnknownFields(Exception):
    """A reader met fields that the schema does not know and that the mode does not let pass.

    Args:
        blob: what is unknown: a JSON object for records (`{"c":1}`), a list of names for files with a header (`[c, d]`).
        line: 1-based line or record number, 0 when the whole file has them.
        kind: the sub-condition of UNKNOWN_FIELD_EXCEPTION (AL-6), for example NEW_FIELDS_IN_FILE.
    """

    def __init__(self, blob: str, line: int = 0, kind: str = "NEW_FIELDS_IN_RECORD_WITH_FILE_PATH") -> None:
        super().__init__(blob, line, kind)
        self.blob, self.line, self.kind = blob, line, kind

    def at(self, line: int) -> UnknownFields:
        """The same with another number."""
        return type(self)(self.blob, line, self.kind)


class WiderType(UnknownFields):
    """Like `UnknownFields`, for a value or file type that mode addNewColumnsWithTypeWidening takes in by widening a column (FS-29)."""


class FormatReader(ABC):
    """Reads file parts of one format into columns of one schema; made once per task and set of fields.

    Args:
        spec: everything the source says.
        fields: the data columns that come from the file: without partition columns and without the rescued column.
        ignored: names that are neither data nor unknown: columns whose value comes from the folder name (FS-20).
    """

    def __init__(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> None:
        self.spec, self.fields, self.files, self.ignored = spec, list(fields), files, ignored

    @abstractmethod
    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        """The rows of a part. Raises UnknownFields, and FAILED_READ_FILE (see `unreadable`) for a missing or damaged file."""


class Format:
    """One value of `cloudFiles.format`."""

    name: ClassVar[str]
    reader_class: ClassVar[type[FormatReader]]
    options: ClassVar[Sequence[Option]] = ()
    """The format's own options, without those that every format has."""
    fixed_schema: ClassVar[str | None] = None
    """DDL of the columns that files of this format always have (text, binaryFile): nothing is inferred and nothing evolves."""
    infers: ClassVar[bool] = True
    """Whether a schema can be inferred from files (orc: no)."""
    typed: ClassVar[bool] = False
    """Whether files carry their own types (parquet, avro, orc), so that `inferColumnTypes` makes no difference."""
    folds_names: ClassVar[bool] = False
    """Whether Spark's reader finds a column by a name in another case, unless `spark.sql.caseSensitive` is on."""
    conditions: ClassVar[str] = "NEW_FIELDS_IN_FILE"
    """The sub-condition that names unknown fields of this format."""

    def unit(self, options: Mapping[str, Any]) -> str:
        """What the numbers of records count with these options (of this format, by lower-case name): `line` or `record`."""
        return "record" if self.typed else "line"

    def check(self, options: Mapping[str, Any]) -> str | None:
        """What is wrong with a combination of this format's options; None if nothing is."""
        return None

    def check_schema(self, schema: StructType, where: Location | None) -> None:
        """Raise LakeletError when a declared schema does not go with this format as a whole; types are for `supports`."""
        return

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        """Whether byte ranges of a file can be read on their own."""
        return False

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        """The schema of some files, columns in their documented order; without columns when there was nothing to see.

        `known`: the schema that a batch did not fit (evolution). Columns and fields it has may be left out of the answer, unless the mode
        widens types. Raises CF_FAILED_TO_INFER_SCHEMA, FAILED_READ_FILE.
        """
        raise LakeletError("INTERNAL", f"the columns of {self.name} are not inferred")

    def reader(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> FormatReader:
        """A reader for these columns."""
        return self.reader_class(spec, fields, files, ignored)

    def fault_of(self, text: str) -> str:
        """What is wrong with the text of a broken record, for messages; empty where no more is known."""
        return ""

    def field_at(self, spec: ReaderSpec, files: Files, path: str, before: str) -> str | None:
        """The name of the field in which a record goes on after the text `before`, for messages; None where it is not known."""
        return None

    def supports(self, data_type: Any) -> bool:
        """Whether a declared or hinted column of this Spark type can be read."""
        return True
