"""Checks that a flow that replaces rows of its target fits its query: conditions, keys, sequence (docs/semantics/replacing.md)."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.cdc.checks import is_unordered
from lakelet.language.model import Dataset, Flow, Replacement
from lakelet.spark.errors.diagnosis import first_line, proposed, without_proposal


def check_replacement(dataset: Dataset, flow: Flow, replaces: Replacement, frame: DataFrame) -> None:
    """Refuse a replacement that the columns of the flow's query cannot make. Raises REPLACE_FLOW_INVALID."""

    def refused(what: str, todo: str, why: str | None = None, nearest: tuple[str, ...] = ()) -> LakeletError:
        return LakeletError("REPLACE_FLOW_INVALID", what, where=flow.where, dataset=str(dataset.name), why=why, todo=todo, nearest=nearest)

    def type_of(clause: str, given: Any) -> T.DataType:
        try:
            return frame.select(F.expr(given) if isinstance(given, str) else given).schema.fields[0].dataType
        except (AnalysisException, ParseException) as problem:
            name = (problem.getMessageParameters() or {}).get("objectName", "").replace("`", "")
            if not (problem.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                todo = f"Write it over the columns that the query returns: {_listed(frame)}"
                raise refused(f"{clause} does not analyse: {given}", todo, without_proposal(first_line(problem))) from None
            near = tuple(nearest_names(name, [*frame.columns, *proposed(problem)]))
            raise refused(
                f"{clause} names {name!r}, which the query does not return", f"Its columns are: {_listed(frame)}", None, near
            ) from None

    if not replaces.streams:
        kind = type_of(replaces.clause, replaces.where)
        if not isinstance(kind, T.BooleanType):
            raise refused(
                f"{replaces.clause} gives {kind.simpleString()}, not boolean: {replaces.where}",
                "Write a condition, for example day >= '2026-01-01'.",
            )
        return
    fields = {field.name.lower(): field for field in frame.schema.fields}
    for key in replaces.keys:
        if key.lower() not in fields:
            near = tuple(nearest_names(key, frame.columns))
            raise refused(
                f"{replaces.clause} names {key!r}, which the query does not return", f"Its columns are: {_listed(frame)}", None, near
            )
        kind = fields[key.lower()].dataType
        if is_unordered(kind):
            raise refused(
                f"the key column {key!r} is {kind.simpleString()}, whose values cannot be compared", "Name columns of other types."
            )
    kind = type_of("SEQUENCE BY", replaces.sequence_by)
    if is_unordered(kind):
        raise refused(f"SEQUENCE BY gives {kind.simpleString()}, whose values cannot be ordered", "Give a number, a time or text.")


def _listed(frame: DataFrame) -> str:
    return ", ".join(frame.columns[:20]) + (" …" if len(frame.columns) > 20 else "")
