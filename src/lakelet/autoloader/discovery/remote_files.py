"""Files behind a URI, as Auto Loader sees them: `lakelet.files.remote` with the listing that discovery walks through (AL-13)."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from typing import Any

from lakelet.autoloader.discovery.scan import Scan
from lakelet.files.remote import RemoteStore, open_store


class RemoteFiles(RemoteStore):
    """Implements `files.Files`.

    The first `scan` of a folder lists everything below it at once, and the answers for its sub-folders are kept until they are asked
    for: one listing per thousand files instead of one per folder.
    """

    def __init__(self, *store: Any, **options: Any) -> None:
        super().__init__(*store, **options)
        self._known: dict[str, Scan] = {}

    def scan(self, path: str) -> Iterator[Scan]:
        folder = path.rstrip("/")
        if folder not in self._known:
            self._known = self._tree(folder)
        yield self._known.pop(folder)

    def _tree(self, root: str) -> dict[str, Scan]:
        """Every folder below `root` by its path, `root` itself included."""
        files: dict[str, tuple[list[str], list[int], list[int]]] = {root: ([], [], [])}
        folders: dict[str, dict[str, None]] = {}
        for info in self.listed(root, recursive=True):
            above, _, name = info.path.rpartition("/")
            if info.is_file:
                for column, value in zip(files.setdefault(above, ([], [], [])), (name, info.size, info.mtime_ns // 1000), strict=True):
                    column.append(value)  # type: ignore[attr-defined]
                continue
            files.setdefault(info.path, ([], [], []))
            folders.setdefault(above, {})[name] = None
        return {folder: Scan(*columns, tuple(folders.get(folder, ()))) for folder, columns in files.items()}

    def real(self, path: str) -> str:
        """Object stores have no links."""
        return path

    def status(self, path: str) -> tuple[int, int] | None:
        found = self.info(path)
        return (found.size, found.mtime_ns // 1000) if found.is_file else None

    def move(self, path: str, target: str) -> None:
        """A copy and a removal: the copy gets a modification time of its own."""
        if self.is_file(target):
            raise FileExistsError(errno.EEXIST, "a file is there already", target)
        if not self.whole:
            self.system.create_dir(posixpath.dirname(target))
        self.system.copy_file(path, target)
        self.remove(path)


def remote_files(location: str) -> tuple[RemoteFiles, str]:
    """The files of a URI, and the path inside their file system. Raises like `lakelet.files.remote.open_store`."""
    return open_store(location, RemoteFiles)
