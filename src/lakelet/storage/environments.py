"""Environments: storages over a main storage, in which changed datasets are computed while everything else is read from there, pinned.

In: the main storage and a folder. Out: a storage in that folder with the main storage's registry and published views, and tables that
are copied by reference when they are read (`base_storage`). No Spark, and nothing is written to the main storage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from lakelet.base.failpoints import reached
from lakelet.base.names import TableName
from lakelet.config.update_config import PipelineConfig
from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath, names_in
from lakelet.storage.base_storage import BaseStorage, save_base, versions_in
from lakelet.storage.root import INTERNAL, Storage, flow_folders, new_table_path

FOLDER = "environments"
"""Folder of a main storage with the environments that have names."""
_SMALL_FILES = ("views.json", "checks.json", "definitions.json")
"""What lies beside a registry and is copied with it."""


def begin_environment(main: AnyPath, root: Path) -> Storage:
    """Begin an environment over the storage `main` in the folder `root`, or return the environment that it has.

    Raises LAKELET_STORAGE_BUSY while an update of the main storage runs: checkpoints and tables would not belong together.
    """
    environment = Storage(root)
    if environment.registry_file.exists():
        return environment
    storage = Storage(main)
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
    started = Storage(root)  # another object: this one may have looked for its base before
    started.save(replace(registry, last_update=replace(last, clean=True) if last else None))
    return started


def environment_config(config: PipelineConfig, root: Path) -> PipelineConfig:
    """The configuration of a pipeline that runs in the environment in `root`."""
    return replace(config, storage=root, paths=replace(config.paths, kept=(*config.paths.kept, str(root))))


def provide(storage: Storage, datasets: Iterable[TableName]) -> bool:
    """Let datasets be computed in an environment: the state of the flows into them goes on from the main storage's.

    Return whether any was copied; nothing happens in other storages. Raises as `BaseStorage.provide_flows`.
    """
    base, root = storage.base, storage.root
    if base is None or not isinstance(root, Path):
        return False
    registry, copied = storage.registry(), False
    for name in datasets:
        stored = registry.datasets.get(name.key)
        checkpoints, states = flow_folders(name)
        if not (root / checkpoints).exists():
            base.provide_flows(stored.path if stored else new_table_path(name), (states, checkpoints), root)
            copied = True
    return copied


__all__ = ["FOLDER", "begin_environment", "environment_config", "provide"]
