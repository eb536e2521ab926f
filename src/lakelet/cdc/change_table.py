"""A target of change flows as a value: where it lies and what is declared about it."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.cdc.retention import Retention
from lakelet.cdc.state import ChangeState
from lakelet.files.paths import AnyPath
from lakelet.language.model import ChangeSpec
from lakelet.language.sql.values import ColumnDefinition
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.root import INTERNAL


@dataclass(frozen=True)
class ChangeTable:
    """A target of change flows.

    path: of the target. flows: all change flows into it, as declared. wanted: the target as declared, with the columns of the flow's
    `Layout.visible`. streamed: a stream reads the table's rows, so what only inserts must leave the files that are there.
    computed: columns of `wanted` that are computed from a row's others.
    """

    path: AnyPath
    flows: tuple[ChangeSpec, ...]
    wanted: TableSpec
    streamed: bool = False
    computed: tuple[ColumnDefinition, ...] = ()

    @property
    def internal(self) -> AnyPath:
        """The table that holds the state and all rows."""
        return self.path / INTERNAL

    def retention(self, state: ChangeState) -> Retention | None:
        """How long tombstones are kept; None for a state that keeps all events."""
        return None if state.events else Retention.of(self.wanted.properties or {})
