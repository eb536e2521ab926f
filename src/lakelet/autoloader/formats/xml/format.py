"""XML: one record per element named by `rowTag` (FF-18, FF-19)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.autoloader.discovery.files import Files, unreadable
from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader, UnknownFields, mark_of
from lakelet.autoloader.formats.charsets import charset, text_chunks, with_lost_bytes
from lakelet.autoloader.formats.json.inference import unknown_types, widened
from lakelet.autoloader.formats.json.inferred_types import Struct, Type, finish, to_spark
from lakelet.autoloader.formats.json.rows import JsonRow, RowReader, RowRules
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, Obj
from lakelet.autoloader.formats.json.values import DatetimeFormats, supported
from lakelet.autoloader.formats.option_tables import DATE_PATTERNS, LOCALE, encoding, flag, ratio, text
from lakelet.autoloader.formats.text_blocks import open_stream
from lakelet.autoloader.formats.xml.elements import XmlRules, rows_of, tree_of
from lakelet.autoloader.formats.xml.values import Shaper, XmlTyping, xml_scalar
from lakelet.autoloader.schema_growth import grow
from lakelet.autoloader.session_settings import LOCAL_TIMESTAMPS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.source_spec import FilePart, ReaderSpec

_ROWS = 2000  # per chunk
_DECLARED = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_OPENED = re.compile(r"<([^\s/>!?]+)")
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class XmlReader(FormatReader):
    """Rows of whole files, element by element."""

    def __init__(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> None:
        super().__init__(spec, fields, files, ignored)
        self._kinds = {name: kind for name, kind, _ in fields}
        self._rows = RowReader(list(self._kinds.items()), row_rules(spec, ignored), spec.corrupt_column)
        self._shaper = shaper_of(spec)
        self._xml = xml_rules(spec)

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        rows: list[JsonRow] = []
        number = 0
        for element in _row_elements(self.spec, self.files, part.path):
            rows.append(self._row(element, number))
            number += 1
            if len(rows) >= _ROWS:
                yield self._chunk(rows, number - len(rows))
                rows = []
        if rows:
            yield self._chunk(rows, number - len(rows))

    def _row(self, element: str, number: int) -> JsonRow:
        try:
            return self._rows.row(self._shaper.record(tree_of(element, self._xml), self._kinds), element)
        except BrokenText:
            return self._rows.broken(with_lost_bytes(element))
        except UnknownFields as error:
            raise error.at(number + 1) from None

    def _chunk(self, rows: Sequence[JsonRow], before: int) -> Chunk:
        arrays = [pa.array([row.values[at] for row in rows], kind) for at, (_, _, kind) in enumerate(self.fields)]
        if not any(row.broken or row.rescued for row in rows):
            return Chunk(arrays)
        marks = [
            mark_of(at, broken=row.broken, rescued=row.rescued is not None, bad_bytes=row.bad_bytes)
            for at, row in enumerate(rows, before + 1)
        ]
        raw = {at: row.text for at, row in enumerate(rows) if row.broken}
        return Chunk(arrays, [row.rescued for row in rows], marks, raw)


class XmlFormat(Format):
    """`cloudFiles.format` xml."""

    name = "xml"
    reader_class = XmlReader
    folds_names = True
    conditions = "NEW_FIELDS_IN_RECORD_WITH_FILE_PATH"

    def unit(self, options: Mapping[str, Any]) -> str:
        return "record"

    options = (
        text("rowTag"),
        ratio("samplingRatio", 1.0),
        flag("excludeAttribute", False),
        text("attributePrefix", "_"),
        text("valueTag", "_VALUE"),
        encoding(None),
        flag("ignoreSurroundingSpaces", True),
        flag("ignoreNamespace", False),
        text("nullValue"),
        text("inferSchema", notice="cloudFiles.inferColumnTypes says whether types are inferred"),
        text("rowValidationXSDPath", only=()),
        text("singleVariantColumn", only=()),
        *DATE_PATTERNS,
        LOCALE,
    )

    def check(self, options: Mapping[str, Any]) -> str | None:
        if not (options["rowtag"] or "").strip():
            return "format xml needs the option rowTag: the name of the element that is one record"
        if re.search(r"[<>/\s]", options["rowtag"]):
            return f"option rowTag must be the name of an element, without brackets, not {options['rowtag']!r}"
        return None

    def field_at(self, spec: ReaderSpec, files: Files, path: str, before: str) -> str | None:
        tags = _OPENED.findall(before)
        return tags[-1] if tags else None

    def supports(self, data_type: Any) -> bool:
        return supported(data_type)

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        rules, typing = row_rules(spec), typing_of(spec)
        fields = {} if known is None else {f.name: f.dataType for f in known.fields}
        reader = None if known is None else RowReader(list(fields.items()), rules)
        shaper = shaper_of(spec)
        share = spec.format_options["samplingratio"] if known is None else 1.0
        found: Type = Struct()
        wide: Any = known
        for path in paths:
            for node in _sampled_rows(spec, files, path, share):
                part = node if reader is None else reader.unknown_part(shaper.record(node, fields))
                kind = typing.type_of(part)
                if isinstance(kind, Struct):
                    found = typing.merge(found, kind if known is None else unknown_types(kind, known, fold=not spec.case_sensitive))
                if rules.widens and known is not None:
                    wide = widened(wide, part, rules)
        finished = finish(found)
        seen: StructType = to_spark(finished if finished is not None else Struct())
        return seen if wide is known else grow(wide, seen)[0]


def _row_elements(spec: ReaderSpec, files: Files, path: str) -> Iterator[str]:
    """The texts of the rows of a file. Raises FAILED_READ_FILE."""
    codec = spec.format_options["encoding"] or _declared_codec(files, path)
    with open_stream(files, path) as stream:
        try:
            yield from rows_of(text_chunks(stream, codec), xml_rules(spec))
        except OSError as error:
            raise unreadable(files.uri(path), error) from error


def _declared_codec(files: Files, path: str) -> str:
    """The charset that a file itself names, by a byte-order mark or in its first line; UTF-8 else."""
    with open_stream(files, path) as stream:
        try:
            head = stream.read(200)
        except OSError as error:
            raise unreadable(files.uri(path), error) from error
    for bom, codec in _BOMS:
        if head.startswith(bom):
            return codec
    declared = _DECLARED.search(head)
    try:
        return charset(declared[1].decode("ascii")) if declared else "utf-8"
    except ValueError as error:
        raise unreadable(files.uri(path), error, why=f"its encoding {error}") from None


def _sampled_rows(spec: ReaderSpec, files: Files, path: str, share: float) -> Iterator[Obj]:
    """The trees of the rows of a file, or of an even share of them. Broken rows say nothing about the schema."""
    rules = xml_rules(spec)
    for number, element in enumerate(_row_elements(spec, files, path)):
        if number and int((number + 1) * share) == int(number * share):
            continue
        try:
            yield tree_of(element, rules)
        except BrokenText:
            continue


def xml_rules(spec: ReaderSpec) -> XmlRules:
    """What of an element becomes a field."""
    options = spec.format_options
    return XmlRules(
        row_tag=options["rowtag"],
        attribute_prefix=options["attributeprefix"],
        value_tag=options["valuetag"],
        exclude_attributes=options["excludeattribute"],
        trim=options["ignoresurroundingspaces"],
        ignore_namespace=options["ignorenamespace"],
        null_value=options["nullvalue"],
    )


def typing_of(spec: ReaderSpec) -> XmlTyping:
    """How trees get their types."""
    return XmlTyping(
        DatetimeFormats.of(spec.time_zone, spec.format_options),
        spec.format_options["valuetag"],
        typed=spec.infer_types,
        prefers_decimal=spec.widens,
        local=spec.is_on(LOCAL_TIMESTAMPS),
    )


def shaper_of(spec: ReaderSpec) -> Shaper:
    """How trees come into the shape of the columns."""
    return Shaper(xml_rules(spec), case_sensitive=spec.case_sensitive)


def row_rules(spec: ReaderSpec, ignored: frozenset[str] = frozenset()) -> RowRules:
    """Return the row rules of a source."""
    return RowRules.of(spec, ignored, scalars=xml_scalar, source_text=False, text_numbers=True)
