"""JSON texts, one per row, as the structs of one schema. Runs on workers: standard library, pyarrow and `pyspark.sql.types` only.

A text is read like a line of a JSON file (`formats.json`), with two differences: each text is one value, whatever it holds, and an array
is the field `value` of its struct (JC-2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lakelet.autoloader.formats.json.blocks import BlockReader, UnknownInLine
from lakelet.autoloader.formats.json.file_inference import RecordInference
from lakelet.autoloader.formats.json.format import rules_of
from lakelet.autoloader.formats.json.inference import Type
from lakelet.autoloader.formats.json.rows import RAISE, Row, RowRules
from lakelet.autoloader.formats.options import FAILFAST
from lakelet.autoloader.spec import ReaderSpec
from lakelet.base.errors import LakeletError

VALUE = "value"
"""Field of an array that is a text's outermost value."""

_SPACE = b" \t\r\n"
_LINE_ENDS = re.compile(rb"[\r\n]")
_SHOWN = 500  # characters of a text in a message
_MARK = "lakelet-json:"


class UnknownJsonFields(Exception):
    """A text has fields that the schema does not know, and the mode does not let them pass. Carries the vendor's phrase and our mark."""

    def __init__(self, blob: str, key: str, *, retry: bool) -> None:
        shown = blob if len(blob) <= _SHOWN else blob[:_SHOWN] + "…"
        super().__init__(
            f"[UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_RECORD] Encountered unknown fields during parsing: {shown}, "
            f"which can be fixed by an automatic retry: {str(retry).lower()}\n"
            f"from_json, schemaLocationKey {key!r}. SQLSTATE: KD003\n{_MARK}{str(retry).lower()}"
        )


def is_to_grow(text: str) -> bool:
    """Whether the text of a failure says that a text had new fields, and that the schema is to take them in."""
    return _MARK + "true" in text


@dataclass
class JsonTexts:
    """Reads texts as structs.

    Args:
        spec: the options of the call.
        key: its `schemaLocationKey`.
        schema: the struct's type, the rescued column in it.
        unlimited: no schema is stored yet, so every field is new, whatever the mode.
    """

    spec: ReaderSpec
    key: str
    schema: Any
    unlimited: bool = False
    _rules: RowRules = field(init=False)
    _blocks: BlockReader = field(init=False)

    def __post_init__(self) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        rules = replace(rules_of(self.spec), cr_ends_line=False)
        self._rules = replace(rules, unknown=RAISE) if self.unlimited else rules
        arrow = to_arrow_schema(self.schema, timezone="UTC")
        self._arrow = list(arrow)
        kinds = [(f.name, f.dataType, a.type) for f, a in zip(self.schema.fields, arrow, strict=True) if f.name != self.spec.rescued_column]
        self._blocks = BlockReader(kinds, self._rules, self.spec.corrupt_column)

    def structs(self, texts: Any) -> Any:
        """One struct per text, an Arrow array; NULL and blank texts are NULL. Raises UnknownJsonFields, and FAILED_READ_FILE by `mode`."""
        lines, others = _lines(texts)
        try:
            found = self._blocks.read(b"\n".join(line for _, line in lines)) if lines else None
            single = self._blocks.convert(others)
        except UnknownInLine as error:
            raise UnknownJsonFields(error.blob, self.key, retry=self.unlimited or self.spec.grows) from None
        rows = [(lines[number][0], row) for number, row in found.rows] if found else []
        read_singly = {at for at, _ in rows}
        clean = [at for at, _ in lines if at not in read_singly] if found and found.columns is not None else []
        rows += single
        self._refuse_broken([row for _, row in rows])
        columns = found.columns if found is not None and clean else None
        return self._array(len(texts), clean, columns, rows)

    def _array(self, count: int, clean: Sequence[int], columns: Sequence[Any] | None, rows: Sequence[tuple[int, Row]]) -> Any:
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

    def _refuse_broken(self, rows: Sequence[Row]) -> None:
        broken = next((row for row in rows if row.broken), None)
        if broken is not None and self.spec.record_mode == FAILFAST:
            shown = broken.text if len(broken.text) <= _SHOWN else broken.text[:_SHOWN] + "…"
            raise LakeletError(
                "FAILED_READ_FILE",
                f"from_json, schemaLocationKey {self.key!r}: a text is not JSON, and the mode is {FAILFAST}",
                why=f"MALFORMED_RECORD_IN_PARSING: {shown}",
                todo="Correct the text, or use mode PERMISSIVE, which keeps it in the rescued column.",
            )

    def unknown(self, texts: Any) -> Type:
        """The types of all fields that the schema does not know; of all fields where none is stored."""
        inference = RecordInference(self._rules, known=None if self.unlimited else self.schema)
        lines, others = _lines(texts)
        inference.add_block(b"\n".join(line for _, line in lines))
        for _, text in others:
            inference.add_line(text)
        return inference.found


def _lines(texts: Any) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
    """(row, text) of the texts without line ends, and of those with; NULL and blank ones are in neither."""
    lines: list[tuple[int, bytes]] = []
    others: list[tuple[int, bytes]] = []
    for at, given in enumerate(texts.cast(pa.binary()).to_pylist()):
        text = given.strip(_SPACE) if given is not None else b""
        if text[:1] == b"[":
            text = b'{"' + VALUE.encode() + b'":' + text + b"}"
        if text:
            (others if _LINE_ENDS.search(text) else lines).append((at, text))
    return lines, others


__all__ = ["VALUE", "JsonTexts", "UnknownJsonFields", "is_to_grow"]
