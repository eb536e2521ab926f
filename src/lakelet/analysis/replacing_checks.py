"""Checks that a flow that replaces rows of its target fits its query: conditions, keys, sequence (docs/semantics/replacing.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.cdc.checks import is_unordered
from lakelet.jvm.expressions import uses
from lakelet.jvm.frames import analyzed, without_rows
from lakelet.language.model import Dataset, Flow, Replacement
from lakelet.spark.errors.diagnosis import first_line, proposed, without_proposal

_SEQUENCE = "SEQUENCE BY"


def part_of(flow: Flow, frame: DataFrame) -> DataFrame:
    """The rows of a flow's query that are for its table: those that the condition of REPLACE WHERE names, else all."""
    return frame.where(flow.replaces.where) if flow.replaces is not None and flow.replaces_part else frame


def check_replacement(dataset: Dataset, flow: Flow, replaces: Replacement, frame: DataFrame) -> None:
    """Refuse a replacement that the columns of the flow's query cannot make. Raises REPLACE_FLOW_INVALID.

    It is checked on the columns alone: stored rows know nothing of the tables that the query reads.
    """
    columns = without_rows(frame)

    def refused(what: str, todo: str, why: str | None = None, nearest: tuple[str, ...] = ()) -> LakeletError:
        return LakeletError("REPLACE_FLOW_INVALID", what, where=flow.where, dataset=str(dataset.name), why=why, todo=todo, nearest=nearest)

    def unknown(clause: str, name: str, near: Iterable[str]) -> LakeletError:
        what, todo = f"{clause} names {name!r}, which the query does not return", f"Its columns are: {_listed(frame)}"
        return refused(what, todo, nearest=tuple(nearest_names(name, near)))

    def type_of(clause: str, given: Any) -> T.DataType:
        try:
            value = F.expr(given) if isinstance(given, str) else given
            kind: T.DataType = columns.select(value).schema.fields[0].dataType
            if clause != _SEQUENCE and isinstance(kind, T.BooleanType):
                columns.where(value)  # refuses aggregates and the like
            return kind
        except (AnalysisException, ParseException) as problem:
            name = (problem.getMessageParameters() or {}).get("objectName", "").replace("`", "")
            if not (problem.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                todo = f"Write it over the columns that the query returns: {_listed(frame)}"
                raise refused(f"{clause} does not analyse: {given}", todo, without_proposal(first_line(problem))) from None
            raise unknown(clause, name, [*frame.columns, *proposed(problem)]) from None

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
            raise unknown(replaces.clause, key, frame.columns)
        kind = fields[key.lower()].dataType
        if is_unordered(kind):
            raise refused(
                f"the key column {key!r} is {kind.simpleString()}, whose values cannot be compared", "Name columns of other types."
            )
    kind = type_of(_SEQUENCE, replaces.sequence_by)
    if not _is_constant(columns, replaces.sequence_by):
        why = "The sequence of the rows that are stored is computed again with each micro-batch."
        raise refused("SEQUENCE BY gives another value each time", "Put it into a column of the query, and name that.", why)
    if is_unordered(kind):
        raise refused(f"SEQUENCE BY gives {kind.simpleString()}, whose values cannot be ordered", "Give a number, a time or text.")


def _listed(frame: DataFrame) -> str:
    return ", ".join(frame.columns[:20]) + (" …" if len(frame.columns) > 20 else "")


def _is_constant(columns: DataFrame, given: Any) -> bool:
    """Whether an expression over columns has one value for a row, whenever it is computed."""
    plan = analyzed(columns.select(F.expr(given) if isinstance(given, str) else given))
    return bool(plan.deterministic()) and not uses(columns.sparkSession, plan, "CURRENT_LIKE")
