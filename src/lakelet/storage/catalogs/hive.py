"""Tables in a Hive metastore, as Spark registers Delta tables there. Their names have two parts: a metastore has no catalogs."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName
from lakelet.files.delta_rs import spark_type_text
from lakelet.storage.catalogs.client import OWNER, CatalogClient, CatalogEntry, ForeignTable, unreachable
from lakelet.storage.catalogs.published_tables import PublishedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelet.jvm.metastore import HiveTable, Metastore

_CONNECT_SECONDS = 10
_COMMENT, _TABLE_COMMENT, _TYPE = 256, 4000, 4000
"""Characters that a metastore's database has room for."""
_SIMPLE = frozenset({"string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "binary", "date", "timestamp"})
_PROVIDER = "spark.sql.sources.provider"
_PARTITION = re.compile(r"spark\.sql\.sources\.schema\.partCol\.\d+")
_INPUT_FORMATS = {"MapredParquetInputFormat": "parquet", "OrcInputFormat": "orc"}
_WORD = re.compile(r"\w+", re.ASCII)


class HiveCatalog:
    """A connection to a Hive metastore; see `CatalogClient`."""

    def __init__(self, connection: Metastore, address: str) -> None:
        self._connection, self._address = connection, address

    def entry(self, table: PublishedTable) -> CatalogEntry:
        """How the metastore would have a table: names are lower case, long comments are cut."""
        return _entry(_hive_table(table))

    def find(self, name: str) -> CatalogEntry | None:
        """What the metastore has under a schema and a name."""
        with self._errors():
            found = self._connection.table(*_parts(name))
        return None if found is None else _entry(found)

    def foreign(self, name: TableName) -> ForeignTable | None:
        """What the metastore has under the schema and the name, whatever the catalog is."""
        with self._errors():
            found = self._connection.table(name.schema.lower(), name.name.lower())
        if found is None:
            return None
        full, properties = f"{found.database}.{found.name}", found.properties
        partitions = tuple(value for key, value in sorted(properties.items()) if _PARTITION.fullmatch(key)) or found.partitions
        return ForeignTable(full, found.path or found.location, _format(found), partitions, properties.get(OWNER))

    def create(self, table: PublishedTable) -> None:
        """Register a table, and its schema if there is none."""
        with self._errors():
            self._connection.create(_hive_table(table))

    def update(self, table: PublishedTable) -> None:
        """Change the registered table; properties that others added stay."""
        with self._errors():
            self._connection.update(_hive_table(table))

    def remove(self, name: str) -> None:
        """Remove a table from the metastore; its files stay."""
        with self._errors():
            self._connection.remove(*_parts(name))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from lakelet.jvm.metastore import MetastoreRefused, MetastoreUnreachable

        try:
            yield
        except MetastoreUnreachable as problem:
            raise unreachable(f"the Hive metastore {self._address}", str(problem)) from None
        except MetastoreRefused as problem:
            raise LakeletError("PUBLISH_FAILED", "the Hive metastore refused the table", why=str(problem)) from None


@contextmanager
def hive_catalog(address: str, spark: Callable[[], SparkSession]) -> Iterator[CatalogClient]:
    """A connection to the metastore at `thrift://host:port`, or at the first of several that answers. `spark`: gives a session.

    Raises CATALOG_UNREACHABLE, without starting Spark where nothing listens there.
    """
    _check_answers(address)
    from lakelet.jvm.metastore import MetastoreRefused, MetastoreUnreachable, metastore

    try:
        with metastore(spark(), ",".join(map(str.strip, address.split(",")))) as connection:
            yield HiveCatalog(connection, address)
    except (MetastoreUnreachable, MetastoreRefused) as problem:
        raise unreachable(f"the Hive metastore {address}", str(problem)) from None


def _check_answers(address: str) -> None:
    """Raise CATALOG_UNREACHABLE where nothing listens: Java's client waits for minutes and says less."""
    reasons = []
    for one in address.split(","):
        host, _, port = one.strip().removeprefix("thrift://").rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
            return
        except (OSError, OverflowError, UnicodeError) as problem:  # the last two: no port, no name of a host
            reasons.append(f"{one.strip()}: {getattr(problem, 'strerror', None) or problem}")
    raise unreachable(f"the Hive metastore {address}", "\n".join(reasons))


def _parts(name: str) -> tuple[str, str]:
    database, _, table = name.partition(".")
    return database, table


def _hive_table(table: PublishedTable) -> HiveTable:
    from lakelet.jvm.metastore import HiveTable

    path = table.location
    location = f"file:{path}" if isinstance(path, Path) else str(path)  # as Hadoop's paths are written: nothing is escaped
    columns = tuple((column.name, hive_type(column.type), _cut(column.comment, _COMMENT)) for column in table.columns)
    properties = {_PROVIDER: "delta", OWNER: table.owner, "comment": _cut(table.comment, _TABLE_COMMENT)}
    return HiveTable(table.name.schema.lower(), table.name.name.lower(), location, columns, properties)


def _entry(table: HiveTable) -> CatalogEntry:
    location = re.sub("^file:/+", "file:/", table.location)
    comment, owner = table.properties.get("comment", ""), table.properties.get(OWNER)
    return CatalogEntry(f"{table.database}.{table.name}", location, table.columns, comment, owner)


def _format(table: HiveTable) -> str:
    """The format of a table's files: what Spark wrote of it, else by Hive's class that reads them. A view is `view`."""
    if table.kind.endswith("VIEW"):
        return "materialized view" if table.kind.startswith("MATERIALIZED") else "view"
    if table.properties.get("transactional", "").lower() == "true":
        return "transactional table of Hive"
    provider = table.properties.get(_PROVIDER, "").lower()
    reader = table.input_format.rpartition(".")[2]
    return provider if provider not in ("", "hive") else _INPUT_FORMATS.get(reader, reader)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def hive_type(kind: Any) -> str:
    """A type of Delta's schema as Hive's; `string` where Hive has not the type or the names of its fields, or it is too long."""
    text = _hive_type(kind)
    return "string" if text is None or len(text) > _TYPE else text


def _hive_type(kind: Any) -> str | None:
    if isinstance(kind, str):
        text = spark_type_text(kind)
        return text if text in _SIMPLE or text.startswith("decimal(") else "timestamp" if text == "timestamp_ntz" else None
    if kind["type"] == "array":
        inner = _hive_type(kind["elementType"])
        return inner and f"array<{inner}>"
    if kind["type"] == "map":
        key, value = _hive_type(kind["keyType"]), _hive_type(kind["valueType"])
        return f"map<{key},{value}>" if key and value else None
    fields = [(field["name"], _hive_type(field["type"])) for field in kind.get("fields") or ()]
    if not fields or not all(inner and _WORD.fullmatch(name) for name, inner in fields):
        return None
    return "struct<" + ",".join(f"{name}:{inner}" for name, inner in fields) + ">"


__all__ = ["HiveCatalog", "hive_catalog", "hive_type"]
