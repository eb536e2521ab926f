"""The hidden column `_metadata` of streams of Delta tables, and of placeholders of the pipeline's datasets (LG-25).

Delta's streams carry it when they run (Spark asks for it wherever a stream's relation has such a column), but do not say so: their relation
has none. Here it gets one, below a projection that hides it as Spark hides its own.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from lakelet.jvm.expressions import items
from lakelet.spark.names.second_calls import FILE_METADATA


def with_metadata_if_asked(frame: DataFrame) -> DataFrame:
    """The frame of a table with `_metadata`, if the dataset's function that runs asks for it and Spark does not give it."""
    return _with_metadata(frame) if FILE_METADATA.on() else frame


def _with_metadata(frame: DataFrame) -> DataFrame:
    spark, jvm = frame.sparkSession, frame.sparkSession._jvm
    assert jvm is not None
    plan: Any = frame._jdf.queryExecution().analyzed()
    aliases = []
    leaf = plan
    while str(leaf.nodeName()) == "SubqueryAlias":
        aliases.append(leaf)
        leaf = leaf.child()
    kind, sequence = str(leaf.getClass().getSimpleName()), jvm.PythonUtils.toSeq
    if kind not in ("LocalRelation", "StreamingRelation") or plan.metadataOutput().size():
        return frame
    column = _column(spark, leaf if kind == "StreamingRelation" else None)
    if column is None:
        return frame
    columns = sequence([*items(leaf.output()), column])
    if kind == "StreamingRelation":
        made = leaf.copy(leaf.dataSource(), leaf.sourceName(), columns, getattr(leaf, "copy$default$4")())
    else:
        made = leaf.copy(columns, leaf.data(), leaf.isStreaming(), leaf.stream())
    for alias in reversed(aliases):
        made = alias.withNewChildren(sequence([made]))
    project = jvm.org.apache.spark.sql.catalyst.plans.logical.Project
    *shown, hidden = items(made.output())
    seen = project(sequence(shown), made)
    seen.setTagValue(project.hiddenOutputTag(), sequence([hidden]))
    return ClassicDataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, seen), spark)


def _column(spark: Any, stream: Any) -> Any:
    """A column `_metadata` of the type that rows of a stream of a Delta folder will carry; that of Parquet files without `stream`.

    None for other streams.
    """
    if stream is None:
        return spark._jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat().createFileMetadataCol()
    path = stream.dataSource().options().get("path")
    if str(stream.sourceName()).lower() != "delta" or path.isEmpty():
        return None
    batch = spark._jsparkSession.read().format("delta").load(path.get()).queryExecution().analyzed()
    found = items(batch.metadataOutput())
    return found[0].newInstance() if found else None


__all__ = ["with_metadata_if_asked"]
