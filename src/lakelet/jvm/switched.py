"""A session of pyspark for which another one stands in some threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.sql import SparkSession

from lakelet.jvm.sessions import JavaSession, active, cloned, java_session

_instead: ContextVar[Any] = ContextVar("lakelet_session_clone", default=None)


class SessionPerThread(SparkSession):
    """A clone of a session. In a thread inside of `standing_for` it is that other session in Java."""

    def __init__(self, base: SparkSession) -> None:
        super().__init__(base.sparkContext, cloned(java_session(base)))

    @property
    def _jsparkSession(self) -> Any:
        return _instead.get() or self.own

    @_jsparkSession.setter
    def _jsparkSession(self, value: JavaSession) -> None:
        self.own = value
        """The session's own clone, whatever the thread."""

    @contextmanager
    def standing_for(self, jsession: JavaSession) -> Iterator[None]:
        """In this thread every switched session is this one in Java, which is the active one too."""
        token = _instead.set(jsession)
        try:
            with active(self, jsession):
                yield
        finally:
            _instead.reset(token)


__all__ = ["SessionPerThread"]
