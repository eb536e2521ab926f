"""Two contents of a table compared, row by row and exactly: what was added, removed and changed, by column, with samples. In Spark.

In: two data frames and the columns that identify a row. Out: a `TableComparison`. Nothing is collected but counts and a few samples.

Two values are equal if Spark shows them alike: NaN is NaN, and NULL is NULL. 0.0 and -0.0 differ, as do a NULL struct and a struct of
NULLs. Maps are compared without order. Rows are counted: a row that one side has more often is added or removed as often as it is surplus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.names import quoted
from lakelet.base.redaction import HIDDEN
from lakelet.inspection.json_values import json_rows
from lakelet.inspection.spark_queries import collected
from lakelet.storage.delta.schemas import wider

if TYPE_CHECKING:
    from lakelet.inspection.preview import ColumnChange

SAMPLES = 3
"""Samples of each changed column, and of added and removed rows."""
_SAMPLED_COLUMNS = 8
_FIRST = 50
"""Changed rows among which samples of the columns are looked for first."""
_COUNT, _RANK, _BEFORE, _AFTER = "__lakelet_count", "__lakelet_rank", "__lakelet_before", "__lakelet_after"


@dataclass(frozen=True)
class ChangedValue:
    """A value that differs: the key of its row, and the value before and after, as JSON values."""

    key: Mapping[str, Any]
    before: Any
    after: Any


@dataclass(frozen=True)
class ChangedColumn:
    """A column whose values differ. `changed`: in how many rows; `share`: of the rows that both sides have, between 0 and 1."""

    name: str
    changed: int
    share: float
    samples: tuple[ChangedValue, ...] = ()


@dataclass(frozen=True)
class TableComparison:
    """What distinguishes the content of a table after a change from that before it.

    Attributes:
        schema: columns that one side alone has, or that have another type.
        before, after: numbers of rows.
        added, removed, changed: numbers of rows. A changed row has the same key on both sides, and other values.
        key: the columns that identify a row; without one a changed row is a removed and an added one.
        repeated_keys: how many keys with a difference have several rows on a side. Such rows are paired in the order of their values.
        columns: the columns whose values differ, most first.
        added_rows, removed_rows: samples.
        changed_rows: samples, each before and after: the rows with the smallest keys.
        not_compared: columns whose type changed so that values cannot be compared.
    """

    schema: tuple[ColumnChange, ...]
    before: int
    after: int
    added: int
    removed: int
    changed: int
    key: tuple[str, ...] = ()
    repeated_keys: int = 0
    columns: tuple[ChangedColumn, ...] = ()
    added_rows: tuple[Mapping[str, Any], ...] = ()
    removed_rows: tuple[Mapping[str, Any], ...] = ()
    not_compared: tuple[str, ...] = ()
    changed_rows: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()

    def hiding(self, hides: Callable[[str], bool]) -> TableComparison:
        """The same without the values of the columns that `hides` names."""

        def shown(row: Mapping[str, Any]) -> dict[str, Any]:
            return {name: HIDDEN if hides(name) else value for name, value in row.items()}

        def sample(column: str, one: ChangedValue) -> ChangedValue:
            before, after = (HIDDEN, HIDDEN) if hides(column) else (one.before, one.after)
            return ChangedValue(shown(one.key), before, after)

        columns = tuple(replace(column, samples=tuple(sample(column.name, one) for one in column.samples)) for column in self.columns)
        added, removed = (tuple(map(shown, rows)) for rows in (self.added_rows, self.removed_rows))
        changed = tuple((shown(before), shown(after)) for before, after in self.changed_rows)
        return replace(self, columns=columns, added_rows=added, removed_rows=removed, changed_rows=changed)

    @property
    def equal(self) -> bool:
        """Whether schema and rows are the same."""
        return not (self.schema or self.added or self.removed or self.changed)


@dataclass(frozen=True)
class _ComparedColumn:
    """A column of both sides. `kind`: the type in which its values are compared."""

    before: str
    after: str
    kind: T.DataType


def compared(before: DataFrame, after: DataFrame, key: Sequence[str] = (), ignored: Sequence[str] = ()) -> TableComparison:
    """Compare two contents of a table.

    Args:
        before, after: the rows.
        key: columns that identify a row; none compares rows as a bag.
        ignored: columns whose values and types do not count.

    Raises ValueError for a key column that one side does not have, or whose type changed.
    """
    left = {name.lower() for name in ignored}
    schema = tuple(change for change in schema_changes(before.schema, after.schema) if change.column.lower() not in left)
    columns = [one for one in _columns(before.schema, after.schema) if one.after.lower() not in left]
    positions = [_position(columns, name) for name in key]
    names = {one.after.lower() for one in columns}
    apart = tuple(c.column for c in schema if c.before is not None and c.after is not None and c.column.lower() not in names)
    if not columns:
        counts = before.count(), after.count()
        return TableComparison(schema, *counts, max(0, counts[1] - counts[0]), max(0, counts[0] - counts[1]), 0, not_compared=apart)
    work = _Work(columns, positions, before, after)
    return work.by_key(schema, apart) if key else work.as_bag(schema, apart)


def schema_changes(before: T.StructType, after: T.StructType) -> Iterator[ColumnChange]:
    """Yield the columns that one of two schemas alone has, or that have another type, in the order of the second one."""
    from lakelet.inspection.preview import ColumnChange

    old, new = _by_key(before), _by_key(after)
    for name in [*new, *(name for name in old if name not in new)]:
        types = [None if found is None else found.dataType.simpleString() for found in (old.get(name), new.get(name))]
        if types[0] != types[1]:
            yield ColumnChange((new.get(name) or old[name]).name, *types)


def _by_key(schema: T.StructType) -> dict[str, T.StructField]:
    return {field.name.lower(): field for field in schema.fields}


def _columns(before: T.StructType, after: T.StructType) -> list[_ComparedColumn]:
    """The columns whose values can be compared."""
    old, found = _by_key(before), []
    for new in after.fields:
        known = old.get(new.name.lower())
        if known is None:
            continue
        same = known.dataType.simpleString() == new.dataType.simpleString()
        kind = new.dataType if same else wider(known.dataType, new.dataType) or wider(new.dataType, known.dataType)
        if kind is not None:
            found.append(_ComparedColumn(known.name, new.name, kind))
    return found


def _position(columns: Sequence[_ComparedColumn], name: str) -> int:
    found = next((at for at, one in enumerate(columns) if one.after.lower() == name.lower()), None)
    if found is None:
        raise ValueError(f"{name} is not a column of both tables")
    return found


@dataclass(frozen=True)
class _Work:
    """A comparison of two frames by columns of both. `key`: positions of the columns that identify a row."""

    columns: Sequence[_ComparedColumn]
    key: Sequence[int]
    before: DataFrame
    after: DataFrame
    names: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", [f"c{at}" for at in range(len(self.columns))])

    def as_bag(self, schema: tuple[ColumnChange, ...], apart: tuple[str, ...]) -> TableComparison:
        """Compare rows as they are."""
        with _kept(self._surplus()) as surplus:
            counts = [F.sum(F.when(F.col(_COUNT) * sign > 0, F.col(_COUNT) * sign)) for sign in (1, -1)]
            added, removed = (int(value or 0) for value in surplus.agg(*counts).collect()[0])
            more, less = surplus.where(F.col(_COUNT) > 0), surplus.where(F.col(_COUNT) < 0)
            added_rows = self._rows(more, self.names) if added else ()
            removed_rows = self._rows(less, self.names) if removed else ()
        before = self.before.count()
        after = before + added - removed
        return TableComparison(
            schema, before, after, added, removed, 0, added_rows=added_rows, removed_rows=removed_rows, not_compared=apart
        )

    def by_key(self, schema: tuple[ColumnChange, ...], apart: tuple[str, ...]) -> TableComparison:
        """Compare rows of one key with one another."""
        with _kept(self._pairs()) as pairs:
            both = F.col(_BEFORE).isNotNull() & F.col(_AFTER).isNotNull()
            values = [F.count_if(both & self._differs(at)) for at in range(len(self.columns))]
            counts = [F.count_if(F.col(_BEFORE).isNull()), F.count_if(F.col(_AFTER).isNull()), F.count_if(both)]
            found = pairs.agg(*counts, F.count_if(F.col(_RANK) == 2), *values).collect()[0]
            added, removed, changed, repeated, *by_column = (int(value or 0) for value in found)
            before = self.before.count()
            order = sorted((at for at, count in enumerate(by_column) if count), key=lambda at: (-by_column[at], at))
            first = self._changed_rows(pairs.where(both), _FIRST) if order else []
            samples = self._samples(pairs, first, order[:_SAMPLED_COLUMNS], both)
            matched = max(1, before - removed)
            columns = [ChangedColumn(self.columns[at].after, by_column[at], by_column[at] / matched, samples.get(at, ())) for at in order]
            keys = [self.names[at] for at in self.key]
            added_rows = self._rows(pairs.where(F.col(_BEFORE).isNull()).select(f"{_AFTER}.*"), keys) if added else ()
            removed_rows = self._rows(pairs.where(F.col(_AFTER).isNull()).select(f"{_BEFORE}.*"), keys) if removed else ()
        key = tuple(self.columns[at].after for at in self.key)
        after, every = before + added - removed, range(len(self.columns))
        changed_rows = tuple((self._shown(row[_BEFORE], every), self._shown(row[_AFTER], every)) for row in first[:SAMPLES])
        return TableComparison(
            schema, before, after, added, removed, changed, key, repeated, tuple(columns), added_rows, removed_rows, apart, changed_rows
        )

    def _side(self, frame: DataFrame, sign: int) -> DataFrame:
        values = []
        for name, one in zip(self.names, self.columns, strict=True):
            source = one.before if sign < 0 else one.after
            values.append(comparable(F.col(quoted(source)).cast(one.kind), one.kind).alias(name))
        return frame.select(*values, F.lit(sign).cast("long").alias(_COUNT))

    def _surplus(self) -> DataFrame:
        """Each row that one side has more often, once, with how often: less than 0 before, more than 0 after."""
        both = self._side(self.before, -1).unionAll(self._side(self.after, 1))
        return both.groupBy(*self.names).agg(F.sum(_COUNT).alias(_COUNT)).where(F.col(_COUNT) != 0)

    def _pairs(self) -> DataFrame:
        """Rows of one key that differ, side by side: `_BEFORE` and `_AFTER`, one of them NULL for a row that has no other one."""
        key = [self.names[at] for at in self.key]
        each = self._surplus().withColumn(_RANK, F.explode(F.sequence(F.lit(1), F.abs(F.col(_COUNT)))))
        within = Window.partitionBy(*key, F.col(_COUNT) > 0).orderBy(*self.names, _RANK)
        ranked = each.withColumn(_RANK, F.row_number().over(within))
        row = F.struct(*self.names)
        before = F.first(F.when(F.col(_COUNT) < 0, row), ignorenulls=True).alias(_BEFORE)
        after = F.first(F.when(F.col(_COUNT) > 0, row), ignorenulls=True).alias(_AFTER)
        return ranked.groupBy(*key, _RANK).agg(before, after)

    def _differs(self, at: int) -> Column:
        name = self.names[at]
        return ~F.col(_BEFORE)[name].eqNullSafe(F.col(_AFTER)[name])

    def _samples(
        self, pairs: DataFrame, changed: Sequence[Mapping[str, Any]], columns: Sequence[int], both: Column
    ) -> dict[int, tuple[ChangedValue, ...]]:
        """Samples of some columns: the rows with the smallest keys. `changed`: the first changed rows, which have them for most columns."""
        found = {}
        for at in columns:
            name = self.names[at]
            rows: Sequence[Mapping[str, Any]] = [row for row in changed if row[_BEFORE][name] != row[_AFTER][name]][:SAMPLES]
            rows = rows or self._changed_rows(pairs.where(both & self._differs(at)), SAMPLES)
            kind = self.columns[at].kind
            found[at] = tuple(
                ChangedValue(self._shown(row[_AFTER], self.key), shown(row[_BEFORE][name], kind), shown(row[_AFTER][name], kind))
                for row in rows
            )
        return found

    def _changed_rows(self, pairs: DataFrame, limit: int) -> list[dict[str, Any]]:
        first = pairs.orderBy(*(self.names[at] for at in self.key), _RANK).limit(limit)
        return list(json_rows(collected(first.select(_BEFORE, _AFTER))))

    def _rows(self, rows: DataFrame, order: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        first = rows.orderBy(*order).limit(SAMPLES).select(*self.names)
        return tuple(self._shown(row, range(len(self.columns))) for row in json_rows(collected(first)))

    def _shown(self, row: Mapping[str, Any], columns: Sequence[int]) -> dict[str, Any]:
        return {self.columns[at].after: shown(row[self.names[at]], self.columns[at].kind) for at in columns}


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, computed once inside the block."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


# ------------------------------------------------------------------------------------------------------------------- values


def comparable(value: Column, kind: T.DataType) -> Column:
    """A value in a form that Spark can group and order by, equal for equal values alone. `shown` is its inverse."""
    if isinstance(kind, T.FloatType | T.DoubleType):
        return value.cast("string")
    if isinstance(kind, T.StringType):
        return F.collate(value, "UTF8_BINARY") if "collate" in kind.simpleString() else value
    if isinstance(kind, T.StructType):
        fields = [comparable(value[f.name] if "." not in f.name else value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(value.isNotNull(), F.struct(*fields)) if fields else F.when(value.isNotNull(), F.lit(True))
    if isinstance(kind, T.ArrayType):
        return F.transform(value, lambda one: comparable(one, kind.elementType)) if _is_other(kind.elementType) else value
    if isinstance(kind, T.MapType):
        entries = F.transform(
            F.map_entries(value),
            lambda e: F.struct(comparable(e["key"], kind.keyType).alias("key"), comparable(e["value"], kind.valueType).alias("value")),
        )
        return F.array_sort(entries)
    if isinstance(kind, T.VariantType):
        return F.concat_ws(" ", F.schema_of_variant(value), F.to_json(value))
    if isinstance(kind, T.NullType | T.CalendarIntervalType):
        return value.cast("string")
    return value


def _is_other(kind: T.DataType) -> bool:
    """Whether the comparable form of a type is not the value itself."""
    if isinstance(kind, T.ArrayType):
        return _is_other(kind.elementType)
    others = (T.FloatType, T.DoubleType, T.StructType, T.MapType, T.VariantType, T.NullType, T.CalendarIntervalType)
    return isinstance(kind, others) or "collate" in kind.simpleString()


def shown(value: Any, kind: T.DataType) -> Any:
    """The JSON value of a comparable one."""
    if value is None:
        return None
    if isinstance(kind, T.FloatType | T.DoubleType):
        return value if value in ("NaN", "Infinity", "-Infinity") else float(value)
    if isinstance(kind, T.StructType):
        return {f.name: shown(value.get(f.name), f.dataType) for f in kind.fields} if isinstance(value, Mapping) else {}
    if isinstance(kind, T.ArrayType):
        return [shown(one, kind.elementType) for one in value]
    if isinstance(kind, T.MapType):
        return {str(shown(one["key"], kind.keyType)): shown(one["value"], kind.valueType) for one in value}
    if isinstance(kind, T.VariantType):
        return str(value).partition(" ")[2]
    return value


__all__ = ["SAMPLES", "ChangedColumn", "ChangedValue", "TableComparison", "comparable", "compared", "schema_changes", "shown"]
