"""File systems of Auto Loader: all its reads and writes go through these classes (AL-13).

Two implementations: local files here, and `remote_files.RemoteFiles` for everything behind a URI.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Protocol
from urllib.parse import unquote

from lakelet.autoloader.discovery.scan import Scan
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.durable import storage_failure, sync_folder
from lakelet.files.remote import encoded, scheme_of

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
        with _writing(path):
            os.replace(self._temporary(path, content), path)
        sync_folder(os.path.dirname(path))

    def create(self, path: str, content: bytes) -> bool:
        with _writing(path):
            temporary = self._temporary(path, content)
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
    def _temporary(path: str, content: bytes) -> str:
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
def _writing(path: str) -> Iterator[None]:
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
    from lakelet.autoloader.discovery.remote_files import remote_files

    return remote_files(location)
