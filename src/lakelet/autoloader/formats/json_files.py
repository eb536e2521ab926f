"""JSON: one record per line (spec 1.4, 2.2, 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.files import Files
from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader, UnknownFields
from lakelet.autoloader.formats.json_blocks import BlockReader, Rows, UnknownInLine
from lakelet.autoloader.formats.json_infer import FileInference
from lakelet.autoloader.formats.json_rows import IGNORE, RAISE, RESCUE, Row, RowReader, RowRules, supported
from lakelet.autoloader.formats.option import LOCALE, flag, text
from lakelet.autoloader.lines import count_lines, read_blocks, splittable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.planning import FilePart
    from lakelet.autoloader.spec import ReaderSpec


class JsonFormat(Format):
    """`cloudFiles.format` json."""

    name = "json"
    conditions = "NEW_FIELDS_IN_RECORD_WITH_FILE_PATH"
    options = (
        flag("allowBackslashEscapingAnyCharacter", False, only=False),
        flag("allowComments", False, only=False),
        flag("allowNonNumericNumbers", True, only=True),
        flag("allowNumericLeadingZeros", False, only=False),
        flag("allowSingleQuotes", True, only=True),
        flag("allowUnquotedControlChars", False, only=False),
        flag("allowUnquotedFieldNames", False, only=False),
        text("dateFormat", only=()),
        flag("dropFieldIfAllNull", False, only=False),
        text("encoding", "UTF-8", only=("utf-8", "utf8")),
        text("charset", "UTF-8", only=("utf-8", "utf8")),
        flag("inferTimestamp", False, only=False),
        text("lineSep", only=("\n",)),
        LOCALE,
        flag("multiLine", False, only=False),
        flag("prefersDecimal", False, only=False),
        flag("primitivesAsString", False, only=False),
        text("singleVariantColumn", only=()),
        text("timestampFormat", only=()),
        text("timestampNTZFormat", only=()),
    )

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        return splittable(path)

    def supports(self, data_type: Any) -> bool:
        return supported(data_type)

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        prune = None
        if known is not None:
            prune = RowReader([(f.name, f.dataType) for f in known.fields], rules_of(spec)).unknown_part
        inference = FileInference(files, all_text=not spec.infer_types, known=known, prune=prune)
        for path in paths:
            inference.add_file(path)
        found: StructType = inference.result()
        return found

    def reader(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> FormatReader:
        return JsonLinesReader(spec, fields, files, ignored)


def rules_of(spec: ReaderSpec, ignored: frozenset[str] = frozenset()) -> RowRules:
    """The row rules of a source (spec 3.1: which mode does what with an unknown field)."""
    unknown = RAISE if spec.stops_at_unknown else RESCUE if spec.rescued_column else IGNORE
    return RowRules(
        unknown=unknown,
        rescue=spec.rescued_column is not None,
        case_sensitive=spec.case_sensitive,
        zone=spec.time_zone,
        reserved=(spec.rescued_column,) if spec.rescued_column else (),
        all_text=not spec.infer_types,
        ignored=ignored,
    )


class JsonLinesReader(FormatReader):
    """Blocks of lines, vectorised where they are clean."""

    def __init__(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> None:
        super().__init__(spec, fields, files, ignored)
        self._blocks = BlockReader(self.fields, rules_of(spec, ignored), spec.corrupt_column)

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        before = 0 if part.start == 0 else None  # lines before the part; counted only when it is needed
        passed = 0
        for block in read_blocks(self.files, part.path, part.start, part.length):
            try:
                rows = self._blocks.read(block)
            except UnknownInLine as error:
                raise UnknownFields(error.blob, self._lines_before(part) + passed + error.line + 1) from None
            if rows.columns is not None:
                yield Chunk(rows.columns)
            if rows.rows:
                if before is None:
                    before = self._lines_before(part)
                yield self._of_rows(rows, before + passed)
            passed += block.count(b"\n")

    def _lines_before(self, part: FilePart) -> int:
        return count_lines(self.files, part.path, part.start - 1) + 1 if part.start > 0 else 0

    def _of_rows(self, found: Rows, before: int) -> Chunk:
        rows = [row for _, row in found.rows]
        marks = [_mark(row, before + number + 1) for number, row in found.rows]
        raw = {at: row.text for at, row in enumerate(rows) if row.broken}
        return Chunk(self._blocks.arrays(rows), [row.rescued for row in rows], marks, raw)


def _mark(row: Row, line: int) -> int | None:
    return -line if row.broken else line if row.rescued is not None else None


__all__ = ["JsonFormat", "JsonLinesReader", "rules_of"]
