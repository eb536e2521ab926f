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
from lakelet.base.user_code import is_library
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
        self._before: frozenset[str] = frozenset()

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
        """The import roots are on `sys.path` inside the block, and modules of other projects that have a name of theirs are not loaded.

        Afterwards `sys.path` is what it was, these modules are back, and those of the block are forgotten.
        """
        saved, hidden = list(sys.path), self._of_other_projects()
        for name in hidden:
            del sys.modules[name]
        self._before = frozenset(sys.modules)
        sys.path[:0] = [str(root) for root in self._roots]
        self._ours = frozenset(sys.path)
        sys.meta_path.append(self)
        try:
            yield
        finally:
            for module in self.imported():
                sys.modules.pop(module.__name__, None)
            sys.modules.update(hidden)
            sys.meta_path.remove(self)
            sys.path[:] = saved

    def imported(self) -> tuple[ModuleType, ...]:
        """The modules that were imported in the block of `installed` and lie in `folders`: the user's own, not installed packages."""
        below = [str(folder.resolve()) + os.sep for folder in self.folders()]
        new = [module for name, module in list(sys.modules.items()) if name not in self._before]
        return tuple(module for module in new if _own_file(module).startswith(tuple(below)))

    def _of_other_projects(self) -> dict[str, ModuleType]:
        below = tuple(str(root.resolve()) + os.sep for root in self._roots)
        found = {}
        for name, module in list(sys.modules.items()):
            file, top = _own_file(module), name.partition(".")[0]
            if file and not file.startswith(below) and top != "__main__" and any(_has_module(root, top) for root in self._roots):
                found[name] = module
        return found


def _own_file(module: ModuleType) -> str:
    """The file of a module, or the folder of a package without `__init__.py`; empty for a library's."""
    origin = getattr(module, "__file__", None)
    if origin is None:
        with suppress(KeyError):  # its parent package is no longer loaded
            origin = next(iter(getattr(module, "__path__", ())), None)
    return str(Path(origin).resolve()) if origin and not is_library(origin) else ""


def _has_module(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()
