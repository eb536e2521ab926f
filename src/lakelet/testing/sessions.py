"""The Spark session of a test run: one for the process, started as for small input."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__tracebackhide__ = True

_APP_NAME = "pytest"


def begin() -> None:
    """Start what takes longest of `shared_session`, which is going to be called, and return at once."""
    from lakelet.spark.launch.session import begin_session

    begin_session(app_name=_APP_NAME, input_bytes=0)


def shared_session() -> SparkSession:
    """Return the session of this process, starting it when there is none: interpreted, first-tier compilation, a partition per core.

    pyspark's own log of exceptions is silent from here on: pytest shows what is raised.
    """
    from lakelet.pipeline import import_update
    from lakelet.spark.launch.session import start_session

    session = start_session(app_name=_APP_NAME, input_bytes=0, meanwhile=partial(import_update, pandas=False))
    from pyspark.logger import PySparkLogger

    from lakelet.spark.session_clones import PYSPARK_LOGGERS

    for name in PYSPARK_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    return session
