"""A Hive metastore on loopback, for tests: one Java process of pyspark's own jars, with its database in memory.

By hand: `python -m tests.hive FOLDER` starts one until Ctrl-C and prints its address.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError

from lakelet.spark.launch import environment as env
from tests.servers import gateway_of, server_process, stay

_HIVE = "org.apache.hadoop.hive"
_QUIET = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class MetastoreServer:
    """A metastore that listens at `address`; `client` is one of Hive's own, to look at it and to be somebody else."""

    def __init__(self, gateway: JavaGateway, folder: Path) -> None:
        self._jvm: Any = gateway.jvm
        settings = self._settings(
            **{
                "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
                "datanucleus.schema.autoCreateAll": "true",
                "hive.metastore.schema.verification": "false",
                "hive.metastore.warehouse.dir": str(folder / "warehouse"),
                "hive.metastore.uris": "",
            }
        )
        store, thrift = getattr(self._jvm, f"{_HIVE}.metastore"), self._jvm.org.apache.thrift
        handler = store.HiveMetaStore.newRetryingHMSHandler("metastore", settings, False)
        socket = thrift.transport.TServerSocket(self._jvm.java.net.InetSocketAddress("127.0.0.1", 0))
        self.address = f"thrift://127.0.0.1:{socket.getServerSocket().getLocalPort()}"
        processor = getattr(self._jvm, f"{_HIVE}.metastore.api.ThriftHiveMetastore$Processor")(handler)
        server = thrift.server.TThreadPoolServer(getattr(thrift.server, "TThreadPoolServer$Args")(socket).processor(processor))
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        self.client = store.HiveMetaStoreClient(self._settings(**{"hive.metastore.uris": self.address}))
        self._theirs = folder / "theirs"
        self._make_tables_of_its_database()

    def tables(self, database: str) -> list[str]:
        """The names of the tables of a database."""
        return sorted(self.client.getAllTables(database)) if database in set(self.client.getAllDatabases()) else []

    def properties(self, database: str, table: str) -> dict[str, str]:
        """The properties of a table."""
        return {str(key): str(value) for key, value in self.client.getTable(database, table).getParameters().items()}

    def columns(self, database: str, table: str) -> list[tuple[str, str, str | None]]:
        """Name, type and comment of each column of a table."""
        found = self.client.getTable(database, table).getSd().getCols()
        return [(column.getName(), column.getType(), column.getComment()) for column in found]

    def location(self, database: str, table: str) -> str:
        """Where a table lies."""
        return str(self.client.getTable(database, table).getSd().getLocation())

    def somebody_makes(self, database: str, table: str) -> str:
        """Register a table as another tool does; where it lies."""
        api = getattr(self._jvm, f"{_HIVE}.metastore.api")
        if database not in set(self.client.getAllDatabases()):
            self.client.createDatabase(api.Database(database, "", None, {}))
        storage = api.StorageDescriptor()
        storage.setCols([api.FieldSchema("theirs", "string", None)])
        storage.setLocation(f"file:{self._theirs / table}")
        storage.setSerdeInfo(api.SerDeInfo())
        made = api.Table()
        made.setDbName(database)
        made.setTableName(table)
        made.setTableType("EXTERNAL_TABLE")
        made.setSd(storage)
        made.setPartitionKeys([])
        made.setParameters({"EXTERNAL": "TRUE"})
        self.client.createTable(made)
        return self.location(database, table)

    def says_delta(self, database: str, table: str, location: str | None = None) -> None:
        """Register that a table is a Delta table, as Spark does, and that it lies at another location."""
        found = self.client.getTable(database, table)
        found.getParameters().put("spark.sql.sources.provider", "delta")
        if location is not None:
            found.getSd().setLocation(location)
        self.client.alter_table(database, table, found)

    def forget(self) -> None:
        """Remove all tables. A database stays: to remove one, Hive needs a library that pyspark has not."""
        for database in self.client.getAllDatabases():
            for table in self.tables(database):
                self.client.dropTable(database, table, False, True)

    def _settings(self, **values: str) -> Any:
        settings = getattr(self._jvm, f"{_HIVE}.conf").HiveConf()
        for key, value in values.items():
            settings.set(key, value)
        return settings

    def _make_tables_of_its_database(self) -> None:
        """The metastore makes them when it needs them, which takes ten seconds."""
        self.somebody_makes("first", "first")
        self.forget()


def _serve(server: Any) -> None:
    with suppress(Py4JError, OSError):  # the process is killed
        server.serve()


@contextmanager
def hive_metastore(folder: Path) -> Iterator[MetastoreServer]:
    """Start a metastore, and end it by its process. `folder` gets its logs."""
    folder.mkdir(parents=True, exist_ok=True)
    java, log = str(env.require_java().executable), folder / "metastore.log"
    command = [java, *_QUIET, f"-Dderby.system.home={folder}", "-cp", f"{env.spark_home()}/jars/*", "py4j.GatewayServer", "0"]
    with server_process(command, log) as process, gateway_of(process, log) as gateway:
        yield MetastoreServer(gateway, folder)


if __name__ == "__main__":
    with hive_metastore(Path(sys.argv[1])) as running:
        stay(running.address)
