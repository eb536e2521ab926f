"""Hive's metastore, by the client among Spark's own jars: what it has of a table, and the requests that register one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakelet.jvm.errors import Py4JError, Py4JJavaError
from lakelet.jvm.scala import java_class

_HIVE = "org.apache.hadoop.hive"
_API = f"{_HIVE}.metastore.api"
_SECONDS = 60
"""How long one request may take. A metastore that has just been started makes the tables of its database meanwhile."""
# What Spark itself writes for tables that are none of Hive's.
_INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
_OUTPUT = f"{_HIVE}.ql.io.HiveSequenceFileOutputFormat"
_SERDE = f"{_HIVE}.serde2.lazy.LazySimpleSerDe"
_MISSING = "NoSuchObjectException"
_EXISTS = "AlreadyExistsException"
_INCOMPATIBLE = "incompatible"
"""In the reason of a metastore that refuses to make a column's type, by its position, another one."""
_UNREACHABLE = ("TTransportException", "ConnectException", "TProtocolException")


class MetastoreUnreachable(Exception):
    """The metastore does not answer; the text is its client's reason."""


class MetastoreRefused(Exception):
    """The metastore refused a request; the text is its reason."""


@dataclass(frozen=True)
class HiveTable:
    """An external table of a metastore. `columns`: name, type of Hive and comment of each; `properties`: with its comment.

    The others are what the metastore says. `kind`: `VIRTUAL_VIEW` for a view; `path`: where Spark says that the files are, which writes
    a location that does not exist for tables that Hive cannot read; `input_format`: Hive's class that reads them.
    """

    database: str
    name: str
    location: str
    columns: tuple[tuple[str, str, str], ...]
    properties: Mapping[str, str]
    kind: str = "EXTERNAL_TABLE"
    path: str = ""
    input_format: str = ""
    partitions: tuple[str, ...] = ()


class Metastore:
    """A connection to a metastore; `metastore` opens it. Every method raises MetastoreUnreachable and MetastoreRefused."""

    def __init__(self, jvm: Any, client: Any) -> None:
        self._jvm, self._client = jvm, client

    def table(self, database: str, name: str) -> HiveTable | None:
        """What the metastore has under a name; None for nothing."""
        with _errors():
            found = self._found(database, name)
            return None if found is None else self._value(found)

    def create(self, table: HiveTable) -> None:
        """Register a table, and its database if there is none."""
        with _errors():
            try:
                self._client.getDatabase(table.database)
            except Py4JJavaError as problem:
                if _name_of(problem) != _MISSING:
                    raise
                self._make_database(table.database)
            self._client.createTable(self._filled(self._new("Table"), table))

    def update(self, table: HiveTable) -> None:
        """Change a table that is registered, or register it again where the metastore refuses new types. Properties of others stay."""
        with _errors():
            changed = self._filled(self._client.getTable(table.database, table.name), table)
            try:
                self._client.alter_table(table.database, table.name, changed)
            except Py4JJavaError as problem:
                if _INCOMPATIBLE not in str(problem.java_exception.getMessage()):
                    raise
                self._client.dropTable(table.database, table.name, False, True)
                self._client.createTable(changed)

    def remove(self, database: str, name: str) -> None:
        """Remove a table from the metastore; its files stay."""
        with _errors():
            self._client.dropTable(database, name, False, True)

    def _make_database(self, name: str) -> None:
        try:
            self._client.createDatabase(self._new("Database", name, "", None, self._map({})))
        except Py4JJavaError as problem:
            if _name_of(problem) != _EXISTS:  # another pipeline makes the same one at this moment
                raise

    def _found(self, database: str, name: str) -> Any:
        try:
            return self._client.getTable(database, name)
        except Py4JJavaError as problem:
            if _name_of(problem) == _MISSING:
                return None
            raise

    def _value(self, found: Any) -> HiveTable:
        """A table of Java as a value, by one request to Java."""
        thrift = "org.apache.thrift"
        protocol = java_class(self._jvm, f"{thrift}.protocol.TSimpleJSONProtocol$Factory")()
        text = java_class(self._jvm, f"{thrift}.TSerializer")(protocol).toString(found)
        table = json.loads(str(text))
        sd = table["sd"]
        columns = tuple((column["name"], column["type"], column.get("comment") or "") for column in sd.get("cols") or ())
        return HiveTable(
            table["dbName"],
            table["tableName"],
            sd.get("location") or "",
            columns,
            table.get("parameters") or {},
            table.get("tableType") or "",
            ((sd.get("serdeInfo") or {}).get("parameters") or {}).get("path") or "",
            sd.get("inputFormat") or "",
            tuple(column["name"] for column in table.get("partitionKeys") or ()),
        )

    def _filled(self, java: Any, table: HiveTable) -> Any:
        """A table of Java with the fields of a value."""
        storage, serde = self._new("StorageDescriptor"), self._new("SerDeInfo")
        serde.setSerializationLib(_SERDE)
        serde.setParameters(self._map({"path": table.location}))
        columns = [self._new("FieldSchema", name, kind, comment or None) for name, kind, comment in table.columns]
        storage.setCols(self._list(columns))
        storage.setLocation(table.location)
        storage.setInputFormat(_INPUT)
        storage.setOutputFormat(_OUTPUT)
        storage.setSerdeInfo(serde)
        java.setDbName(table.database)
        java.setTableName(table.name)
        java.setTableType("EXTERNAL_TABLE")
        java.setSd(storage)
        if java.getPartitionKeys() is None:
            java.setPartitionKeys(self._list(()))
        if java.getParameters() is None:
            java.setParameters(self._map({}))
        java.getParameters().putAll(self._map({**table.properties, "EXTERNAL": "TRUE", "DO_NOT_UPDATE_STATS": "true"}))
        return java

    def _new(self, kind: str, *values: Any) -> Any:
        return java_class(self._jvm, f"{_API}.{kind}")(*values)

    def _map(self, values: Mapping[str, str]) -> Any:
        made = java_class(self._jvm, "java.util.HashMap")()
        for key, value in values.items():
            made.put(key, value)
        return made

    def _list(self, values: Sequence[Any]) -> Any:
        made = java_class(self._jvm, "java.util.ArrayList")()
        for value in values:
            made.add(value)
        return made


@contextmanager
def metastore(spark: SparkSession, uris: str) -> Iterator[Metastore]:
    """A connection to the metastore at one of these addresses, separated by commas. Raises MetastoreUnreachable.

    Other settings are those of `hive-site.xml`, where Spark's configuration has one.
    """
    jvm: Any = spark._jvm
    with _errors():
        settings = java_class(jvm, f"{_HIVE}.conf.HiveConf")()
        seconds = {"client.socket.timeout": f"{_SECONDS}s", "client.connect.retry.delay": "1s"}
        for key, value in {"uris": uris, "connect.retries": "1", "failure.retries": "0", **seconds}.items():
            settings.set(f"hive.metastore.{key}", value)
        client = java_class(jvm, f"{_HIVE}.metastore.HiveMetaStoreClient")(settings)
    try:
        yield Metastore(jvm, client)
    finally:
        with _errors():
            client.close()


@contextmanager
def _errors() -> Iterator[None]:
    """Raise what Java raises as MetastoreUnreachable or MetastoreRefused."""
    try:
        yield
    except Py4JJavaError as problem:
        text = str(problem.java_exception.getMessage() or _name_of(problem)).strip().split("\n")[0]
        causes = list(_causes(problem.java_exception))
        if any(name in _UNREACHABLE for name in causes) or "Could not connect to meta store" in text:
            raise MetastoreUnreachable(text) from None
        raise MetastoreRefused(text) from None
    except (Py4JError, TypeError) as problem:
        raise MetastoreRefused(f"Spark's jars have no client for it: {str(problem).splitlines()[0]}") from None


def _causes(java: Any) -> Iterator[str]:
    while java is not None:
        yield str(java.getClass().getSimpleName())
        java = java.getCause()


def _name_of(problem: Py4JJavaError) -> str:
    return str(problem.java_exception.getClass().getSimpleName())


__all__ = ["HiveTable", "Metastore", "MetastoreRefused", "MetastoreUnreachable", "metastore"]
