"""`DESCRIBE HISTORY` and `DESCRIBE DETAIL` of a dataset of the pipeline: those of the stored table (NM-7)."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.names import quoted, split_name
from lakelet.language.model import Dataset
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


def asked_about(text: str, catalog: Catalog) -> tuple[Dataset, str] | None:
    """The dataset whose history or detail a text asks for, and which of the two; None for any other text."""
    found = commands.command(text)
    kind = found.verb.split()[-1] if found is not None else ""
    if found is None or kind not in _COLUMNS:
        return None
    dataset = catalog.dataset(split_name(found.name))
    return None if dataset is None or dataset.is_temporary_view else (dataset, kind)


def facts(spark: SparkSession, dataset: Dataset, kind: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """The rows of `DESCRIBE` HISTORY or DETAIL; none of a table that is not made yet. `run`: what `spark.sql` does with a text."""
    path = held().path(dataset.name)
    return spark.createDataFrame([], _COLUMNS[kind]) if path is None else run(f"DESCRIBE {kind} delta.{quoted(path)}")


__all__ = ["asked_about", "facts"]
