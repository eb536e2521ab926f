"""Views of which some partitions are computed again: those that changed rows of their one input belong to (UP-8)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelet.analysis.plan_facts import PartitionSource
from lakelet.flows.context import FlowTask
from lakelet.language.model import RefreshPolicy
from lakelet.plan.decisions import ViewState

_MOST = 200
"""With more partitions the whole view is computed, which takes no longer."""


@dataclass(frozen=True)
class AffectedPartitions:
    """Values of one partition column, written as in a Delta log; None is NULL. `type`: Spark's name of the column's type."""

    column: str
    type: str
    values: frozenset[str | None]

    def condition(self) -> Column:
        """Return a condition that is true for the rows of these partitions and false for all others."""
        column = F.col(f"`{self.column.replace('`', '``')}`")
        known = [F.lit(_value(text, self.type)).cast(self.type) for text in sorted(v for v in self.values if v is not None)]
        return column.isNull() if not known else (column.isNull() | column.isin(known) if None in self.values else column.isin(known))


def _value(text: str, type: str) -> Any:
    if type == "date":
        return datetime.date.fromisoformat(text)
    return text if type == "string" else int(text)


def affected_partitions(task: FlowTask, state: ViewState) -> AffectedPartitions | None:
    """Return the partitions that bring a view to `state`; None if the whole view must be computed.

    There are some if only rows of its single input have changed, the table is as the last update left it, and it has no rules.
    """
    source, stored = task.flow.batch.partitions, task.stored()
    if source is None or not _eligible(task, source, state) or stored.version is None or stored.fingerprint != state.fingerprint:
        return None
    memory, (name, version) = task.environment.memory, next(iter(state.inputs.items()))
    known = stored.input_versions.get(name)
    if known is None or name.partition("\n")[0] != source.key or memory.log(task.path()).content_version(stored.version) != stored.version:
        return None
    log = memory.log(task.environment.storage.table_path(task.environment.catalog.datasets[source.key].name))
    commits = log.commits(known, version)
    if commits is None or any(commit.described for commit in commits):
        return None
    values = _values((files for commit in commits for files in (*commit.added, *commit.taken)), source.source_column)
    return AffectedPartitions(source.column, source.type, values) if values and len(values) <= _MOST else None


def _eligible(task: FlowTask, source: PartitionSource, state: ViewState) -> bool:
    """Return whether the view may be computed in part. A declared schema may give its partition column a different type."""
    policy = task.dataset.refresh_policy
    whole = policy is RefreshPolicy.FULL or state.always or task.dataset.expectations or task.dataset.identities or task.is_streamed()
    types = {field.name.lower(): field.dataType.simpleString() for field in task.analyzed.schema.fields}
    return not whole and len(state.inputs) == 1 and types.get(source.column.lower()) == source.type


def _values(files: Iterable[Mapping[str, str | None] | None], column: str) -> frozenset[str | None] | None:
    """Return the values of a partition column in some files; None if a file has no value for it."""
    found: set[str | None] = set()
    for file in files:
        values = {name.lower(): value for name, value in (file or {}).items()}
        if column.lower() not in values:
            return None
        found.add(values[column.lower()] or None)  # Delta also writes NULL as an empty text
    return frozenset(found)


__all__ = ["AffectedPartitions", "affected_partitions"]
