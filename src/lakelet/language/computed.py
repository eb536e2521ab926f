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
    """What tables may not have: change flows a DEFAULT, as an event without the column could mean it or NULL, or an IDENTITY, as their rows
    are written again; a quarantine an IDENTITY, as rows that wait there have no number."""
    changed = {flow.target.key for flow in found.flows if flow.changes is not None}
    for table in found.datasets:
        for column in table.identities if table.name.key in changed or table.keeps_dropped else ():
            of = "a table that changes are applied to" if table.name.key in changed else "a table with a quarantine"
            yield LakeletError(
                "NOT_SUPPORTED_YET",
                f"the IDENTITY column {column.name!r} of {of}",
                where=table.where,
                dataset=str(table.name),
                todo="Make a key of the data, for example xxhash64(id), or number the rows in a table that reads this one.",
            )
        for column in table.computed if table.name.key in changed else ():
            if not column.generated and column.identity is None:
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
