"""The hidden column `_metadata` of streams of Delta tables, and of placeholders of the pipeline's datasets (LG-25).

Delta's streams carry it when they run (Spark asks for it wherever a stream's relation has such a column), but do not say so: their relation
has none. Here it gets one, below a projection that hides it as Spark hides its own.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from lakelet.jvm.expressions import metadata_of_parquet, with_children, with_hidden, with_output
from lakelet.jvm.frames import analyzed, loaded, replanned
from lakelet.jvm.scala import items
from lakelet.jvm.sessions import plain_reader
from lakelet.spark.names.second_calls import FILE_METADATA


def with_metadata_if_asked(frame: DataFrame) -> DataFrame:
    """The frame of a table with `_metadata`, if the dataset's function that runs asks for it and Spark does not give it."""
    return _with_metadata(frame) if FILE_METADATA.on() else frame


def _with_metadata(frame: DataFrame) -> DataFrame:
    spark, plan = frame.sparkSession, analyzed(frame)
    aliases = []
    leaf = plan
    while str(leaf.nodeName()) == "SubqueryAlias":
        aliases.append(leaf)
        leaf = leaf.child()
    kind = str(leaf.getClass().getSimpleName())
    if kind not in ("LocalRelation", "StreamingRelation") or plan.metadataOutput().size():
        return frame
    column = _column(spark, leaf if kind == "StreamingRelation" else None)
    if column is None:
        return frame
    made = with_output(spark, leaf, column)
    for alias in reversed(aliases):
        made = with_children(spark, alias, [made])
    return replanned(frame, with_hidden(spark, made))


def _column(spark: Any, stream: Any) -> Any:
    """A column `_metadata` of the type that rows of a stream of a Delta folder will carry; that of Parquet files without `stream`.

    None for other streams.
    """
    if stream is None:
        return metadata_of_parquet(spark)
    path = stream.dataSource().options().get("path")
    if str(stream.sourceName()).lower() != "delta" or path.isEmpty():
        return None
    batch = analyzed(loaded(spark, plain_reader(spark), "delta", path.get()))
    found = items(batch.metadataOutput())
    return found[0].newInstance() if found else None


__all__ = ["with_metadata_if_asked"]
