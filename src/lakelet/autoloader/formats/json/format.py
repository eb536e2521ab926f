"""JSON: one record per line, or a whole file as one document (FF-6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader
from lakelet.autoloader.formats.json.blocks import BlockReader
from lakelet.autoloader.formats.json.inference import FileInference
from lakelet.autoloader.formats.json.inferred_types import TypeRules
from lakelet.autoloader.formats.json.readers import JsonDocumentReader, JsonLinesReader, JsonVariantReader
from lakelet.autoloader.formats.json.records import RecordLayout
from lakelet.autoloader.formats.json.rows import RowRules
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, Syntax, first_value, records_of
from lakelet.autoloader.formats.json.values import DatetimeFormats, supported
from lakelet.autoloader.formats.option_tables import DATE_PATTERNS, LOCALE, encoding, flag, line_separator, text, word
from lakelet.autoloader.session_settings import LOCAL_TIMESTAMPS
from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.source_spec import FilePart, ReaderSpec


_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')


class JsonReader(FormatReader):
    """Reads by the layout and the columns that the options ask for."""

    def __init__(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> None:
        super().__init__(spec, fields, files, ignored)
        rules, layout = rules_of(spec, ignored), layout_of(spec)
        variant = spec.format_options["singlevariantcolumn"]
        self._inner: JsonVariantReader | JsonDocumentReader | JsonLinesReader
        if variant and variant not in [name for name, _, _ in self.fields]:
            what = f"singleVariantColumn {variant} is not a column of the given schema"
            raise LakeletError("CF_INCONSISTENT_OPTIONS", what, todo=f"Declare it ({variant} VARIANT), or leave the schema out.")
        if variant:
            self._inner = JsonVariantReader(files, self.fields, rules, layout, variant, spec.corrupt_column)
        elif layout.is_lines:
            self._inner = JsonLinesReader(files, self.fields, rules, layout, spec.corrupt_column)
        else:
            self._inner = JsonDocumentReader(files, BlockReader(self.fields, rules, spec.corrupt_column), layout)

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        return self._inner.chunks(part)


class JsonFormat(Format):
    """`cloudFiles.format` json."""

    name = "json"
    reader_class = JsonReader
    conditions = "NEW_FIELDS_IN_RECORD_WITH_FILE_PATH"

    def unit(self, options: Mapping[str, Any]) -> str:
        return "record" if options["multiline"] else "line"

    options = (
        flag("allowBackslashEscapingAnyCharacter", False),
        flag("allowComments", False),
        flag("allowNonNumericNumbers", True),
        flag("allowNumericLeadingZeros", False),
        flag("allowSingleQuotes", True),
        flag("allowUnquotedControlChars", False),
        flag("allowUnquotedFieldNames", False),
        flag("dropFieldIfAllNull", False),
        encoding(None),
        flag("inferTimestamp", False),
        line_separator(),
        LOCALE,
        flag("multiLine", False),
        flag("prefersDecimal", None),
        flag("primitivesAsString", False),
        text("singleVariantColumn"),
        *DATE_PATTERNS,
        word("nestedText", "source", ("source", "compact")),
        flag("rescueBrokenLines", True),
    )

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        return layout_of(spec).splittable(path)

    def fault_of(self, text: str) -> str:
        try:
            list(records_of(first_value(text)[0]))
        except BrokenText as error:
            return str(error)
        return ""

    def field_at(self, spec: ReaderSpec, files: Files, path: str, before: str) -> str | None:
        keys = _KEY.findall(before)
        return keys[-1] if keys else None

    def supports(self, data_type: Any) -> bool:
        return supported(data_type)

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        inference = FileInference(files, rules_of(spec), layout_of(spec), known=known)
        for path in paths:
            inference.add_file(path)
        found: StructType = inference.result()
        return found


def layout_of(spec: ReaderSpec) -> RecordLayout:
    """How the files of a source are cut into records."""
    options = spec.format_options
    return RecordLayout(options["multiline"], options["encoding"], options["linesep"])


def rules_of(spec: ReaderSpec, ignored: frozenset[str] = frozenset()) -> RowRules:
    """Return the row rules of a source."""
    options = spec.format_options
    datetimes = DatetimeFormats.of(spec.time_zone, options)
    typing = TypeRules(
        all_text=not spec.infer_types,
        primitives_as_string=options["primitivesasstring"],
        prefers_decimal=bool(options["prefersdecimal"]) or spec.widens,
        decimal_texts=bool(options["prefersdecimal"]),
        timestamps=datetimes.timestamps() if options["infertimestamp"] else None,
        local_timestamps=datetimes.local_timestamps() if spec.is_on(LOCAL_TIMESTAMPS) else None,
        drop_all_null=options["dropfieldifallnull"],
    )
    return RowRules.of(
        spec,
        ignored,
        typing=typing,
        syntax=_syntax(options),
        source_text=options["nestedtext"] == "source",
        rescue_broken=options["rescuebrokenlines"],
        codec=options["encoding"] or "utf-8",
        cr_ends_line=options["linesep"] is None and not options["multiline"],
    )


def _syntax(options: Mapping[str, Any]) -> Syntax:
    return Syntax(
        backslash_any=options["allowbackslashescapinganycharacter"],
        comments=options["allowcomments"],
        non_numeric=options["allownonnumericnumbers"],
        leading_zeros=options["allownumericleadingzeros"],
        single_quotes=options["allowsinglequotes"],
        control_chars=options["allowunquotedcontrolchars"],
        bare_names=options["allowunquotedfieldnames"],
    )


__all__ = ["JsonFormat", "JsonReader", "layout_of", "rules_of"]
