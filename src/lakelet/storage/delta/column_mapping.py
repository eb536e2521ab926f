"""Column mapping by name: how Delta stores columns whose names have characters that it forbids without it.

A table whose columns are inferred gets the property by itself when the first such name arrives (docs/semantics/schemas.md, SC-10 ff).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.config.properties import look_up
from lakelet.language.model import Dataset
from lakelet.storage.delta import schemas

if TYPE_CHECKING:
    from lakelet.storage.delta.table_spec import TableSpec
    from lakelet.storage.delta.transaction import Transaction

MODE = "delta.columnMapping.mode"
"""Table property: how Delta finds a column in its files. `none` by the column's name, `name` and `id` by a name of Delta's own."""

_NOTED = "delta.columnMapping."
_FORBIDDEN = frozenset(" ,;{}()\n\t=")
_SHOWN = 3


def mode(properties: Mapping[str, str]) -> str | None:
    """The mode that the properties declare, in lower case; None if they declare none."""
    found = look_up(properties, MODE)
    return None if found is None else found.strip().lower()


def is_mapped(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties takes any column name."""
    return mode(properties) not in (None, "none")


def odd_names(data_type: T.DataType, path: str = "") -> Iterator[str]:
    """Dotted paths of the columns and nested fields whose names Delta refuses without column mapping."""
    if isinstance(data_type, T.StructType):
        for field in data_type.fields:
            below = f"{path}.{field.name}" if path else field.name
            if set(field.name) & _FORBIDDEN:
                yield below
            yield from odd_names(field.dataType, below)
    elif isinstance(data_type, T.ArrayType):
        yield from odd_names(data_type.elementType, path)
    elif isinstance(data_type, T.MapType):
        yield from odd_names(data_type.keyType, path)
        yield from odd_names(data_type.valueType, path)


def automatic(dataset: Dataset) -> bool:
    """Whether the dataset's table gets column mapping by itself: its columns are inferred, and it declares no mode."""
    return dataset.schema is None and dataset.sink is None and mode(dataset.table_properties) is None


def completed(schema: T.StructType, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table that gets column mapping by itself, with the mode where `schema` needs it."""
    return {**properties, MODE: "name"} if next(odd_names(schema), None) is not None else dict(properties)


def without_automatic(dataset: Dataset, spec: TableSpec) -> TableSpec:
    """`spec` without the mode that `completed` added: the commit that brings the first such column switches mapping on (SC-10)."""
    properties = spec.properties or {}
    return replace(spec, properties={k: v for k, v in properties.items() if k != MODE}) if automatic(dataset) else spec


def refused(schema: T.StructType, properties: Mapping[str, str], *, code: str, dataset: str, where: Any) -> LakeletError | None:
    """The coded error for columns whose names Delta refuses in a table with these properties; None if it takes them."""
    odd = list(odd_names(schema))
    if not odd or is_mapped(properties):
        return None
    what = f"{shown(odd)} need column mapping, which the table does not have"
    return LakeletError(code, what, dataset=dataset, where=where, todo=f"Rename them in the query, or give the table {_declaration()}.")


def switched_on(names: list[str], table: str) -> str:
    """The notice for a table that got column mapping by itself."""
    return f"{shown(names)}: column mapping by name is on for {table}. Databricks needs {_declaration()} for it."


def needed(tables: Mapping[str, list[str]]) -> str:
    """The notice of `lakelet validate` for tables that have column mapping, or get it, without declaring it. `tables`: names by table."""
    names = list(dict.fromkeys(name for odd in tables.values() for name in odd))
    return f"{shown(names)}: Lakelet switches column mapping by name on for {', '.join(tables)}; Databricks needs {_declaration()} there"


def shown(names: list[str]) -> str:
    """The first names, quoted, as the subject of a sentence about characters."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"column name(s) {', '.join(map(repr, names[:_SHOWN]))}{more} with a space or one of , ; {{ }} ( ) ="


def _declaration() -> str:
    return f'table_properties={{"{MODE}": "name"}}'


def switches(transaction: Transaction, spec: TableSpec) -> bool:
    """Whether a write of `spec` switches column mapping on."""
    return is_mapped(spec.properties or {}) and not is_mapped(transaction.properties)


def kept(transaction: Transaction, spec: TableSpec) -> TableSpec:
    """`spec` with the mode that the stored table has, where it declares none: a table keeps its column mapping."""
    stored, properties = transaction.properties, spec.properties or {}
    if mode(properties) is not None or not is_mapped(stored):
        return spec
    return replace(spec, properties={**properties, MODE: str(mode(stored))})


def keeping(stored: T.StructType, wanted: T.StructType) -> T.StructType:
    """The columns `wanted` with the ids and names in files that a table with the columns `stored` has for those it keeps.

    Delta takes a column without them for another one: the change feed of a mapped table, and streams over it, refuse a replaced column.
    """
    known = {field.name: field for field in stored.fields}
    return T.StructType([_kept(known.get(field.name), field) for field in wanted.fields])


def _kept(stored: T.StructField | None, wanted: T.StructField) -> T.StructField:
    if stored is None or stored.dataType.simpleString() != wanted.dataType.simpleString():
        return wanted
    noted = {key: value for key, value in stored.metadata.items() if key.startswith(_NOTED)}
    return T.StructField(wanted.name, _kept_type(stored.dataType, wanted.dataType), wanted.nullable, {**wanted.metadata, **noted})


def _kept_type(stored: T.DataType, wanted: T.DataType) -> T.DataType:
    """`wanted`, a type of the same description as `stored`, with what is noted of the fields inside."""
    if isinstance(stored, T.StructType) and isinstance(wanted, T.StructType):
        return keeping(stored, wanted)
    if isinstance(stored, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return T.ArrayType(_kept_type(stored.elementType, wanted.elementType), wanted.containsNull)
    if isinstance(stored, T.MapType) and isinstance(wanted, T.MapType):
        key, value = _kept_type(stored.keyType, wanted.keyType), _kept_type(stored.valueType, wanted.valueType)
        return T.MapType(key, value, wanted.valueContainsNull)
    return wanted


def prepared(transaction: Transaction, spec: TableSpec, *, failpoint: str = "table.prepared") -> Transaction:
    """Give a stored table the properties of `spec` that must be there before its columns change, in a commit of their own.

    Delta notes the types of older files only in tables that have type widening already, and switches column mapping on only while the
    columns stay as they are. Return the transaction to go on with.
    """
    stored, wanted = transaction.properties, spec.properties or {}
    missing = {schemas.WIDENING: "true"} if schemas.widens(wanted) and not schemas.widens(stored) else {}
    if switches(transaction, spec):
        missing[MODE] = mode(wanted) or ""
    if transaction.read_version < 0 or not missing:
        return transaction
    transaction.describe(replace(transaction.spec(), properties=missing), replace=False)
    transaction.commit([], user_metadata={})
    reached(failpoint)
    return type(transaction)(transaction.spark, transaction.path)
