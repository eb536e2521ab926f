"""What a storage publishes: its tables as values, as any catalog can take them. No Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lakelet.base.names import TableName, split_name
from lakelet.files.delta_rs import open_or_none, schema_fields
from lakelet.files.paths import AnyPath
from lakelet.language.model import Kind
from lakelet.storage.root import Storage, StoredDataset

_TABLES = (Kind.STREAMING_TABLE, Kind.MATERIALIZED_VIEW)


@dataclass(frozen=True)
class PublishedColumn:
    """A column. `type`: as Delta's schema has it in JSON; `comment`: empty for none."""

    name: str
    type: Any
    nullable: bool = True
    comment: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """A table for a catalog. `location`: of the Delta table, absolute; `comment`: empty for none; `owner`: the id of its pipeline."""

    name: TableName
    location: AnyPath
    columns: tuple[PublishedColumn, ...]
    comment: str
    owner: str

    @property
    def digest(self) -> str:
        """The same as long as a catalog would be given the same."""
        text = json.dumps([str(self.location), [asdict(column) for column in self.columns], self.comment, self.owner])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def published_tables(storage: Storage, owners: Collection[str] | None = None) -> Mapping[str, PublishedTable]:
    """The tables of a storage that are published, by their keys: those that a pipeline defines now and that have been written.

    Private tables, quarantines, sinks and views are not. `owners`: ids of pipelines whose tables are wanted; None for all.
    """
    found = {}
    for key, stored in sorted(storage.registry().datasets.items()):
        wanted = stored.active and not stored.private and stored.kind in _TABLES and stored.quarantine_of is None
        if wanted and (owners is None or stored.owner in owners) and (table := _published(storage, stored)) is not None:
            found[key] = table
    return found


def _published(storage: Storage, stored: StoredDataset) -> PublishedTable | None:
    """The table of a dataset; None as long as it has none."""
    path = storage.at(stored.path)
    table = open_or_none(path)
    if table is None:
        return None
    columns = tuple(
        PublishedColumn(field["name"], field["type"], field.get("nullable", True), str((field.get("metadata") or {}).get("comment") or ""))
        for field in schema_fields(table)
    )
    return PublishedTable(TableName(*split_name(stored.name)), path, columns, table.metadata().description or "", stored.owner or "")


__all__ = ["PublishedColumn", "PublishedTable", "published_tables"]
