"""`input_file_name()` over files that Lakelet reads.

Spark's function asks the reader of a file scan, which rows of Auto Loader do not come from: there it is an empty text. The rows carry the
file in the hidden `_metadata`, so the call is replaced by that, in the form in which Spark gives it (AL-23).
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

_CALL = "input_file_name()"
_NATIVE = "__file_source_metadata_col"  # key of the metadata column of Spark's own file scans, for which the function works


def with_file_names(frame: DataFrame) -> DataFrame:
    """The frame with `input_file_name()` answered from `_metadata` wherever its rows come from Auto Loader or `read_files`.

    Anywhere else the call stays as it is.
    """
    analyzed = frame._jdf.queryExecution().analyzed()
    if _CALL not in analyzed.toString():
        return frame
    spark = frame.sparkSession
    jvm: Any = spark._jvm
    plan = _Rewriting(jvm).node(analyzed)
    if plan is analyzed:
        return frame
    return ClassicDataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


class _Rewriting:
    """One walk over an analysed plan; nodes without a change stay the same objects."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def node(self, plan: Any) -> Any:
        children = _items(plan.children())
        changed = [self.node(child) for child in children]
        if any(new is not old for new, old in zip(changed, children, strict=True)):
            plan = plan.withNewChildren(self._seq(changed))
        if str(plan.nodeName()) not in ("Project", "Filter") or not any(_CALL in str(e.sql()) for e in _items(plan.expressions())):
            return plan
        metadata = self._metadata(plan)
        if metadata is None:
            return plan
        if str(plan.nodeName()) == "Filter":
            return plan.copy(self._expression(plan.condition(), metadata), plan.child())
        return plan.copy(self._seq([self._expression(e, metadata) for e in _items(plan.projectList())]), plan.child())

    def _metadata(self, plan: Any) -> Any:
        """The one `_metadata` of ours that the rows of a plan's child carry; None if there is none."""
        carried = [*_items(plan.child().output()), *_items(plan.child().metadataOutput())]
        found = {a.exprId().id(): a for a in carried if str(a.name()) == "_metadata" and not a.metadata().contains(_NATIVE)}
        return next(iter(found.values())) if len(found) == 1 else None

    def _expression(self, expression: Any, metadata: Any) -> Any:
        if str(expression.nodeName()) == "InputFileName":
            return self._name(metadata)
        children = _items(expression.children())
        changed = [self._expression(child, metadata) for child in children]
        if all(new is old for new, old in zip(changed, children, strict=True)):
            return expression
        return expression.withNewChildren(self._seq(changed))

    def _name(self, metadata: Any) -> Any:
        """`file:///x` where `_metadata.file_path` says `file:/x`; other schemes are the same in both."""
        catalyst = self._jvm.org.apache.spark.sql.catalyst.expressions
        path = catalyst.GetStructField(metadata, 0, self._jvm.scala.Some("file_path"))
        text = self._jvm.org.apache.spark.sql.types.DataTypes.StringType
        pattern, slashes = (catalyst.Literal.create(value, text) for value in ("^file:/(?!/)", "file:///"))
        return catalyst.RegExpReplace(path, pattern, slashes)

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(items)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.length())]
