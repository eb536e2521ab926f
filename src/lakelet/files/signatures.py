"""Short texts that change whenever a file, a folder or the log of a table changes: compared, never read as anything else. Local paths only.

A file counts as changed when its size, one of its times, or its inode is another one. The time of the last change of the inode (`ctime`)
is among them: no program can set it, so a file that is replaced by one of the same size and modification time is noticed as well.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator

ABSENT = "absent"
FOLDER = "folder"


def of_file(path: str) -> str:
    """The signature of a file; `ABSENT` where there is none, `FOLDER` for a folder, whatever it holds."""
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return ABSENT
    return FOLDER if os.path.isdir(path) else _of_stat(stat)


def of_names(folder: str) -> str:
    """The signature of the names in a folder that a module or package can have, without what those hold."""
    try:
        return digest(sorted(name for name in os.listdir(folder) if not name.startswith(".") and name != "__pycache__"))
    except OSError:
        return ABSENT


def of_entries(folder: str) -> str:
    """The signature of the names in a folder, and of the files among them."""
    try:
        return digest([(name, of_file(os.path.join(folder, name))) for name in sorted(os.listdir(folder))])
    except OSError:
        return ABSENT


def of_tree(folder: str, *, without: Collection[str] = ()) -> str:
    """The signature of a file, or of all files below a folder; links are followed. `without`: names of folders and files left out."""
    return digest(_tree(folder, frozenset(without), 0)) if os.path.isdir(folder) else of_file(folder)


def of_log(table: str) -> str:
    """The signature of the log of a Delta table: which versions it has, and the file of the newest one."""
    log = os.path.join(table, "_delta_log")
    try:
        names = sorted(name for name in os.listdir(log) if not name.startswith("."))
    except OSError:
        return ABSENT
    newest = max((name for name in names if name.endswith(".json")), default="")
    return digest([names, of_file(os.path.join(log, newest)), of_file(os.path.join(log, "_last_checkpoint"))])


def is_newer(path: str, moment: float) -> bool:
    """Whether a file or folder was changed at or after a moment (seconds since 1970); also where that is not known."""
    try:
        stat = os.stat(path)
    except OSError:
        return True
    return max(stat.st_mtime, stat.st_ctime) >= moment


def digest(value: object, key: bytes = b"") -> str:
    """A short digest of a value whose `repr` says all about it. `key`: makes it useless for guessing values."""
    text = repr(list(value) if isinstance(value, Iterator) else value)
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16, key=key).hexdigest()


def _of_stat(stat: os.stat_result) -> str:
    return f"{stat.st_size:x}.{stat.st_mtime_ns:x}.{stat.st_ctime_ns:x}.{stat.st_ino:x}"


_DEEPEST = 100
"""A link may lead upwards."""


def _tree(folder: str, without: frozenset[str], depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST:
        raise RecursionError(f"{folder} has no end")
    try:
        entries: Iterable[os.DirEntry[str]] = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        yield folder, ABSENT
        return
    for entry in entries:
        if entry.name in without:
            continue
        if entry.is_dir():
            yield entry.path, FOLDER
            yield from _tree(entry.path, without, depth + 1)
            continue
        try:
            yield entry.path, _of_stat(entry.stat())
        except OSError:
            yield entry.path, ABSENT


__all__ = ["ABSENT", "FOLDER", "digest", "is_newer", "of_entries", "of_file", "of_log", "of_names", "of_tree"]
