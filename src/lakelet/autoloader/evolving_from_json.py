"""`from_json` columns whose schema evolves: calls with `schemaLocationKey` (JC-1 to JC-5).

`JsonCall` checks the options of a call and `JsonColumn` keeps the versions of its schema, both in the driver. The schema is that of the
objects, without the rescued column; its versions lie in a schema log, as those of files do.

`JsonTexts` reads texts as structs, on workers. A text is read like a line of a JSON file (`formats.json`), with three differences. Each
text is one value, whatever it contains. An array is the field `value` of its struct. A text that goes on after its value is rescued,
because nothing counts it (JC-2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.autoloader.formats.base import UnknownFields
from lakelet.autoloader.formats.json.blocks import BlockReader
from lakelet.autoloader.formats.json.format import JsonFormat, rules_of
from lakelet.autoloader.formats.json.inference import RecordInference, schema_of
from lakelet.autoloader.formats.json.inferred_types import Type
from lakelet.autoloader.formats.json.rows import JsonRow, RowRules, readable_start
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, first_value
from lakelet.autoloader.formats.option_tables import DROP, FAILFAST
from lakelet.autoloader.schema_growth import grow
from lakelet.autoloader.schema_hints import apply_hints
from lakelet.autoloader.source_options import AutoLoaderOptions, parse_options
from lakelet.autoloader.source_schema import SchemaLog, hints_of
from lakelet.autoloader.source_spec import ADD, FAIL, IGNORE, NONE, RAISE, RESCUE, RESCUED_COLUMN, ReaderSpec, SchemaEvolution, SourceSpec
from lakelet.base.errors import LakeletError, Location, nearest_names

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


KEY = "schemaLocationKey"
MODES = (ADD, RESCUE, FAIL, NONE)
_OURS = ("schemaHints", "schemaEvolutionMode")  # with the prefix they are options of Auto Loader
_OF_READERS = ("rescuedDataColumn", "readerCaseSensitive", "timeZone", "columnNameOfCorruptRecord", "mode")
_OF_FILES = ("multiLine", "lineSep", "encoding", "singleVariantColumn")


@dataclass(frozen=True)
class JsonCall:
    """What a call says.

    key: of the schema, unique in its query. options: checked. argument: text of the column. notices: about options without effect.
    """

    key: str
    options: AutoLoaderOptions
    where: Location
    argument: str = ""
    notices: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any], confs: Mapping[str, str], where: Location, argument: str = "") -> JsonCall:
        """Check the options of a call; `confs` are settings of the session, `argument` is the text of the column.

        Raises JSON_COLUMN_INVALID for a key that is missing or empty, and for what `from_json` cannot do; the errors of Auto Loader's
        options for wrong values.
        """
        given = {name.lower(): value for name, value in options.items() if value is not None}
        key = str(given.pop(KEY.lower(), "")).strip()
        if not key:
            raise _invalid_call(f"from_json without a schema needs the option {KEY}", where, f'For example: {{"{KEY}": "orders"}}')
        mode = str(given.get("schemaevolutionmode", ADD))
        if mode.lower() not in [known.lower() for known in MODES]:
            what = f"schemaEvolutionMode {mode!r} of from_json is unknown; the modes are {', '.join(MODES)}"
            raise _invalid_call(what, where, nearest=nearest_names(mode, MODES))
        named = {name.lower(): name for name in (*_OF_READERS, *(o.name for o in JsonFormat.options if o.name not in _OF_FILES))}
        plain = {name: str(value) for name, value in given.items() if name in named}
        cloud = {f"cloudFiles.{name}": str(given[name.lower()]) for name in _OURS if name.lower() in given}
        spec = SourceSpec("", {**plain, **cloud, "cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}, where=where)
        try:
            found = parse_options(spec, confs)
            hints = hints_of(found, where)
        except LakeletError as problem:
            problem.what = problem.what.replace("cloudFiles.", "")
            raise
        if found.reader.record_mode == DROP:
            raise _invalid_call(f"mode {DROP} does not go with from_json, which gives a value for each row", where)
        if any(kind.typeName() == "variant" for kind in hints.values()):
            raise _invalid_call("a field of from_json cannot be VARIANT here", where, "Hint it as STRING, and use parse_json on it.")
        known = {*named, *(name.lower() for name in _OURS)}
        left = [name for name in options if name.lower() not in known and name.lower() != KEY.lower()]
        return cls(key, found, where, argument, (*found.notices, *(f"option {name} has no effect in from_json" for name in left)))

    @property
    def reader(self) -> ReaderSpec:
        return self.options.reader


@dataclass
class JsonColumn:
    """The schema of a call.

    Args:
        location: folder of its schema log.
        learned: the schema instead of the stored one, where nothing may be written.
        expected: the fields that count while no text was seen.
    """

    call: JsonCall
    location: str
    learned: StructType | None = None
    expected: StructType | None = None
    _stored: StructType | None = field(default=None, init=False)
    _version: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        """Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read."""
        latest = SchemaLog(self.location).latest()
        if latest is not None:
            self._stored, self._version = latest.data, latest.number

    @property
    def pending(self) -> bool:
        """Whether no text was seen yet, so that only the hinted fields are known."""
        return self.learned is None and self._stored is None

    @property
    def guessed(self) -> bool:
        """Whether the query uses fields whose types are guessed, as no text was seen."""
        return self.pending and self.expected is not None

    @property
    def grows(self) -> bool:
        """Whether new fields are taken into the schema: in the mode that adds them, and by the first texts in every mode."""
        return self.pending or self.call.reader.grows

    @property
    def data(self) -> StructType:
        """The fields that are known, hinted types and fields included."""
        from pyspark.sql.types import StructType

        known = next((s for s in (self.learned, self._stored, self.expected) if s is not None), None)
        return apply_hints(known if known is not None else StructType([]), hints_of(self.call.options))

    @property
    def public(self) -> StructType:
        """The type of the struct: the known fields and the rescued column."""
        from pyspark.sql.types import StringType, StructField, StructType

        rescued = self.call.reader.rescued_column
        fields = list(self.data.fields)
        if rescued is None and not fields:
            rescued = RESCUED_COLUMN  # no table has a struct without fields
        if rescued is not None and rescued not in [f.name for f in fields]:
            fields.append(StructField(rescued, StringType(), True))
        return StructType(fields)

    def reader_spec(self) -> ReaderSpec:
        """What workers need: while nothing is known, there is a rescued column whatever the mode."""
        spec = self.call.reader
        return replace(spec, rescued_column=RESCUED_COLUMN) if spec.rescued_column is None and not self.data.fields else spec

    def grown(self, found: Type) -> StructType | None:
        """The fields with those of some texts; None where they bring nothing new."""
        from pyspark.sql.types import StructType

        seen = schema_of(found, rules_of(self.call.reader).typing)
        rescued = (self.call.reader.rescued_column or "").lower()
        seen = StructType([f for f in seen.fields if f.name.lower() != rescued])
        if self.pending:
            return apply_hints(seen, hints_of(self.call.options)) if seen.fields else None
        wider, added, _ = grow(self.data, seen)
        return wider if added else None

    def store(self, found: Type) -> SchemaEvolution | None:
        """Store the version that some texts need; None where they bring nothing new.

        Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read.
        """
        wider = self.grown(found)
        if wider is None:
            return None
        from pyspark.sql.types import StructType

        _, added, _ = grow(self.data if not self.pending else StructType([]), wider)
        names = [{"name": name, "type": kind} for name, kind in added]
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        source, before = f"from_json:{self.call.key}", self._version
        origin = {"reason": "inferred" if before < 0 else "new fields", "added": names, "at": at, "source": source}
        version = SchemaLog(self.location).append(before + 1, wider, StructType([]), origin)
        self._stored, self._version = version.data, version.number
        return SchemaEvolution(source, before, version.number, added, (), "")


def changes_since(location: str, since: str) -> list[SchemaEvolution]:
    """The versions of a schema log that `JsonColumn.store` has stored since a time (ISO 8601, UTC).

    Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read.
    """
    return [
        SchemaEvolution(
            version.origin["source"],
            version.number - 1,
            version.number,
            tuple((added["name"], added["type"]) for added in version.origin["added"]),
            (),
            "",
        )
        for version in SchemaLog(location).history()
        if version.origin.get("at", "") >= since and {"added", "source"} <= set(version.origin)
    ]


def _invalid_call(what: str, where: Location, todo: str | None = None, nearest: tuple[str, ...] = ()) -> LakeletError:
    return LakeletError("JSON_COLUMN_INVALID", what, where=where, todo=todo, nearest=nearest)


VALUE = "value"
"""Field of an array that is a text's outermost value."""

_SPACE = b" \t\r\n"
_LINE_ENDS = re.compile(rb"[\r\n]")
_SHOWN = 500  # characters of a text in a message
Texts = list[tuple[int, bytes]]
"""(row, text) of some texts."""


class UnknownJsonFields(Exception):
    """A text has fields that the schema does not know, and the mode is `failOnNewColumns`. Carries the vendor's phrase."""

    def __init__(self, blob: str, key: str) -> None:
        shown = blob if len(blob) <= _SHOWN else blob[:_SHOWN] + "…"
        super().__init__(
            f"[UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_RECORD] Encountered unknown fields during parsing: {shown}, "
            f"which can be fixed by an automatic retry: false\nfrom_json, schemaLocationKey {key!r}. SQLSTATE: KD003"
        )


@dataclass
class JsonTexts:
    """Reads texts as structs, and finds the types of fields that the schema does not know and is to take in.

    Args:
        spec: the options of the call.
        key: its `schemaLocationKey`.
        schema: the struct's type, the rescued column in it.
        unlimited: no schema is stored yet, so every field is new, whatever the mode.
        guessed: the types of the fields are guesses, so each struct is NULL, and the texts are read for their types only.
    """

    spec: ReaderSpec
    key: str
    schema: Any
    unlimited: bool = False
    guessed: bool = False
    _rules: RowRules = field(init=False)

    def __post_init__(self) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        rules = replace(rules_of(self.spec), cr_ends_line=False, codec="utf-8")
        self._rules = replace(rules, unknown=RAISE) if self.unlimited else rules
        arrow = to_arrow_schema(self.schema, timezone="UTC")
        self._arrow = list(arrow)
        kinds = [(f.name, f.dataType, a.type) for f, a in zip(self.schema.fields, arrow, strict=True) if f.name != self.spec.rescued_column]
        keeping = replace(self._rules, unknown=RESCUE if rules.rescue else IGNORE)
        self._blocks = BlockReader(kinds, self._rules, self.spec.corrupt_column)
        self._keeping = BlockReader(kinds, keeping, self.spec.corrupt_column)

    def read(self, texts: Any) -> tuple[Any, Type | None]:
        """One struct per text, an Arrow array, NULL for NULL and blank texts; and the types of new fields, None where there are none.

        Raises UnknownJsonFields, and FAILED_READ_FILE by `mode`.
        """
        if not pa.types.is_string(texts.type) and not pa.types.is_large_string(texts.type):
            what = f"from_json, schemaLocationKey {self.key!r}: its column is {texts.type}, not a text; cast it to STRING"
            raise LakeletError("JSON_COLUMN_INVALID", what)
        split = _texts_by_line_ends(texts)
        if self.guessed:
            return self._structs_of(len(texts), [], [], self._blocks), self._unknown_types(*split)
        try:
            return self._structs_of(len(texts), *split, self._blocks), None
        except UnknownFields as error:
            if not (self.unlimited or self.spec.grows):
                raise UnknownJsonFields(error.blob, self.key) from None
        return self._structs_of(len(texts), *split, self._keeping), self._unknown_types(*split)

    def _structs_of(self, count: int, lines: Texts, others: Texts, blocks: BlockReader) -> Any:
        found = blocks.read(b"\n".join(line for _, line in lines)) if lines else None
        rows = [(lines[number][0], row) for number, row in found.rows] if found else []
        read_singly = {at for at, _ in rows}
        clean = [at for at, _ in lines if at not in read_singly] if found and found.columns is not None else []
        rows += blocks.convert(others)
        rows = [(at, _with_unread(row)) for at, row in rows]
        self._refuse_broken([row for _, row in rows])
        columns = found.columns if found is not None and clean else None
        return self._struct_array(count, clean, columns, rows)

    def _struct_array(self, count: int, clean: Sequence[int], columns: Sequence[Any] | None, rows: Sequence[tuple[int, JsonRow]]) -> Any:
        """The structs: `columns` hold the rows `clean`; the rows that were read singly come with their number."""
        order: list[int | None] = [None] * count
        for position, at in enumerate([*clean, *(at for at, _ in rows)]):
            order[at] = position
        places = pa.array(order, pa.int64())
        single = [row for _, row in rows]
        data = iter(
            pa.concat_arrays([*([columns[i]] if columns is not None else []), of_rows]).take(places)
            for i, of_rows in enumerate(self._blocks.arrays(single))
        )
        rescued = [None] * len(clean) + [None if row.rescued is None else "{" + row.rescued + "}" for row in single]
        children = [
            pa.array(rescued, pa.string()).take(places) if f.name == self.spec.rescued_column else next(data) for f in self.schema.fields
        ]
        return pa.StructArray.from_arrays(children, fields=self._arrow, mask=places.is_null())

    def _refuse_broken(self, rows: Sequence[JsonRow]) -> None:
        broken = next((row for row in rows if row.broken), None)
        if broken is not None and self.spec.record_mode == FAILFAST:
            shown = broken.text if len(broken.text) <= _SHOWN else broken.text[:_SHOWN] + "…"
            raise LakeletError(
                "FAILED_READ_FILE",
                f"from_json, schemaLocationKey {self.key!r}: a text is not JSON, and the mode is {FAILFAST}",
                why=f"MALFORMED_RECORD_IN_PARSING: {shown}",
                todo="Correct the text, or use mode PERMISSIVE, which keeps it in the rescued column.",
            )

    def _unknown_types(self, lines: Texts, others: Texts) -> Type:
        """The types of all fields that the schema does not know; of all fields where none is stored."""
        inference = RecordInference(self._rules, known=None if self.unlimited else self.schema)
        inference.add_block(b"\n".join(line for _, line in lines))
        for _, text in others:
            inference.add_line(text)
        return inference.found


def _texts_by_line_ends(texts: Any) -> tuple[Texts, Texts]:
    """(row, text) of the texts without line ends, and of those with; NULL and blank ones are in neither."""
    lines: Texts = []
    others: Texts = []
    for at, given in enumerate(texts.cast(pa.binary()).to_pylist()):
        text = given.strip(_SPACE) if given is not None else b""
        if text[:1] == b"[" and (size := _array_size(text)):
            text = b'{"' + VALUE.encode() + b'":' + text[:size] + b"}" + text[size:]
        if text:
            (others if _LINE_ENDS.search(text) else lines).append((at, text))
    return lines, others


def _with_unread(row: JsonRow) -> JsonRow:
    if not row.more:
        return row
    unread = f'"_corrupt_record":{json.dumps(row.text, ensure_ascii=False)}'
    return replace(row, rescued=unread if row.rescued is None else f"{row.rescued},{unread}")


def _array_size(text: bytes) -> int:
    """The bytes of the array that a text begins with; 0 where it is none."""
    readable, _ = readable_start(text)
    try:
        _, end = first_value(readable)
    except BrokenText:
        return 0
    return len(readable[:end].encode())
