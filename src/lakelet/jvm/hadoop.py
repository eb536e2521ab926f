"""Hadoop's configuration, file systems and paths.

Spark sends Hadoop's whole configuration with every stage, and each task reads it: 1,100 entries, more than half of them about servers that
a local session does not have. That is a tenth of the processor time of small queries. Removing them costs as much as a few queries, so
only continuous updates do it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lakelet.base.masters import is_local
from lakelet.jvm.errors import MISSING, Py4JError
from lakelet.jvm.scala import java_class

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_SERVERS = ("yarn", "mapreduce[.]jobhistory", "mapreduce[.]shuffle", "hadoop[.]http", "hadoop[.]registry", "hadoop[.]zk", "ipc[.]server")


def forget_servers(context: Any) -> None:
    """Remove the settings of cluster servers from the Hadoop configuration of a SparkContext with a local master."""
    if not is_local(context.master):
        return
    with suppress(*MISSING):
        # The first job would load these defaults, and Hadoop loads all of them again when a file of defaults is added.
        java_class(context._jvm, "org.apache.hadoop.mapreduce.util.ConfigUtil").loadResources()
        configuration = context._jsc.hadoopConfiguration()
        found = str(configuration.getValByRegex(f"^({'|'.join(_SERVERS)})[.]").keySet().toString())
        for name in filter(None, found.strip("[]").split(", ")):
            configuration.unset(name)


def write_no_checksum_files(context: SparkContext) -> None:
    """Leave out Hadoop's hidden .crc file beside every local file: Parquet and Delta have checks of their own."""
    java: Any = context._jsc
    with suppress(*MISSING):
        java_class(context._jvm, "org.apache.hadoop.fs.FileSystem").getLocal(java.hadoopConfiguration()).setWriteChecksum(False)


def has_file_system(context: SparkContext, scheme: str) -> bool:
    """Whether Spark's Java has a file system for a scheme."""
    java: Any = context._jsc
    try:
        java_class(context._jvm, "org.apache.hadoop.fs.FileSystem").getFileSystemClass(scheme, java.hadoopConfiguration())
    except Py4JError:
        return False
    return True


def uri_path(spark: SparkSession, path: str) -> str:
    """A path as Hadoop writes it in a URI."""
    return str(java_class(spark._jvm, "org.apache.hadoop.fs.Path")(path).toUri().getRawPath())
