"""File systems of Auto Loader: all its reads and writes go through these classes (AL-13).

`LocalFiles` is this machine. `RemoteFiles` is everything behind a URI: a store of `lakelet.files.remote` with the listing that discovery
walks through. Both raise `UnreadableFile` for a file that cannot be read.
"""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.durable import storage_failure, sync_folder
from lakelet.files.remote import RemoteStore, encoded, open_store
from lakelet.files.stores import scheme_of


@dataclass(frozen=True)
class Scan:
    """Part of a folder's listing: names of files with sizes and modification times (microseconds since 1970), and names of folders.

    links: those of the folders that are links to other folders.
    """

    names: Sequence[str]
    sizes: Sequence[int]
    modified: Sequence[int]
    folders: Sequence[str] = ()
    links: frozenset[str] = frozenset()


class UnreadableFile(LakeletError):
    """FAILED_READ_FILE. `missing`: the file is gone; `damaged`: it could be read, and its content is not what it should be.

    Neither: the disk, the network or a permission stood in the way, which no option passes over: the file may be read later.
    """

    missing = damaged = False


def unreadable(uri: str, error: BaseException, *, why: str | None = None) -> UnreadableFile:
    """The error for a file that is missing or damaged."""
    missing = isinstance(error, FileNotFoundError)
    todo = "Repair the file; the next update goes on from there."
    if missing:
        todo = "Put the file back; the next update goes on from there. "
        todo += 'If it is gone for good: .option("ignoreMissingFiles", "true") on the reader goes on without it.'
    failure = UnreadableFile(
        "FAILED_READ_FILE",
        f"{uri} {'is missing' if missing else 'cannot be read'}",
        why=why or f"{type(error).__name__}: {error}",
        todo=todo,
    )
    failure.missing = missing
    failure.damaged = not missing and not (isinstance(error, OSError) and error.errno is not None)
    return failure


_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_SCANNED_AT_ONCE = 8192


class Files(Protocol):
    """What Auto Loader needs of a file system. Paths are absolute and belong to this file system."""

    def scan(self, path: str) -> Iterator[Scan]:
        """Yield the entries of a folder, some thousand at a time; none if it does not exist."""

    def is_folder(self, path: str) -> bool: ...

    def real(self, path: str) -> str:
        """Return the path with links resolved."""

    def status(self, path: str) -> tuple[int, int] | None:
        """Return size and modification time of a file, or None if it does not exist."""

    def is_file(self, path: str) -> bool: ...

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none if it does not exist."""

    def open(self, path: str) -> BinaryIO: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically."""

    def create(self, path: str, content: bytes) -> bool:
        """Like `write`, but return False instead of replacing an existing file."""

    def remove(self, path: str) -> None: ...

    def move(self, path: str, target: str) -> None:
        """Move a file, with its modification time, to a path in a folder that need not exist yet. Never over an existing file."""

    def uri(self, path: str) -> str:
        """Return the path as `_metadata.file_path` shows it."""


class LocalFiles:
    """Files of this machine (or of a folder mounted on every machine)."""

    def scan(self, path: str) -> Iterator[Scan]:
        names: list[str] = []
        sizes: list[int] = []
        modified: list[int] = []
        folders: list[str] = []
        links: set[str] = set()
        try:
            with os.scandir(path) as found:
                for item in found:
                    try:
                        if item.is_dir():
                            folders.append(item.name)
                            if item.is_symlink():
                                links.add(item.name)
                            continue
                        status = item.stat()
                    except OSError as error:
                        if error.errno in _GONE:  # deleted after the listing, or a broken link
                            continue
                        raise
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    names.append(item.name)
                    sizes.append(status.st_size)
                    modified.append(status.st_mtime_ns // 1000)
                    if len(names) == _SCANNED_AT_ONCE:
                        yield Scan(names, sizes, modified)
                        names, sizes, modified = [], [], []
        except (FileNotFoundError, NotADirectoryError):
            return
        yield Scan(names, sizes, modified, folders, frozenset(links))

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def status(self, path: str) -> tuple[int, int] | None:
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size, found.st_mtime_ns // 1000

    def is_file(self, path: str) -> bool:
        return os.path.isfile(path)

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    def read(self, path: str) -> bytes:
        with open(path, "rb") as stream:
            return stream.read()

    def write(self, path: str, content: bytes) -> None:
        with _failures_of_writing(path):
            os.replace(self._temporary_file(path, content), path)
        sync_folder(os.path.dirname(path))

    def create(self, path: str, content: bytes) -> bool:
        with _failures_of_writing(path):
            temporary = self._temporary_file(path, content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)
        sync_folder(os.path.dirname(path))
        return True

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def move(self, path: str, target: str) -> None:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "a file is there already", target)
        try:
            os.rename(path, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            temporary = f"{os.path.dirname(target)}/.tmp-{os.path.basename(target)}"
            shutil.copy2(path, temporary)
            with open(temporary, "rb") as copy:
                os.fsync(copy.fileno())
            os.rename(temporary, target)
            os.unlink(path)

    def uri(self, path: str) -> str:
        return "file:" + encoded(path)

    @staticmethod
    def _temporary_file(path: str, content: bytes) -> str:
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".tmp-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                reached("files.written")
                os.fsync(stream.fileno())
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary


@contextmanager
def _failures_of_writing(path: str) -> Iterator[None]:
    """Convert an OSError of a write into a LakeletError; readers see no part of the file."""
    try:
        yield
    except OSError as error:
        raise storage_failure(error, path) or LakeletError(
            "STORE_FAILED",
            f"{path} cannot be written",
            why=f"{type(error).__name__}: {error}",
            todo="Make room, or bring the disk back; the next update goes on from there.",
        ) from error


def files_for(location: str) -> tuple[Files, str]:
    """Return the file system of a path or URI, and the path inside it. Raises CF_SOURCE_UNSUPPORTED for unknown schemes."""
    scheme = scheme_of(location)
    if scheme is None:
        return LocalFiles(), os.path.abspath(location)
    if scheme == "file":
        path = location[len("file:") :]
        return LocalFiles(), os.path.abspath("/" + unquote(path).lstrip("/"))

    return open_store(location, RemoteFiles)


class RemoteFiles(RemoteStore):
    """Implements `files.Files`.

    The first `scan` of a folder lists everything below it at once, and the answers for its sub-folders are kept until they are asked
    for: one listing per thousand files instead of one per folder.
    """

    def __init__(self, *store: Any) -> None:
        super().__init__(*store)
        self._known: dict[str, Scan] = {}

    def scan(self, path: str) -> Iterator[Scan]:
        folder = path.rstrip("/")
        if folder not in self._known:
            self._known = self._folders_below(folder)
        yield self._known.pop(folder)

    def _folders_below(self, root: str) -> dict[str, Scan]:
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
        """A copy and a removal: the copy gets a modification time of its own. HDFS renames."""
        if self.kind.renames:
            self.system.create_dir(posixpath.dirname(target))
            self.system.move_new(path, target)
            return
        if self.is_file(target):
            raise FileExistsError(errno.EEXIST, "a file is there already", target)
        self.system.copy_file(path, target)
        self.remove(path)
