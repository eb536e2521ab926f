"""Row-wise conversion of JSON records into typed values: the exact meaning of reading (FF-8, FS-31, FS-35).

The vectorised path (`json.blocks`) must give the same rows; it hands every line it is not sure about to this module.

Lakelet's own rules where the spec is silent:
- an array keeps the elements that fit (NULL for the others) and the whole array is rescued. Without a rescued column an array or map with
  an element that does not fit is NULL, as in Spark (FF-39);
- a repeated key: the last one fills the column, the earlier ones are rescued; several rescued values of one key form an array in the
  order of the file.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.formats.base import UnknownFields, WiderType
from lakelet.autoloader.formats.charsets import readable
from lakelet.autoloader.formats.json.inferred_types import TypeRules, is_column, is_number, number_type, to_spark
from lakelet.autoloader.formats.json.syntax_tree import (
    Arr,
    BrokenText,
    Node,
    Num,
    Obj,
    Syntax,
    dump,
    first_value,
    first_with_source,
    has_more,
    parse,
    records_of,
    repeats_key,
    source_text,
)  # fmt: skip
from lakelet.autoloader.formats.json.values import DatetimeFormats, rounded_decimal, scalar
from lakelet.autoloader.schema_growth import is_hinted, wider
from lakelet.autoloader.source_spec import IGNORE, RAISE, RESCUE

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import ReaderSpec

WIDENED = "NEW_FIELDS_AND_WIDENED_TYPES_IN_RECORD_WITH_FILE_PATH"
Converter = Callable[[Node], tuple[Any, str | None]]  # value → (typed value, JSON text of what was rescued)


@dataclass(frozen=True)
class RowRules:
    """How rows are read: what happens to unknown fields, whether a rescued column exists, how names match."""

    unknown: str = RESCUE
    rescue: bool = True
    case_sensitive: bool = True
    datetime_formats: DatetimeFormats = field(default_factory=DatetimeFormats)
    reserved: tuple[str, ...] = ()  # names that never become data columns: the rescued column
    typing: TypeRules = field(default_factory=TypeRules)  # its `all_text`: every data column takes source text (no inferColumnTypes)
    ignored: frozenset[str] = frozenset()  # top-level names whose column comes from the folder name: neither data nor unknown
    syntax: Syntax = field(default_factory=Syntax)
    widens: bool = False  # a number that a wider type of its column would take stops the reading (FS-29)
    hinted: frozenset[str] = frozenset()  # lower-case paths whose types are fixed
    cr_ends_line: bool = True  # a carriage return inside a line ends it too
    scalars: Callable[[Any, DatetimeFormats], Callable[[Node], Any]] = scalar  # type → reading of one scalar value
    source_text: bool = True  # decision 10: objects and arrays in STRING columns keep their source text; else they are written again
    rescue_broken: bool = True  # decision 10: the rescued column of a broken line holds `{"_corrupt_record":"<line>"}`; else NULL
    text_numbers: bool = False  # numbers are texts (XML)
    rounds: bool = False  # a DECIMAL takes digits beyond its scale
    codec: str = "utf-8"  # of the files; their records are lines of `utf8_chunks`

    @classmethod
    def of(cls, spec: ReaderSpec, ignored: frozenset[str], **of_format: Any) -> RowRules:
        """Return the row rules of a source (FS-23, FS-25); `of_format`: what only one format has."""
        return cls(
            unknown=spec.unknown_fields,
            rescue=spec.rescued_column is not None,
            case_sensitive=spec.case_sensitive,
            datetime_formats=DatetimeFormats.of(spec.time_zone, spec.format_options),
            reserved=(spec.rescued_column,) if spec.rescued_column else (),
            ignored=ignored,
            widens=spec.widens and spec.infer_types,
            rounds=spec.rounds_decimals,
            hinted=frozenset(spec.hinted),
            **of_format,
        )


@dataclass(frozen=True)
class JsonRow:
    """One record: values in column order, JSON members of the rescued column without braces, and whether the record was broken.

    Broken is what is not JSON, and, without a rescued column, a record with a value that does not fit; its other values are there (FS-35).
    `more`: text after the first value of the line or document was not read (FF-30). `bad_bytes`: the record is not of the encoding (FF-31).
    """

    values: Sequence[Any]
    rescued: str | None = None
    broken: bool = False
    text: str = ""  # of a record that is broken or has more
    more: bool = False
    bad_bytes: bool = False


class NeedsSource(Exception):
    """A nested value must be kept as its source text, and the tree was built without."""


class RowReader:
    """Converts lines into rows of one schema.

    Args:
        fields: (name, Spark data type) of the data columns, in order.
        rules: see `RowRules`.
        corrupt_column: name of the column that takes the text of broken lines, if it is among `fields`.
    """

    def __init__(self, fields: Sequence[tuple[str, Any]], rules: RowRules, corrupt_column: str | None = None) -> None:
        self._fields, self._rules = list(fields), rules
        self._found_unknown = self._found_wider = False
        names = [name for name, _ in fields]
        self._corrupt = names.index(corrupt_column) if corrupt_column in names else None
        self._record = _Struct(self._fields, self, rules.ignored)

    @property
    def rules(self) -> RowRules:
        return self._rules

    def row(self, record: Obj, text: str) -> JsonRow:
        """The row of one parsed record, `text` being its own. Raises UnknownFields where the rules say so."""
        self._found_unknown = self._found_wider = False
        values, members = self._record.convert(record)
        if self._found_unknown:
            blob = dump(self.unknown_part(record))
            raise WiderType(blob, kind=WIDENED) if self._found_wider else UnknownFields(blob)
        if members is None or self._rules.rescue:
            return JsonRow(values, members)
        if self._corrupt is not None:  # a value that does not fit and that no column takes makes its record broken
            values[self._corrupt] = text
        return JsonRow(values, None, broken=True, text=text)

    def rows(self, line: bytes) -> list[JsonRow]:
        """Rows of one line without its line end; a blank line has none. Raises UnknownFields where the rules say so."""
        if self._rules.cr_ends_line and b"\r" in line:
            line = line.strip(b"\r")  # the text of a broken record has no line end
            if b"\r" in line:
                return [row for part in line.split(b"\r") for row in self.rows(part)]
        text, whole = readable_start(line)
        if whole and text[:1] != "{" and not has_more(text, 0, self._rules.syntax):
            return []
        try:
            return self._rows_of(text, whole=whole)
        except BrokenText:
            return [self.broken(line)]

    def _rows_of(self, text: str, *, whole: bool) -> list[JsonRow]:
        """Rows of the first value of a text; of `whole` False bytes that are no characters follow.

        Raises BrokenText for text behind an array without records: no row would tell of it (FF-30).
        """
        syntax = self._rules.syntax
        try:
            node, end = first_with_source(text, depth=1, syntax=syntax) if self._rules.typing.all_text else first_value(text, syntax)
            rows = [self.row(record, text) for record in records_of(node)]
        except NeedsSource:
            node, end = first_with_source(text, syntax=syntax)
            rows = [self.row(record, text) for record in records_of(node)]
        more = not whole or has_more(text, end, syntax)
        if more and not rows:
            raise BrokenText(f"an empty array, and text behind it at {end}")
        if more and not rows[0].broken:
            rows[0] = replace(rows[0], more=True, text=text)
        return rows

    def broken(self, line: bytes, *, rescue: bool = True) -> JsonRow:
        """The row of a record that is not JSON; `rescue`: its text goes into the rescued column where no other column takes it."""
        text, raw = readable(line, self._rules.codec)
        bad_bytes = raw is not None or "\0" in text
        values: list[Any] = [None] * len(self._fields)
        if self._corrupt is not None:
            values[self._corrupt] = text
            return JsonRow(values, None, broken=True, text=text, bad_bytes=bad_bytes)
        members = f'"_corrupt_record":{_json_text(text)}'
        if raw is not None:
            members += f',"_corrupt_record_base64":"{base64.b64encode(raw).decode()}"'
        keep = rescue and self._rules.rescue and self._rules.rescue_broken
        return JsonRow(values, members if keep else None, broken=True, text=text, bad_bytes=bad_bytes)

    def unknown_part(self, record: Obj) -> Obj:
        """The fields of a record that the schema does not know, and numbers that a wider type would take, with their nesting."""
        return self._record.unknown_part(record)

    def note_unknown(self) -> None:
        self._found_unknown = True

    def note_wider(self) -> None:
        self._found_unknown = self._found_wider = True


class _Struct:
    """An object of known fields: top level or nested."""

    def __init__(
        self, fields: Sequence[tuple[str, Any]], reader: RowReader, ignored: frozenset[str] = frozenset(), prefix: str = ""
    ) -> None:
        self._reader, self._rules, self._prefix = reader, reader.rules, prefix
        self._ignored = {name.lower() for name in ignored}
        # a field that a hinted struct does not have is only rescued where types are not inferred (FS-17)
        self._grows = not (prefix and self._rules.typing.all_text)
        self._width = len(fields)
        self._index: dict[str, tuple[int, Converter]] = {}
        self._children: dict[str, Any] = {}
        self._lower = {name.lower() for name, _ in fields} | {name.lower() for name in self._rules.reserved}
        for at, (name, data_type) in enumerate(fields):
            key = name if self._rules.case_sensitive else name.lower()
            self._index[key] = (at, _converter_of(data_type, reader, f"{prefix}{name}"))
            self._children[key] = (name, data_type)

    def convert(self, record: Obj) -> tuple[list[Any], str | None]:
        """Values in field order, and the rescued members (`"k":v,…`) or None."""
        values: list[Any] = [None] * self._width
        rescued: list[tuple[str, str]] = []
        index, fold = self._index, not self._rules.case_sensitive
        last = self._last_positions(record) if fold or len(dict(record)) < len(record) else None
        for position, (key, value) in enumerate(record):
            hit = index.get(key.lower() if fold else key)
            if hit is None:
                self._take_unknown(key, value, rescued)
                continue
            at, convert = hit
            if last is not None and last[at] != position:
                if self._rules.rescue:
                    rescued.append((key, dump(value)))
                continue
            values[at], part = convert(value)
            if part is not None:
                rescued.append((key, part))
        return values, _members_text(rescued) if rescued else None

    def _last_positions(self, record: Obj) -> dict[int, int]:
        names = ((key if self._rules.case_sensitive else key.lower()) for key, _ in record)
        return {self._index[name][0]: position for position, name in enumerate(names) if name in self._index}

    def _take_unknown(self, key: str, value: Node, rescued: list[tuple[str, str]]) -> None:
        if self._ignored and key.lower() in self._ignored:
            return
        variant = key.lower() in self._lower
        if self._grows and self._rules.unknown == RAISE and not variant and is_column(key, value, self._rules.typing):
            self._reader.note_unknown()
        elif self._rules.rescue:
            rescued.append((key, dump(value)))

    def unknown_part(self, record: Obj) -> Obj:
        """The unknown fields of a record, with the nesting kept."""
        part = Obj()
        for key, value in record:
            name = key if self._rules.case_sensitive else key.lower()
            if name in self._index:
                known, data_type = self._children[name]
                inner = _unknown_inside(value, data_type, self._reader, f"{self._prefix}{known}")
                if inner is not None:
                    part.append((known, inner))
            elif self._grows and key.lower() not in self._lower | self._ignored and is_column(key, value, self._rules.typing):
                part.append((key, value))
        return part


def _members_text(rescued: list[tuple[str, str]]) -> str:
    together: dict[str, list[str]] = {}
    for key, text in rescued:
        together.setdefault(key, []).append(text)
    return ",".join(f"{_json_text(key)}:{texts[0] if len(texts) == 1 else '[' + ','.join(texts) + ']'}" for key, texts in together.items())


def _unknown_inside(value: Node, data_type: Any, reader: RowReader, path: str) -> Node | None:
    kind = data_type.typeName()
    if kind == "struct" and isinstance(value, Obj):
        part = _Struct([(f.name, f.dataType) for f in data_type.fields], reader, prefix=path + ".").unknown_part(value)
        return part or None
    if kind == "array" and isinstance(value, list) and not isinstance(value, Obj):
        inside = (_unknown_inside(item, data_type.elementType, reader, path + ".element") for item in value)
        parts = [part for part in inside if part is not None]
        return Arr(parts) if parts else None
    return value if wider_type(value, data_type, reader.rules, path) is not None else None


def wider_type(value: Node, data_type: Any, rules: RowRules, path: str) -> Any | None:
    """The type that takes a number which `data_type` does not, where the mode widens types (FS-29)."""
    number = isinstance(value, Num) or (rules.text_numbers and isinstance(value, str) and is_number(value))
    if not rules.widens or not number or is_hinted(path, rules.hinted):
        return None
    wide = wider(data_type, to_spark(number_type(value, decimal=True)))
    return None if wide is None or wide == data_type else wide


def _converter_of(data_type: Any, reader: RowReader, path: str) -> Converter:
    """The conversion of one type. Raises KeyError for a type that JSON cannot be read as here."""
    kind = data_type.typeName()
    if kind == "struct":
        return _struct_converter(data_type, reader, path)
    if kind == "array":
        return _array_converter(_converter_of(data_type.elementType, reader, path + ".element"), keeps=reader.rules.rescue)
    if kind == "map":
        # a map holds data: nothing inside makes the schema grow
        inner = RowReader([], replace(reader.rules, unknown=RESCUE if reader.rules.rescue else IGNORE, widens=False))
        value = _converter_of(data_type.valueType, inner, path + ".value")
        return _map_converter(_key_converter(data_type.keyType, inner), value, keeps=reader.rules.rescue)
    if kind == "variant":
        return _variant_text
    if kind in ("string", "char", "varchar"):
        return _source_text if reader.rules.source_text else _compact_text
    return _scalar_converter(data_type, reader, path)


def _scalar_converter(data_type: Any, reader: RowReader, path: str) -> Converter:
    read, rules = reader.rules.scalars(data_type, reader.rules.datetime_formats), reader.rules
    rounded = rounded_decimal(data_type) if rules.rounds and data_type.typeName().startswith("decimal") else None

    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        typed = read(value)
        if typed is None and rounded is not None:
            typed = rounded(value)
        if typed is not None:
            return typed, None
        if rules.widens and wider_type(value, data_type, rules, path) is not None:
            reader.note_wider()
        return None, dump(value)

    return convert


def _variant_text(value: Node) -> tuple[Any, str | None]:
    text = dump(value)
    return (None, text) if repeats_key(value) else (text, None)


def _source_text(value: Node) -> tuple[Any, str | None]:
    if value is None or type(value) is str:
        return value, None
    if isinstance(value, str):
        return str(value), None
    if value is True or value is False:
        return ("true" if value else "false"), None
    raw = source_text(value)
    if raw is None:
        raise NeedsSource
    return raw, None


def _compact_text(value: Node) -> tuple[Any, str | None]:
    return (value if value is None or type(value) is str else dump(value)), None


def _struct_converter(data_type: Any, reader: RowReader, path: str) -> Converter:
    fields = _Struct([(f.name, f.dataType) for f in data_type.fields], reader, prefix=path + ".")

    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        if not isinstance(value, Obj):
            return None, dump(value)
        values, members = fields.convert(value)
        return tuple(values), None if members is None else "{" + members + "}"

    return convert


def _array_converter(element: Converter, *, keeps: bool) -> Converter:
    """`keeps`: the elements that fit stay where another one does not."""

    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        if isinstance(value, Obj) or not isinstance(value, list):
            return None, dump(value)
        pairs = [element(item) for item in value]
        whole = any(part is not None for _, part in pairs)
        if whole and not keeps and any(map(_is_misfit, pairs)):
            return None, dump(value)
        return [typed for typed, _ in pairs], dump(value) if whole else None

    return convert


def _key_converter(data_type: Any, reader: RowReader) -> Callable[[str], Any]:
    """A name in an object as a key of a map; None where it does not fit."""
    if data_type.typeName() in ("string", "char", "varchar"):
        return lambda name: name
    read = reader.rules.scalars(data_type, reader.rules.datetime_formats)

    def convert(name: str) -> Any:
        typed = read(name)
        try:
            return read(parse(name, reader.rules.syntax)) if typed is None else typed
        except BrokenText:
            return None

    return convert


def _is_misfit(converted: tuple[Any, str | None]) -> bool:
    """Whether nothing of a value fits; of a struct, fields may be missing."""
    typed, rescued = converted
    return typed is None and rescued is not None


def _map_converter(to_key: Callable[[str], Any], element: Converter, *, keeps: bool) -> Converter:
    """`keeps`: the entries that fit stay where another one does not, and the earlier ones of several values of one key are rescued."""

    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        if not isinstance(value, Obj):
            return None, dump(value)
        entries: dict[Any, Any] = {}
        rescued: list[tuple[str, str]] = []
        last = {to_key(key): at for at, (key, _) in enumerate(value)}
        for at, (key, item) in enumerate(value):
            name = to_key(key)
            if keeps and (name is None or last[name] != at):
                rescued.append((key, dump(item)))
                continue
            converted = element(item)
            if not keeps and (name is None or _is_misfit(converted)):
                return None, dump(value)
            entries[name], part = converted
            if part is not None:
                rescued.append((key, part))
        return list(entries.items()), "{" + _members_text(rescued) + "}" if rescued else None

    return convert


def readable_start(line: bytes) -> tuple[str, bool]:
    """The text of a line up to the first byte that is not UTF-8, and whether that is all of it."""
    try:
        return line.decode("utf-8"), True
    except UnicodeDecodeError as error:
        return line[: error.start].decode("utf-8"), False


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
