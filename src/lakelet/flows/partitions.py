"""Partitions of a materialized view that its input's new rows belong to: only these are computed again (UP-8)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelet.analysis.partitions import PartitionSource
from lakelet.flows.context import FlowRun
from lakelet.plan.decisions import ViewState

_MOST = 200
"""With more partitions than that, all are computed: it is no slower."""


@dataclass(frozen=True)
class AffectedPartitions:
    """Values of one partition column, spelt as in a Delta log; None is NULL. `type`: of the column, in Spark's words."""

    column: str
    type: str
    values: frozenset[str | None]

    def condition(self) -> Column:
        """True for the rows of these partitions, false for all others."""
        column = F.col(f"`{self.column.replace('`', '``')}`")
        known = [F.lit(_value(text, self.type)).cast(self.type) for text in sorted(v for v in self.values if v is not None)]
        return column.isNull() if not known else (column.isNull() | column.isin(known) if None in self.values else column.isin(known))


def _value(text: str, type: str) -> Any:
    if type == "date":
        return datetime.date.fromisoformat(text)
    return text if type == "string" else int(text)


def affected_partitions(run: FlowRun, state: ViewState) -> AffectedPartitions | None:
    """The partitions of a view to be computed for it to be as `state` says; None if all of it must be computed.

    Only rows of its one input have changed since, the table is as the last update left it, and no rule counts its rows.
    """
    source, stored = run.flow.partitions, run.stored()
    if source is None or not _eligible(run, source, state) or stored.version is None or stored.fingerprint != state.fingerprint:
        return None
    memory, (name, version) = run.environment.memory, next(iter(state.inputs.items()))
    known = stored.input_versions.get(name)
    if known is None or name.partition("\n")[0] != source.key or memory.log(run.path()).settled(stored.version) != stored.version:
        return None
    log = memory.log(run.environment.storage.table_path(run.environment.catalog.datasets[source.key].name))
    commits = log.commits(known, version)
    if commits is None or any(commit.described for commit in commits):
        return None
    values = _values((files for commit in commits for files in (*commit.added, *commit.taken)), source.source_column)
    return AffectedPartitions(source.column, source.type, values) if values and len(values) <= _MOST else None


def _eligible(run: FlowRun, source: PartitionSource, state: ViewState) -> bool:
    """Whether the definition lets the view be computed in part: a declared schema may give its partition column another type."""
    whole = run.dataset.always_whole or state.always or run.dataset.expectations or run.is_streamed()
    types = {field.name.lower(): field.dataType.simpleString() for field in run.analyzed.schema.fields}
    return not whole and len(state.inputs) == 1 and types.get(source.column.lower()) == source.type


def _values(files: Iterable[Mapping[str, str | None] | None], column: str) -> frozenset[str | None] | None:
    """The values that files have of a partition column; None if one of them says nothing of it."""
    found: set[str | None] = set()
    for file in files:
        values = {name.lower(): value for name, value in (file or {}).items()}
        if column.lower() not in values:
            return None
        found.add(values[column.lower()] or None)  # Delta spells NULL as an empty text too
    return frozenset(found)
