"""Environments: storages over a main storage, in which changed datasets are computed while everything else is read from there, pinned.

In: the main storage and a folder. Out: a storage in that folder with the main storage's registry and published views, and tables that
are copied by reference when they are read (`base_storage`). No Spark, and nothing is written to the main storage.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.failpoints import reached
from lakelet.base.names import TableName, split_name
from lakelet.config.update_config import PipelineConfig
from lakelet.files.delta_log import TableLog
from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath, names_in, remove_tree
from lakelet.storage.base_storage import BaseStorage, load_base, save_base, versions_in
from lakelet.storage.promotion import is_unfinished, written_datasets
from lakelet.storage.recorded_definitions import forget_definitions
from lakelet.storage.root import INTERNAL, Storage, StorageRegistry, StoredDataset, flow_folders, new_table_path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
FOLDER = "environments"
"""Folder of a main storage with the environments that have names."""
_BEGUN = "registry-begun.json"
"""The registry of an environment as it was when it began."""
_DROPPED = ".dropped-"
"""Start of the names of folders that are being removed."""
_SMALL_FILES = ("views.json", "checks.json", "definitions.json")
"""What lies beside a registry and is copied with it."""


def begin_environment(main: AnyPath, root: Path) -> Storage:
    """Begin an environment over the storage `main` in the folder `root`, or return the environment that it has.

    Raises LAKELET_STORAGE_BUSY while an update of the main storage runs: checkpoints and tables would not belong together. Raises
    PROMOTION_UNFINISHED for the same reason.
    """
    environment = Storage(root)
    if environment.registry_file.exists():
        return environment
    storage = Storage(main)
    if is_unfinished(storage):
        todo = "Complete it by the same command, or by: lakelet run"
        raise LakeletError("PROMOTION_UNFINISHED", f"a promotion into {storage.root} was not completed", todo=todo)
    while True:
        storage.refuse_if_busy()
        registry = storage.reload()
        versions = versions_in(storage.root, INTERNAL)
        if storage.reload() == registry and versions_in(storage.root, INTERNAL) == versions:
            storage.refuse_if_busy()
            break
    last = registry.last_update
    began = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    save_base(root, BaseStorage(str(storage.root), began, last.id if last else None, versions))
    for name in _SMALL_FILES:
        if name in names_in(storage.system):
            write_atomically(environment.system / name, (storage.system / name).read_text())
    reached("environment.begun")
    begun = replace(registry, last_update=replace(last, clean=True) if last else None)
    write_atomically(environment.system / _BEGUN, begun.to_json())
    started = Storage(root)  # another object: this one may have looked for its base before
    started.save(begun)
    return started


def environment_root(main: AnyPath, name: str) -> Path:
    """The folder of the environment of a name. Raises USAGE for a text that cannot be a name, STORAGE_UNSUPPORTED for a storage on S3."""
    if not isinstance(main, Path):
        todo = "Copy the storage to this machine, or name another one: --storage DIR"
        raise LakeletError("STORAGE_UNSUPPORTED", f"environments of {main} are not possible: it is not on this machine", todo=todo)
    if not _NAME.fullmatch(name):
        todo = "Use letters, digits, '-', '_' and '.'; the first one is a letter or a digit."
        raise LakeletError("USAGE", f"{name!r} is not a name of an environment", todo=todo)
    return main / FOLDER / name


def find_environment(main: AnyPath, name: str) -> Storage:
    """The environment of a name. Raises USAGE if there is none."""
    root = environment_root(main, name)
    if load_base(root) is None:
        known = environment_names(main)
        todo = f"Known: {', '.join(known)}" if known else f"Begin it: lakelet run --env {name}"
        raise LakeletError("USAGE", f"there is no environment {name} in {main}", todo=todo, nearest=nearest_names(name, known))
    return Storage(root)


def environment_names(main: AnyPath) -> list[str]:
    """The names of all environments of a storage."""
    found = [name for name in sorted(names_in(main / FOLDER)) if _NAME.fullmatch(name)]
    return [name for name in found if load_base(main / FOLDER / name) is not None]


@dataclass(frozen=True)
class PinnedVersion:
    """A version that an environment reads of a table of the main storage.

    `log`: the folder of the log in the table's: "" for its own, or the internal one of a change table.
    """

    environment: str
    log: str
    version: int


def pinned_versions(main: AnyPath) -> Mapping[str, tuple[PinnedVersion, ...]]:
    """The versions that all environments of a storage read, by the folder of the table below the root."""
    found: dict[str, tuple[PinnedVersion, ...]] = {}
    for name in environment_names(main):
        base = load_base(main / FOLDER / name)
        for table, versions in base.versions.items() if base else ():
            found[table] = (*found.get(table, ()), *(PinnedVersion(name, log, version) for log, version in versions.items()))
    return found


def drop_environment(environment: Storage) -> None:
    """Remove a named environment. Raises LAKELET_STORAGE_BUSY while it is updated."""
    environment.refuse_if_busy()
    folder = environment.root.parent
    assert isinstance(folder, Path)
    os.rename(str(environment.root), folder / f"{_DROPPED}{uuid.uuid4().hex}")
    reached("environment.dropped")
    for name in names_in(folder):
        if name.startswith(_DROPPED):
            remove_tree(folder / name)


@dataclass(frozen=True)
class EnvironmentTable:
    """A table that an environment has written.

    `version`: its present version there. `base`: that of the main storage's table when the environment began, None for a new table.
    """

    name: str
    env: str
    version: int
    base: int | None


def environment_tables(environment: Storage) -> list[EnvironmentTable]:
    """The tables that an environment has written, by name."""
    versions, name = environment.base.versions if environment.base else {}, environment.root.name
    return [
        EnvironmentTable(d.name, name, TableLog(environment.root / d.path).version(), versions.get(d.path, {}).get(""))
        for d in sorted(written_datasets(environment), key=lambda d: d.name)
    ]


def environment_config(config: PipelineConfig, root: Path) -> PipelineConfig:
    """The configuration of a pipeline that runs in the environment in `root`."""
    return replace(config, storage=root, paths=replace(config.paths, kept=(*config.paths.kept, str(root))))


def begin_datasets_again(storage: Storage, keys: Collection[str]) -> None:
    """Let datasets of an environment begin again from the main storage's tables; what was computed there is removed. It can be repeated."""
    root = storage.root
    assert isinstance(root, Path)
    begun = StorageRegistry.from_json((storage.system / _BEGUN).read_text(), source=_BEGUN)

    def meant(stored: StoredDataset) -> bool:
        return (stored.quarantine_of or stored.name).lower() in keys

    def mixed(present: Mapping[str, _Entry], before: Mapping[str, _Entry], again: Callable[[_Entry], bool]) -> dict[str, _Entry]:
        kept = {key: entry for key, entry in present.items() if not again(entry)}
        return {**kept, **{key: entry for key, entry in before.items() if again(entry)}}

    registry = storage.registry()
    removed = [stored for stored in registry.datasets.values() if meant(stored)]
    forget_definitions(storage, keys)
    flows = mixed(registry.flows, begun.flows, lambda flow: flow.target in keys)
    storage.save(replace(registry, datasets=mixed(registry.datasets, begun.datasets, meant), flows=flows))
    for stored in removed:
        for folder in (*reversed(flow_folders(TableName(*split_name(stored.name)))), stored.path):
            if (root / folder).exists():
                beside = root / "system" / f"{_DROPPED}{uuid.uuid4().hex}"
                os.rename(root / folder, beside)
                remove_tree(beside)
                reached("environment.begun_again")


_Entry = TypeVar("_Entry")


def provide(storage: Storage, datasets: Iterable[TableName], reset: Collection[str]) -> bool:
    """Let datasets be computed in an environment: the state of the flows into them goes on from the main storage's.

    `reset`: keys of those whose flows begin anew.

    Return whether what analysis reads of that state was copied: Auto Loader's, schemas of `from_json`, what has run once. Nothing happens
    in other storages. Raises as `BaseStorage.provide_flows`.
    """
    base, root = storage.base, storage.root
    if base is None or not isinstance(root, Path):
        return False
    registry, copied = storage.registry(), False
    for name in datasets:
        stored = registry.datasets.get(name.key)
        checkpoints, states = flow_folders(name)
        if not (root / checkpoints).exists():
            base.provide_flows(stored.path if stored else new_table_path(name), (states, checkpoints), root, reset=name.key in reset)
            copied |= bool(names_in(root / states)) or any((root / checkpoints).glob("*/*/once.json"))
    return copied


__all__ = [
    "FOLDER",
    "EnvironmentTable",
    "begin_datasets_again",
    "begin_environment",
    "drop_environment",
    "environment_config",
    "environment_names",
    "environment_root",
    "environment_tables",
    "find_environment",
    "provide",
]
