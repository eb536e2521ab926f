"""`dbutils.fs`: reads folders and files, refuses to write."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lakelet.base.errors import LakeletError
from lakelet.base.user_code import caller_location
from lakelet.config.path_map import CLOUD_SCHEMES, flag_for, is_hosted
from lakelet.files.paths import AnyPath, RemotePath, any_path
from lakelet.files.reads import note_doubt
from lakelet.files.remote import SCHEMES, RemoteStore, is_set_up, open_store, scheme_of
from lakelet.language.dbutils.parts import Group, Note
from lakelet.language.registry import note_look

Locate = Callable[[str], str]
"""Function that returns the path of this machine for a path of user code."""

_WRITING = "A pipeline's files are loaded several times, and what an update writes belongs into its storage."


class FileInfo(NamedTuple):
    """One entry of a folder. Names of folders end in `/`; times are milliseconds since 1970."""

    path: str
    name: str
    size: int
    modificationTime: int

    def isDir(self) -> bool:
        return self.name.endswith("/")

    def isFile(self) -> bool:
        return not self.isDir()


class NoSuchFile(LakeletError, FileNotFoundError):
    """FILE_NOT_FOUND. Its text names Java's exception, because code for Databricks looks for that."""


class FileSystem(Group):
    """`dbutils.fs`. Paths are those of user code and stay so in what is returned."""

    _name = "dbutils.fs"

    def __init__(self, note: Note, locate: Locate) -> None:
        super().__init__(note)
        self._locate = locate

    def ls(self, dir: str) -> list[FileInfo]:
        """Return the entries of a folder, by name; of a file, the file itself. Raises FILE_NOT_FOUND."""
        note_look()
        found = _listed(self._local(dir))
        if found is None:
            raise _missing(dir)
        names, is_file = found
        base = dir.rstrip("/")
        shown = [(name, base if is_file else f"{base}/{name}", size, time) for name, size, time in names]
        return [FileInfo(path, name, size, time) for name, path, size, time in shown]

    def head(self, file: str, maxBytes: int = 65536, *, max_bytes: int | None = None) -> str:
        """Return the first `maxBytes` bytes of a file as text. Raises FILE_NOT_FOUND."""
        note_look()
        where = self._local(file)
        count = maxBytes if max_bytes is None else max_bytes
        try:
            if isinstance(where, RemotePath):
                store, path = open_store(str(where), RemoteStore)
                if not store.is_file(path):
                    raise _missing(file)
                with store.open(path) as stream:
                    content = stream.read(count)
            else:
                with where.open("rb") as local:
                    content = local.read(count)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise _missing(file) from None
        return content.decode("utf-8", errors="replace")

    def mkdirs(self, dir: str) -> bool:
        """Return True for an existing folder. Raises DBUTILS_REFUSED for a missing one."""
        where = self._local(dir)
        if where.is_dir():
            return True
        raise self._refused("mkdirs", f"{dir} does not exist. {_WRITING}", f"Make the folder before the update: mkdir -p {where}")

    def rm(self, dir: str, recurse: bool = False) -> bool:
        """Return False for a missing path. Raises DBUTILS_REFUSED for an existing one."""
        where = self._local(dir)
        if not where.exists():
            return False
        raise self._refused("rm", _WRITING, f"Remove it before the update: rm {'-r ' if recurse else ''}{where}")

    def cp(self, source: str, dest: str, recurse: bool = False) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("cp", _WRITING, f"Copy before the update: cp {'-r ' if recurse else ''}{source} {dest}")

    def mv(self, source: str, dest: str, recurse: bool = False) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("mv", _WRITING, f"Move it before the update: mv {source} {dest}")

    def put(self, file: str, contents: str, overwrite: bool = False) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("put", _WRITING, f"Write {file} before the update, or define a table with these rows.")

    def mounts(self) -> list[Any]:
        """Return an empty list: there are no mounts here."""
        self._without_effect("mounts()", "nothing is mounted; paths are mapped with --map FROM=TO")
        return []

    def refreshMounts(self) -> bool:
        self._without_effect("refreshMounts()", "nothing is mounted; paths are mapped with --map FROM=TO")
        return True

    def mount(self, source: str, mount_point: str, *_: Any, **__: Any) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("mount", "There is nothing to mount on.", f"Name what lies behind it: --map {mount_point}={source}")

    updateMount = mount

    def unmount(self, mount_point: str) -> bool:
        """Raises DBUTILS_REFUSED."""
        raise self._refused("unmount", "Nothing is mounted.", "Leave the call out; paths are mapped with --map FROM=TO.")

    def _local(self, path: str) -> AnyPath:
        found = user_path(path, self._locate)
        if isinstance(found, RemotePath):
            note_doubt(f"{caller_location()} looks at {path}")
        return found


def user_path(path: str, locate: Locate) -> AnyPath:
    """Return the path that a path in user code stands for: mapped by `locate`, local, or a URI that Lakelet can read.

    Raises FILE_NOT_FOUND for a scheme that no store here answers to, and for a cloud of which this machine knows nothing.
    """
    text = locate(str(path))
    scheme = scheme_of(text)
    if scheme == "file":
        return Path("/" + text.split(":", 1)[1].lstrip("/"))
    if scheme is not None and (scheme not in SCHEMES or (scheme in CLOUD_SCHEMES and not is_set_up(scheme))):
        raise _missing(str(path))
    return any_path(text)


def _listed(where: AnyPath) -> tuple[list[tuple[str, int, int]], bool] | None:
    """(name, bytes, milliseconds) of what lies in a folder, and whether it is a single file; None if nothing is there."""
    if isinstance(where, RemotePath):
        store, path = open_store(str(where), RemoteStore)
        info = store.info(path)
        if info.is_file:
            return [(posixpath.basename(path), info.size, info.mtime_ns // 1_000_000)], True
        entries = [(i.base_name, i.size, (i.mtime_ns or 0) // 1_000_000, i.is_file) for i in store.listed(path)]
        if not entries and not store.is_folder(path):
            return None
    elif where.is_file():
        stat = where.stat()
        return [(where.name, stat.st_size, stat.st_mtime_ns // 1_000_000)], True
    elif where.is_dir():
        stats = [(child, child.stat()) for child in where.iterdir() if child.exists()]
        entries = [(child.name, stat.st_size, stat.st_mtime_ns // 1_000_000, child.is_file()) for child, stat in stats]
    else:
        return None
    return sorted((name, size, time) if is_file else (name + "/", 0, time) for name, size, time, is_file in entries), False


def _missing(path: str) -> NoSuchFile:
    return NoSuchFile(
        "FILE_NOT_FOUND",
        f"{path} does not exist",
        where=caller_location(),
        why=f"java.io.FileNotFoundException: No such file or directory {path}",
        todo=f"Say where it lies on this machine: {flag_for(path)}" if _needs_map(path) else "Put the files there before the update.",
    )


def _needs_map(path: str) -> bool:
    return is_hosted(path) or scheme_of(path) in CLOUD_SCHEMES
