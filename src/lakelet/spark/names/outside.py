"""State of the process for names and paths outside of the pipeline: `--map`, `--table`, created tables, catalogs, the storage.

It holds for the whole process while one update works: handlers of micro-batches and helper modules run outside of every dataset's function,
some of them in other threads. Inside a dataset's function its reader answers; outside of one a stored table is what the last update left,
or does not exist yet (LG-23). `lookup` says which of them a name means.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelet.base.names import Namespace, TableName
from lakelet.config.named_tables import NamedTable
from lakelet.config.path_map import PathMap
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import any_path
from lakelet.jvm.errors import Py4JError
from lakelet.jvm.frames import loaded
from lakelet.jvm.sessions import has_view, java_session, plain_reader, plain_sql
from lakelet.spark import settings
from lakelet.storage.catalogs.foreign_tables import ForeignTables
from lakelet.storage.root import ExistingTables, Storage


@dataclass(frozen=True)
class StorageTables:
    """What code outside of functions finds in a storage.

    Attributes:
        namespace: completes names.
        paths: of the tables, by key; some that are looked up are not listed, and some have not been written yet.
        registered: full names of the listed tables.
        own: keys of the tables of the pipeline that is loaded.
        storage: where they lie; None outside of updates.
    """

    namespace: Namespace = field(default_factory=Namespace)
    paths: Mapping[str, str] = field(default_factory=dict)
    registered: Collection[TableName] = ()
    own: Collection[str] = ()
    storage: Storage | None = None

    @classmethod
    def of(cls, storage: Storage, stored: ExistingTables, owner: str, namespace: Namespace) -> StorageTables:
        """The tables that a storage holds when the pipeline with the id `owner` is loaded; quarantines are not read by code."""
        registry = storage.registry()
        found = stored.apart_from(stored.quarantines)
        kept = {key: registry.datasets[key] for key in found}
        names = tuple(TableName(*dataset.name.split(".", 2)) for dataset in kept.values())
        own = frozenset(key for key, dataset in kept.items() if dataset.owner in (owner, None))
        return cls(namespace, found, names, own, storage)

    def full_name(self, text: str) -> TableName | None:
        """The name of one to three parts, completed; None for what is not a name."""
        try:
            return self.namespace.resolve(text)
        except ValueError:
            return None

    def names(self) -> list[TableName]:
        """The full names of the tables that exist, but for those that sinks have written."""
        return [name for name in self.registered if self.path(name) is not None]

    def path(self, name: TableName) -> str | None:
        """The folder of a table; None if it does not exist, or not yet."""
        path = self.paths.get(name.key)
        return None if path is None or TableLog(any_path(path)).version() < 0 else path

    def opened(self, spark: SparkSession, name: TableName, jreader: Any = None) -> DataFrame:
        """The rows that a table has now, with a notice if an update of this pipeline may change it. `jreader`: with the user's options."""
        if name.key in self.own:
            settings.note(f"{name} is read while the code is loaded, so its rows are those that the update before has left")
        return loaded(spark, jreader or plain_reader(spark), "delta", self.paths[name.key])


def is_view(spark: SparkSession, name: str) -> bool:
    """Whether the session has a temporary view of a name."""
    return has_view(java_session(spark), name)


class OutsideTables:
    """The tables from outside of one update: those that `--table` names, and those that code creates while it is loaded.

    `created`: what Spark calls the tables that code created, by key. `foreign`: finds those of catalogs, which are only read.
    """

    def __init__(self, tables: Mapping[str, NamedTable], foreign: ForeignTables | None = None) -> None:
        self._tables = tables
        self.created: dict[str, str] = {}
        self.foreign = foreign or ForeignTables()

    def __bool__(self) -> bool:
        return bool(self._tables or self.created or self.foreign)

    def __contains__(self, key: str) -> bool:
        return key in self._tables or key in self.created

    def names(self) -> list[TableName]:
        """The full names of all of them."""
        return [*(table.name for table in self._tables.values()), *(TableName(*key.split(".", 2)) for key in self.created)]

    def by_key(self, key: str) -> NamedTable | None:
        """The table of `--table` with that full name in lower case, or None."""
        return self._tables.get(key)

    def readable(self, key: str) -> NamedTable | None:
        """The table of `--table`, or the one that a catalog was found to have, with that full name in lower case; or None."""
        return self._tables.get(key) or self.foreign.known(key)

    def schema_of(self, name: TableName) -> str:
        """The schema in Spark's own catalog for the created tables of one schema of the code."""
        return f"lakelet_made_{zlib.crc32(f'{name.catalog}.{name.schema}'.lower().encode()):08x}"

    def spark_name(self, name: TableName) -> str:
        """What a created table is called there: its own name where Spark takes it."""
        return name.name if re.fullmatch(r"[A-Za-z0-9_]+", name.name) else f"t_{zlib.crc32(name.name.lower().encode()):08x}"

    def drop_created(self) -> None:
        """Drop what code created. Spark's own catalog belongs to the whole process."""
        session = SparkSession.getActiveSession()
        if session is not None:
            for schema in {spark_name.split(".")[1] for spark_name in self.created.values()}:
                with suppress(PySparkException, Py4JError):
                    plain_sql(java_session(session), f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self.created.clear()


@dataclass(frozen=True)
class Outside:
    """The paths and tables from outside of one update, and the tables that its storage holds."""

    paths: PathMap = field(default_factory=PathMap)
    tables: OutsideTables = field(default_factory=lambda: OutsideTables({}))
    stored: StorageTables = field(default_factory=StorageTables)


_active = Outside()


def outside_tables() -> OutsideTables:
    """Return the tables from outside of the update that runs in this process; none outside of updates."""
    return _active.tables


def stored_tables() -> StorageTables:
    """Return the tables in the storage of the update that runs in this process; none outside of updates."""
    return _active.stored


def active_map() -> PathMap:
    """Return the path map of the update that runs in this process; an empty one outside of updates."""
    return _active.paths


@contextmanager
def using(outside: Outside) -> Iterator[None]:
    """Use `outside` in this process for the life of the block; at its end, drop the tables that user code created."""
    global _active
    before, _active = _active, outside
    try:
        yield
    finally:
        try:
            outside.tables.drop_created()
        finally:
            _active = before


__all__ = [
    "Outside", "OutsideTables", "StorageTables",
    "active_map", "is_view", "outside_tables", "stored_tables", "using",
]  # fmt: skip
