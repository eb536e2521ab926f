"""`input_file_name()` over files that Lakelet reads.

Spark's function asks the reader of a file scan, which rows of Auto Loader do not come from: there it is an empty text. The rows carry the
file in the hidden `_metadata`, so the call is replaced by that, in the form in which Spark gives it (AL-23).
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.jvm.expressions import field, regexp_replaced, replaced, with_children, with_columns
from lakelet.jvm.frames import analyzed, replanned
from lakelet.jvm.scala import items

_NATIVE = "__file_source_metadata_col"  # key of the metadata column of Spark's own file scans, for which the function works


def with_file_names(frame: DataFrame) -> DataFrame:
    """The frame with `input_file_name()` answered from `_metadata` wherever its rows come from Auto Loader or `read_files`.

    Anywhere else the call stays as it is.
    """
    before = analyzed(frame)
    if before.deterministic():  # the function is not, says Spark
        return frame
    plan = _Rewriting(frame.sparkSession).node(before)
    return frame if plan is before else replanned(frame, plan)


class _Rewriting:
    """One walk over an analysed plan; nodes without a change stay the same objects."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def node(self, plan: Any) -> Any:
        children = items(plan.children())
        changed = [self.node(child) for child in children]
        if any(new is not old for new, old in zip(changed, children, strict=True)):
            plan = with_children(self._spark, plan, changed)
        asks = str(plan.nodeName()) in ("Project", "Filter") and not all(e.deterministic() for e in items(plan.expressions()))
        metadata = self._metadata(plan) if asks else None
        if metadata is None:
            return plan
        if str(plan.nodeName()) == "Filter":
            condition = plan.condition()
            new = self._expression(condition, metadata)
            return plan if new is condition else plan.copy(new, plan.child())
        before = items(plan.projectList())
        after = [self._expression(e, metadata) for e in before]
        same = all(new is old for new, old in zip(after, before, strict=True))
        return plan if same else with_columns(self._spark, plan, after)

    def _metadata(self, plan: Any) -> Any:
        """The one `_metadata` of Lakelet that the rows of a plan's child carry; None if there is none."""
        carried = [*items(plan.child().output()), *items(plan.child().metadataOutput())]
        found = {a.exprId().id(): a for a in carried if str(a.name()) == "_metadata" and not a.metadata().contains(_NATIVE)}
        return next(iter(found.values())) if len(found) == 1 else None

    def _expression(self, expression: Any, metadata: Any) -> Any:
        def name(node: Any) -> Any | None:
            return self._name(metadata) if str(node.nodeName()) == "InputFileName" else None

        return expression if expression.deterministic() else replaced(self._spark, expression, name)

    def _name(self, metadata: Any) -> Any:
        """`file:///x` where `_metadata.file_path` says `file:/x`; other schemes are the same in both."""
        path = field(self._spark, metadata, 0, "file_path")
        return regexp_replaced(self._spark, path, "^file:/(?!/)", "file:///")
