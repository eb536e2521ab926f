"""What the choice of a refresh depends on: values that deciding puts together, and what a view's refreshes have cost. No Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakelet.plan.refreshes import Issue, Refresh, RefreshPolicy, TableChange, Technique, ViewShape

BY_KEY = frozenset({Technique.GROUPS, Technique.WINDOWS, Technique.ROWS})
"""Techniques that compute the rows with touched keys again."""

_FIXED_SECONDS = 2.5
"""Start value: the part of a refresh by keys that does not depend on any size. It falls where full refreshes show a faster machine."""

_FIXED_OF_FULL = 3.0
"""Start value: the fixed part is at most this many times the shortest full refresh."""

_FULL_FIXED_SECONDS = 1.0
"""Of a full refresh at most this much does not grow with the inputs."""

MERGE_FIXED = 0.5
"""The fixed part of a merge in that of a refresh by keys: it finds its keys in the new rows alone."""

_FADING = 0.95
"""A learned fixed part shrinks with each full refresh, so that one slow refresh does not decide for ever."""


@dataclass(frozen=True)
class Learned:
    """What the refreshes of one view have cost; a number is None until it is known.

    Attributes:
        full_seconds, full_bytes: of the last full refresh, and the bytes of its inputs.
        partial_seconds, partial_bytes: of the last other one, and the bytes that it read.
        fixed_seconds: the fixed part of a refresh by keys, from those that were done.
        least_seconds: of the shortest full refresh.
    """

    full_seconds: float | None = None
    full_bytes: int | None = None
    partial_seconds: float | None = None
    partial_bytes: int | None = None
    fixed_seconds: float | None = None
    least_seconds: float | None = None

    def after(self, refresh: Refresh, *, seconds: float, bytes_read: int | None) -> Learned:
        """Return what is known after a refresh that took `seconds` and read `bytes_read` of its inputs."""
        if refresh.technique is Technique.SKIP:
            return self
        if refresh.technique is Technique.FULL:
            least = seconds if self.least_seconds is None else min(seconds, self.least_seconds)
            faded = None if self.fixed_seconds is None else self.fixed_seconds * _FADING
            return replace(self, full_seconds=seconds, full_bytes=bytes_read, least_seconds=least, fixed_seconds=faded)
        learned = replace(self, partial_seconds=seconds, partial_bytes=bytes_read)
        estimated = refresh.estimate.partial
        if estimated is None or refresh.technique not in (*BY_KEY, Technique.MERGE):
            return learned
        known = self.fixed_part()
        seen = max(self.full_fixed_part(), known + (seconds - estimated) / (MERGE_FIXED if refresh.technique is Technique.MERGE else 1.0))
        return replace(learned, fixed_seconds=seen if self.fixed_seconds is None else (seen + self.fixed_seconds) / 2)

    def fixed_part(self) -> float:
        """Return the seconds of a refresh by keys that depend on no size, as far as they are known."""
        if self.fixed_seconds is not None:
            return self.fixed_seconds
        return _FIXED_SECONDS if self.least_seconds is None else min(_FIXED_SECONDS, _FIXED_OF_FULL * self.least_seconds)

    def full_fixed_part(self) -> float:
        """Return the seconds of a full refresh that depend on no size."""
        return min(seconds for seconds in (_FULL_FIXED_SECONDS, self.least_seconds, self.full_seconds) if seconds is not None)

    def full_estimate(self, size: int | None) -> float | None:
        """Return the seconds of a full refresh of inputs of `size` bytes: the last one's, its growing part scaled by the bytes."""
        if self.full_seconds is None or not self.full_bytes or size is None:
            return self.full_seconds
        fixed = self.full_fixed_part()
        return fixed + (self.full_seconds - fixed) * size / self.full_bytes


@dataclass(frozen=True)
class RefreshFacts:
    """What the choice depends on.

    Attributes:
        policy: of the definition.
        shape: of the query, or why it has none.
        changes: of all inputs, also those without changes; or why versions cannot be compared. An Issue of the type FIRST_COMPUTATION
            means that there are no rows yet, so that the view is computed under every policy.
        partitions: number of partitions that can have changed, where partitions of the view may be computed alone; else None.
        rules: actions of the view's own rules: `warn`, `drop`, `fail`.
        streamed: a stream of the pipeline reads the view, so rows that are there must stay as they are.
        identities: the view has identity columns.
        quarantined: the view keeps its dropped rows.
        size: bytes of the view's files.
        learned: what earlier refreshes cost.
        forced: a technique that is taken wherever it is right.
    """

    policy: RefreshPolicy
    shape: ViewShape | Issue
    changes: tuple[TableChange, ...] | Issue
    partitions: int | None = None
    rules: frozenset[str] = frozenset()
    streamed: bool = False
    identities: bool = False
    quarantined: bool = False
    size: int | None = None
    learned: Learned = Learned()
    forced: Technique | None = None

    @property
    def changed(self) -> tuple[TableChange, ...]:
        """Inputs with a change."""
        return () if isinstance(self.changes, Issue) else tuple(change for change in self.changes if not change.is_empty)

    @property
    def input_bytes(self) -> int | None:
        """Bytes of all inputs; None where one is not known."""
        if isinstance(self.changes, Issue):
            return None
        sizes = [change.size for change in self.changes]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def searched_share(self) -> float | None:
        """The bytes of the files in which the changed rows are in those of all inputs; more than 1 where files changed that are large."""
        found = sum(change.added + change.removed if change.searched is None else change.searched for change in self.changed)
        return found / self.input_bytes if self.input_bytes else None

    @property
    def changed_share(self) -> float | None:
        """The changed bytes in those of all inputs."""
        return share_of(sum(change.added + change.removed for change in self.changed), self.input_bytes)


def share_of(part: int, whole: int | None) -> float | None:
    return None if whole is None else min(1.0, part / whole) if whole else 1.0


__all__ = ["BY_KEY", "MERGE_FIXED", "Learned", "RefreshFacts", "share_of"]
