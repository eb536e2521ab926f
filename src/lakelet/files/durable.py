"""Small files that must survive a crash: written as a whole, and on the disk before the call returns, and the error for a refused write."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.base.sentences import DISK_FULL, READ_ONLY
from lakelet.files.paths import AnyPath, RemotePath

_FULL_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM)
_AWAY = (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ENODEV, errno.ENXIO, errno.EHOSTDOWN, errno.ETIMEDOUT)


def write_atomically(file: AnyPath, text: str, *, keep: bool = False) -> None:
    """Replace `file` as a whole; parents are made. When this returns, the content survives a loss of power.

    `keep`: the file as it was stays as `before(file)`. Raises STORAGE_FAILED.
    """
    if isinstance(file, RemotePath):
        file.write_whole(text)
        return
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        try:
            _write_through(temporary, text)
            if keep:
                _keep(file)
            os.replace(temporary, file)
        except BaseException:  # also Ctrl-C: no temporary file is left
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(file.parent)


def create_atomically(file: AnyPath, text: str, *, alone: bool = False) -> bool:
    """Create `file` as a whole, or return False if it exists; parents are made. Raises OSError.

    `alone`: nobody else writes there, so a file system without links will do too.
    """
    if isinstance(file, RemotePath):
        return file.write_new(text)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        _write_through(temporary, text)
        return _linked(temporary, file, alone=alone)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        sync_folder(file.parent)


def _linked(temporary: Path, file: Path, *, alone: bool) -> bool:
    """Give a complete file its name; False if that is taken."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if not alone:
            raise
        if file.exists():
            return False
        os.replace(temporary, file)
    return True


def before(file: AnyPath) -> AnyPath:
    """Return the path of the copy that `write_atomically(keep=True)` makes of the previous content."""
    name, dot, suffix = file.name.rpartition(".")
    return file.parent / f"{name}-before{dot}{suffix}"


def sync_folder(folder: str | Path) -> None:
    """Write the directory entries of a folder to the disk; does nothing on file systems that cannot."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_through(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _keep(file: Path) -> None:
    """Keep the previous content under its second name, as a link where the file system has links, else as a copy."""
    kept = before(file)
    assert isinstance(kept, Path)
    temporary = kept.with_name(f".{kept.name}.{uuid.uuid4().hex}")
    try:
        try:
            os.link(file, temporary)
        except FileNotFoundError:
            return
        except OSError:
            _write_through(temporary, file.read_text(encoding="utf-8"))
        os.replace(temporary, kept)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


# --- a storage that refuses ---------------------------------------------------------------------------------------------------------------


@contextmanager
def writing(file: AnyPath | str) -> Iterator[None]:
    """Raise STORAGE_FAILED instead of what the system or a library says when `file` cannot be written."""
    try:
        yield
    except LakeletError:
        raise
    except Exception as problem:  # pyarrow and delta-rs raise classes of their own for a full disk
        refused = storage_failure(problem, file)
        if refused is None:
            raise
        raise refused from problem


def storage_failure(problem: BaseException, file: AnyPath | str | None = None) -> LakeletError | None:
    """The error for a write that failed because the disk is full, read-only, refused or gone; None for any other problem."""
    number, text = getattr(problem, "errno", None), str(problem)
    if number in _FULL_NUMBERS or DISK_FULL.is_in(text):
        cause, todo = "no space is left", "Make room"
    elif number == errno.EROFS or READ_ONLY.is_in(text):
        cause, todo = "it is read-only", "Make it writable"
    elif number in _REFUSED and isinstance(problem, OSError):
        cause, todo = "this user may not write there", "Give this user the right to write"
    elif number in _AWAY and isinstance(problem, OSError):
        cause, todo = "the disk does not answer", "Bring it back"
    else:
        return None
    what = f"{file} cannot be written: {cause}" if file is not None else f"a file cannot be written: {cause}"
    why = next((line.strip() for line in text.splitlines() if DISK_FULL.is_in(line) or READ_ONLY.is_in(line)), text.strip().split("\n")[0])
    todo = f"{todo}, and run the update again: it goes on from what is committed. Or name another storage: --storage DIR"
    return LakeletError("STORAGE_FAILED", what, why=why[:300], todo=todo)
