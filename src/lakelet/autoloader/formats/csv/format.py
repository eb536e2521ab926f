"""CSV: one record per line, or with `multiLine` records of several lines; each file is read by its own header (FS-9).

`RowConverter` reads records one by one, which is the exact meaning of reading (FF-15, FS-31, FS-35); `CsvReader` reads clean blocks by
column. A record with fewer values than its file has columns is malformed. So is, where no rescued column takes them, a record with more
values, empty ones too, or with a text that does not fit. It keeps the values that fit. A record that cannot be split has none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader, WiderType, mark_of
from lakelet.autoloader.formats.csv.blocks import BlockSplitter, Texts
from lakelet.autoloader.formats.csv.file import ColumnMapping, CsvFile, bind
from lakelet.autoloader.formats.csv.inference import CsvInference, TypeFinder
from lakelet.autoloader.formats.csv.records import Record, RecordScanner
from lakelet.autoloader.formats.csv.rules import OPTIONS, CsvRules, problem_of, rules_of
from lakelet.autoloader.formats.csv.values import ColumnReader, reader_of, supported
from lakelet.autoloader.formats.json.inferred_types import to_spark
from lakelet.autoloader.formats.text_blocks import can_split
from lakelet.autoloader.schema_growth import is_hinted, wider
from lakelet.autoloader.source_spec import ReaderSpec

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.source_spec import FilePart


WIDENED = "NEW_FIELDS_AND_WIDENED_TYPES_IN_FILE"


@dataclass(frozen=True)
class CsvRow:
    """One record: values in the order of the fields, members of the rescued column without braces, whether it is malformed, its text."""

    values: Sequence[Any]
    rescued: str | None
    broken: bool
    text: str
    bad_bytes: bool = False


class RowConverter:
    """Converts the records of one file."""

    def __init__(self, fields: Sequence[DataField], spec: ReaderSpec, rules: CsvRules, binding: ColumnMapping) -> None:
        self._binding, self._rules, self._width = binding, rules, len(fields)
        self._rescue = spec.rescued_column is not None
        self._readers = [reader_of(kind, rules) for _, kind, _ in fields]
        names = [name for name, _, _ in fields]
        self._corrupt = names.index(spec.corrupt_column) if spec.corrupt_column in names else None
        self._types = TypeFinder(rules, decimals=True)
        hinted = frozenset(spec.hinted)
        self._widening = {at: (name, kind) for at, (name, kind, _) in enumerate(fields) if spec.widens and not is_hinted(name, hinted)}

    def row(self, record: Record, line: int) -> CsvRow:
        """The row of a record in this line of its file. Raises WiderType where the mode widens the column that a value does not fit."""
        if record.tokens is None:
            return self._row_of_unsplit(record)
        values: list[Any] = [None] * self._width
        members: dict[str, list[str]] = {}
        targets, width = self._binding.targets, len(self._binding.names)
        broken = len(record.tokens) < width or (len(record.tokens) > width and not self._rescue)
        for at, token in enumerate(record.tokens):
            text = self._rules.value(token)
            if text is None:
                continue
            if at >= width:
                members.setdefault(f"_c{at}", []).append(text)
                continue
            target = targets[at]
            if target is not None:
                values[target] = self._readers[target](text)
                if values[target] is None:
                    self._check_wider(target, text, line)
                    members.setdefault(self._binding.names[at], []).append(text)
            elif at in self._binding.rescued:
                members.setdefault(self._binding.names[at], []).append(text)
        return self._finished_row(record, values, members, broken=broken)

    def _finished_row(self, record: Record, values: list[Any], members: dict[str, list[str]], *, broken: bool) -> CsvRow:
        rescued = [f"{quote(name)}:{_json_of_texts(texts)}" for name, texts in members.items()]
        broken = broken or bool(rescued and not self._rescue)
        if record.raw is not None:
            rescued.append(_raw_member(record.raw))
        if broken and self._corrupt is not None:
            values[self._corrupt] = record.text
        return CsvRow(values, ",".join(rescued) if rescued and self._rescue else None, broken, record.text, record.raw is not None)

    def _row_of_unsplit(self, record: Record) -> CsvRow:
        values: list[Any] = [None] * self._width
        members = [] if self._corrupt is not None else [f'"_corrupt_record":{quote(record.text)}']
        if self._corrupt is not None:
            values[self._corrupt] = record.text
        if record.raw is not None:
            members.append(_raw_member(record.raw))
        return CsvRow(values, ",".join(members) if members and self._rescue else None, True, record.text, record.raw is not None)

    def _check_wider(self, target: int, text: str, line: int) -> None:
        field = self._widening.get(target)
        if field is None:
            return
        name, kind = field
        seen = self._types.of(text)
        wide = None if seen is None else wider(kind, to_spark(seen))
        if wide is not None and wide != kind:
            raise WiderType(f"[{name}]", line, WIDENED)


def quote(text: str) -> str:
    """A text as JSON."""
    return json.dumps(text, ensure_ascii=False)


def _json_of_texts(texts: list[str]) -> str:
    return quote(texts[0]) if len(texts) == 1 else "[" + ",".join(map(quote, texts)) + "]"


def _raw_member(raw: bytes) -> str:
    """The bytes of a record that is not UTF-8; its texts have replacement characters."""
    return f'"_corrupt_record_base64":"{base64.b64encode(raw).decode()}"'


_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


class CsvReader(FormatReader):
    """Blocks of records: as columns where they are clean, record by record elsewhere.

    Args:
        vectorised: False reads everything record by record (the reference for tests).
    """

    def __init__(
        self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str], *, vectorised: bool = True
    ) -> None:
        super().__init__(spec, fields, files, ignored)
        self._rules, self._vectorised = rules_of(spec), vectorised
        self._columns = [ColumnReader(kind, arrow, self._rules) for _, kind, arrow in self.fields]
        self._arrow = [arrow for _, _, arrow in self.fields]

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        file = CsvFile(self.files, part.path, self._rules)
        if not file.head.names:
            return
        binding = bind(file.head, [name for name, _, _ in self.fields], self.spec, self._rules, self.ignored)
        wanted = [at for at, target in enumerate(binding.targets) if target is not None or at in binding.rescued]
        splitter = BlockSplitter(self._rules, len(binding.names), wanted, vectorised=self._vectorised)
        converter = RowConverter(self.fields, self.spec, self._rules, binding)
        for piece in file.pieces(splitter, part.start, part.length):
            if piece.split.texts or piece.split.records:
                binding.check(CsvFormat.conditions)
            rows = [self._converted_row(converter, record, piece.lines) for record in piece.split.records]
            for texts in piece.split.texts:
                chunk, odd = self._clean_rows(texts, binding, piece.lines)
                rows += [self._converted_row(converter, record, piece.lines) for record in odd]
                if chunk is not None:
                    yield chunk
            if rows:
                yield self._of_rows(sorted(rows, key=lambda item: item[0]))

    def _converted_row(self, converter: RowConverter, record: Record, before: int) -> tuple[int, CsvRow]:
        line = before + record.line + 1
        return line, converter.row(record, line)

    def _clean_rows(self, texts: Texts, binding: ColumnMapping, before: int) -> tuple[Chunk | None, list[Record]]:
        """The rows whose values all fit, and the records of the other ones."""
        count = texts.count
        arrays: list[Any] = [None] * len(self.fields)
        odd: Any | None = None
        for at, target in enumerate(binding.targets):
            if target is not None:
                arrays[target], bad = self._columns[target].convert(texts.columns[at])
                odd = bad if odd is None else odd if bad is None else pc.or_(odd, bad)
        arrays = [pa.nulls(count, kind) if array is None else array for array, kind in zip(arrays, self._arrow, strict=True)]
        members, unsure = _rescued_columns(texts, binding)
        odd = unsure if odd is None else odd if unsure is None else pc.or_(odd, unsure)
        if odd is None or not pc.any(odd).as_py():
            return self._chunk(texts, arrays, members, None, before), []
        rows = pc.indices_nonzero(pc.fill_null(odd, False)).to_pylist()
        records = texts.records(rows, self._rules)
        if len(rows) == count:
            return None, records
        keep = pc.invert(pc.fill_null(odd, False))
        members = None if members is None else members.filter(keep)
        return self._chunk(texts, [array.filter(keep) for array in arrays], members, keep, before), records

    def _chunk(self, texts: Texts, arrays: list[Any], members: Any | None, keep: Any | None, before: int) -> Chunk:
        if members is None or members.null_count == len(members):
            return Chunk(arrays) if arrays else Chunk(arrays, marks=[None] * (_kept_rows(texts, keep)))
        rows = range(len(members)) if keep is None else pc.indices_nonzero(keep).to_pylist()
        rescued = members.to_pylist()
        marks = [None if one is None else before + texts.line(row, self._rules) + 1 for one, row in zip(rescued, rows, strict=True)]
        return Chunk(arrays, rescued, marks)

    def _of_rows(self, found: list[tuple[int, CsvRow]]) -> Chunk:
        rows = [row for _, row in found]
        columns = [pa.array([row.values[at] for row in rows], kind) for at, kind in enumerate(self._arrow)]
        marks = [mark_of(line, broken=row.broken, rescued=row.rescued is not None, bad_bytes=row.bad_bytes) for line, row in found]
        raw = {at: row.text for at, row in enumerate(rows) if row.broken}
        return Chunk(columns, [row.rescued for row in rows], marks, raw)


class CsvFormat(Format):
    """`cloudFiles.format` csv."""

    name = "csv"
    reader_class = CsvReader
    options = OPTIONS

    def check(self, options: Mapping[str, Any]) -> str | None:
        return problem_of(options)

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        rules = rules_of(spec)
        return not rules.multi_line and can_split(path, rules.encoding, rules.line_separator)

    def field_at(self, spec: ReaderSpec, files: Files, path: str, before: str) -> str | None:
        rules = rules_of(spec)
        at = len(RecordScanner(before, rules.dialect).record()) - 1
        names = CsvFile(files, path, rules).head.names
        return names[at] if 0 <= at < len(names) else None

    def supports(self, data_type: Any) -> bool:
        return supported(data_type)

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        inference = CsvInference(spec, files, known)
        for path in paths:
            inference.add_file(path)
        return inference.result()


def _kept_rows(texts: Texts, keep: Any | None) -> int:
    return texts.count if keep is None else len(pc.indices_nonzero(keep))


def _rescued_columns(texts: Texts, binding: ColumnMapping) -> tuple[Any | None, Any | None]:
    """The members of the rescued column, and the mask of rows for which they have to be made one by one."""
    parts: list[Any] = []
    unsure: Any | None = None
    for at in sorted(binding.rescued):
        column = texts.columns[at]
        if column.null_count == len(column):
            continue
        odd = pc.match_substring_regex(column, _NEEDS_ESCAPE)
        unsure = odd if unsure is None else pc.or_(pc.fill_null(unsure, False), pc.fill_null(odd, False))
        name = quote(binding.names[at]) + ':"'
        parts.append(pc.binary_join_element_wise(name, column, '"', ""))
    if not parts:
        return None, None
    some = reduce(pc.or_, map(pc.is_valid, parts))
    parts[0] = pc.if_else(some, parts[0], "")  # pyarrow leaves out the rows in which everything is NULL
    joined = pc.binary_join_element_wise(*parts, ",", null_handling="skip")
    return pc.if_else(some, joined, pa.scalar(None, pa.string())), pc.fill_null(unsure, False)
