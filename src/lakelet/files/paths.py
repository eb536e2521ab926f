"""Paths of folders and files: on this machine, or a URI.

A path of this machine **is** a `pathlib.Path`, so nothing changes for local runs. `RemotePath` has those of Path's methods that the
storage uses, with the same meaning.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from lakelet.files.remote import RemoteStore, encoded, one_spelling, open_store
from lakelet.files.stores import scheme_of

LOG = "_delta_log"
"""The folder of a Delta table's log in that of the table."""


class RemotePath:
    """A folder or file behind a URI. Making one asks nothing of the store."""

    __slots__ = ("_uri",)

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")

    def __str__(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"RemotePath({self._uri!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and other._uri == self._uri

    def __hash__(self) -> int:
        return hash(self._uri)

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self._uri}/{name}")

    @property
    def name(self) -> str:
        return self._uri.rpartition("/")[2]

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self._uri.rpartition("/")[0])

    def as_uri(self) -> str:
        return encoded(self._uri)

    def is_dir(self) -> bool:
        store, path = open_store(self._uri, RemoteStore)
        return store.is_folder(path)

    def exists(self) -> bool:
        store, path = open_store(self._uri, RemoteStore)
        return store.is_file(path) or store.is_folder(path)

    def iterdir(self) -> Iterator[RemotePath]:
        """Return the entries of the folder, by name; none for a missing folder."""
        store, path = open_store(self._uri, RemoteStore)
        return (self / name for name in store.names(path))

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield the paths that match `pattern`, whose segments may hold `*`, `?` and `[…]`; `**` is not known."""
        segment, _, rest = pattern.partition("/")
        if any(c in segment for c in "*?["):
            found = (path for path in self.iterdir() if fnmatch.fnmatchcase(path.name, segment))
        else:
            found = (path for path in [self / segment] if rest or path.exists())
        for path in found:
            yield from path.glob(rest) if rest else (path,)

    def written(self) -> tuple[int, float] | None:
        """Bytes of the file and when it was written (seconds since 1970); None where there is no file. Raises STORE_FAILED."""
        store, path = open_store(self._uri, RemoteStore)
        info = store.info(path)
        return (info.size, info.mtime_ns / 1e9) if info.is_file else None

    def sizes(self, since: float = 0.0) -> Iterator[int]:
        """Bytes of each file below the folder modified at or after a time (seconds since 1970). Raises STORE_FAILED."""
        store, path = open_store(self._uri, RemoteStore)
        return (info.size for info in store.listed(path, recursive=True) if info.is_file and info.mtime_ns >= since * 1e9)

    def read_text(self) -> str:
        """Raises FileNotFoundError."""
        return self.read_bytes().decode()

    def read_bytes(self) -> bytes:
        """Raises FileNotFoundError."""
        store, path = open_store(self._uri, RemoteStore)
        return store.read(path)

    def write_whole(self, text: str) -> None:
        """Put or replace the file as a whole."""
        store, path = open_store(self._uri, RemoteStore)
        store.write(path, text.encode())

    def write_new(self, text: str) -> bool:
        """Put the file as a whole, never over another one; False when there is one."""
        store, path = open_store(self._uri, RemoteStore)
        return store.create(path, text.encode())

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file. On an object store a missing file is not an error."""
        store, path = open_store(self._uri, RemoteStore)
        store.remove(path)

    def move(self, target: RemotePath) -> None:
        """Give the file another name in the same store; raises FileNotFoundError where there is none."""
        store, path = open_store(self._uri, RemoteStore)
        if not store.is_file(path):
            raise FileNotFoundError(self._uri)
        store.move(path, open_store(str(target), RemoteStore)[1])

    def remove_tree(self) -> None:
        """Remove everything below, and the empty objects with which Spark's clients mark a folder. Raises STORE_FAILED."""
        store, path = open_store(self._uri, RemoteStore)
        for info in store.listed(path, recursive=True):
            if info.is_file:
                store.remove(info.path)
        store.remove_folder(path)


AnyPath: TypeAlias = Path | RemotePath


def names_in(folder: AnyPath) -> list[str]:
    """Names of what lies in a folder, in no order; none when it is not there. One request where there is a server to ask."""
    if isinstance(folder, RemotePath):
        return [found.name for found in folder.iterdir()]
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def remove_tree(folder: AnyPath) -> None:
    """Remove a folder and all that is in it; what is not there, or is removed meanwhile by others, is no error."""
    if isinstance(folder, RemotePath):
        folder.remove_tree()
        return
    while os.path.lexists(folder):
        with suppress(FileNotFoundError):  # ends the removal at the first entry that somebody else removed
            shutil.rmtree(folder)


def moved(file: AnyPath, target: AnyPath) -> bool:
    """Give a file another name in the same file system, over one that has the name; False if the file is not there."""
    try:
        if isinstance(file, RemotePath):
            assert isinstance(target, RemotePath)
            file.move(target)
        else:
            os.replace(file, str(target))
    except FileNotFoundError:
        return False
    return True


def any_path(location: str | AnyPath) -> AnyPath:
    """Return the path that a text stands for; `s3://` and `s3n://` become `s3a://`, the name that Spark knows."""
    if isinstance(location, RemotePath):
        return location
    scheme = scheme_of(str(location)) if isinstance(location, str) else None
    if scheme is None:
        return Path(location).absolute()
    text = str(location)
    return RemotePath(one_spelling(scheme) + text[len(scheme) :])
