"""The events of one micro-batch in one shape, whatever the flow's options: keys, sequence, kind of event, selected columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import quoted
from lakelet.cdc.literals import literal, portable
from lakelet.cdc.mirror import PART
from lakelet.cdc.state import ChangeState
from lakelet.language.model import ChangeSpec, ColumnPath
from lakelet.storage.delta import schemas

SEQ = "__lakelet_seq"
SYSTEM = "__lakelet_system"
DELETED = "__lakelet_deleted"
TRUNCATES = "__lakelet_truncates"
AUTHORED = "__lakelet_authored"
RULE = "__lakelet_rule"
BURIED = "__lakelet_buried"
OUTSIDE = "__lakelet_outside"
_RANGED = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string")
START, END = "__START_AT", "__END_AT"
SYSTEM_START, SYSTEM_END = "__SYSTEM_START_AT", "__SYSTEM_END_AT"
TIMES = (START, END, SYSTEM_START, SYSTEM_END)
OWN_PREFIX = "__lakelet_"
HIDDEN = (SEQ, SYSTEM, DELETED, AUTHORED, RULE, BURIED, PART)
"""Columns of the internal table that readers of the target do not see."""


@dataclass(frozen=True)
class Layout:
    """Which columns a change table has.

    keys: names of the key columns, spelt as in the source. columns: the selected source columns in the order of the source.
    sequence: type of the sequencing value. history: the table is of type 2. system: type of the system sequence of a bitemporal table.
    """

    keys: tuple[str, ...]
    columns: T.StructType
    sequence: T.DataType
    history: bool
    system: T.DataType | None = None

    @property
    def bitemporal(self) -> bool:
        return self.system is not None

    @property
    def times(self) -> tuple[T.StructField, ...]:
        """The columns that say when a row holds; the first one of each pair is part of the row's identity."""
        found = [T.StructField(name, self.sequence) for name in (START, END)] if self.history else []
        if self.system is not None:
            found += [T.StructField(name, self.system) for name in (SYSTEM_START, SYSTEM_END)]
        return tuple(found)

    @property
    def starts(self) -> tuple[str, ...]:
        """The columns that, with the keys, identify a row."""
        return tuple(field.name for field in self.times[::2])

    @property
    def made_with(self) -> list[Any]:
        """Keys in lower case, sorted, SCD type, types of the sequences: what the state of the table depends on."""
        keys, sequence = sorted(key.lower() for key in self.keys), self.sequence.simpleString()
        if self.system is not None:
            return [keys, "bitemporal", sequence, self.system.simpleString()]
        return [keys, 2 if self.history else 1, sequence]

    @property
    def visible(self) -> T.StructType:
        """Columns of the target (CD-3, CD-11, BT-2): source order minus exclusions, then __START_AT, __END_AT."""
        return T.StructType([*self.columns.fields, *self.times])


def col(name: str) -> Column:
    """A top-level column, whatever its name."""
    return F.col(quoted(name))


def same_values(struct: Any) -> Column:
    """A text that two structs of one type share if their values are equal; maps and variants cannot be compared themselves."""
    to_the_microsecond = {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}
    return F.to_json(struct, to_the_microsecond | {"ignoreNullFields": "false"})


def expression(value: Any) -> Column:
    """A column given as SQL text or as a Column."""
    return F.expr(value) if isinstance(value, str) else value


def layout(spec: ChangeSpec, source: DataFrame) -> Layout:
    """The columns of the target of `spec` for a source. Raises CDC_RESERVED_COLUMN, and CDC_UNKNOWN_COLUMN for columns it does not have."""
    names = source.columns
    _refuse_reserved(spec, names)
    keys = tuple(_found(name, names, spec, "key") for name in spec.keys)
    listed = None if spec.column_list is None else {_found(n, names, spec, "column_list").lower() for n in spec.column_list}
    except_list = {_found(n, names, spec, "except_column_list").lower() for n in spec.except_column_list or ()}
    fields = [
        T.StructField(f.name, f.dataType, True, f.metadata)
        for f in source.schema.fields
        if (listed is None or f.name.lower() in listed) and f.name.lower() not in except_list
    ]
    missing = [key for key in keys if key.lower() not in {f.name.lower() for f in fields}]
    if missing:
        raise _invalid(spec, f"the key column {missing[0]!r} is not among the columns of the target", "Select the key columns too.")
    given = F.current_timestamp() if spec.sequence_by is None else expression(spec.sequence_by)  # of periodic snapshots, their time (CD-18)
    sequence = source.select(given).schema.fields[0].dataType
    system = source.select(expression(spec.system_sequence_by)).schema.fields[0].dataType if spec.bitemporal else None
    return Layout(keys, T.StructType(fields), sequence, spec.scd_type == 2, system)


def stored_layout(shape: Layout, schema: T.StructType) -> Layout:
    """The columns of a target whose internal table has the columns of `schema`, those that this flow does not have among them."""
    bookkeeping = {*HIDDEN, *(field.name for field in shape.times)}
    fields = [f for f in schema.fields if f.name not in bookkeeping]
    spelt = {f.name.lower(): f.name for f in fields}
    return replace(shape, keys=tuple(spelt.get(key.lower(), key) for key in shape.keys), columns=T.StructType(fields))


def events(spec: ChangeSpec, source: DataFrame, own: Layout, shape: Layout, state: ChangeState) -> DataFrame:
    """The events in the types of the table, `shape`; a column that the flow does not have (it has those of `own`) is NULL in them.

    Beside the columns of `shape`: SEQ, DELETED and TRUNCATES (never NULL), SYSTEM of bitemporal tables, OUTSIDE (`where` is not met) where
    needed, and where events of the table differ in what they say, AUTHORED and RULE.
    """
    known = {f.name.lower() for f in own.columns.fields}
    selected = source.select(*(col(name) for name in source.columns if name.lower() in known))
    columns = [schemas.fitted_field(selected, f) for f in shape.columns.fields]
    extra = [F.lit(state.number(spec)).alias(RULE)] if state.ruled else []
    if state.named:
        named = F.lit(None) if spec.columns_to_update is None else col(spec.columns_to_update[0])
        extra.append(named.cast("array<string>").alias(AUTHORED))
    if spec.where is not None:
        extra.append((~_condition(spec.where)).alias(OUTSIDE))
    if shape.bitemporal:
        extra.append(expression(spec.system_sequence_by).alias(SYSTEM))
    marks = {SEQ: expression(spec.sequence_by), DELETED: _condition(spec.apply_as_deletes), TRUNCATES: _condition(spec.apply_as_truncates)}
    return source.select(*columns, *(mark.alias(name) for name, mark in marks.items()), *extra)


@dataclass(frozen=True)
class BatchSummary:
    """What one pass over a batch found: events, the highest truncate's sequence (or None), and the least and greatest value of each key.

    Values are in the form that `literals.literal` takes.

    in_order: every event comes after `reached`, what `check_batch` was given. highest: sequence of the batch and of `reached`.
    """

    events: int
    truncate: Any
    ranges: Mapping[str, tuple[Any, Any]]
    in_order: bool = False
    highest: Any = None


def check_batch(spec: ChangeSpec, batch: DataFrame, shape: Layout, reached: Any = None) -> BatchSummary:
    """Refuse a batch before anything is written. Raises CDC_NULL_SEQUENCE, CDC_NULL_KEY (CD-8), CDC_WHERE_NOT_MET (CD-14).

    `reached`: the highest sequence of the events that are stored, in portable form; None where it is not known.
    """
    no_key = reduce(lambda a, b: a | b, [col(key).isNull() for key in shape.keys]) & ~F.col(TRUNCATES)
    ranged = [key for key in shape.keys if shape.columns[key].dataType.simpleString() in _RANGED]
    kinds = [shape.columns[key].dataType for key in ranged]
    own = [F.when(~F.col(TRUNCATES), col(key)) for key in ranged]
    ends = [portable(end(key), kind) for key, kind in zip(own, kinds, strict=True) for end in (F.min, F.max)]
    before = None if reached is None else literal(reached, shape.sequence)
    most = F.max(SEQ) if before is None else F.greatest(F.max(SEQ), before)
    seen = batch.agg(
        F.sum(F.col(SEQ).isNull().cast("long")),
        F.sum((no_key & F.col(SEQ).isNotNull()).cast("long")),
        portable(F.max(F.when(F.col(TRUNCATES), F.col(SEQ))), shape.sequence),
        F.count(F.lit(1)),
        F.lit(0) if spec.where is None else F.sum(F.col(OUTSIDE).cast("long")),
        F.sum(F.col(SYSTEM).isNull().cast("long")) if shape.bitemporal else F.lit(0),
        F.lit(False) if before is None else F.min(SEQ) > before,
        portable(most, shape.sequence),
        *ends,
    ).first()
    assert seen is not None
    if seen[0]:
        raise _bad_rows("CDC_NULL_SEQUENCE", spec, f"{seen[0]} event(s) have no sequencing value", "Filter them out, or give them a value.")
    if seen[5]:
        what = f"{seen[5]} event(s) have no system sequencing value (system_sequence_by)"
        raise _bad_rows("CDC_NULL_SEQUENCE", spec, what, "Filter them out, or give them a value.")
    if seen[1]:
        what = f"{seen[1]} event(s) have NULL in a key column ({', '.join(shape.keys)})"
        raise _bad_rows("CDC_NULL_KEY", spec, what, "Filter them out.")
    if seen[4]:
        what = f"{seen[4]} event(s) do not meet the condition where: {spec.where}"
        raise _bad_rows("CDC_WHERE_NOT_MET", spec, what, "Filter them out before the flow: it promises where, it does not filter by it.")
    ranges = {key: (seen[8 + 2 * i], seen[9 + 2 * i]) for i, key in enumerate(ranged)}
    return BatchSummary(seen[3], seen[2], ranges, bool(seen[6]), seen[7])


def _condition(given: Any) -> Column:
    """Only TRUE counts (CD-5)."""
    return F.lit(False) if given is None else F.coalesce(expression(given).cast("boolean"), F.lit(False))


def _refuse_reserved(spec: ChangeSpec, names: Sequence[str]) -> None:
    """Raise CDC_RESERVED_COLUMN for columns of a source that have a name of the table's own, selected or not (CO-14)."""
    own = {name.lower() for name in (TIMES if spec.bitemporal else (START, END))}
    found = [name for name in names if name.lower() in own or name.lower().startswith(OWN_PREFIX)]
    if not found:
        return
    times = f"; {SYSTEM_START} and {SYSTEM_END} for bitemporal tables" if spec.bitemporal else ""
    raise LakeletError(
        "CDC_RESERVED_COLUMN",
        f"{spec.source or 'the snapshot'} has columns whose names are reserved for change tables: {', '.join(map(repr, found))}",
        why=f"{START}, {END} and names that begin with {OWN_PREFIX} are reserved for every SCD type, selected or not{times}",
        todo=f'Rename them in a view that the flow reads: .withColumnRenamed("{found[0]}", "…").',
    )


def _found(path: ColumnPath, names: Sequence[str], spec: ChangeSpec, what: str) -> str:
    for known in names:
        if known.lower() == path[0].lower() and len(path) == 1:
            return known
    name = ".".join(path)
    raise LakeletError(
        "CDC_UNKNOWN_COLUMN",
        f"{what} {name!r} is not a column of {f'the source {spec.source}' if spec.source else 'the snapshot'}",
        nearest=nearest_names(name, names),
        todo=f"Its columns are: {', '.join(names[:20])}",
    )


def _invalid(spec: ChangeSpec, what: str, todo: str) -> LakeletError:
    return LakeletError("CDC_UNKNOWN_COLUMN", f"changes from {spec.source or 'snapshots'}: {what}", todo=todo)


def _bad_rows(code: str, spec: ChangeSpec, what: str, todo: str) -> LakeletError:
    return LakeletError(code, f"changes from {spec.source or 'snapshots'}: {what}; nothing of this batch was written", todo=todo)
