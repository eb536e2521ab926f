"""The schema logs of a dataset's sources: what each version brought, how two differ, and going back to an earlier one.

A log only grows: going back stores a new version that equals the old one, under the storage's lease, so that no update runs meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.source_schema import SchemaLog, SchemaLogVersion
from lakelet.autoloader.source_spec import LOCATION_FILE
from lakelet.autoloader.state.source_moves import noted
from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName, split_name
from lakelet.files.moves import PROJECT, STORAGE, is_below, replaced
from lakelet.inspection.table_lookup import find_dataset
from lakelet.spark.names.cloud_files_state import FileSourceState, json_logs_of, sources_of
from lakelet.storage.root import Storage

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.files.paths import AnyPath


@dataclass(frozen=True)
class ColumnDifference:
    """One difference: a column or field by its dotted path, its type before (None: new) and after (None: gone)."""

    name: str
    before: str | None
    after: str | None

    def as_json(self) -> dict[str, str | None]:
        return {"name": self.name, "from": self.before, "to": self.after}


@dataclass(frozen=True)
class SchemaVersion:
    """One version of a log.

    `at`: ISO 8601 in UTC, None where nobody noted it; `reason`: why it was stored; `file`: the first file behind it.
    """

    number: int
    at: str | None
    reason: str
    file: str | None
    changes: tuple[ColumnDifference, ...]

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "changes": [change.as_json() for change in self.changes]}


@dataclass(frozen=True)
class SourceHistory:
    """The versions of one source, oldest first.

    `source`: `<flow>/<number>` or `<flow>/from_json:<key>`; `location`: the folder above `_schemas`.
    """

    source: str
    location: str
    versions: tuple[SchemaVersion, ...]

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source, "location": self.location, "versions": [version.as_json() for version in self.versions]}


def read_history(storage: AnyPath, name: str) -> list[SourceHistory]:
    """The schema logs of a dataset: of its sources that read files with inferred columns, and of each `from_json` without a schema.

    Raises UNKNOWN_TABLE for a name that is not stored, CF_STATE_DAMAGED for a log that cannot be read.
    """
    return [_history(source, location) for source, location in _schema_logs(Storage(storage), name)]


def differences(storage: AnyPath, name: str, first: int, second: int, *, source: str | None = None) -> tuple[ColumnDifference, ...]:
    """Return the changes from version `first` to `second` of one source. Raises USAGE where the source or a version does not exist."""
    _, location = _one_source(Storage(storage), name, source)
    versions = _versions(location)
    return tuple(_changes(_find_version(versions, first, location), _find_version(versions, second, location)))


@dataclass(frozen=True)
class SchemaRollback:
    """`number`: the new version; `changes`: what it takes back, seen from the version before it."""

    source: str
    number: int
    changes: tuple[ColumnDifference, ...]


def roll_back(storage: AnyPath, name: str, to: int, *, source: str | None = None) -> SchemaRollback:
    """Store a new version that equals version `to` of one source; the next update starts with it.

    Raises LAKELET_STORAGE_BUSY while an update runs, USAGE where the source or version does not exist or is the newest one already.
    """
    root = Storage(storage)
    shown, location = _one_source(root, name, source)
    with root.lease(str(uuid.uuid4())):
        versions = _versions(location)
        wanted, newest = _find_version(versions, to, location), versions[-1]
        changes = tuple(_changes(newest, wanted))
        if not changes:
            raise LakeletError(
                "USAGE", f"version {newest.number} of {shown} has the columns of version {to}; there is nothing to go back to"
            )
        origin = {"reason": f"rolled back to version {to}", "rolled_back_to": to, "at": _now_text()}
        made = SchemaLog(location).append(newest.number + 1, wanted.data, wanted.partitions, origin)
    return SchemaRollback(shown, made.number, changes)


def _schema_logs(storage: Storage, name: str) -> Iterator[tuple[str, str]]:
    """(source, location) of each source of a dataset that has a schema log, and of each `from_json` without a schema."""
    stored = find_dataset(storage.registry(), name)
    for source in sources_of(storage, TableName(*split_name(stored.name))):
        location = _source_location(source, str(storage.root))
        if SchemaLog(location).latest() is not None:
            yield f"{source.flow}/{source.number}", location
    for flow, location in json_logs_of(storage, TableName(*split_name(stored.name))):
        versions = _versions(location)
        if versions:
            yield f"{flow}/{versions[0].origin.get('source', 'from_json')}", location


def _source_location(source: FileSourceState, storage: str) -> str:
    """The folder of the source's schema log: its state folder, or the cloudFiles.schemaLocation that was noted there."""
    files, folder = files_for(str(source.state))
    try:
        location = files.read(f"{folder.rstrip('/')}/{LOCATION_FILE}").decode().strip()
    except FileNotFoundError:
        return str(source.state)
    reads = noted(str(source.state))
    return location if reads is None else _as_moved(location, reads.folder.roots, storage)


def _as_moved(location: str, roots: Mapping[str, str], storage: str) -> str:
    """A path as of a source's last start, if the storage was moved since then, alone or with its project."""
    before, project = roots.get(STORAGE, storage), roots.get(PROJECT, "")
    if before == storage:
        return location
    moves, inside = [(before, storage)], before[len(project) :] if project and is_below(before, project) else ""
    moves += [(project, storage[: -len(inside)])] if inside and storage.endswith(inside) else []
    return next((after for move in moves if (after := replaced(location, [move])) != location), location)


def _one_source(storage: Storage, name: str, wanted: str | None) -> tuple[str, str]:
    found = list(_schema_logs(storage, name))
    chosen = [pair for pair in found if wanted is None or wanted in (pair[0], pair[0].rpartition("/")[2])]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(source for source, _ in found)
    if not found:
        raise LakeletError("USAGE", f"{name} has no source whose columns were inferred", todo="List all names: lakelet show")
    what = f"{name} has no source {wanted}" if wanted and not chosen else f"{name} has several sources"
    raise LakeletError("USAGE", what, todo=f"Choose one with --source: {known}")


def _versions(location: str) -> list[SchemaLogVersion]:
    return SchemaLog(location).history()


def _find_version(versions: Sequence[SchemaLogVersion], number: int, location: str) -> SchemaLogVersion:
    for version in versions:
        if version.number == number:
            return version
    known = ", ".join(str(version.number) for version in versions)
    raise LakeletError("USAGE", f"{location} has no schema version {number}", todo=f"It has {known}.")


def _history(source: str, location: str) -> SourceHistory:
    versions = _versions(location)
    before: list[SchemaLogVersion | None] = [None, *versions]
    return SourceHistory(source, location, tuple(_described_version(old, new) for old, new in zip(before, versions, strict=False)))


def _described_version(before: SchemaLogVersion | None, version: SchemaLogVersion) -> SchemaVersion:
    origin = version.origin
    reason = origin.get("reason") or ("new columns arrived" if origin.get("added") else "types grew" if origin.get("widened") else "edited")
    return SchemaVersion(version.number, origin.get("at"), reason, origin.get("first_file"), tuple(_changes(before, version)))


def _changes(before: SchemaLogVersion | None, after: SchemaLogVersion) -> Iterator[ColumnDifference]:
    old, new = _types_by_path(before) if before else {}, _types_by_path(after)
    yield from (ColumnDifference(path, old.get(path), kind) for path, kind in new.items() if old.get(path) != kind)
    yield from (ColumnDifference(path, kind, None) for path, kind in old.items() if path not in new)


def _types_by_path(version: SchemaLogVersion) -> Mapping[str, str]:
    return {**dict(_fields(version.data, "")), **dict(_fields(version.partitions, ""))}


def _fields(schema: StructType, prefix: str) -> Iterator[tuple[str, str]]:
    """Columns with their types, and fields of structs by dotted path: a struct itself only as `struct`."""
    from pyspark.sql.types import StructType

    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield f"{prefix}{field.name}", "struct"
            yield from _fields(field.dataType, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", field.dataType.simpleString()


def _now_text() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
