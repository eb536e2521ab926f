"""The one exception of the transformation library: a stable code, what happened, why, and what to do."""

from __future__ import annotations

CODES = {
    "TRANSFORM_UNKNOWN_COLUMN": "a transform names a column that the frame does not have",
    "TRANSFORM_AMBIGUOUS_COLUMN": "several columns of the frame have the name that a transform was given",
    "TRANSFORM_COLUMN_EXISTS": "a transform would add or rename a column to a name that is taken",
    "TRANSFORM_STREAMING": "a transform was applied to a stream and can only be done with all rows at hand",
    "TRANSFORM_TYPE": "a column has a type that the transform cannot take, or cannot be changed to without loss",
    "TRANSFORM_ARGUMENT": "a transform got an argument of a wrong type or value",
    "TRANSFORM_NO_METADATA": "the source file is asked for and the frame was not read from files",
    "TRANSFORM_VALUE": "a value does not fit the type that it is to be changed to (raised while Spark runs)",
}
"""Every code and when it is raised; `docs/error-codes.md` is checked against it."""


class TransformError(ValueError):
    """A transform that cannot be built or applied.

    Args:
        code: One of `CODES`.
        what: What happened, one sentence without the period.
        why: The reason, if the sentence does not say it.
        todo: What to do about it.
    """

    def __init__(self, code: str, what: str, *, why: str = "", todo: str = "") -> None:
        self.code, self.what, self.why, self.todo = code, what, why, todo
        parts = [part.rstrip(".") + "." for part in (what, why, todo) if part]
        super().__init__(f"[{code}] " + " ".join(parts))

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.code, self.what, self.why, self.todo)


def _again(code: str, what: str, why: str, todo: str) -> TransformError:
    """Needed because an exception with keyword arguments does not pickle by itself."""
    return TransformError(code, what, why=why, todo=todo)


def argument_error(transform: str, what: str, todo: str = "") -> TransformError:
    """The error for a wrong argument of `transform`."""
    return TransformError("TRANSFORM_ARGUMENT", f"{transform}: {what}", todo=todo)


def streaming_error(transform: str, why: str, todo: str) -> TransformError:
    """The error for a transform that cannot be done on a stream."""
    return TransformError("TRANSFORM_STREAMING", f"{transform} cannot be applied to a stream", why=why, todo=todo)
