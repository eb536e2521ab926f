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
    """Columns that a table cannot have because of its flows or its quarantine."""
    changed = {flow.target.key for flow in found.flows if flow.changes is not None}
    for table in found.datasets:
        yield from _identity_problems(table, changed=table.name.key in changed)
        if table.name.key in changed:
            yield from _default_problems(table)


def _identity_problems(table: Dataset, *, changed: bool) -> Iterator[LakeletError]:
    """Rows of a table that changes are applied to are written again, and those that wait in a quarantine have no number."""
    for column in table.identities if changed or table.keeps_dropped else ():
        yield LakeletError(
            "NOT_SUPPORTED_YET",
            f"the IDENTITY column {column.name!r} of a table {'that changes are applied to' if changed else 'with a quarantine'}",
            where=table.where,
            dataset=str(table.name),
            todo="Make a key of the data, for example xxhash64(id), or number the rows in a table that reads this one.",
        )


def _default_problems(table: Dataset) -> Iterator[LakeletError]:
    """A change without a column that has a DEFAULT could mean it or NULL."""
    for column in table.computed:
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
