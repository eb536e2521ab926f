"""Removes Hadoop's defaults for servers that a local session does not have.

Spark sends Hadoop's whole configuration with every stage, and each task reads it: 1,100 entries, more than half of them about servers. That
is a tenth of the processor time of small queries. Removing them costs as much as a few queries, so only continuous updates do it.
"""

from __future__ import annotations

from typing import Any

_SERVERS = ("yarn", "mapreduce[.]jobhistory", "mapreduce[.]shuffle", "hadoop[.]http", "hadoop[.]registry", "hadoop[.]zk", "ipc[.]server")


def forget_servers(context: Any) -> None:
    """Remove the settings of cluster servers from the Hadoop configuration of a SparkContext with a local master."""
    if not str(context.master).startswith("local"):
        return
    # The first job would load these defaults, and Hadoop loads all of them again when a file of defaults is added.
    getattr(context._jvm, "org.apache.hadoop.mapreduce.util.ConfigUtil").loadResources()
    configuration = context._jsc.hadoopConfiguration()
    found = str(configuration.getValByRegex(f"^({'|'.join(_SERVERS)})[.]").keySet().toString())
    for name in filter(None, found.strip("[]").split(", ")):
        configuration.unset(name)
