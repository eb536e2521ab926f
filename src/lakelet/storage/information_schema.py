"""`information_schema`: the relations in which a catalog describes what is stored in it (SQ-15). No Spark session.

The columns and their order are those of the public documentation of Databricks:
https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-information-schema
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakelet.base.names import TableName
from lakelet.files.delta_rs import open_table, schema_fields, spark_type_text
from lakelet.language.model import Kind
from lakelet.storage.published_views import load_views
from lakelet.storage.root import Storage, StoredDataset

if TYPE_CHECKING:
    import pyarrow as pa


SCHEMA = "information_schema"
ALL_CATALOGS = "system"
"""The catalog whose information schema describes all of them."""
_PARTS = 3
MANAGED, EXTERNAL, VIEW = "MANAGED", "EXTERNAL", "VIEW"


@dataclass(frozen=True)
class RelationDescription:
    """A table or view as the relations describe it.

    Attributes:
        name: in lower case, as Unity Catalog has it.
        table_type: one of the words of the column `table_type`.
        fields: its columns, as a Delta schema in JSON has them; none of a table that was not written yet, and of a view.
        partitions: names of the columns that it is partitioned by.
        comment: of the table; None where there is none.
        created: when it was made, in UTC; altered: when it was written last. None where that is not known.
        path: where it lies; None for a view.
        query: of a view.
    """

    name: TableName
    table_type: str
    fields: Sequence[Mapping[str, Any]] = ()
    partitions: Sequence[str] = ()
    comment: str | None = None
    created: datetime | None = None
    altered: datetime | None = None
    path: str | None = None
    query: str | None = None


@dataclass(frozen=True)
class RelationName:
    """A relation that a query names. `catalog`: in lower case, whose information schema it is; None for that of all catalogs."""

    relation: str
    catalog: str | None

    def holds(self, catalog: str) -> bool:
        """Whether a catalog is described."""
        return self.catalog is None or catalog.lower() == self.catalog


def asked_for(name: TableName) -> RelationName | None:
    """The relation that a full name means; None for a name of anything else."""
    relation, catalog = name.name.lower(), name.catalog.lower()
    if name.schema.lower() != SCHEMA or relation not in _RELATIONS:
        return None
    return RelationName(relation, None if catalog == ALL_CATALOGS else catalog)


def names_relation(parts: Sequence[str]) -> bool:
    """Whether the parts of a name as it is written end like one of the relations."""
    return len(parts) > 1 and parts[-2].lower() == SCHEMA and parts[-1].lower() in _RELATIONS


def described(storage: Storage) -> list[RelationDescription]:
    """The tables and published views of a storage, in the order of their names; private tables and quarantines are not among them."""
    stored = storage.reload().datasets.values()
    tables = (_described_relation(storage, d) for d in stored if not d.private and d.quarantine_of is None and d.path)
    found = [table for table in tables if table is not None]
    found += [
        RelationDescription(TableName(*name.split(".", 2)), VIEW, query=view.query)
        for name, view in load_views(storage).items()
        if name.count(".") == 2
    ]
    return sorted(found, key=lambda table: table.name.key)


def _described_relation(storage: Storage, dataset: StoredDataset) -> RelationDescription | None:
    from deltalake.exceptions import DeltaError

    path, kind = storage.at(dataset.path), _table_type(dataset.kind)
    name = _name_of_sink(dataset) if dataset.kind is Kind.SINK else TableName(*dataset.name.lower().split(".", 2))
    if name is None:
        return None
    try:
        table = open_table(path)
    except DeltaError:  # there is none, or a damaged one: whoever reads it gets the error
        return RelationDescription(name, kind, path=path.as_uri())
    metadata, newest = table.metadata(), table.history(1)
    return RelationDescription(
        name,
        kind,
        fields=schema_fields(table),
        partitions=tuple(metadata.partition_columns),
        comment=metadata.description or None,
        created=_timestamp_of(metadata.created_time),
        altered=_timestamp_of(newest[0].get("timestamp")) if newest else None,
        path=path.as_uri(),
    )


def _name_of_sink(dataset: StoredDataset) -> TableName | None:
    """The name of the table that a Delta sink writes to, which is that of its folder; None for one that it writes to by a path."""
    top, *parts = dataset.path.split("/")
    return TableName(*map(unquote, parts)) if top == "tables" and len(parts) == _PARTS else None


def _table_type(kind: Kind) -> str:
    return kind.value.upper() if kind in (Kind.STREAMING_TABLE, Kind.MATERIALIZED_VIEW) else MANAGED


def _timestamp_of(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def rows_of(asked: RelationName, tables: Iterable[RelationDescription]) -> pa.Table:
    """The rows of a relation. `tables`: everything that there is, of which the asked catalog is shown."""
    import pyarrow as pa

    columns, rows = _RELATIONS[asked.relation]
    kinds = {**dict.fromkeys(_TIMES, pa.timestamp("us", "UTC")), **dict.fromkeys(_NUMBERS, pa.int32())}
    schema = pa.schema([(column, kinds.get(column, pa.string())) for column in columns])
    shown = [table for table in tables if asked.holds(table.name.catalog)]
    return pa.Table.from_pylist(list(rows(shown)), schema=schema)


# ------------------------------------------------------------------------------------------------------------ relations

Row = dict[str, Any]


_MADE = ("created", "created_by", "last_altered", "last_altered_by")
_TABLE = ("table_catalog", "table_schema", "table_name")
_CATALOGS = ("catalog_name", "catalog_owner", "comment", *_MADE)
_SCHEMATA = ("catalog_name", "schema_name", "schema_owner", "comment", *_MADE)
_TABLES = (
    *(*_TABLE, "table_type", "is_insertable_into", "commit_action", "table_owner", "comment", *_MADE),
    *("data_source_format", "storage_path", "storage_sub_directory"),
)
_VIEWS = (*_TABLE, "view_definition", "check_option", "is_updatable", "is_insertable_into", "sql_path", "is_materialized")
_COLUMNS = (
    *(*_TABLE, "column_name", "ordinal_position", "column_default", "is_nullable", "full_data_type", "data_type"),
    *("character_maximum_length", "character_octet_length", "numeric_precision", "numeric_precision_radix", "numeric_scale"),
    *("datetime_precision", "interval_type", "interval_precision", "maximum_cardinality"),
    *(
        "is_identity",
        "identity_generation",
        "identity_start",
        "identity_increment",
        "identity_maximum",
        "identity_minimum",
        "identity_cycle",
    ),
    *("is_generated", "generation_expression", "is_system_time_period_start", "is_system_time_period_end"),
    *("system_time_period_timestamp_generation", "is_updatable", "partition_index", "comment"),
)
_TAG = ("tag_name", "tag_value")
_TIMES = {"created", "last_altered"}
_NUMBERS = {
    *("ordinal_position", "character_maximum_length", "numeric_precision", "numeric_precision_radix", "numeric_scale"),
    *("datetime_precision", "interval_precision", "maximum_cardinality", "partition_index"),
}


def _catalog_rows(tables: Sequence[RelationDescription]) -> Iterator[Row]:
    for catalog in sorted({table.name.catalog for table in tables}):
        yield {"catalog_name": catalog}


def _schema_rows(tables: Sequence[RelationDescription]) -> Iterator[Row]:
    catalogs = {(table.name.catalog, SCHEMA) for table in tables}
    for catalog, schema in sorted(catalogs | {(table.name.catalog, table.name.schema) for table in tables}):
        yield {"catalog_name": catalog, "schema_name": schema}


def _table_rows(tables: Sequence[RelationDescription]) -> Iterator[Row]:
    for table in tables:
        yield {
            **_name_columns(table),
            "table_type": table.table_type,
            "is_insertable_into": "YES" if table.table_type in (MANAGED, EXTERNAL) else "NO",
            "commit_action": "PRESERVE",
            "comment": table.comment,
            "created": table.created,
            "last_altered": table.altered,
            "data_source_format": "UNKNOWN_DATA_SOURCE_FORMAT" if table.table_type == VIEW else "DELTA",
            "storage_path": table.path,
        }


def _view_rows(tables: Sequence[RelationDescription]) -> Iterator[Row]:
    for table in tables:
        if table.table_type == VIEW:
            fixed = {"check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO", "is_materialized": "NO"}
            yield {**_name_columns(table), "view_definition": table.query, **fixed}


def _column_rows(tables: Sequence[RelationDescription]) -> Iterator[Row]:
    for table in tables:
        partitions = [name.lower() for name in table.partitions]
        for position, field in enumerate(table.fields, 1):
            name, metadata = str(field["name"]), field.get("metadata") or {}
            full = spark_type_text(field["type"])
            yield {
                **_name_columns(table),
                "column_name": name,
                "ordinal_position": position,
                "is_nullable": "YES" if field.get("nullable", True) else "NO",
                "full_data_type": full,
                **_facts_of_type(full),
                "is_identity": "NO",
                "is_generated": "NO",
                "is_system_time_period_start": "NO",
                "is_system_time_period_end": "NO",
                "is_updatable": "YES" if table.table_type in (MANAGED, EXTERNAL) else "NO",
                "partition_index": partitions.index(name.lower()) + 1 if name.lower() in partitions else None,
                "comment": metadata.get("comment"),
            }


def _no_rows(tables: Sequence[RelationDescription]) -> Iterator[Row]:
    """Of what only a workspace has, such as tags."""
    return iter(())


def _name_columns(table: RelationDescription) -> Row:
    return {"table_catalog": table.name.catalog, "table_schema": table.name.schema, "table_name": table.name.name}


_SIMPLE = {"bigint": "LONG", "smallint": "SHORT", "tinyint": "BYTE"}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "float": 24, "double": 53}
_TIME_DIGITS = {"date": 0, "timestamp": 3, "timestamp_ntz": 3}


def _facts_of_type(full: str) -> Row:
    """The columns about a type, which is in Spark's short words: `decimal(12,2)`."""
    simple = full.partition("<")[0].partition("(")[0]
    facts: Row = {"data_type": _SIMPLE.get(simple, simple.upper()), "datetime_precision": _TIME_DIGITS.get(simple)}
    if simple == "decimal":
        digits, scale = full.removeprefix("decimal(").removesuffix(")").split(",")
        facts |= {"numeric_precision": int(digits), "numeric_precision_radix": 10, "numeric_scale": int(scale)}
    elif simple in _BITS:
        is_whole = simple not in ("float", "double")
        facts |= {"numeric_precision": _BITS[simple], "numeric_precision_radix": 2, "numeric_scale": 0 if is_whole else None}
    return facts


_RELATIONS: Mapping[str, tuple[Sequence[str], Callable[[Sequence[RelationDescription]], Iterator[Row]]]] = {
    "catalogs": (_CATALOGS, _catalog_rows),
    "schemata": (_SCHEMATA, _schema_rows),
    "tables": (_TABLES, _table_rows),
    "views": (_VIEWS, _view_rows),
    "columns": (_COLUMNS, _column_rows),
    "catalog_tags": (("catalog_name", *_TAG), _no_rows),
    "schema_tags": (("catalog_name", "schema_name", *_TAG), _no_rows),
    "table_tags": (("catalog_name", "schema_name", "table_name", *_TAG), _no_rows),
    "column_tags": (("catalog_name", "schema_name", "table_name", "column_name", *_TAG), _no_rows),
}
"""Name → its columns, and what makes the rows; what is not known here, such as owners, is NULL."""


__all__ = [
    "EXTERNAL",
    "MANAGED",
    "SCHEMA",
    "VIEW",
    "RelationDescription",
    "RelationName",
    "asked_for",
    "described",
    "names_relation",
    "rows_of",
]
