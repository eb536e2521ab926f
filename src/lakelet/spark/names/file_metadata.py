"""The hidden column `_metadata` where Spark does not give it (LG-25), and `input_file_name()` over files that Lakelet reads (AL-23).

Delta's streams carry `_metadata` when they run (Spark asks for it wherever a stream's relation has such a column), but do not say so: their
relation has none. It gets one here, below a projection that hides it as Spark hides its own; so do placeholders of the pipeline's datasets.
Spark's `input_file_name()` asks the reader of a file scan, which rows of Auto Loader do not come from, and gives an empty text. These rows
carry the file in `_metadata`, so the call is replaced by that, in the form in which Spark gives it.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.jvm.expressions import (
    field,
    metadata_of_parquet,
    regexp_replaced,
    replaced,
    with_children,
    with_columns,
    with_hidden,
    with_output,
)
from lakelet.jvm.frames import analyzed, loaded, replanned
from lakelet.jvm.scala import items
from lakelet.jvm.sessions import plain_reader
from lakelet.spark.names.repeated_calls import FILE_METADATA


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
    column = _metadata_column(spark, leaf if kind == "StreamingRelation" else None)
    if column is None:
        return frame
    made = with_output(spark, leaf, column)
    for alias in reversed(aliases):
        made = with_children(spark, alias, [made])
    return replanned(frame, with_hidden(spark, made))


def _metadata_column(spark: Any, stream: Any) -> Any:
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


# --------------------------------------------------------------------------------------------------- the function input_file_name


_NATIVE_METADATA = "__file_source_metadata_col"  # key of the metadata column of Spark's own file scans, for which the function works


def with_file_names(frame: DataFrame) -> DataFrame:
    """The frame with `input_file_name()` answered from `_metadata` wherever its rows come from Auto Loader or `read_files`.

    Anywhere else the call stays as it is.
    """
    before = analyzed(frame)
    if before.deterministic():  # the function is not, says Spark
        return frame
    plan = _FileNameRewriter(frame.sparkSession).node(before)
    return frame if plan is before else replanned(frame, plan)


class _FileNameRewriter:
    """One walk over an analysed plan; nodes without a change stay the same objects."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def node(self, plan: Any) -> Any:
        children = items(plan.children())
        changed = [self.node(child) for child in children]
        if any(new is not old for new, old in zip(changed, children, strict=True)):
            plan = with_children(self._spark, plan, changed)
        asks = str(plan.nodeName()) in ("Project", "Filter") and not all(e.deterministic() for e in items(plan.expressions()))
        metadata = self._metadata_of_child(plan) if asks else None
        if metadata is None:
            return plan
        if str(plan.nodeName()) == "Filter":
            condition = plan.condition()
            new = self._with_file_name(condition, metadata)
            return plan if new is condition else plan.copy(new, plan.child())
        before = items(plan.projectList())
        after = [self._with_file_name(e, metadata) for e in before]
        same = all(new is old for new, old in zip(after, before, strict=True))
        return plan if same else with_columns(self._spark, plan, after)

    def _metadata_of_child(self, plan: Any) -> Any:
        """The one `_metadata` of Lakelet that the rows of a plan's child carry; None if there is none."""
        carried = [*items(plan.child().output()), *items(plan.child().metadataOutput())]
        found = {a.exprId().id(): a for a in carried if str(a.name()) == "_metadata" and not a.metadata().contains(_NATIVE_METADATA)}
        return next(iter(found.values())) if len(found) == 1 else None

    def _with_file_name(self, expression: Any, metadata: Any) -> Any:
        def name(node: Any) -> Any | None:
            return self._file_name_of(metadata) if str(node.nodeName()) == "InputFileName" else None

        return expression if expression.deterministic() else replaced(self._spark, expression, name)

    def _file_name_of(self, metadata: Any) -> Any:
        """`file:///x` where `_metadata.file_path` says `file:/x`; other schemes are the same in both."""
        path = field(self._spark, metadata, 0, "file_path")
        return regexp_replaced(self._spark, path, "^file:/(?!/)", "file:///")


__all__ = ["with_file_names", "with_metadata_if_asked"]
