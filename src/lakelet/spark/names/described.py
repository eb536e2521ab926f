"""`DESCRIBE HISTORY` and `DESCRIBE DETAIL` of a dataset of the pipeline: those of the stored table, as the last update left it (NM-7)."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.names import quoted, split_name
from lakelet.language.sql_text import commands
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.outside import held

HISTORY = (
    "version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING, operationParameters MAP<STRING, STRING>, "
    "job STRUCT<jobId: STRING, jobName: STRING, jobRunId: STRING, runId: STRING, jobOwnerId: STRING, triggerType: STRING>, "
    "notebook STRUCT<notebookId: STRING>, clusterId STRING, readVersion BIGINT, isolationLevel STRING, isBlindAppend BOOLEAN, "
    "operationMetrics MAP<STRING, STRING>, userMetadata STRING, engineInfo STRING"
)
DETAIL = (
    "format STRING, id STRING, name STRING, description STRING, location STRING, createdAt TIMESTAMP, lastModified TIMESTAMP, "
    "partitionColumns ARRAY<STRING>, clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT, "
    "properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT, tableFeatures ARRAY<STRING>"
)
_COLUMNS = {"HISTORY": HISTORY, "DETAIL": DETAIL}


def facts(spark: SparkSession, text: str, catalog: Catalog, run: Callable[[str], DataFrame]) -> DataFrame | None:
    """The rows of a command that asks for history or detail of a dataset; none of a table that no update has made.

    None for any other text. `run`: what `spark.sql` does with a text.
    """
    found = commands.command(text)
    kind = found.verb.split()[-1] if found is not None else ""
    if found is None or kind not in _COLUMNS:
        return None
    dataset = catalog.dataset(split_name(found.name))
    if dataset is None or dataset.is_temporary_view:
        return None
    path = held().path(dataset.name)
    return spark.createDataFrame([], _COLUMNS[kind]) if path is None else run(f"DESCRIBE {kind} delta.{quoted(path)}")


__all__ = ["facts"]
