"""What parquet, avro and orc share: files that carry their own types (FF-20)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from lakelet.autoloader.discovery.files import Files, unreadable
from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader, UnknownFields, WiderType
from lakelet.autoloader.formats.option_tables import Option, word
from lakelet.autoloader.formats.typed.columns import ExtraFields, RecordFields, TypedRules
from lakelet.autoloader.formats.typed.old_calendar import OldDates, rebase_old_dates
from lakelet.autoloader.formats.typed.schema import merged_columns, schema_of, supported

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.source_spec import FilePart, ReaderSpec

STRICT, LOSSLESS = "strict", "lossless"
UPCAST: Option = word("typedUpcast", STRICT, (STRICT, LOSSLESS))
"""Whether a narrower type in a file is read into a wider column outside of mode addNewColumnsWithTypeWidening (FF-21)."""
WIDENED = "NEW_FIELDS_AND_WIDENED_TYPES_IN_FILE"
_DAMAGE = (pa.ArrowException, OSError, EOFError, ValueError, KeyError, IndexError, TypeError, OverflowError)


@dataclass(frozen=True)
class OpenFile:
    """A part of a file that is ready to be read.

    schema: the file's columns as an Arrow schema.
    read: positions of the wanted columns → batches of these columns, each with the number of records before it.
    modes: rebase mode per column, CORRECTED for columns without old dates; see `rebase`.
    """

    schema: Any
    read: Callable[[Sequence[int]], Iterator[tuple[int, Any]]]
    modes: Sequence[str]


def is_empty(stream: BinaryIO) -> bool:
    """Whether a file has no byte; the stream is then at its start again."""
    at_end = not stream.read(1)
    stream.seek(0)
    return at_end


class TypedFormat(Format):
    """A format with types of its own."""

    typed = True
    folds_names = True

    def supports(self, data_type: Any) -> bool:
        return supported(data_type)

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        found = []
        for path in paths:
            try:
                with files.open(path) as stream:
                    schema = None if is_empty(stream) else self.schema(spec, stream)
            except _DAMAGE as error:
                failure = unreadable(files.uri(path), error)
                if spec.ignore_missing if failure.missing else spec.ignore_corrupt:
                    continue
                raise failure from None
            if schema is not None:
                found.append((files.uri(path), schema_of(schema)))
        return merged_columns(spec, found, known)

    @abstractmethod
    def schema(self, spec: ReaderSpec, stream: BinaryIO) -> Any:
        """The Arrow schema of a file that is not empty."""


class TypedReader(FormatReader):
    """Compares each file's schema with the wanted columns, then reads what they have in common as whole arrays."""

    def __init__(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> None:
        super().__init__(spec, fields, files, ignored)
        self._plans: dict[Any, tuple[RecordFields, ExtraFields]] = {}

    @abstractmethod
    def open(self, stream: BinaryIO, part: FilePart) -> OpenFile:
        """A part of a file that is not empty; the stream is closed when all is read. Raises what the format's library raises."""

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        """See `FormatReader.chunks`. A file with unknown fields or wider types ends the query before a row of it is read."""
        uri = self.files.uri(part.path)
        try:
            stream = self.files.open(part.path)
        except _DAMAGE as error:
            raise unreadable(uri, error) from None
        with stream:
            yield from self._chunks_of_stream(stream, part, uri)

    def _chunks_of_stream(self, stream: BinaryIO, part: FilePart, uri: str) -> Iterator[Chunk]:
        try:
            if is_empty(stream):
                return
            file = self.open(stream, part)
        except _DAMAGE as error:
            raise unreadable(uri, error) from None
        record = self._record_fields(file.schema)
        batches = file.read(record.needed)
        while True:
            try:
                found = next(batches, None)
            except _DAMAGE as error:
                raise unreadable(uri, error, why=str(error) if isinstance(error, OldDates) else None) from None
            if found is None:
                return
            before, batch = found
            try:
                yield self._chunk(record, file, before, batch)
            except OldDates as error:
                raise unreadable(uri, error, why=str(error)) from None

    def _record_fields(self, schema: Any) -> RecordFields:
        """The plan for files of this schema. Raises UnknownFields, WiderType."""
        key = tuple((field.name, str(field.type)) for field in schema)
        plan = self._plans.get(key)
        if plan is None:
            findings = ExtraFields()
            record = RecordFields([(field.name, field.type) for field in schema], self.fields, self._typed_rules(), findings)
            plan = self._plans[key] = (record, findings)
        record, findings = plan
        names = f"[{', '.join([*findings.unknown, *findings.wider])}]"
        if findings.wider:
            raise WiderType(names, kind=WIDENED)
        if findings.unknown:
            raise UnknownFields(names, kind="NEW_FIELDS_IN_FILE")
        return record

    def _typed_rules(self) -> TypedRules:
        spec = self.spec
        return TypedRules(
            unknown=spec.unknown_fields,
            rescue=spec.rescued_column is not None,
            case_sensitive=spec.case_sensitive,
            upcast=spec.widens or spec.format_options["typedupcast"] == LOSSLESS,
            widen=spec.widens,
            hinted=frozenset(spec.hinted),
            reserved=frozenset([spec.rescued_column.lower()] if spec.rescued_column else []),
            ignored=frozenset(name.lower() for name in self.ignored),
        )

    def _chunk(self, record: RecordFields, file: OpenFile, before: int, batch: Any) -> Chunk:
        columns: list[Any] = [None] * len(file.schema)
        for at, column in zip(record.needed, batch.columns, strict=True):
            columns[at] = rebase_old_dates(column, file.modes[at])
        arrays, rescued = record.convert(columns, batch.num_rows)
        if rescued is None:
            return Chunk(arrays, None, None if arrays else [None] * batch.num_rows)
        marks = [None if text is None else before + row + 1 for row, text in enumerate(rescued)]
        return Chunk(arrays, rescued, marks)


__all__ = ["LOSSLESS", "STRICT", "UPCAST", "WIDENED", "OpenFile", "TypedFormat", "TypedReader"]
