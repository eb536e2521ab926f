"""The storage that an environment lies over (docs/decisions/0097-environments.md). No Spark, and nothing is ever written to it.

    <environment>/system/base.json   where the main storage lies, and the version of each of its tables when the environment began

A table is copied into the environment when something there asks for it: its log, up to the recorded version, with the files where they are
(`log_copy`). The state of the flows into a table is copied when the table is computed there: checkpoints and Auto Loader's small files.
So an environment is a storage like any other; only the rows of its tables lie elsewhere.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.files.delta_log import TableLog
from lakelet.files.durable import write_atomically, writing
from lakelet.files.log_copy import copy_log
from lakelet.files.paths import LOG, AnyPath, any_path, names_in, remove_tree
from lakelet.storage.lease import Lease

FORMAT = 1
_FILE = "base.json"
_lock = threading.Lock()


@dataclass(frozen=True)
class BaseStorage:
    """The main storage of an environment, as it was when the environment began.

    Attributes:
        root: where it lies.
        began: when the environment began, ISO 8601.
        update: the id of the last update there, None if there was none.
        versions: by the folder of a table below the root the version of each of its logs, by the folder of that in the table's: its own,
            called "", and the internal one of a change table.
    """

    root: str
    began: str
    update: str | None
    versions: Mapping[str, Mapping[str, int]]

    @property
    def path(self) -> AnyPath:
        return any_path(self.root)

    def provide_table(self, table: str, environment: Path) -> None:
        """Copy the logs of a table (its folder below the root) into the environment, if it has none there.

        Raises ENVIRONMENT_BEHIND if the main storage does not have the recorded version any more, LOG_NOT_COPIED.
        """
        if table not in self.versions or (environment / table / LOG).is_dir():
            return

        def copy(folder: Path) -> None:
            for log, version in self.versions[table].items():
                if TableLog(self.path / table / log).version() < version:
                    raise behind(table, environment)
                copy_log(self.path / table / log, folder / log, version)

        with _lock, _beside(environment, copy) as filled:
            _take(filled, environment / table)
        reached("environment.table_copied")

    def has_moved(self, table: str) -> bool:
        """Whether the main storage has another version of a table than the recorded one."""
        return any(TableLog(self.path / table / log).version() != version for log, version in self.versions.get(table, {"": -1}).items())

    def provide_flows(self, table: str, folders: Sequence[str], environment: Path, *, reset: bool = False) -> None:
        """Copy folders with checkpoints and states of sources into the environment, an empty one where the main storage has none.

        Args:
            table: the folder of the table that the flows write to, below the root.
            folders: also below the root. Those that the environment has stay; with the last one all are there.
            environment: its folder.
            reset: the flows begin anew, so that no state is copied.

        Raises ENVIRONMENT_BEHIND if the table was updated since the environment began: its flows have read more than the recorded version
        has. Raises LAKELET_STORAGE_BUSY while the main storage is updated.
        """
        missing = [folder for folder in folders if not (environment / folder).exists()]

        def copy(target: Path) -> None:
            stored = [] if reset else [folder for folder in missing if names_in(self.path / folder)]
            for folder in missing:
                (target / folder).mkdir(parents=True)
            for folder in stored:
                source = self.path / folder
                if not isinstance(source, Path):
                    raise LakeletError("LOG_NOT_COPIED", f"{source} is not on this machine, so no environment can go on from it")
                shutil.copytree(source, target / folder, dirs_exist_ok=True)
            if stored:  # the flows of materialized views have no state
                Lease(self.path).refuse_if_busy()
                if self.has_moved(table):
                    raise behind(table, environment)

        with _beside(environment, copy) as filled:
            for folder in missing:
                _take(filled / folder, environment / folder)
        reached("environment.flows_copied")


@contextmanager
def _beside(environment: Path, fill: Callable[[Path], object]) -> Iterator[Path]:
    """A folder of the environment with what `fill` puts there; what is left of it at the end is removed."""
    folder = environment / "system" / f"copy-{uuid.uuid4().hex}"
    with writing(environment):
        try:
            folder.mkdir(parents=True)
            fill(folder)
            yield folder
        finally:
            remove_tree(folder)


def _take(folder: Path, target: Path) -> None:
    """Give a complete folder its name; what another process has put there first stays."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(folder, target)
    except OSError:
        if not target.exists():
            raise


def behind(table: str, environment: AnyPath) -> LakeletError:
    """The error for a table that the main storage has not as the environment recorded it."""
    return LakeletError(
        "ENVIRONMENT_BEHIND",
        f"the main storage does not have {table} any more as it was when the environment {environment.name} began",
        why="it was updated, reset or maintained since",
        todo=f"Begin again from what it has now: lakelet env drop {environment.name}",
    )


def log_versions(table: AnyPath, internal: str) -> Mapping[str, int]:
    """The present versions of a table's logs, by their folders in that of the table. `internal`: the folder of an internal log."""
    found = {log: TableLog(table / log).version() for log in ("", internal)}
    return {log: version for log, version in found.items() if version >= 0}


def versions_in(root: AnyPath, internal: str) -> Mapping[str, Mapping[str, int]]:
    """The present versions of all tables of a storage, as `BaseStorage.versions` has them. `internal`: see `log_versions`."""
    folders = root.glob("tables/*/*/*")
    found = {f"tables/{f.parent.parent.name}/{f.parent.name}/{f.name}": log_versions(f, internal) for f in folders}
    return {folder: versions for folder, versions in found.items() if versions}


def save_base(root: AnyPath, base: BaseStorage) -> None:
    """Record the main storage of the environment in `root`."""
    write_atomically(root / "system" / _FILE, json.dumps({"format": FORMAT, **asdict(base)}, indent=1))


def load_base(root: AnyPath) -> BaseStorage | None:
    """The main storage of the environment in `root`; None for any other storage. Raises FORMAT_UNKNOWN."""
    if not isinstance(root, Path):
        return None
    file = root / "system" / _FILE
    try:
        return _read_base(file, file.stat().st_mtime_ns)
    except FileNotFoundError:
        return None


@functools.lru_cache(maxsize=8)
def _read_base(file: Path, written: int) -> BaseStorage:
    """The content of a file that is never changed; `written`: when, for an environment of the same name may follow."""
    found = json.loads(file.read_text())
    stored = found.pop("format")
    if stored != FORMAT:
        raise unknown_format(file, stored, FORMAT)
    return BaseStorage(**found)


__all__ = ["BaseStorage", "behind", "load_base", "log_versions", "save_base", "versions_in"]
