"""The Spark session of a test run: one for the process, started as for small input."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from lakelet.config.update_config import project_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__tracebackhide__ = True


def shared_session() -> SparkSession:
    """Return the session of this process, starting it when there is none: interpreted, first-tier compilation, a partition per core.

    pyspark's own log of exceptions is silent from here on: pytest shows what is raised.
    """
    from lakelet.spark.launch.session import start_session

    packages = project_packages(Path.cwd())
    session = start_session(app_name="pytest", input_bytes=0, packages=packages, meanwhile=_import_what_runs)
    from pyspark.logger import PySparkLogger

    from lakelet.spark.session_clones import PYSPARK_LOGGERS

    for name in PYSPARK_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    return session


def _import_what_runs() -> None:
    """Import what tests need, which takes half a second, without pandas."""
    import lakelet.testing.unit_tests.running  # noqa: F401
    from lakelet.pipeline import import_update

    import_update(pandas=False)
