"""One session object for user code, one clone of the engine's session per flow behind it.

`spark.conf.set` leaks between threads, and `newSession()` loses data sources, functions and views; the JVM session's clone keeps all three
(DS-21). User code holds one `spark` for the whole update; in the thread of a flow it stands for that flow's clone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog

from lakelet.jvm.sessions import JavaSession, active, all_settings, cloned, java_session, session_on, settings_text
from lakelet.jvm.switched import SessionPerThread
from lakelet.spark.settings import SessionSettings, apply

_SET_BY_DELTA = frozenset({"spark.sql.parquet.fieldId.read.enabled", "spark.sql.parquet.fieldId.write.enabled"})
"""Settings that Delta makes in a session the first time that it reads or writes a table there: code did not make them."""


class UpdateSession(SessionPerThread):
    """A SparkSession whose JVM side is the clone of the flow that runs in the current thread, else the update's own clone."""

    def __init__(self, base: SparkSession) -> None:
        super().__init__(base)
        self.remarks: tuple[str, ...] = ()  # on parameters that are not settings of this session
        self.given: frozenset[str] = frozenset()  # names of the pipeline's parameters
        self._before: Mapping[str, str] = {}
        self._seen: tuple[str, Mapping[str, str]] = ("", {})

    @property
    def conf(self) -> SessionSettings:
        """The settings of the flow that runs in the current thread; pyspark keeps those of the first call."""
        return SessionSettings(java_session(self).conf())

    @property
    def catalog(self) -> Catalog:
        return Catalog(self)

    def loads_code(self) -> None:
        """From now on settings are those that user code makes."""
        self._before = all_settings(self, self.own)

    def settings_of_code(self) -> Mapping[str, str]:
        """The settings that user code has made in the session of the current thread, whatever the way (spark.conf.set, SQL SET)."""
        text = settings_text(self)
        seen, known = self._seen  # read once: flows in other threads ask too
        if text != seen:
            found = {key: value for key, value in all_settings(self).items() if key not in _SET_BY_DELTA}
            changed = {key: value for key, value in found.items() if self._before.get(key) != value}
            removed = dict.fromkeys(self._before.keys() - found.keys() - _SET_BY_DELTA, "")
            known = {**changed, **removed}
            self._seen = text, known
        return known


@contextmanager
def user_session(base: SparkSession, conf: Mapping[str, str]) -> Iterator[UpdateSession]:
    """The session of one update: a clone with the pipeline's parameters as settings."""
    session = UpdateSession(base)
    session.remarks, session.given = apply(session.conf, conf), frozenset(conf)
    session.loads_code()
    with active(session, session.own):
        yield session


@contextmanager
def flow_session(session: UpdateSession, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A clone for one flow, active in this thread; yields a plain session on it, for use in other threads (callbacks) too."""
    jclone = cloned(session.own)
    with session.standing_for(jclone):
        plain = session_on(session, jclone)
        apply(plain.conf, conf)
        _keep_observations(plain)
        yield plain


_EXCLUDED_RULES = "spark.sql.adaptive.optimizer.excludedRules"
_LEAVES_OUT_EMPTY_PARTS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"


def _keep_observations(spark: SparkSession) -> None:
    """Let adaptive execution plan again, but leave out no part of a plan that has run, and with it what is observed there (EP-8)."""
    excluded = [rule.strip() for rule in str(spark.conf.get(_EXCLUDED_RULES, "")).split(",") if rule.strip()]
    if _LEAVES_OUT_EMPTY_PARTS not in excluded:
        spark.conf.set(_EXCLUDED_RULES, ",".join([*excluded, _LEAVES_OUT_EMPTY_PARTS]))


@contextmanager
def within(session: UpdateSession, jsession: JavaSession) -> Iterator[None]:
    """In this thread the user's `spark` stands for this JVM session; Spark calls handlers of micro-batches in threads of its own."""
    with session.standing_for(jsession):
        yield


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
