"""Registers the tables of a storage in a catalog, and removes those that are gone: decisions, and the record of what was published.

A catalog belongs to others, too: what a pipeline did not register, it neither changes nor removes. The record names a table before the
catalog gets it, so that a process that dies in between leaves nothing unknown.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.base.phases import report
from lakelet.base.text import TextEnum
from lakelet.files.durable import write_atomically
from lakelet.files.paths import LOG, AnyPath
from lakelet.storage.catalogs.client import CatalogAddress, CatalogClient, CatalogEntry
from lakelet.storage.catalogs.published_tables import PublishedTable, published_tables
from lakelet.storage.lease import PUBLISHING
from lakelet.storage.root import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE, _FORMAT = "published.json", 1


class Action(TextEnum):
    """What publishing did with a table."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    REFUSED = "refused"
    FAILED = "failed"


_WRITTEN = (Action.CREATED, Action.UPDATED)


@dataclass(frozen=True)
class PublishResult:
    """What was done with one table. `name`: of the dataset; `catalog`: `hive` or `uc`; `entry`: its name there."""

    name: str
    catalog: str
    entry: str
    action: Action
    error: LakeletError | None = None

    def as_json(self) -> dict[str, str | None]:
        """The result as plain JSON values."""
        code = self.error.code if self.error else None
        return {"name": self.name, "catalog": self.catalog, "entry": self.entry, "action": self.action.value, "error": code}


@dataclass(frozen=True)
class _Record:
    """A table that was published, or is going to be. `digest`: of what the catalog got; empty while that is not certain."""

    name: str
    entry: str
    owner: str
    digest: str = ""


def catalogs(settings: Mapping[str, str], spark: Callable[[], SparkSession]) -> list[CatalogAddress]:
    """The catalogs that the setting `publish` or `catalogs` names. `spark`: gives a session to those that need one."""
    if not settings:
        return []
    from lakelet.storage.catalogs.hive import hive_catalog
    from lakelet.storage.catalogs.unity import unity_catalog  # loads Python's HTTP client

    connect = {"hive": hive_catalog, "uc": unity_catalog}
    return [CatalogAddress(kind, address, partial(connect[kind], address, spark)) for kind, address in settings.items()]


def publish_stored(
    root: AnyPath, settings: Mapping[str, str], spark: Callable[[], SparkSession], *, remove_all: bool = False
) -> tuple[list[PublishResult], list[LakeletError]]:
    """Publish all tables of the storage at `root` in the catalogs of a setting; what was done, and the errors of whole catalogs.

    `spark`: gives a session where one is needed. `remove_all`: remove them instead. Raises LAKELET_STORAGE_BUSY while an update
    runs, and USAGE for an environment.
    """
    storage, found, errors = Storage(root), list[PublishResult](), list[LakeletError]()
    if storage.base is not None:
        what, todo = f"{root} is an environment, and environments publish nothing", f"Type: lakelet env promote {root.name}"
        raise LakeletError("USAGE", what, todo=todo)
    storage.refuse_if_busy()
    with storage.lease(f"{PUBLISHING}{uuid.uuid4()}"):
        for catalog in catalogs(settings, spark):
            report(f"Publishing in the catalog '{catalog.kind}'")
            try:
                found += publish(storage, catalog, every=True, remove_all=remove_all)
            except LakeletError as problem:
                errors.append(problem)
    return found, errors


def publish(
    storage: Storage, catalog: CatalogAddress, *, owners: Collection[str] | None = None, every: bool = False, remove_all: bool = False
) -> list[PublishResult]:
    """Register the tables of a storage in a catalog and remove those that are not published any more. Return what was done, by name.

    Args:
        owners: ids of the pipelines whose tables are meant; None for all.
        every: compare each table with the catalog; else only those that changed since they were published.
        remove_all: remove all instead.

    The error of a table is in its result, and the others go on. Raises CATALOG_UNREACHABLE, FORMAT_UNKNOWN. Where nothing changed, the
    catalog is not asked.
    """
    record = dict(_load(storage, catalog))
    mine = {key: one for key, one in record.items() if owners is None or one.owner in owners}
    wanted = {} if remove_all else published_tables(storage, owners)
    changed = {key: table for key, table in wanted.items() if every or key not in mine or mine[key].digest != table.digest}
    gone = {key: one for key, one in mine.items() if key not in wanted}
    if not changed and not gone:
        return []
    found: list[PublishResult] = []
    with catalog.connect() as client:
        entries = {key: client.entry(table) for key, table in wanted.items()}
        before = {key: mine[key].owner if key in mine else table.owner for key, table in changed.items()}
        first = {key: _same_name(key, entries, mine) for key in changed}
        results = {key: PublishResult(str(table.name), catalog.kind, entries[key].name, Action.UNCHANGED) for key, table in changed.items()}
        decided = {
            key: _decide(storage, client, result, entries[key], {changed[key].owner, before[key]}, first[key])
            for key, result in results.items()
        }
        records = {key: _Record(result.name, result.entry, before[key]) for key, result in decided.items()}
        record |= {key: records[key] for key, result in decided.items() if result.action in _WRITTEN}
        _save(storage, catalog, record)
        reached("publish.begun")
        try:
            kept = {entry.name for entry in entries.values()}
            for key, one in gone.items():
                result = _remove(storage, client, catalog.kind, one, {one.owner, *(owners or ())}, keep=one.entry in kept)
                found += [result] if result is not None else []
                if result is None or result.error is None:
                    del record[key]
            for key, result in decided.items():
                done = _write(client, changed[key], result)
                found.append(done)
                if done.action is Action.REFUSED:
                    record.pop(key, None)
                elif done.error is None:
                    record[key] = replace(records[key], owner=changed[key].owner, digest=changed[key].digest)
            reached("publish.registered")
        finally:
            _save(storage, catalog, record)
    return sorted(found, key=lambda result: result.name)


def _same_name(key: str, entries: Mapping[str, CatalogEntry], had: Container[str]) -> str | None:
    """The key of a table that comes first and has the same name in the catalog. Those that were published before (`had`) come first."""
    same = [other for other, entry in entries.items() if entry.name == entries[key].name]
    first = min(same, key=lambda one: (one not in had, one))
    return None if first == key else first


def _copied_from(storage: Storage, before: CatalogEntry) -> str | None:
    """The folder of an entry, if it is a table in another storage of this machine: then this storage is a copy of that one."""
    plain = re.sub("^file:/+", "/", before.location)
    for path in map(os.path.realpath, {plain, unquote(plain)} if plain.startswith("/") else ()):
        if os.path.isdir(os.path.join(path, LOG)) and not Path(path).is_relative_to(os.path.realpath(str(storage.root))):
            return path
    return None


def _decide(
    storage: Storage, client: CatalogClient, result: PublishResult, entry: CatalogEntry, owners: Container[str | None], other: str | None
) -> PublishResult:
    """Say what has to be done with a table.

    `owners`: the id of its owner, and that under which it was published before; `other`: the table that has its name already.
    """
    if other is not None:
        return _refused(result, f"{other} has that name there already: the catalog has no name for the catalog of a table.")
    try:
        before = client.find(entry.name)
    except LakeletError as problem:
        return _failed(result, problem)
    if before is None:
        return replace(result, action=Action.CREATED)
    if before.owner not in owners:
        return _refused(
            result, f"The pipeline with the id {before.owner} published it." if before.owner else "Lakelet did not register it."
        )
    copied = _copied_from(storage, before)
    if copied is not None:
        return _refused(result, f"It is the table in {copied}: this storage is a copy of that one.")
    return result if before == entry else replace(result, action=Action.UPDATED)


def _write(client: CatalogClient, table: PublishedTable, result: PublishResult) -> PublishResult:
    """Do what was decided about a table."""
    try:
        if result.action is Action.CREATED:
            client.create(table)
        elif result.action is Action.UPDATED:
            client.update(table)
    except LakeletError as problem:
        return _failed(result, problem)
    return result


def _remove(
    storage: Storage, client: CatalogClient, kind: str, one: _Record, owners: Container[str | None], *, keep: bool
) -> PublishResult | None:
    """Remove a table that is not published any more; None if it is gone or another's now. `keep`: a published table has its name."""
    result = PublishResult(one.name, kind, one.entry, Action.REMOVED)
    try:
        before = None if keep else client.find(one.entry)
        if before is None or before.owner not in owners or _copied_from(storage, before) is not None:
            return None
        client.remove(one.entry)
    except LakeletError as problem:
        return _failed(result, problem)
    return result


def _failed(result: PublishResult, problem: LakeletError) -> PublishResult:
    """The result of a table that the catalog refused. Raises any other problem: that of the catalog as a whole."""
    if problem.code != "PUBLISH_FAILED":
        raise problem
    error = LakeletError(problem.code, problem.what, dataset=result.name, why=problem.why, todo=problem.todo)
    return replace(result, action=Action.FAILED, error=error)


def _refused(result: PublishResult, why: str) -> PublishResult:
    error = LakeletError(
        "PUBLISH_REFUSED",
        f"the catalog `{result.catalog}` has another table {result.entry}, which stays as it is",
        dataset=result.name,
        why=why,
        todo="Give the table another name or schema, or remove the other one there. Then type: lakelet publish",
    )
    return replace(result, action=Action.REFUSED, error=error)


# --- the record ---------------------------------------------------------------------------------------------------------------------------


def _load(storage: Storage, catalog: CatalogAddress) -> Mapping[str, _Record]:
    """What was published at the address, by key. Raises FORMAT_UNKNOWN."""
    return {key: _Record(**one) for key, one in _read(storage).get(f"{catalog.kind} {catalog.address}", {}).items()}


def _save(storage: Storage, catalog: CatalogAddress, record: Mapping[str, _Record]) -> None:
    """Replace what was published at the address; nothing is written where nothing changed."""
    before = _read(storage)
    here = {f"{catalog.kind} {catalog.address}": {key: asdict(one) for key, one in sorted(record.items())}}
    after = {name: tables for name, tables in {**before, **here}.items() if tables}
    if after != before:
        write_atomically(storage.system / _FILE, json.dumps({"format": _FORMAT, "catalogs": after}, indent=1))


def _read(storage: Storage) -> dict[str, Any]:
    try:
        found = json.loads((storage.system / _FILE).read_text())
    except (FileNotFoundError, ValueError):  # cut off: each table is compared with the catalog again
        return {}
    if found.get("format") != _FORMAT:
        raise unknown_format(_FILE, found.get("format"), _FORMAT, remedy=f"remove {storage.system / _FILE}: the next update writes it.")
    catalogs: dict[str, Any] = found["catalogs"]
    return catalogs


__all__ = ["Action", "PublishResult", "catalogs", "publish", "publish_stored"]
