"""JSON texts, one per row, as the structs of one schema. Runs on workers: standard library, pyarrow and `pyspark.sql.types` only.

A text is read like a line of a JSON file (`formats.json`), with three differences: each text is one value, whatever it holds; an array is
the field `value` of its struct; and a text that goes on after its value is rescued, because nothing counts it (JC-2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lakelet.autoloader.formats.json.blocks import BlockReader, UnknownInLine
from lakelet.autoloader.formats.json.file_inference import RecordInference
from lakelet.autoloader.formats.json.format import rules_of
from lakelet.autoloader.formats.json.inference import Type
from lakelet.autoloader.formats.json.rows import IGNORE, RAISE, RESCUE, JsonRow, RowRules, readable_start
from lakelet.autoloader.formats.json.text import BrokenText, first_value
from lakelet.autoloader.formats.options import FAILFAST
from lakelet.autoloader.spec import ReaderSpec
from lakelet.base.errors import LakeletError

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
        split = _lines(texts)
        if self.guessed:
            return self._structs(len(texts), [], [], self._blocks), self._unknown(*split)
        try:
            return self._structs(len(texts), *split, self._blocks), None
        except UnknownInLine as error:
            if not (self.unlimited or self.spec.grows):
                raise UnknownJsonFields(error.blob, self.key) from None
        return self._structs(len(texts), *split, self._keeping), self._unknown(*split)

    def _structs(self, count: int, lines: Texts, others: Texts, blocks: BlockReader) -> Any:
        found = blocks.read(b"\n".join(line for _, line in lines)) if lines else None
        rows = [(lines[number][0], row) for number, row in found.rows] if found else []
        read_singly = {at for at, _ in rows}
        clean = [at for at, _ in lines if at not in read_singly] if found and found.columns is not None else []
        rows += blocks.convert(others)
        rows = [(at, _with_unread(row)) for at, row in rows]
        self._refuse_broken([row for _, row in rows])
        columns = found.columns if found is not None and clean else None
        return self._array(count, clean, columns, rows)

    def _array(self, count: int, clean: Sequence[int], columns: Sequence[Any] | None, rows: Sequence[tuple[int, JsonRow]]) -> Any:
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

    def _unknown(self, lines: Texts, others: Texts) -> Type:
        """The types of all fields that the schema does not know; of all fields where none is stored."""
        inference = RecordInference(self._rules, known=None if self.unlimited else self.schema)
        inference.add_block(b"\n".join(line for _, line in lines))
        for _, text in others:
            inference.add_line(text)
        return inference.found


def _lines(texts: Any) -> tuple[Texts, Texts]:
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


__all__ = ["VALUE", "JsonTexts", "UnknownJsonFields"]
