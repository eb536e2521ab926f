"""Where source files find the modules they import: the import roots, and what they put on `sys.path` themselves. No Spark.

On Databricks a file says `sys.path.append("../lib")`, which is relative to its own folder, or names a folder of the workspace
(`/Workspace/Users/jo/shop/lib`). Neither is where it says when the update is called elsewhere, on this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from lakelet.base.errors import LakeletError
from lakelet.config.path_map import by_tail, in_workspace, is_of_workspace
from lakelet.config.source_files import MOST_FILES, FolderWalk
from lakelet.files.reads import note_path

_WORKSPACE = "/Workspace/"


class ImportPath:
    """Finder of modules that Python's own search does not find: in the folders that entries of `sys.path` correspond to here.

    `source` is the file that runs. It is the last finder that Python asks, so modules that are installed or found otherwise win.
    """

    def __init__(self, roots: Sequence[Path], files: Sequence[Path]) -> None:
        self.source: Path | None = None
        self._roots = [*roots]
        self._folders = list(dict.fromkeys(file.parent for file in files))
        self._ours: frozenset[str] = frozenset()

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The interface of `sys.meta_path`; only top-level modules are searched; Python finds their submodules."""
        folders = [str(folder) for folder in self.added()] if path is None else []
        return PathFinder.find_spec(name, folders, target) if folders else None

    def folders(self) -> list[Path]:
        """Where modules of the user may lie: the import roots and what was added."""
        return [*self._roots, *self.added()]

    def added(self) -> list[Path]:
        """Folders of this machine for the entries that user code added to `sys.path`, in search order."""
        entries = [entry for entry in sys.path if entry and entry not in self._ours]
        candidates = [folder for entry in entries for folder in self._candidate_folders(entry)]
        for folder in candidates:
            note_path(folder)
        return list(dict.fromkeys(folder.resolve() for folder in candidates if folder.is_dir()))

    def _candidate_folders(self, entry: str) -> Iterator[Path]:
        yield Path(entry)
        if entry.startswith(_WORKSPACE):
            yield Path(os.sep, entry.removeprefix(_WORKSPACE))  # people write it in front of a path that is one of this machine here
        if is_of_workspace(in_workspace(entry)):
            yield from by_tail(entry.removeprefix(_WORKSPACE), self._roots)
            return
        relative = os.path.relpath(entry) if os.path.isabs(entry) else entry
        for folder in [*([self.source.parent] if self.source else []), *self._folders, *self._roots]:
            yield Path(os.path.normpath(folder / relative))

    def lying(self, name: str) -> list[Path]:
        """Files of the project that are a module of this name, and that the search does not reach."""
        parts = name.split(".")
        below = [root for root in self._roots if not any(root != other and root.is_relative_to(other) for other in self._roots)]
        with suppress(LakeletError):
            found = {file for root in below for file in FolderWalk(root, most=MOST_FILES).files((".py",))}
            return sorted(file for file in found if [*file.with_suffix("").parts][-len(parts) :] == parts)
        return []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The import roots are on `sys.path` inside the block; afterwards it is what it was."""
        saved = list(sys.path)
        sys.path[:0] = [str(root) for root in self._roots]
        self._ours = frozenset(sys.path)
        sys.meta_path.append(self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            sys.path[:] = saved
