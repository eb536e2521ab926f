"""The file-system seam: every byte that Auto Loader reads or writes passes through here (spec 5.3).

Only local files so far. A second implementation over pyarrow's filesystems fits behind the same methods.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol
from urllib.parse import unquote

from lakelet.errors import LakeletError

_ENCODE = re.compile(r"[\x00-\x20\"%<>\[\\\]^`{|}#?\x7f]")


@dataclass(frozen=True)
class Entry:
    """One file of a folder listing; `modified` in microseconds since 1970."""

    path: str
    size: int
    modified: int


class Files(Protocol):
    """What Auto Loader needs of a file system. Paths are absolute and belong to this file system."""

    def folder(self, path: str) -> tuple[list[Entry], list[str]] | None:
        """Files and sub-folders directly inside a folder; None when it does not exist."""

    def is_file(self, path: str) -> bool: ...

    def names(self, path: str) -> list[str]:
        """Names inside a folder, in order; none when it does not exist."""

    def open(self, path: str) -> BinaryIO: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: bytes) -> None:
        """Write a whole file so that readers see it complete or not at all."""

    def create(self, path: str, content: bytes) -> bool:
        """Like `write`, but never over an existing file; False when one was there."""

    def remove(self, path: str) -> None: ...

    def uri(self, path: str) -> str:
        """The path as `_metadata.file_path` shows it."""


class LocalFiles:
    """Files of this machine (or of a folder mounted on every machine)."""

    def folder(self, path: str) -> tuple[list[Entry], list[str]] | None:
        files: list[Entry] = []
        folders: list[str] = []
        try:
            with os.scandir(path) as found:
                for item in found:
                    if item.is_dir():
                        folders.append(item.path)
                        continue
                    try:
                        status = item.stat()
                    except FileNotFoundError:
                        continue  # gone between listing and looking
                    files.append(Entry(item.path, status.st_size, status.st_mtime_ns // 1000))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return files, folders

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
        os.replace(self._temporary(path, content), path)

    def create(self, path: str, content: bytes) -> bool:
        temporary = self._temporary(path, content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)
        return True

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def uri(self, path: str) -> str:
        return "file:" + _ENCODE.sub(lambda match: f"%{ord(match[0]):02X}", path)

    @staticmethod
    def _temporary(path: str, content: bytes) -> str:
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".tmp-", dir=folder)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        return temporary


def files_for(location: str) -> tuple[Files, str]:
    """The file system of a path or URI, and the path inside it. Raises CF_SOURCE_UNSUPPORTED for schemes that cannot be read here."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", location)
    if scheme is None:
        return LocalFiles(), os.path.abspath(location)
    if scheme[1].lower() == "file":
        path = location[len("file:") :]
        return LocalFiles(), os.path.abspath("/" + unquote(path).lstrip("/"))
    raise LakeletError(
        "CF_SOURCE_UNSUPPORTED",
        f"paths with scheme {scheme[1]!r} cannot be read here yet",
        todo="Use a local path, or map the location to one in [tool.lakelet].",
    )


def walk(files: Files, root: str, skip: re.Pattern[str]) -> Iterator[list[Entry]]:
    """Files below `root`, folder by folder. A segment that matches `skip` is left out, except folders named like `_key=value`."""
    folders = [root]
    while folders:
        found = files.folder(folders.pop())
        if found is None:
            continue
        entries, below = found
        yield [entry for entry in entries if not skip.search(os.path.basename(entry.path))]
        folders += [path for path in sorted(below, reverse=True) if "=" in (name := os.path.basename(path)) or not skip.search(name)]
