"""The cores of a cluster: what its master or the settings say, else those of the executors that register."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from lakelet.jvm.errors import MISSING

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*]")
_LONGEST_SECONDS = 30.0
"""As long as Spark itself waits for executors before the first job of a context (spark.scheduler.maxRegisteredResourcesWaitingTime)."""
_NO_OTHER_SECONDS = 2.0
"""A master starts all executors at once: they register within this time of each other."""
_EVERY_SECONDS = 0.05


def cluster_cores(context: SparkContext) -> int | None:
    """Return how many tasks of a context run at once on its cluster; None where nobody can say it.

    `spark.default.parallelism`, a fixed number of executors and `local-cluster[…]` say it at once. Otherwise the executors are counted
    as they register: until no other one comes, half a minute at most. Where executors come and go as tasks wait for them, their limit
    counts, and without a limit the number is not known.
    """
    conf = context.getConf()
    varies = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    said = _said(conf, str(context.master), varies=varies)
    return said if said is not None or varies else _registered(context)


def _said(conf: SparkConf, master: str, *, varies: bool) -> int | None:
    """The number by the settings, or by the URL of the master."""
    parallelism = conf.get("spark.default.parallelism")
    if parallelism is not None:
        return int(parallelism)
    here = _LOCAL_CLUSTER.fullmatch(master)
    if here:
        return int(here[1]) * int(here[2])
    executors = conf.get("spark.dynamicAllocation.maxExecutors" if varies else "spark.executor.instances")
    cores = conf.get("spark.executor.cores")
    if executors is None or (cores is None and master.startswith("spark:")):  # there an executor has all cores of its worker
        return None
    return max(1, int(executors) * int(cores or 1) // int(str(conf.get("spark.task.cpus", "1"))))


def _registered(context: SparkContext) -> int | None:
    """The cores of the executors that are there when no other one comes; None if none has come."""
    begun = last = time.monotonic()
    executors, cores = 0, 0
    while True:
        now = time.monotonic()
        found = _executors(context), context.defaultParallelism
        if found != (executors, cores):
            (executors, cores), last = found, now
        if now - begun > _LONGEST_SECONDS or (executors and now - last > _NO_OTHER_SECONDS):
            return cores if executors else None
        time.sleep(_EVERY_SECONDS)


def _executors(context: SparkContext) -> int:
    """How many executors have registered; the driver is on Spark's list too."""
    java: Any = context._jsc
    try:
        return len(java.sc().statusTracker().getExecutorInfos()) - 1
    except MISSING:  # of another Spark: their cores alone have to do
        return 1


__all__ = ["cluster_cores"]
