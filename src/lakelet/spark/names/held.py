"""Tables of the storage by name, for code that runs outside of dataset functions: as they are stored when the code asks (LG-23).

Inside a dataset's function its reader answers. Outside of one a table is what the last update left, or does not exist yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.names import Namespace, TableName
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import any_path
from lakelet.jvm.frames import loaded
from lakelet.jvm.sessions import has_view, java_session, plain_reader
from lakelet.spark import settings
from lakelet.storage.root import HeldTables, Storage


@dataclass(frozen=True)
class Held:
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
    def of(cls, storage: Storage, stored: HeldTables, owner: str, namespace: Namespace) -> Held:
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


__all__ = ["Held", "is_view"]
