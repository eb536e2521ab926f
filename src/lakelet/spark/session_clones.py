"""One session object for user code, one clone of the engine's session per flow behind it.

`spark.conf.set` leaks between threads, and `newSession()` loses data sources, functions and views; the JVM session's clone keeps all three
(DS-21). User code holds one `spark` for the whole update; in the thread of a flow it stands for that flow's clone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog

from lakelet.autoloader.settings import all_settings
from lakelet.spark.expectations.observed import keep_observed
from lakelet.spark.settings import SessionSettings, apply

_SET_BY_DELTA = frozenset({"spark.sql.parquet.fieldId.read.enabled", "spark.sql.parquet.fieldId.write.enabled"})
"""Settings that Delta makes in a session the first time that it reads or writes a table there: code did not make them."""

_clone: ContextVar[Any] = ContextVar("lakelet_session_clone", default=None)


class UpdateSession(SparkSession):
    """A SparkSession whose JVM side is the clone of the flow that runs in the current thread, else the update's own clone."""

    def __init__(self, base: SparkSession) -> None:
        super().__init__(base._sc, base._jsparkSession.cloneSession())
        self.remarks: tuple[str, ...] = ()  # on parameters that are not settings of this session
        self.given: frozenset[str] = frozenset()  # names of the pipeline's parameters
        self._before: Mapping[str, str] = {}
        self._seen: tuple[str, Mapping[str, str]] = ("", {})

    @property
    def _jsparkSession(self) -> Any:
        return _clone.get() or self._own

    @_jsparkSession.setter
    def _jsparkSession(self, value: Any) -> None:
        self._own = value

    @property
    def conf(self) -> SessionSettings:
        """The settings of the flow that runs in the current thread; pyspark keeps those of the first call."""
        return SessionSettings(self._jsparkSession.conf())

    @property
    def catalog(self) -> Catalog:
        return Catalog(self)

    def loads_code(self) -> None:
        """From now on settings are those that user code makes."""
        self._before = self._settings(self._own)

    def settings_of_code(self) -> Mapping[str, str]:
        """The settings that user code has made in the session of the current thread, whatever the way (spark.conf.set, SQL SET)."""
        text = str(self._jsparkSession.sessionState().conf().settings().toString())
        seen, known = self._seen  # read once: flows in other threads ask too
        if text != seen:
            found = {key: value for key, value in self._settings(self._jsparkSession).items() if key not in _SET_BY_DELTA}
            changed = {key: value for key, value in found.items() if self._before.get(key) != value}
            removed = dict.fromkeys(self._before.keys() - found.keys() - _SET_BY_DELTA, "")
            known = {**changed, **removed}
            self._seen = text, known
        return known

    def _settings(self, jsession: Any) -> dict[str, str]:
        return all_settings(self._jvm, jsession)

    def cloned(self) -> Any:
        """A new JVM session with this one's settings, functions, views and data sources."""
        return self._own.cloneSession()


@contextmanager
def user_session(base: SparkSession, conf: Mapping[str, str]) -> Iterator[UpdateSession]:
    """The session of one update: a clone with the pipeline's parameters as settings."""
    session = UpdateSession(base)
    session.remarks, session.given = apply(session.conf, conf), frozenset(conf)
    session.loads_code()
    with _active(session, session._own):
        yield session


@contextmanager
def flow_session(session: UpdateSession, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A clone for one flow, active in this thread; yields a plain session on it, for use in other threads (callbacks) too."""
    jclone = session.cloned()
    token = _clone.set(jclone)
    try:
        with _active(session, jclone):
            plain = SparkSession(session._sc, jclone)
            apply(plain.conf, conf)
            keep_observed(plain)
            yield plain
    finally:
        _clone.reset(token)


@contextmanager
def within(session: UpdateSession, jsession: Any) -> Iterator[None]:
    """In this thread the user's `spark` stands for this JVM session; Spark calls handlers of micro-batches in threads of its own."""
    token = _clone.set(jsession)
    try:
        with _active(session, jsession):
            yield
    finally:
        _clone.reset(token)


@contextmanager
def _active(session: SparkSession, jsession: Any) -> Iterator[None]:
    jclass = getattr(session._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = jclass.getActiveSession()
    jclass.setActiveSession(jsession)
    try:
        yield
    finally:
        if before.isDefined():
            jclass.setActiveSession(before.get())
        else:
            jclass.clearActiveSession()


PYSPARK_LOGGERS = ("py4j.clientserver", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where pyspark writes each exception, with Java's stack, before it raises it."""


@contextmanager
def quiet_pyspark() -> Iterator[None]:
    """Keep pyspark from logging each exception on stderr beside the error that is reported in our words.

    The loggers are made through pyspark's own class: a plain logger of that name, made first, would break pyspark's later calls.
    """
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in PYSPARK_LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
