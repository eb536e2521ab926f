"""Reading the parts of files that one task was given, into batches of Arrow rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from lakelet.autoloader.discovery.files import UnreadableFile, files_for
from lakelet.autoloader.discovery.listing import file_changed
from lakelet.autoloader.discovery.partition_folders import folder_array, folder_value, folder_values, source_root
from lakelet.autoloader.formats import Chunk, FormatReader, UnknownFields, format_of
from lakelet.autoloader.formats.option_tables import DROP, FAILFAST
from lakelet.autoloader.formats.undecodable_bytes import explain_bytes
from lakelet.autoloader.metadata_column import LINE_FIELD, METADATA_FIELD, emitted_columns, metadata_arrays
from lakelet.autoloader.schema_growth import UnknownFieldException, UnknownFieldNote
from lakelet.autoloader.source_spec import LEFT_OUT, LINE_INTERNAL, METADATA_INTERNAL, PASSED_OVER, FilePart, ReaderSpec
from lakelet.base.errors import LakeletError

_SMALL_BATCH = 2000  # rows; smaller batches are joined before they go to the JVM
_SHOWN = 500  # characters of a record in a message


class FilesPartition(InputPartition):
    """The work of one task."""

    def __init__(self, parts: Sequence[FilePart], after: int, up_to: int) -> None:
        super().__init__(None)
        self.parts, self.after, self.up_to = tuple(parts), after, up_to


class PartReader:
    """Reads the file parts of one partition into record batches of the source's full schema.

    What is the same for all formats happens here: columns from folder names, the text of the rescued column, broken records by `mode`,
    files that cannot be read, and the hidden columns.
    """

    def __init__(self, spec: ReaderSpec, partition: FilesPartition) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        public = StructType.fromJson(json.loads(spec.schema_json))
        hidden = [METADATA_FIELD, LINE_FIELD] if spec.internal else []
        self._spec, self._partition = spec, partition
        self._fields = list(public.fields)
        self._schema = to_arrow_schema(StructType([*emitted_columns(public).fields, *hidden]), timezone="UTC")
        self._files, _ = files_for(spec.path)
        self._format = format_of(spec.format)
        self._root = source_root(spec.path)
        self._readers: dict[frozenset[str], FormatReader] = {}

    def batches(self) -> Iterator[Any]:
        for part in self._partition.parts:
            yield from self._read_part(part)

    def _read_part(self, part: FilePart) -> Iterator[Any]:
        spec = self._spec
        folders = {} if spec.recursive else folder_values(part.path, self._root)
        from_path = frozenset(name for name in spec.partitions if name in folders or not spec.explicit or spec.partition_columns)
        try:
            for chunk in self._reader_for(from_path).chunks(part):
                batch = self._record_batch(chunk, part, from_path, folders)
                if len(batch):
                    yield batch
            self._refuse_changed(part)
        except UnknownFields as error:
            self._refuse_changed(part)
            raise self._unknown_field_failure(error, part) from None
        except UnreadableFile as error:
            self._refuse_changed(part)
            there = error.damaged or (error.missing and self._files.is_folder(self._root))  # without its folder the disk may be away
            skipped = there and (spec.ignore_missing if error.missing else spec.ignore_corrupt)
            if spec.bad_records and there:
                self._write_bad("bad_files", part, [{"path": self._files.uri(part.path), "reason": error.why or error.what}])
            elif not skipped:
                raise
            if spec.counted and error.damaged:
                yield self._left_out(part)

    def _refuse_changed(self, part: FilePart) -> None:
        """Raise CF_FILE_CHANGED if the part was not read from the version of the file that was planned."""
        changed = file_changed(self._files, part, may_grow=not self._spec.state)
        if changed is not None:
            raise changed

    def _reader_for(self, from_path: frozenset[str]) -> FormatReader:
        found = self._readers.get(from_path)
        if found is None:
            assert self._format is not None
            kinds = zip(self._fields, self._schema, strict=False)
            fields = [(f.name, f.dataType, a.type) for f, a in kinds if f.name != self._spec.rescued_column and f.name not in from_path]
            found = self._readers[from_path] = self._format.reader(self._spec, fields, self._files, from_path)
        return found

    def _record_batch(self, chunk: Chunk, part: FilePart, from_path: frozenset[str], folders: dict[str, str | None]) -> Any:
        data = iter(chunk.columns)
        misfits: list[str] = []
        count = len(chunk.columns[0]) if chunk.columns else len(chunk.rescued or chunk.marks or ())
        arrays: list[Any] = []
        rescued_at = None
        for at, field in enumerate(self._fields):
            if field.name == self._spec.rescued_column:
                rescued_at = at
            elif field.name in from_path:
                text = folders.get(field.name)
                value = None if text is None else folder_value(text, field.dataType, self._spec.time_zone)
                if text is not None and value is None:
                    misfits.append(f"{json.dumps(field.name, ensure_ascii=False)}:{json.dumps(text, ensure_ascii=False)}")
                arrays.append(folder_array(value, self._schema.field(at).type, count))
            else:
                arrays.append(next(data))
        if rescued_at is not None:
            arrays.insert(rescued_at, self._rescued_column(chunk, ",".join(misfits), part, count))
        marks = pa.nulls(count, pa.int64()) if chunk.marks is None else pa.array(chunk.marks, pa.int64())
        if self._spec.internal:
            nulls = None if self._spec.metadata or chunk.raw else marks.is_null()
            arrays += [metadata_arrays(part, self._files.uri(part.path), count, nulls), marks]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return self._without_broken(batch, chunk, part) if chunk.raw else batch

    def _rescued_column(self, chunk: Chunk, of_folders: str, part: FilePart, count: int) -> Any:
        """The rescued column; `of_folders`: members for values of folder names that do not fit their columns."""
        if chunk.rescued is None and not of_folders:
            return pa.nulls(count, pa.string())
        rescued = chunk.rescued if chunk.rescued is not None else [None] * count
        if of_folders:
            rescued = [of_folders if members is None else f"{of_folders},{members}" for members in rescued]
        path = json.dumps(self._files.uri(part.path), ensure_ascii=False)
        suffix = f',"_file_path":{path}}}' if self._spec.file_path_in_rescued else "}"
        return pa.array([None if members is None else "{" + members + suffix for members in rescued], pa.string())

    def _without_broken(self, batch: Any, chunk: Chunk, part: FilePart) -> Any:
        """The batch as the mode for broken records wants it (FS-35)."""
        spec = self._spec
        self._refuse_changed(part)  # a record that was half written is not a broken one
        if spec.bad_records:
            uri = self._files.uri(part.path)
            reason = "MALFORMED_RECORD_IN_PARSING"
            self._write_bad("bad_records", part, [{"path": uri, "record": text, "reason": reason} for text in chunk.raw.values()])
        elif spec.record_mode == FAILFAST:
            at, text = next(iter(chunk.raw.items()))
            line = abs((chunk.marks[at] if chunk.marks is not None else None) or 0) % PASSED_OVER
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            assert self._format is not None
            bytes_ = explain_bytes(spec, self._format, self._files.uri(part.path), line)
            raise LakeletError(
                "FAILED_READ_FILE",
                f"{self._files.uri(part.path)}, {self._unit} {line}: a record is broken, and the mode is {FAILFAST}",
                why=f"MALFORMED_RECORD_IN_PARSING: {shown}" + (f" ({bytes_})" if bytes_ else ""),
                todo="Correct the record, or read with mode PERMISSIVE, which keeps its text.",
            )
        elif spec.record_mode != DROP:
            return batch
        if spec.counted:
            at = batch.schema.get_field_index(LINE_INTERNAL)
            lines = batch.column(at).to_pylist()
            marks = [(line or 0) - LEFT_OUT if row in chunk.raw else line for row, line in enumerate(lines)]
            return batch.set_column(at, LINE_INTERNAL, pa.array(marks, pa.int64()))
        return batch.filter(pa.array([at not in chunk.raw for at in range(len(batch))]))

    def _left_out(self, part: FilePart) -> Any:
        """A row for a file that cannot be read, to be counted and left out."""
        uri = self._files.uri(part.path)
        known = {METADATA_INTERNAL: metadata_arrays(part, uri, 1), LINE_INTERNAL: pa.array([-LEFT_OUT], pa.int64())}
        arrays = [known.get(field.name, pa.nulls(1, field.type)) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _write_bad(self, kind: str, part: FilePart, records: list[dict[str, str]]) -> None:
        """Keep what is left out of the result. Same content, same name: a batch that is read again changes nothing."""
        content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
        modified = datetime.fromtimestamp(part.modified / 1e6, timezone.utc).strftime("%Y%m%dT%H%M%S")
        assert self._spec.bad_records
        files, folder = files_for(self._spec.bad_records)
        name = hashlib.sha256(content).hexdigest()[:32]
        files.create(f"{folder.rstrip('/')}/{modified}/{kind}/part-{name}.json", content)

    @property
    def _unit(self) -> str:
        """What numbers of records count: `line` or `record`."""
        return "line" if self._format is None else self._format.unit(self._spec.format_options)

    def _unknown_field_failure(self, error: UnknownFields, part: FilePart) -> UnknownFieldException:
        uri = self._files.uri(part.path)
        note = UnknownFieldNote(self._spec.state, self._partition.after, self._partition.up_to, uri)
        retry = self._spec.grows
        if retry and self._spec.evolve_here:
            from lakelet.autoloader.standalone import evolve_in_reader

            evolve_in_reader(self._spec, note)
        return UnknownFieldException(error.blob, retry=retry, line=error.line, note=note, kind=error.kind, unit=self._unit)


def joined_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """The same rows in fewer batches: small ones are put together."""
    held: list[Any] = []
    rows = 0
    for batch in batches:
        if len(batch) >= _SMALL_BATCH and not held:
            yield batch
            continue
        held.append(batch)
        rows += len(batch)
        if rows >= _SMALL_BATCH:
            yield pa.concat_batches(held)
            held, rows = [], 0
    if held:
        yield pa.concat_batches(held)
