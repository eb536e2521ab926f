"""Promotion: tables of the main storage go on to the versions that an environment has computed. No Spark, no row is read or copied.

In: an environment and some of the datasets that it has written. Out: the main storage with their commits, the state of their flows and
their entries in the registry, as if it had computed them. The data files get a second name, by a link.

    <root>/system/promotion/   what is to be done: a plan, commits, checkpoints; complete as soon as it has this name

Whatever ends the process after that, `finish_promotion` completes it before anything else is written to the storage. Before that, the main
storage has new files that no commit names, nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.base.names import TableName, split_name
from lakelet.files.delta_log import TableLog
from lakelet.files.durable import create_atomically, write_atomically, writing
from lakelet.files.log_copy import own_paths
from lakelet.files.paths import LOG, remove_tree
from lakelet.files.table_files import is_absolute, located, marks_path
from lakelet.language.model import Kind
from lakelet.storage.base_storage import log_versions
from lakelet.storage.root import INTERNAL, Storage, StoredDataset, StoredFlow, flow_folders

_FOLDER, _PLAN, _FORMAT = "promotion", "plan.json", 1
_LOG_ORDER = (INTERNAL, "")
"""Of a change table the internal log has a commit before the table's own log shows it."""


def written_datasets(environment: Storage) -> tuple[StoredDataset, ...]:
    """The datasets whose tables have other versions in the environment than in the main storage when it began, quarantines among them."""
    base = environment.base
    stored = [d for d in environment.registry().datasets.values() if d.path and d.kind is not Kind.SINK]
    found = ((d, log_versions(environment.root / d.path, INTERNAL)) for d in stored)
    return tuple(d for d, versions in found if versions and versions != (base.versions.get(d.path, {}) if base else {}))


def is_there(main: Storage, environment: Storage, stored: StoredDataset) -> bool:
    """Whether the main storage has just the versions of a table that the environment has."""
    for log in _LOG_ORDER:
        own, theirs = TableLog(main.root / stored.path / log), TableLog(environment.root / stored.path / log)
        version = theirs.version()
        text = theirs.text(version)
        if own.version() != version or (version >= 0 and (text is None or own.text(version) != own_paths(text, own.path))):
            return False
    return True


@dataclass(frozen=True)
class _Commit:
    """One version of a log in the environment."""

    log: str
    version: int
    text: str


def promote(main: Storage, environment: Storage, datasets: Sequence[StoredDataset], *, owner: str) -> None:
    """Let tables of the main storage go on to the versions of an environment; `owner` is the pipeline that they belong to.

    The caller holds the leases of both storages, has found that neither these tables nor what they were computed from changed in the
    main storage, and has called `finish_promotion` before. Raises STORAGE_FAILED, PROMOTION_CONFLICT.
    """
    assert isinstance(main.root, Path)
    for old in main.system.glob(f"{_FOLDER}-*"):  # of a process that ended before it was complete
        remove_tree(old)
    beside = main.root / "system" / f"{_FOLDER}-{uuid.uuid4().hex}"
    with writing(main.system):
        for stored in datasets:
            _link_files(main.root / stored.path, environment.root / stored.path, _commits(environment, stored))
        reached("promotion.files_linked")
        _stage(beside, main, environment, [replace(stored, owner=owner) for stored in datasets])
        os.rename(beside, main.root / "system" / _FOLDER)
    reached("promotion.staged")
    finish_promotion(main)


def _commits(environment: Storage, stored: StoredDataset) -> Iterator[_Commit]:
    """What the environment has committed to a table since it began."""
    known = environment.base.versions.get(stored.path, {}) if environment.base else {}
    for name in _LOG_ORDER:
        log = TableLog(environment.root / stored.path / name)
        for version in range(known.get(name, -1) + 1, log.version() + 1):
            text = log.text(version)
            if text is None:
                what = f"version {version} of {log.path} was removed, so {stored.name} cannot be promoted"
                raise LakeletError("PROMOTION_CONFLICT", what, dataset=stored.name, todo=f"lakelet env drop {environment.root.name}")
            yield _Commit(name, version, text)


def _link_files(table: Path, theirs: Any, commits: Iterable[_Commit]) -> None:
    """Give the files that commits of the environment bring a second name in the table's folder."""
    for commit in commits:
        for path in _new_files(commit.text):
            source, target = located(theirs / commit.log, path), located(table / commit.log, path)
            assert isinstance(source, Path)
            assert isinstance(target, Path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() and source.exists():  # VACUUM may have removed one that a later commit removed
                _link(source, target)


def _new_files(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        action = json.loads(line) if line.startswith(('{"add"', '{"cdc"')) else {}
        for body in action.values():
            yield from (path for path in (body["path"], marks_path(body.get("deletionVector"))) if path and not is_absolute(path))


def _link(source: Path, target: Path) -> None:
    """A second name for a file that nobody changes; a copy where the file system has no links."""
    try:
        os.link(source, target)
    except FileExistsError:
        pass
    except OSError:
        beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        shutil.copy2(source, beside)
        os.replace(beside, target)


def _stage(folder: Path, main: Storage, environment: Storage, datasets: Sequence[StoredDataset]) -> None:
    """Write the plan, with everything that it needs of the environment."""
    flows = [f for f in environment.registry().flows.values() if f.target in {d.name.lower() for d in datasets}]
    folders = [folder for d in datasets for folder in flow_folders(TableName(*split_name(d.name))) if (environment.root / folder).exists()]
    for stored in datasets:
        for commit in _commits(environment, stored):
            log = folder / "logs" / stored.path / commit.log / LOG
            own = own_paths(commit.text, main.root / stored.path / commit.log)
            write_atomically(log / f"{commit.version:020d}.json", own)
            checksum = environment.root / stored.path / commit.log / LOG / f"{commit.version:020d}.crc"
            if checksum.exists():
                found = json.loads(checksum.read_text())
                write_atomically(log / checksum.name, json.dumps({k: v for k, v in found.items() if k != "allFiles"}))
    for name in folders:
        shutil.copytree(str(environment.root / name), folder / "flows" / name)
    logs = [[d.path, log] for d in datasets for log in _LOG_ORDER]
    plan = {
        "format": _FORMAT,
        "logs": logs,
        "folders": folders,
        "datasets": [asdict(d) for d in datasets],
        "flows": [asdict(f) for f in flows],
    }
    write_atomically(folder / _PLAN, json.dumps(plan, indent=1))


def is_unfinished(storage: Storage) -> bool:
    """Whether a promotion into the storage has to be completed."""
    return isinstance(storage.root, Path) and (storage.root / "system" / _FOLDER / _PLAN).exists()


def finish_promotion(storage: Storage) -> None:
    """Complete a promotion that is planned; nothing happens without one. It can be repeated. The caller holds the lease.

    Raises PROMOTION_CONFLICT if somebody else has committed to one of the tables meanwhile, FORMAT_UNKNOWN for a plan of another format.
    """
    if not is_unfinished(storage):
        return
    assert isinstance(storage.root, Path)
    folder = storage.root / "system" / _FOLDER
    plan = json.loads((folder / _PLAN).read_text())
    if plan["format"] != _FORMAT:
        raise unknown_format(folder / _PLAN, plan["format"], _FORMAT)
    for path, log in plan["logs"]:
        staged, own = folder / "logs" / path / log / LOG, storage.root / path / log / LOG
        for file in sorted(staged.glob("*.json")) if staged.exists() else ():
            _commit(own / file.name, file.read_text(), storage)
            checksum = file.with_suffix(".crc")
            if checksum.exists():
                create_atomically(own / checksum.name, checksum.read_text(), alone=True)
            reached("promotion.committed")
    for name in plan["folders"]:
        if (folder / "flows" / name).exists():
            remove_tree(storage.root / name)
            reached("promotion.flows_removed")
            (storage.root / name).parent.mkdir(parents=True, exist_ok=True)
            os.rename(folder / "flows" / name, storage.root / name)
            reached("promotion.flows_moved")
    registry = storage.reload()
    datasets = {d["name"].lower(): StoredDataset(**d) for d in plan["datasets"]}
    flows = {flow.key: flow for flow in (StoredFlow(**f) for f in plan["flows"])}
    storage.save(replace(registry, datasets={**registry.datasets, **datasets}, flows={**registry.flows, **flows}))
    reached("promotion.registered")
    (folder / _PLAN).unlink()
    remove_tree(folder)


def _commit(file: Path, text: str, storage: Storage) -> None:
    with writing(file):
        if create_atomically(file, text) or file.read_text() == text:
            return
    raise LakeletError(
        "PROMOTION_CONFLICT",
        f"the promotion cannot be completed: somebody else has written {file}",
        why="another program committed to the table while it was promoted",
        todo=f"Take the table back to the version before (RESTORE), remove {file}, and run the same command again; "
        f"or remove {storage.system / _FOLDER} and do a full refresh of the table.",
    )


__all__ = ["finish_promotion", "is_there", "is_unfinished", "promote", "written_datasets"]
