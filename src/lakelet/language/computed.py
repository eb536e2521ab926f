"""Computed columns of tables without a query of their own: append flows get them (DS-22), tables of changes when rows are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakelet.base.errors import LakeletError
from lakelet.language.model import Dataset, Definitions, Flow
from lakelet.language.sql.inpython import computing


def with_computed(found: Definitions) -> Definitions:
    """The declarations, in which each append flow returns the columns too that its table computes."""
    tables = _tables(found)
    return replace(found, flows=tuple(_completed(flow, tables.get(flow.target.key)) for flow in found.flows)) if tables else found


def computed_problems(found: Definitions) -> Iterator[LakeletError]:
    """Change flows into tables with columns that have a DEFAULT: an event without the column could mean it or NULL."""
    tables = _tables(found)
    for key in {flow.target.key: None for flow in found.flows if flow.changes is not None and flow.target.key in tables}:
        table = tables[key]
        for column in (column for column in table.computed if not column.generated):
            what = f"the DEFAULT of the column {column.name!r} of a table that changes are applied to"
            todo = "Give the column its value in the view that makes the events, or write it as GENERATED ALWAYS AS."
            yield LakeletError("NOT_SUPPORTED_YET", what, where=table.where, dataset=str(table.name), todo=todo)


def _tables(found: Definitions) -> dict[str, Dataset]:
    return {table.name.key: table for table in found.datasets if table.computed}


def _completed(flow: Flow, table: Dataset | None) -> Flow:
    if table is None or flow.changes is not None:
        return flow
    return replace(flow, query=computing(flow.query, table.computed, flow.where))


__all__ = ["computed_problems", "with_computed"]
