"""The failure of a file that cannot be read, told apart from every other one (spec 5.4)."""

from __future__ import annotations

from lakelet.errors import LakeletError


class UnreadableFile(LakeletError):
    """FAILED_READ_FILE. `missing`: the file is gone, rather than damaged."""

    missing = False


def unreadable(uri: str, error: BaseException, *, why: str | None = None) -> UnreadableFile:
    """The error for a file that is missing or damaged."""
    missing = isinstance(error, FileNotFoundError)
    failure = UnreadableFile(
        "FAILED_READ_FILE",
        f"{uri} {'is missing' if missing else 'cannot be read'}",
        why=why or f"{type(error).__name__}: {error}",
        todo=f"{'Put the file back' if missing else 'Repair the file'}; the next update goes on from there.",
    )
    failure.missing = missing
    return failure
