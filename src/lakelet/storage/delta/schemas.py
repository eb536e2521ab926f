"""Merging and fitting of Spark schemas: what a streaming table's columns become when a flow brings new ones (SC-4, SC-5).

Works on pyspark's type classes only; needs no session.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_INTEGERS: tuple[type[T.DataType], ...] = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


_NESTED = (T.StructType, T.ArrayType, T.MapType)


_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
WIDENING = "delta.enableTypeWidening"
"""Table property with which Delta changes the type of a stored column to a wider one."""


class Incompatible(Exception):
    """Two types of one column that cannot become one. `path` is dotted."""

    def __init__(self, path: str, stored: T.DataType, incoming: T.DataType) -> None:
        super().__init__(f"column {path} is {stored.simpleString()} in the table and {incoming.simpleString()} in the query")
        self.path, self.stored, self.incoming = path, stored, incoming


class PartitioningMismatch(Incompatible):
    """A table is declared with other partition columns than its files have."""

    def __init__(self, stored: Sequence[str], wanted: Sequence[str]) -> None:
        before, now = (", ".join(columns) or "no column" for columns in (stored, wanted))
        Exception.__init__(self, f"its files are partitioned by {before}, and it is declared with {now}")


def widens(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties lets its columns get wider types."""
    return any(key.lower() == WIDENING.lower() and value.lower() == "true" for key, value in properties.items())


def wider(known: T.DataType, seen: T.DataType) -> T.DataType | None:
    """The type that takes the values of a column of type `known` and values of type `seen`, where Delta can change the column to it.

    `known` itself where it takes them already, None where no widening is allowed (FS-29).
    """
    old, new = known.typeName(), seen.typeName()
    if known == seen:
        return known
    if isinstance(known, T.DecimalType) or isinstance(seen, T.DecimalType):
        left, right = _as_decimal(known), _as_decimal(seen)
        if left is None or right is None:
            return None
        scale = max(left[1], right[1])
        whole = max(left[0] - left[1], right[0] - right[1])
        return T.DecimalType(whole + scale, scale) if whole + scale <= 38 else None
    if new in _WIDER.get(old, ()):
        return seen
    return known if old in _WIDER.get(new, ()) and old != "timestamp_ntz" else None


def _as_decimal(kind: T.DataType) -> tuple[int, int] | None:
    """(precision, scale) of a decimal, or of an integer type seen as one."""
    if isinstance(kind, T.DecimalType):
        return kind.precision, kind.scale
    digits = _DIGITS.get(kind.typeName())
    return None if digits is None else (digits, 0)


def merge(stored: T.StructType, incoming: T.StructType, path: str = "", *, widen: bool = False, either: bool = False) -> T.StructType:
    """`stored` with the columns and nested fields that only `incoming` has, appended; order and spelling of `stored` stay.

    widen: stored types become wider where values of `incoming` need it (property delta.enableTypeWidening).
    either: nothing is stored yet, so a type may also give way to that of `incoming`; the order of the two decides about nothing but order.
    Raises Incompatible where a type of `incoming` does not fit into the stored one without loss.
    """
    by_name = {f.name.lower(): f for f in incoming.fields}
    fields = []
    for field in stored.fields:
        other = by_name.pop(field.name.lower(), None)
        data_type = field.dataType if other is None else _merge_type(field.dataType, other.dataType, _join(path, field.name), widen, either)
        fields.append(T.StructField(field.name, data_type, field.nullable, field.metadata))
    added = [f for f in incoming.fields if f.name.lower() in by_name]
    new = (T.StructField(f.name, f.dataType if either else storable(f.dataType), True, f.metadata) for f in added)
    return T.StructType([*fields, *new])


def comparable(kind: T.DataType) -> bool:
    """Whether Spark compares values of a type, and finds those equal only that are, but for 0.0 and -0.0 (`has_floats`)."""
    if isinstance(kind, T.StructType):
        return all(comparable(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return comparable(kind.elementType)
    if isinstance(kind, T.StringType):
        return bool(kind.isUTF8BinaryCollation())
    return isinstance(kind, T.AtomicType) and not isinstance(kind, T.VariantType)


def has_floats(kind: T.DataType) -> bool:
    """Whether a type has floating-point numbers in it."""
    if isinstance(kind, T.StructType):
        return any(has_floats(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return has_floats(kind.elementType)
    return isinstance(kind, T.FloatType | T.DoubleType)


def common(found: Sequence[T.StructType], *, widen: bool) -> T.StructType:
    """The columns of a new table that takes what several flows return, whatever their order. Raises Incompatible."""
    merged = functools.reduce(lambda known, seen: merge(known, seen, widen=widen, either=True), found)
    result: T.StructType = storable(merged)
    return result


def _merge_type(stored: T.DataType, incoming: T.DataType, path: str, widen: bool, either: bool) -> T.DataType:
    if isinstance(stored, T.StructType) and isinstance(incoming, T.StructType):
        return merge(stored, incoming, path, widen=widen, either=either)
    if isinstance(stored, T.ArrayType) and isinstance(incoming, T.ArrayType):
        return T.ArrayType(_merge_type(stored.elementType, incoming.elementType, f"{path}.element", widen, either), True)
    if isinstance(stored, T.MapType) and isinstance(incoming, T.MapType):
        key = _merge_type(stored.keyType, incoming.keyType, f"{path}.key", widen, either)
        return T.MapType(key, _merge_type(stored.valueType, incoming.valueType, f"{path}.value", widen, either), True)
    if _fits(stored, incoming):
        return stored
    if either and _fits(incoming, stored):
        return incoming
    wide = wider(stored, incoming) if widen else None
    if wide is None:
        raise Incompatible(path, stored, incoming)
    return wide


def _fits(stored: T.DataType, incoming: T.DataType) -> bool:
    """Whether every value of `incoming` can be stored as `stored` unchanged."""
    if stored == incoming or isinstance(incoming, T.NullType):
        return True
    if isinstance(stored, _INTEGERS) and isinstance(incoming, _INTEGERS):
        return _INTEGERS.index(type(incoming)) <= _INTEGERS.index(type(stored))
    if isinstance(stored, T.DoubleType):
        return isinstance(incoming, T.FloatType | T.ByteType | T.ShortType | T.IntegerType)
    if isinstance(stored, T.DecimalType) and isinstance(incoming, T.DecimalType):
        return bool(stored.scale >= incoming.scale and stored.precision - stored.scale >= incoming.precision - incoming.scale)
    return isinstance(stored, T.StringType) and isinstance(incoming, T.StringType)


def without_void(schema: T.StructType, whole: T.StructType) -> T.StructType:
    """The columns, with the types of `whole` for those that are always NULL here: another flow has values for them."""
    types = {f.name.lower(): f.dataType for f in whole.fields}
    fields = [
        f if not isinstance(f.dataType, T.NullType) else T.StructField(f.name, types.get(f.name.lower(), f.dataType), True, f.metadata)
        for f in schema.fields
    ]
    return T.StructType(fields)


def storable(data_type: Any) -> Any:
    """The type as a table stores it: everything nullable; a column that is always NULL (void) becomes text."""
    if isinstance(data_type, T.NullType):
        return T.StringType()
    if isinstance(data_type, T.StructType):
        return T.StructType([T.StructField(f.name, storable(f.dataType), True, f.metadata) for f in data_type.fields])
    if isinstance(data_type, T.ArrayType):
        return T.ArrayType(storable(data_type.elementType), True)
    if isinstance(data_type, T.MapType):
        return T.MapType(storable(data_type.keyType), storable(data_type.valueType), True)
    return data_type


def _bare(data_type: T.DataType) -> Any:
    """The type as a table stores it; of the metadata of nested fields what Spark keeps of types there, such as collations, no comments."""

    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(one) for one in value]
        if not isinstance(value, dict):
            return value
        own = {key: one for key, one in value.get("metadata", {}).items() if key.startswith("__")}
        return {key: own if key == "metadata" else bare(one) for key, one in value.items()}

    return bare(storable(data_type).jsonValue())


def same_types(declared: T.StructType, found: T.StructType) -> list[str]:
    """Differences between a declared schema and what a query returns, as sentences; nullability, comments and order do not count."""
    by_name = {f.name.lower(): f for f in found.fields}
    problems = []
    for field in declared.fields:
        other = by_name.pop(field.name.lower(), None)
        if other is not None and _bare(other.dataType) != _bare(field.dataType) and not isinstance(other.dataType, T.NullType):
            new = [path for path, _ in undeclared(field.dataType, other.dataType, field.name)]
            added = f" (new: {', '.join(new)})" if new else ""
            given = other.dataType.simpleString()
            problems.append(f"{field.name} is declared {field.dataType.simpleString()}, the query returns {given}{added}")
    return problems + [f"{f.name} {f.dataType.simpleString()} is not declared, but the query returns it" for f in by_name.values()]


def undeclared(declared: T.DataType, found: T.DataType, path: str = "") -> Iterator[tuple[str, T.DataType]]:
    """Dotted path and type of each column and nested field that only `found` has."""
    if isinstance(declared, T.StructType) and isinstance(found, T.StructType):
        known = {f.name.lower(): f for f in declared.fields}
        for field in found.fields:
            below = _join(path, field.name)
            if field.name.lower() in known:
                yield from undeclared(known[field.name.lower()].dataType, field.dataType, below)
            else:
                yield below, field.dataType
    elif isinstance(declared, T.ArrayType) and isinstance(found, T.ArrayType):
        yield from undeclared(declared.elementType, found.elementType, f"{path}.element")
    elif isinstance(declared, T.MapType) and isinstance(found, T.MapType):
        yield from undeclared(declared.keyType, found.keyType, f"{path}.key")
        yield from undeclared(declared.valueType, found.valueType, f"{path}.value")


def outgrown_error(declared: T.StructType, found: T.StructType, *, dataset: str, where: Any) -> LakeletError | None:
    """The coded error for a query whose columns a declared schema cannot take because data brought them; None if they fit."""
    problems = same_types(declared, found)
    if not problems:
        return None
    new = [f"{path} {kind.simpleString()}" for path, kind in undeclared(declared, found)]
    what = f"the declared schema does not have {', '.join(new)}" if new else "the query's types are not the declared ones any more"
    return LakeletError(
        "SCHEMA_OUTGROWN",
        what,
        dataset=dataset,
        where=where,
        why="\n".join(problems),
        todo="Declare them in the schema, or leave them out in the query with select or drop; the rows are read again, none is lost.\n"
        f"Which file brought them: lakelet schema {dataset}",
    )


def aligned(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """The rows with the table's spelling and types, by name at every depth; top-level columns that the rows lack are left out.

    Rows that have them already, and in the table's order, are returned as they are: each column of a query costs calls to Java.
    """
    from pyspark.sql import functions as F

    found = rows.schema.fields
    by_name = {f.name.lower(): f for f in found}
    wanted = [(field, by_name[field.name.lower()]) for field in schema.fields if field.name.lower() in by_name]
    same = [_same_leaves(field.dataType, own.dataType) for field, own in wanted]
    if all(same) and [field.name for field, _ in wanted] == [own.name for own in found]:
        return rows
    columns = []
    for (field, own), fits in zip(wanted, same, strict=True):
        column = F.col(quoted(own.name))
        columns.append((column if fits else fitted(column, own.dataType, field.dataType)).alias(field.name))
    return rows.select(*columns)


def _same_leaves(stored: T.DataType, incoming: T.DataType) -> bool:
    """Whether `incoming` can be written as it is: equal leaf types; nested fields may be missing."""
    if isinstance(stored, T.StructType) and isinstance(incoming, T.StructType):
        by_name = {f.name.lower(): f.dataType for f in stored.fields}
        return all(_same_leaves(by_name[f.name.lower()], f.dataType) for f in incoming.fields)
    if isinstance(stored, T.ArrayType) and isinstance(incoming, T.ArrayType):
        return _same_leaves(stored.elementType, incoming.elementType)
    if isinstance(stored, T.MapType) and isinstance(incoming, T.MapType):
        return _same_leaves(stored.keyType, incoming.keyType) and _same_leaves(stored.valueType, incoming.valueType)
    return bool(stored == incoming)


def conformed(rows: DataFrame, schema: T.StructType, *more: str) -> DataFrame:
    """The rows with exactly the columns of `schema`, nested fields included, and `more` of their own; what they lack is NULL."""
    return rows.select(*(fitted_field(rows, field) for field in schema.fields), *more)


def fitted_field(rows: DataFrame, field: T.StructField) -> Column:
    """The column of `rows` for a field of a table, with its name and type; NULL where they have none."""
    from pyspark.sql import functions as F

    found = next((f for f in rows.schema.fields if f.name.lower() == field.name.lower()), None)
    if found is None:
        return F.lit(None).cast(field.dataType).alias(field.name)
    column: Column = fitted(F.col(quoted(found.name)), found.dataType, field.dataType)
    return column.alias(field.name)


def fitted(value: Any, have: T.DataType, want: T.DataType) -> Any:
    """A column of type `have` as one of type `want`: by name, at every depth. Fields it lacks are NULL, leaves are cast.

    Spark's own cast takes the fields of a struct by their position and refuses another number of them.
    """
    from pyspark.sql import functions as F

    if have.simpleString() == want.simpleString():
        return value
    if isinstance(have, T.StructType) and isinstance(want, T.StructType):
        by_name = {f.name.lower(): f for f in have.fields}
        fields = []
        for field in want.fields:
            own = by_name.get(field.name.lower())
            inner = F.lit(None).cast(field.dataType) if own is None else fitted(value.getField(own.name), own.dataType, field.dataType)
            fields.append(inner.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(have, T.ArrayType) and isinstance(want, T.ArrayType):
        return F.transform(value, lambda element: fitted(element, have.elementType, want.elementType))
    if isinstance(have, T.MapType) and isinstance(want, T.MapType):
        keyed = value
        if have.keyType.simpleString() != want.keyType.simpleString():
            keyed = F.transform_keys(value, lambda key, _: fitted(key, have.keyType, want.keyType))
        return F.transform_values(keyed, lambda _, inner: fitted(inner, have.valueType, want.valueType))
    return value.cast(want)


def duplicates(names: Iterable[str]) -> list[str]:
    """Names that occur twice when case does not count; Delta refuses them."""
    seen: set[str] = set()
    return [n for n in names if n.lower() in seen or seen.add(n.lower())]  # type: ignore[func-returns-value]


def unstorable(schema: T.StructType, partition_cols: Sequence[str]) -> tuple[str, str] | None:
    """Why Delta cannot make a table with these columns, and the remedy; None if it can."""
    if not schema.fields:
        return "the query returns no columns", "Select at least one."
    intervals = [f.name for f in schema.fields if isinstance(f.dataType, T.DayTimeIntervalType | T.YearMonthIntervalType)]
    if intervals:
        return f"column {intervals[0]} is an interval, which a table cannot store", "Cast it, for example to a number of seconds."
    partitions = {c.lower() for c in partition_cols}
    nested = [f.name for f in schema.fields if f.name.lower() in partitions and isinstance(f.dataType, _NESTED)]
    if nested:
        return f"partition column {nested[0]} is nested", "Partition by a plain column."
    if partitions and partitions >= {f.name.lower() for f in schema.fields}:
        return "all columns are partition columns", "Leave at least one column out of partition_cols."
    return None


def incompatible_error(problem: Incompatible, *, dataset: str, where: Any) -> LakeletError:
    """The coded error for a change of types or of partition columns that the stored table cannot take."""
    if isinstance(problem, PartitioningMismatch):
        todo = f"Change them back, or rebuild the table from its sources: lakelet run --full-refresh {dataset}"
        what = f"its partition columns changed: {problem}"
        return LakeletError("PARTITIONS_CHANGED", what, dataset=dataset, where=where, todo=todo)
    wide = wider(problem.stored, problem.incoming)
    remedy = "Cast the column in the query"
    if wide is not None and wide != problem.stored:
        property = f'table_properties={{"{WIDENING}": "true"}}'
        remedy = f"Give the table {property}, and the column becomes {wide.simpleString()}; or cast it in the query"
    return LakeletError(
        "SCHEMA_INCOMPATIBLE",
        str(problem),
        dataset=dataset,
        where=where,
        todo=f"{remedy}, or rebuild the table from its sources: lakelet run --full-refresh {dataset}",
    )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
