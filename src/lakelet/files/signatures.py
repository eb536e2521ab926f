"""Signatures: short texts that change whenever a file, a folder or the log of a table changes. Local paths only.

A file counts as changed when its size, one of its times, or its inode differs. The time of the last change of the inode (`ctime`)
is among them, which no program can set. So a file that is replaced by one of the same size and modification time is noticed as well.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator

ABSENT = "absent"
FOLDER = "folder"


def of_file(path: str) -> str:
    """Return the signature of a file, `FOLDER` for any folder, with where it leads for a link to one, `ABSENT` for a missing path."""
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return ABSENT
    if not os.path.isdir(path):
        return _of_stat(stat)
    try:
        return f"{FOLDER} {os.readlink(path)}"
    except OSError:  # not a link
        return FOLDER


def is_folder(signature: str) -> bool:
    """Return whether a signature of `of_file` is that of a folder, or of a link to one."""
    return signature.startswith(FOLDER)


def of_names(folder: str) -> str:
    """Return the signature of the names in a folder that a module or package can have."""
    try:
        return digest(sorted(name for name in os.listdir(folder) if not name.startswith(".") and name != "__pycache__"))
    except OSError:
        return ABSENT


def of_entries(folder: str) -> str:
    """Return the signature of the names in a folder and of the files among them."""
    try:
        return digest([(name, of_file(os.path.join(folder, name))) for name in sorted(os.listdir(folder))])
    except OSError:
        return ABSENT


def of_tree(folder: str, *, without: Collection[str] = ()) -> str:
    """Return the signature of a file, or of all files below a folder; `without`: names of folders and files to leave out.

    Links are followed, but for those to a folder that they lie in.
    """
    return digest(_tree(folder, frozenset(without), (folder,))) if os.path.isdir(folder) else of_file(folder)


def of_log(table: str) -> str:
    """Return the signature of the log of a Delta table: the names of its files, and the newest one."""
    log = os.path.join(table, "_delta_log")
    try:
        names = sorted(name for name in os.listdir(log) if not name.startswith("."))
    except OSError:
        return ABSENT
    newest = max((name for name in names if name.endswith(".json")), default="")
    return digest([names, of_file(os.path.join(log, newest)), of_file(os.path.join(log, "_last_checkpoint"))])


def is_newer(path: str, moment: float) -> bool:
    """Return whether a file or folder was changed at or after a moment (seconds since 1970), or cannot be looked up."""
    try:
        stat = os.stat(path)
    except OSError:
        return True
    return max(stat.st_mtime, stat.st_ctime) >= moment


def digest(value: object, key: bytes = b"") -> str:
    """Return a digest of the `repr` of a value, as hexadecimal text. `key`: digests of a value under two keys differ."""
    text = repr(list(value) if isinstance(value, Iterator) else value)
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16, key=key).hexdigest()


def _of_stat(stat: os.stat_result) -> str:
    return f"{stat.st_size:x}.{stat.st_mtime_ns:x}.{stat.st_ctime_ns:x}.{stat.st_ino:x}"


def _tree(folder: str, without: frozenset[str], above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """`above`: the folder itself and all those that lead to it."""
    try:
        entries: Iterable[os.DirEntry[str]] = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        yield folder, ABSENT
        return
    for entry in entries:
        if entry.name in without:
            continue
        try:
            is_folder = entry.is_dir()
            leads_up = is_folder and entry.is_symlink() and any(os.path.samefile(entry.path, one) for one in above)
            yield entry.path, FOLDER if is_folder else _of_stat(entry.stat())
        except OSError:  # gone meanwhile, or a link that leads nowhere
            yield entry.path, ABSENT
            continue
        if is_folder and not leads_up:
            yield from _tree(entry.path, without, (*above, entry.path))


__all__ = ["ABSENT", "FOLDER", "digest", "is_folder", "is_newer", "of_entries", "of_file", "of_log", "of_names", "of_tree"]
