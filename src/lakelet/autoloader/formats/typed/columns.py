"""Single values of a file in the Arrow type of a column of the same, or of a wider, Spark type; others are reported."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, MapType, StructType

from lakelet.autoloader.formats.base import DataField
from lakelet.autoloader.formats.typed.arrow_arrays import (
    Texts,
    entries_of,
    items_of,
    json_texts,
    list_of,
    map_of,
    plain,
    plain_type,
    quoted,
    struct_of,
)
from lakelet.autoloader.formats.typed.schema import spark_type
from lakelet.autoloader.schema_growth import is_hinted, wider
from lakelet.autoloader.source_spec import RAISE, RESCUE

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_MICROS = 1_000_000
_LIMIT = (1 << 63) - 1


def takes_whole(kind: Any) -> bool:
    """Whether every value of a file type can be taken, by a plain cast."""
    if isinstance(kind, pa.BaseExtensionType):
        return False
    kind = plain_type(kind)
    return not pa.types.is_timestamp(kind) or kind.unit == "us"


def values_as(array: Any, arrow: Any) -> tuple[Any, Any | None]:
    """The values as `arrow`, and a mask of those that are NULL there because they do not fit; None when all fit."""
    if isinstance(array.type, pa.UuidType):
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()]
        return pa.array(texts, pa.string()), None
    array = plain(array)
    if array.type == arrow:
        return array, None
    if pa.types.is_timestamp(array.type):
        return _moment_column(array, arrow)
    if pa.types.is_duration(array.type):
        array = array.cast(pa.int64())
    return array.cast(arrow), None


def _moment_column(array: Any, arrow: Any) -> tuple[Any, Any | None]:
    """Microseconds. Nanoseconds that are not whole microseconds, and what is out of range, do not fit: cutting would change them."""
    micros, misfits = _microseconds(array)
    return micros.view(arrow), misfits


def _microseconds(array: Any) -> tuple[Any, Any | None]:
    numbers, per_second = array.view(pa.int64()), _PER_SECOND[array.type.unit]
    if per_second == _MICROS:
        return numbers, None
    if per_second > _MICROS:
        step = per_second // _MICROS
        micros = pc.divide(numbers, step)
        misfits = pc.not_equal(pc.multiply(micros, step), numbers)
    else:
        step = _MICROS // per_second
        misfits = pc.or_(pc.greater(numbers, _LIMIT // step), pc.less(numbers, -(_LIMIT // step)))
        micros = pc.multiply(pc.if_else(misfits, 0, numbers), step)
    misfits = pc.fill_null(misfits, False)
    if not pc.any(misfits).as_py():
        return micros, None
    return pc.if_else(misfits, pa.scalar(None, pa.int64()), micros), misfits


FileField = tuple[str, Any]
"""(name, Arrow type) of one column of a file."""


@dataclass(frozen=True)
class TypedRules:
    """How a file's columns are compared with the wanted ones."""

    unknown: str = RESCUE
    rescue: bool = True  # a rescued column exists
    case_sensitive: bool = True
    upcast: bool = False  # read narrower types into wider columns where no value changes (FF-21)
    widen: bool = False  # wider types make the schema grow (FS-29)
    hinted: frozenset[str] = frozenset()  # lower-case paths whose types do not grow
    reserved: frozenset[str] = frozenset()  # lower-case names that never become columns
    ignored: frozenset[str] = frozenset()  # lower-case names whose values come from folder names


@dataclass
class ExtraFields:
    """What a file has beyond the wanted columns: paths of new fields, and of fields with wider types."""

    unknown: list[str] = field(default_factory=list)
    wider: list[str] = field(default_factory=list)


class _Node(Protocol):
    def convert(self, array: Any) -> tuple[Any, Texts | None]:
        """Values in the wanted type, and per row the JSON text of what was rescued."""


class RecordFields:
    """The fields of a record: the file's columns, or those of a struct.

    Args:
        file: the file's fields, in order.
        wanted: the fields to fill.
        findings: gets what is unknown or wider.
        path: dotted, of the struct; empty for the record itself.
        closed: inside a map, where nothing makes the schema grow.
    """

    def __init__(
        self,
        file: Sequence[FileField],
        wanted: Sequence[DataField],
        rules: TypedRules,
        findings: ExtraFields,
        *,
        path: str = "",
        closed: bool = False,
    ) -> None:
        self._wanted, self._rules, self._findings = wanted, rules, findings
        self._names = [name for name, _ in file]
        self._nodes: dict[int, _Node] = {}  # by position in the file
        self._rescued: list[int] = []
        self._sources = self._matching_positions(file)
        by_file = {at: number for number, at in self._sources.items()}
        for at, (name, kind) in enumerate(file):
            inner = f"{path}.{name}" if path else name
            if at in by_file:
                _, data_type, arrow = wanted[by_file[at]]
                self._nodes[at] = _node_of(kind, data_type, arrow, rules, findings, inner, closed)
            elif not pa.types.is_null(kind):
                self._note_extra_field(at, name, kind, inner, closed)

    def _matching_positions(self, file: Sequence[FileField]) -> dict[int, int]:
        """Wanted field → position in the file. Of several columns that match, one with the same spelling, else the last."""
        fold = not self._rules.case_sensitive
        found: dict[int, int] = {}
        for number, (name, _, _) in enumerate(self._wanted):
            exact = [at for at, (other, _) in enumerate(file) if other == name]
            close = [at for at, (other, _) in enumerate(file) if other.lower() == name.lower()] if fold and not exact else []
            if exact or close:
                found[number] = (exact or close)[-1]
        return found

    def _note_extra_field(self, at: int, name: str, kind: Any, path: str, closed: bool) -> None:
        """A column that fills none of the wanted ones."""
        rules, lower, top = self._rules, name.lower(), path == name
        if top and lower in rules.ignored:
            return
        variant = lower in {wanted.lower() for wanted, _, _ in self._wanted} or (top and lower in rules.reserved) or not name
        if rules.unknown == RAISE and not variant and not closed and spark_type(kind) is not None:
            self._findings.unknown.append(path)
        elif rules.rescue:
            self._rescued.append(at)

    @property
    def needed(self) -> list[int]:
        """Positions of the file's columns that are read at all."""
        return sorted({*self._nodes, *self._rescued})

    def convert(self, columns: Sequence[Any], count: int) -> tuple[list[Any], Texts | None]:
        """The wanted columns, and per row the rescued members without braces.

        `columns`: one per column of the file; those that are not needed may be None.
        """
        arrays = [pa.nulls(count, arrow) if number not in self._sources else None for number, (_, _, arrow) in enumerate(self._wanted)]
        parts: list[tuple[str, Texts]] = []
        by_file = {at: number for number, at in self._sources.items()}
        for at in self.needed:
            if at in self._nodes:
                arrays[by_file[at]], texts = self._nodes[at].convert(columns[at])
            else:
                texts = json_texts(columns[at])
            if texts is not None and any(text is not None for text in texts):
                parts.append((self._names[at], texts))
        return arrays, _members_of_rows(parts, count) if parts else None


def _members_of_rows(parts: Sequence[tuple[str, Texts]], count: int) -> Texts:
    """Rescued members per row; several values under one name become an array."""
    names = [name for name, _ in parts]
    if len(set(names)) < len(names):
        return [_grouped_members([(name, texts[row]) for name, texts in parts]) for row in range(count)]
    columns = []
    for name, texts in parts:
        prefix = quoted(name) + ":"
        columns.append([None if text is None else prefix + text for text in texts])
    return [",".join([text for text in row if text is not None]) or None for row in zip(*columns, strict=True)]


def _grouped_members(row: list[tuple[str, str | None]]) -> str | None:
    together: dict[str, list[str]] = {}
    for name, text in row:
        if text is not None:
            together.setdefault(name, []).append(text)
    found = (f"{quoted(name)}:{texts[0] if len(texts) == 1 else '[' + ','.join(texts) + ']'}" for name, texts in together.items())
    return ",".join(found) or None


def _node_of(kind: Any, data_type: Any, arrow: Any, rules: TypedRules, findings: ExtraFields, path: str, closed: bool) -> _Node:
    """How values of the file's type `kind` fill a column of `data_type`."""
    if pa.types.is_null(kind):
        return _Mismatch(arrow, rescue=False)
    simple = plain_type(kind)
    if isinstance(data_type, StructType) and pa.types.is_struct(simple):
        wanted = [(f.name, f.dataType, arrow.field(at).type) for at, f in enumerate(data_type.fields)]
        file = [(simple.field(at).name, simple.field(at).type) for at in range(simple.num_fields)]
        return _Struct(RecordFields(file, wanted, rules, findings, path=path, closed=closed), arrow, rules.rescue)
    if isinstance(data_type, ArrayType) and pa.types.is_list(simple):
        element = _node_of(simple.value_type, data_type.elementType, arrow.value_type, rules, findings, f"{path}.element", closed)
        return _same_list(kind, arrow, element) or _List(element, arrow)
    if isinstance(data_type, MapType) and pa.types.is_map(simple):
        key = _node_of(simple.key_type, data_type.keyType, arrow.key_type, rules, findings, f"{path}.key", True)
        value = _node_of(simple.item_type, data_type.valueType, arrow.item_type, rules, findings, f"{path}.value", True)
        return _Map(key, value, arrow) if isinstance(key, _Take) else _Mismatch(arrow, rules.rescue)
    return _leaf_of(kind, data_type, arrow, rules, findings, path, closed)


def _leaf_of(kind: Any, data_type: Any, arrow: Any, rules: TypedRules, findings: ExtraFields, path: str, closed: bool) -> _Node:
    found = spark_type(kind)
    if found is None:
        return _Mismatch(arrow, rules.rescue)
    if found == data_type:
        return _Take(kind, arrow, rules.rescue)
    wide = wider(data_type, found)
    midnight = found.typeName() == "date" and data_type.typeName() == "timestamp_ntz"
    if rules.upcast and (wide == data_type or midnight):
        return _Take(kind, arrow, rules.rescue)
    if rules.widen and wide not in (None, data_type) and not closed and not is_hinted(path.lower(), rules.hinted):
        findings.wider.append(path)
    return _Mismatch(arrow, rules.rescue)


def _same_list(kind: Any, arrow: Any, element: _Node) -> _Node | None:
    """Whole lists as they are, where their elements are."""
    return _Take(kind, arrow, False) if isinstance(element, _Take) and element.whole and pa.types.is_list(kind) else None


@dataclass(frozen=True)
class _Mismatch:
    """No value fits."""

    arrow: Any
    rescue: bool

    def convert(self, array: Any) -> tuple[Any, Texts | None]:
        return pa.nulls(len(array), self.arrow), json_texts(array) if self.rescue else None


@dataclass(frozen=True)
class _Take:
    """Values of the same type, or of one that fits into it; single ones may not (`leaves_of`)."""

    kind: Any
    arrow: Any
    rescue: bool

    @property
    def whole(self) -> bool:
        return takes_whole(self.kind)

    def convert(self, array: Any) -> tuple[Any, Texts | None]:
        values, misfits = values_as(array, self.arrow)
        return values, None if misfits is None or not self.rescue else _only_misfits(json_texts(array), misfits)


def _only_misfits(texts: Texts, misfits: Any) -> Texts:
    return [text if misfit else None for text, misfit in zip(texts, misfits.to_pylist(), strict=True)]


@dataclass(frozen=True)
class _Struct:
    record: RecordFields
    arrow: Any
    rescue: bool

    def convert(self, array: Any) -> tuple[Any, Texts | None]:
        array = plain(array)
        columns, members = self.record.convert(array.flatten(), len(array))
        texts = None if members is None else [None if text is None else "{" + text + "}" for text in members]
        return struct_of(array, columns, self.arrow), texts


@dataclass(frozen=True)
class _List:
    element: _Node
    arrow: Any

    def convert(self, array: Any) -> tuple[Any, Texts | None]:
        array = plain(array)
        offsets, items = items_of(array)
        values, texts = self.element.convert(items)
        whole = list_of(array, offsets, values, self.arrow)
        if texts is None:
            return whole, None
        hit = [any(text is not None for text in texts[offsets[at] : offsets[at + 1]]) for at in range(len(array))]
        return whole, _only_misfits(json_texts(array), pa.array(hit, pa.bool_())) if any(hit) else None


@dataclass(frozen=True)
class _Map:
    key: _Node
    value: _Node
    arrow: Any

    def convert(self, array: Any) -> tuple[Any, Texts | None]:
        array = plain(array)
        offsets, keys, values = entries_of(array)
        new_keys, odd_keys = self.key.convert(keys)
        if odd_keys is not None or new_keys.null_count:  # a key that does not fit cannot be NULL: the maps are rescued whole
            return pa.nulls(len(array), self.arrow), json_texts(array)
        new_values, texts = self.value.convert(values)
        whole = map_of(array, offsets, new_keys, new_values, self.arrow)
        if texts is None:
            return whole, None
        names = json_texts(keys)
        entries = [None if text is None else f"{_quoted_name(names[at])}:{text}" for at, text in enumerate(texts)]
        rows = [",".join(e for e in entries[offsets[at] : offsets[at + 1]] if e is not None) for at in range(len(array))]
        return whole, ["{" + row + "}" if row else None for row in rows]


def _quoted_name(text: str | None) -> str:
    return text if text is not None and text.startswith('"') else quoted(text or "null")
