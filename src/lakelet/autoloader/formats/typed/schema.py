"""Columns of files that carry their own types: from Arrow to Spark types, and merging the schemas of files (FS-8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as t

from lakelet.autoloader.formats.typed.arrow_arrays import plain_type
from lakelet.autoloader.schema_growth import grow, is_hinted, wider
from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import ReaderSpec

_SIMPLE: Sequence[tuple[Callable[[Any], bool], type[t.DataType]]] = (
    (pa.types.is_boolean, t.BooleanType),
    (pa.types.is_int8, t.ByteType),
    (pa.types.is_int16, t.ShortType),
    (pa.types.is_uint8, t.ShortType),
    (pa.types.is_int32, t.IntegerType),
    (pa.types.is_uint16, t.IntegerType),
    (pa.types.is_int64, t.LongType),
    (pa.types.is_uint32, t.LongType),
    (pa.types.is_duration, t.LongType),  # parquet knows no durations: what pyarrow writes are whole numbers
    (pa.types.is_float16, t.FloatType),
    (pa.types.is_float32, t.FloatType),
    (pa.types.is_float64, t.DoubleType),
    (pa.types.is_string, t.StringType),
    (pa.types.is_binary, t.BinaryType),
    (pa.types.is_date, t.DateType),
)
_FLAT = ("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz")
_UNSIGNED = t.DecimalType(20, 0)  # as Spark reads 64-bit numbers without a sign


def spark_type(kind: Any) -> Any | None:
    """The Spark type of values of an Arrow type, as Spark reads parquet; None where there is no column for them.

    No column: empty structs (FS-7), times of day, intervals, decimals of more than 38 digits, and columns that are always NULL.
    Fields of structs without a type are left out. UUIDs are texts.
    """
    if isinstance(kind, pa.UuidType):
        return t.StringType()
    kind = plain_type(kind)
    if pa.types.is_struct(kind):
        fields = [(field.name, spark_type(field.type)) for field in kind]
        known = [t.StructField(name, inner, True) for name, inner in fields if inner is not None]
        return t.StructType(known) if known else None
    if pa.types.is_map(kind):
        key, value = spark_type(kind.key_type), spark_type(kind.item_type)
        return None if key is None or value is None else t.MapType(key, value, True)
    if pa.types.is_list(kind):
        element = spark_type(kind.value_type)
        return None if element is None else t.ArrayType(element, True)
    if pa.types.is_timestamp(kind):
        return t.TimestampNTZType() if kind.tz is None else t.TimestampType()
    if pa.types.is_decimal(kind):
        fits = kind.precision <= 38 and 0 <= kind.scale <= kind.precision
        return t.DecimalType(kind.precision, kind.scale) if fits else None
    if pa.types.is_uint64(kind):
        return _UNSIGNED
    return next((made() for matches, made in _SIMPLE if matches(kind)), None)


def supported(data_type: Any) -> bool:
    """Whether files with types of their own can fill a declared column of this type."""
    if isinstance(data_type, t.StructType):
        return all(supported(field.dataType) for field in data_type.fields)
    if isinstance(data_type, t.ArrayType):
        return supported(data_type.elementType)
    if isinstance(data_type, t.MapType):
        return supported(data_type.keyType) and supported(data_type.valueType)
    return data_type.typeName() in (*_FLAT, "char", "varchar") or isinstance(data_type, t.DecimalType)


def schema_of(schema: Any) -> t.StructType:
    """The columns of a file, in its order; spellings that differ by case only stay apart."""
    fields = [(field.name, spark_type(field.type)) for field in schema]
    return t.StructType([t.StructField(name, kind, True) for name, kind in fields if kind is not None and name])


def merged_columns(spec: ReaderSpec, files: Sequence[tuple[str, t.StructType]], known: t.StructType | None) -> t.StructType:
    """What `Format.infer` answers for files of these (uri, columns), the first file's order and spelling first.

    Raises CF_FAILED_TO_INFER_SCHEMA when two files have types for one column that no type takes both of.
    """
    merged = _Merge(frozenset(spec.hinted) if known is None else frozenset())
    current = known
    for uri, columns in files:
        if current is None or known is None:
            merged.add(uri, columns)
            continue
        inside, fresh = in_two_parts(known, columns, fold=not spec.case_sensitive)
        merged.add(uri, fresh)
        if spec.widens:
            current = grow(current, inside, unless_hinted=frozenset(spec.hinted))[0]
    return merged.result if current is None else grow(current, merged.result)[0]


def in_two_parts(known: t.StructType, seen: t.StructType, *, fold: bool) -> tuple[t.StructType, t.StructType]:
    """`seen` in two parts: what `known` has too, in its spelling, and what is new. Other spellings are neither, unless `fold`."""
    exact = {field.name: field for field in known.fields}
    lower = {field.name.lower(): field for field in known.fields}
    inside, fresh = [], []
    for field in seen.fields:
        match = exact.get(field.name) or (lower.get(field.name.lower()) if fold else None)
        if match is not None:
            old, new = _type_in_two_parts(match.dataType, field.dataType, fold)
            inside += [t.StructField(match.name, old, True)]
            fresh += [] if new is None else [t.StructField(match.name, new, True)]
        elif field.name.lower() not in lower:
            fresh.append(field)
    return t.StructType(inside), t.StructType(fresh)


def _type_in_two_parts(known: Any, seen: Any, fold: bool) -> tuple[Any, Any | None]:
    if isinstance(known, t.StructType) and isinstance(seen, t.StructType):
        inside, fresh = in_two_parts(known, seen, fold=fold)
        return inside, fresh if fresh.fields else None
    if isinstance(known, t.ArrayType) and isinstance(seen, t.ArrayType):
        old, new = _type_in_two_parts(known.elementType, seen.elementType, fold)
        return t.ArrayType(old, True), None if new is None else t.ArrayType(new, True)
    return seen, None


class _Merge:
    """Merges the columns of files; remembers which file a column's type came from, for the message."""

    def __init__(self, hinted: frozenset[str]) -> None:
        self._hinted = hinted
        self._origin: dict[str, str] = {}
        self.result = t.StructType([])

    def add(self, uri: str, columns: t.StructType) -> None:
        self.result = self._merge_structs(self.result, columns, "", uri)

    def _merge_structs(self, known: t.StructType, seen: t.StructType, prefix: str, uri: str) -> t.StructType:
        fields = {field.name.lower(): field for field in known.fields}
        for field in seen.fields:
            path = f"{prefix}{field.name}"
            old = fields.get(field.name.lower())
            if old is None:
                fields[field.name.lower()] = field
                self._origin.setdefault(path.lower(), uri)
            else:
                fields[field.name.lower()] = t.StructField(old.name, self._merge_types(old.dataType, field.dataType, path, uri), True)
        return t.StructType(list(fields.values()))

    def _merge_types(self, known: Any, seen: Any, path: str, uri: str) -> Any:
        if isinstance(known, t.StructType) and isinstance(seen, t.StructType):
            return self._merge_structs(known, seen, path + ".", uri)
        if isinstance(known, t.ArrayType) and isinstance(seen, t.ArrayType):
            return t.ArrayType(self._merge_types(known.elementType, seen.elementType, path + ".element", uri), True)
        if isinstance(known, t.MapType) and isinstance(seen, t.MapType):
            key = self._merge_types(known.keyType, seen.keyType, path + ".key", uri)
            return t.MapType(key, self._merge_types(known.valueType, seen.valueType, path + ".value", uri), True)
        wide = widest(known, seen)
        if wide is None and is_hinted(path.lower(), self._hinted):
            return known  # the hint decides
        if wide is None:
            raise self._cannot_merge(known, seen, path, uri)
        return wide

    def _cannot_merge(self, known: Any, seen: Any, path: str, uri: str) -> LakeletError:
        first = next((f for name, f in self._origin.items() if path.lower() == name or path.lower().startswith(name + ".")), uri)
        return LakeletError(
            "CF_FAILED_TO_INFER_SCHEMA",
            f"CF_FAILED_TO_INFER_SCHEMA.CANNOT_MERGE: column {path} is {known.simpleString()} in {first}, {seen.simpleString()} in {uri}",
            why="No type takes the values of both. SQLSTATE: 22000",
            todo=f"Choose a type with cloudFiles.schemaHints, e.g. '{path.split('.')[0]} STRING'; values that do not fit are then rescued.",
        )


def widest(a: Any, b: Any) -> Any | None:
    """The narrowest type that takes values of both types; None where there is none (FS-8)."""
    found = wider(a, b) or wider(b, a)
    if found is not None:
        return found
    numbers = {a.typeName(), b.typeName()}
    return t.DoubleType() if numbers <= {"byte", "short", "integer", "long", "float", "double"} else None
