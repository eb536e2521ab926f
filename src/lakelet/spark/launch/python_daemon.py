"""Spark's Python daemon, whose workers read the schemas that Spark sends them as they were sent.

On a local master Spark starts this module instead of `pyspark.daemon` (`session`), whether its processes are forks of the fork server
or interpreters of their own. What it replaces is in `lakelet.spark.patches.python_processes`.
"""

from __future__ import annotations

from pyspark import daemon

from lakelet.base.patching import put_on
from lakelet.spark.patches.python_processes import DAEMON

if __name__ == "__main__":
    put_on(DAEMON)
    daemon.manager()
