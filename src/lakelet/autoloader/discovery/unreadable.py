"""The failure of a file that cannot be read, separate from every other one (AL-19)."""

from __future__ import annotations

from lakelet.base.errors import LakeletError


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
