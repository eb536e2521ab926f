"""Description of the state of a change table, kept in a property of its internal table so that flows with other options can go on.

A flow can change the lists of `ignore_null_updates`, or two flows of one table can differ in them. Each stored event keeps the number of
the rule that it came with, so that the same events give the same table whichever flow applied them, and whichever flow reads them again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakelet.base.errors import unknown_format
from lakelet.language.model import ChangeSpec, ColumnPath, NullUpdates

PROPERTY = "lakelet.changes.state"
_FORMAT = 3


@dataclass(frozen=True)
class NullRule:
    """Of which leaves the nulls of an upsert say nothing. `columns`, in lower case, belong to ON and EXCEPT."""

    nulls: NullUpdates = NullUpdates.NONE
    columns: tuple[ColumnPath, ...] = ()

    @classmethod
    def of(cls, spec: ChangeSpec) -> NullRule:
        """The rule of a flow."""
        return cls(spec.ignore_null_updates, tuple(sorted(_lower(path) for path in spec.ignore_null_columns)))

    def ignores(self, leaf: Sequence[str]) -> bool:
        """Whether a null in a leaf says nothing."""
        if self.nulls in (NullUpdates.NONE, NullUpdates.ALL):
            return self.nulls is NullUpdates.ALL
        listed = any(_lower(leaf)[: len(path)] == path for path in self.columns)
        return listed is (self.nulls is NullUpdates.ON)


AUTHORS_ALL = NullRule()
ALL_LEAVES = 0
"""The number of that rule in every state."""


@dataclass(frozen=True)
class ChangeState:
    """What is stored beside the visible rows.

    events: every event is stored, rather than the latest of each key. named: some events name the leaves that they set;
        those do that were made of events of several rules.
    deletes, truncates: there may be tombstones, and the mark of a truncate.
    tracked: for type 2, whose changes open a version; None for all columns.
    rules: those that stored events came with; an event has the number of its rule, `ALL_LEAVES` where it has none.
    heads: the last event of each key is stored beside all of them (see `heads`), so that an event in order needs no others.
    """

    events: bool
    named: bool = False
    deletes: bool = False
    truncates: bool = False
    tracked: tuple[str, tuple[str, ...]] | None = None
    rules: tuple[NullRule, ...] = (AUTHORS_ALL,)
    heads: bool = False

    @classmethod
    def of(cls, specs: Iterable[ChangeSpec]) -> ChangeState:
        """What the flows of one target need."""
        given = tuple(specs)
        rules = dict.fromkeys([AUTHORS_ALL, *map(NullRule.of, given)])
        return cls(
            events=any(keeps_events(spec) for spec in given),
            named=any(spec.columns_to_update is not None for spec in given) or _several(rules),
            deletes=any(spec.apply_as_deletes is not None or spec.snapshots is not None for spec in given),
            truncates=any(spec.apply_as_truncates is not None for spec in given),
            tracked=_tracked(given[0]),
            rules=tuple(rules),
            heads=any(keeps_events(spec) and not spec.bitemporal for spec in given),
        )

    def joined(self, wanted: ChangeState) -> ChangeState:
        """This state as it goes on with flows that need `wanted`: what it has stays, only the tracked columns are replaced."""
        rules = tuple(dict.fromkeys([*self.rules, *wanted.rules]))
        return replace(
            self,
            events=self.events or wanted.events,
            named=self.named or wanted.named or _several(rules),
            deletes=self.deletes or wanted.deletes,
            truncates=self.truncates or wanted.truncates,
            tracked=wanted.tracked,
            rules=rules,
            heads=self.heads or wanted.heads,
        )

    @property
    def ruled(self) -> bool:
        """Whether events have the number of a rule."""
        return len(self.rules) > 1

    def number(self, spec: ChangeSpec) -> int:
        """The number of a flow's rule."""
        return self.rules.index(NullRule.of(spec))

    def ignoring(self, leaf: Sequence[str]) -> list[int]:
        """Numbers of the rules by which a null in a leaf says nothing."""
        return [number for number, rule in enumerate(self.rules) if rule.ignores(leaf)]

    def to_json(self) -> str:
        """The property's value."""
        rules = [[rule.nulls.value, *map(list, rule.columns)] for rule in self.rules]
        return json.dumps({"format": _FORMAT, **vars(self), "rules": rules})

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ChangeState:
        """The state of a table. Raises FORMAT_UNKNOWN for other formats, and for none."""
        found: dict[str, Any] = json.loads(properties.get(PROPERTY, "{}"))
        format = found.pop("format", None)
        if format != _FORMAT:
            raise unknown_format("the state of the change table", format, _FORMAT, remedy="do a full refresh of the table.")
        rules = tuple(NullRule(NullUpdates(nulls), tuple(map(tuple, columns))) for nulls, *columns in found.pop("rules"))
        tracked = found.pop("tracked")
        return cls(**found, rules=rules, tracked=None if tracked is None else (tracked[0], tuple(tracked[1])))


def _several(rules: Collection[NullRule]) -> bool:
    """Whether events come with more than one rule beside the one that authors every leaf."""
    return sum(rule != AUTHORS_ALL for rule in rules) > 1


def keeps_events(spec: ChangeSpec) -> bool:
    """Whether a flow's target is computed from all events of a key, rather than from the latest one."""
    return spec.scd_type == 2 or spec.ignore_null_updates is not NullUpdates.NONE or spec.columns_to_update is not None


def _tracked(spec: ChangeSpec) -> tuple[str, tuple[str, ...]] | None:
    if spec.track_history_column_list is not None:
        return "on", tuple(sorted(path[0].lower() for path in spec.track_history_column_list))
    left_out = spec.track_history_except_column_list
    return None if not left_out else ("except", tuple(sorted(path[0].lower() for path in left_out)))


def _lower(path: Iterable[str]) -> ColumnPath:
    return tuple(part.lower() for part in path)
