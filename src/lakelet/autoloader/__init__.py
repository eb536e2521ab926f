"""Auto Loader: the `cloudFiles` streaming source as a Spark Python data source (docs/semantics/auto-loader.md).

Importing this package imports neither Spark nor pyarrow's readers; both come with the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelet.autoloader.auto_loader_source import AutoLoaderSource
from lakelet.autoloader.source_spec import PendingFiles, SchemaEvolution, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelet.autoloader.standalone import Registration

# Where a stream starts, Spark puts these into the environment of the registered source, one Java map for all streams, while a task of
# another stream may be serializing it, which fails when the map grows (Spark 4.2.0). With the keys there it never grows; each start
# replaces the values.
_PUT_BY_SPARK = {
    "SPARK_LOCAL_DIRS": "",
    "SPARK_AUTH_SOCKET_TIMEOUT": "15",
    "SPARK_BUFFER_SIZE": "65536",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}


def register(spark: SparkSession, *, wrap: bool = True) -> Registration:
    """Make `format("cloudFiles")` known to a session, also of an application that Lakelet does not run.

    `wrap`: give streams of pyspark's `load` in this process `_metadata` and VARIANT columns, too. This ends when the returned value is
    closed (it can be used in a `with` statement) or Spark is stopped. May be called any number of times.
    """
    from lakelet.autoloader.data_source import CloudFilesDataSource
    from lakelet.autoloader.standalone import Registration, opened

    environment = spark.sparkContext.environment
    added = {key: value for key, value in _PUT_BY_SPARK.items() if key not in environment}
    environment.update(added)
    try:
        spark.dataSource.register(CloudFilesDataSource)
    finally:
        for key in added:
            environment.pop(key, None)
    return opened() if wrap else Registration()


__all__ = ["AutoLoaderSource", "PendingFiles", "SchemaEvolution", "SourceSpec", "register"]
