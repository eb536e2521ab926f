"""Documents of the page about what waits, who is affected and what input was bad: values of the event log as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any

from lakelet.dashboard.catalog import DatasetView
from lakelet.storage.eventlog.bad_input import BadInput, bad_input
from lakelet.storage.eventlog.freshness import (
    AffectedDataset,
    DatasetFreshness,
    SourceFreshness,
    affected_datasets,
    dataset_freshness,
    source_freshness,
)
from lakelet.storage.eventlog.summaries import History


@dataclass(frozen=True)
class Health:
    """What waits in a history, and who is affected. `numbers`: of the datasets on the page."""

    history: History
    numbers: Mapping[str, int]

    @cached_property
    def _sources(self) -> tuple[SourceFreshness, ...]:
        return source_freshness(self.history)

    @cached_property
    def freshness(self) -> Mapping[str, DatasetFreshness]:
        """By dataset, of those that read others."""
        return dataset_freshness(self._sources)

    @cached_property
    def affected(self) -> tuple[AffectedDataset, ...]:
        return affected_datasets(self.history, self._sources)

    @cached_property
    def bad_input(self) -> tuple[BadInput, ...]:
        return bad_input(self.history)

    def freshness_rows(self, views: Sequence[DatasetView]) -> list[dict[str, Any]]:
        """A row for each dataset that is behind, or that no dataset reads: those behind for longest first."""
        read = {name for view in views for name in view.inputs}
        found = [one for one in self.freshness.values() if one.behind_since is not None or one.dataset not in read]
        found.sort(key=lambda one: (one.behind_since is None, one.behind_since or 0, one.dataset))
        return [
            {
                "d": self._reference(one.dataset),
                "newest": one.sources_changed_at,
                "contains": one.contains_at,
                "since": one.behind_since,
                "lag": one.lag_seconds,
                "rows": one.waiting_rows,
                "for": [self._reference(name) for name in one.waiting_for],
            }
            for one in found
        ]

    def affected_rows(self) -> list[dict[str, Any]]:
        """A row for each dataset with a problem: what is downstream of it, as [dataset, steps]."""
        rows: dict[str, dict[str, Any]] = {}
        for one in self.affected:
            about = {"problem": one.problem.value, "since": one.since, "updates": one.failed_updates}
            row = rows.setdefault(one.cause, {"d": self._reference(one.cause), **about, "datasets": []})
            row["datasets"].append([self._reference(one.dataset), one.distance])
        return sorted(rows.values(), key=lambda row: (row["problem"] == "late", row["since"] or 0))

    def bad_input_rows(self, dataset: str) -> list[dict[str, Any]]:
        """A row for each kind of bad input of a dataset; `points` are [update, records]."""
        return [
            {
                "problem": one.problem.name,
                "cause": one.problem.cause,
                "remedy": one.remedy,
                "points": [list(point) for point in one.points],
                "place": one.place and [one.place.file, one.place.line, one.place.unit],
                "sample": [one.place.column, one.place.text] if one.place and one.place.text else None,
            }
            for one in self.bad_input
            if one.dataset == dataset
        ]

    def summary(self) -> dict[str, Any]:
        """The same with the names of the datasets, for scripts: `behind`, `affected`, and the newest numbers of `bad_input`."""
        owners = {name: definition.owner for name, definition in self.history.definitions.items()}
        return {
            "behind": [
                {
                    "dataset": one.dataset,
                    "owner": owners.get(one.dataset, ""),
                    "since_at": _iso(one.behind_since),
                    "lag_s": one.lag_seconds,
                    "waiting_rows": one.waiting_rows,
                    "waiting_for": list(one.waiting_for),
                }
                for one in self.freshness.values()
                if one.behind_since is not None
            ],
            "affected": [
                {
                    "cause": one.cause,
                    "cause_owner": owners.get(one.cause, ""),
                    "problem": one.problem.value,
                    "since_at": _iso(one.since),
                    "failed_updates": one.failed_updates,
                    "dataset": one.dataset,
                    "owner": owners.get(one.dataset, ""),
                    "distance": one.distance,
                }
                for one in self.affected
            ],
            "bad_input": [
                {
                    "dataset": one.dataset,
                    "problem": one.problem.name,
                    "records": one.points[-1][1],
                    "updates": len(one.points),
                    "file": one.place and one.place.file,
                    "line": one.place and one.place.line,
                    "column": (one.place and one.place.column) or None,
                    "sample": (one.place and one.place.text) or None,
                    "remedy": one.remedy,
                }
                for one in self.bad_input
            ],
        }

    def _reference(self, dataset: str) -> int | str:
        return self.numbers.get(dataset, dataset)


def _iso(moment: int | None) -> str | None:
    """A time as ISO 8601 in UTC."""
    if moment is None:
        return None
    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=moment)).isoformat().replace("+00:00", "Z")
