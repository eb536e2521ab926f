"""The reader that answers reads in this thread while a pipeline's functions run; `language.registry` gives it its type."""

from __future__ import annotations

from contextvars import ContextVar

reader: ContextVar[object | None] = ContextVar("lakelet_reader", default=None)


def in_pipeline() -> bool:
    """Return whether a dataset function of a pipeline runs in this thread."""
    return reader.get() is not None


__all__ = ["in_pipeline", "reader"]
