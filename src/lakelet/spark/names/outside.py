"""Resolves names of user code outside of the pipeline: paths (`--map`) and tables (`--table`, and those that code makes).

It holds for the whole process: handlers of micro-batches and helper modules run outside of every dataset's function, some of them in other
threads.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

from lakelet.base.names import Namespace, TableName
from lakelet.config.named_tables import NamedTable
from lakelet.config.path_map import PathMap
from lakelet.jvm.errors import Py4JError
from lakelet.jvm.sessions import java_session, plain_sql
from lakelet.spark.names.held import Held


class Named:
    """The tables from outside of one update, and the namespace that completes names.

    `made`: what Spark calls the tables that code made while it was loaded, by key.
    """

    def __init__(self, tables: Mapping[str, NamedTable], namespace: Namespace) -> None:
        self._tables, self.namespace = tables, namespace
        self.made: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._tables or self.made)

    def __contains__(self, key: str) -> bool:
        return key in self._tables or key in self.made

    def names(self) -> list[TableName]:
        """The full names of all of them."""
        return [*(table.name for table in self._tables.values()), *(TableName(*key.split(".", 2)) for key in self.made)]

    def by_key(self, key: str) -> NamedTable | None:
        """The table with that full name in lower case, or None."""
        return self._tables.get(key)

    def find(self, text: str) -> NamedTable | None:
        """The table that a name of one to three parts means, or None."""
        return self._tables.get(self.key_of(text))

    def key_of(self, text: str) -> str:
        """The full name in lower case that a name of one to three parts means; empty for what is not a name."""
        try:
            return self.namespace.resolve(text).key if self else ""
        except ValueError:
            return ""

    def schema_of(self, name: TableName) -> str:
        """The schema in Spark's own catalog for the made tables of one schema of the code."""
        return f"lakelet_made_{zlib.crc32(f'{name.catalog}.{name.schema}'.lower().encode()):08x}"

    def spark_name(self, name: TableName) -> str:
        """What a made table is called there: its own name where Spark takes it."""
        return name.name if re.fullmatch(r"[A-Za-z0-9_]+", name.name) else f"t_{zlib.crc32(name.name.lower().encode()):08x}"

    def forget_made(self) -> None:
        """Drop what code made. Spark's own catalog belongs to the whole process."""
        session = SparkSession.getActiveSession()
        if session is not None:
            for schema in {spark_name.split(".")[1] for spark_name in self.made.values()}:
                with suppress(PySparkException, Py4JError):
                    plain_sql(java_session(session), f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self.made.clear()


@dataclass(frozen=True)
class Outside:
    """The paths and tables from outside of one update, and the tables that its storage holds."""

    paths: PathMap = field(default_factory=PathMap)
    tables: Named = field(default_factory=lambda: Named({}, Namespace()))
    held: Held = field(default_factory=Held)


_active = Outside()


def named() -> Named:
    """Return the named tables of the update that runs in this process; none outside of updates."""
    return _active.tables


def held() -> Held:
    """Return the tables in the storage of the update that runs in this process; none outside of updates."""
    return _active.held


def active_map() -> PathMap:
    """Return the path map of the update that runs in this process; an empty one outside of updates."""
    return _active.paths


@contextmanager
def using(outside: Outside) -> Iterator[None]:
    """Use `outside` in this process for the life of the block; at its end, drop the tables that user code made."""
    global _active
    before, _active = _active, outside
    try:
        yield
    finally:
        try:
            outside.tables.forget_made()
        finally:
            _active = before


__all__ = ["Held", "Named", "Outside", "active_map", "held", "named", "using"]
