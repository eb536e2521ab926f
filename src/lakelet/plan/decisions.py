"""Plan of an update, with reasons, as data. Pure: positions and fingerprints in, strategies out.

The same functions decide when a plan is printed and again when a step's turn comes, on the facts at that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from lakelet.language.model import Kind
from lakelet.language.registry import Notice

UNKNOWN_SOURCE = "its source cannot be compared without running it"
"""Reason to run a flow whose source says nothing of what is new."""


class Strategy(Enum):
    """How one step brings its dataset up to date.

    PARTITIONS: only the partitions of a materialized view that can have changed. REPLACE: the part of a table that its flow's condition
    names.
    """

    STREAM = "stream"
    FULL = "full"
    PARTITIONS = "partitions"
    REPLACE = "replace"
    SKIP = "skip"
    EXCLUDED = "excluded"


@dataclass(frozen=True)
class SourcePosition:
    """Backlog between a flow's checkpoint and one of its streaming sources.

    `pending`: True there is something, False there is nothing, None is unknown. `text` says it in words. `files`, `bytes`: how much there
    is, None where it is not known.
    """

    source: str
    pending: bool | None
    text: str
    files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class SourceListing:
    """A listing of a cloudFiles source: how many files the folder has, how many of them are new, and how long listing took."""

    path: str
    files: int
    new: int
    seconds: float


@dataclass(frozen=True)
class Decision:
    """A strategy and the reason for it, a clause that reads well after "because".

    Of a streaming flow also how that was found out: `sources`, what is pending there; `listings` of its folders, none if one of them could
    not be listed; `examined`, by key of a table the version up to which it has nothing for the flow.
    """

    strategy: Strategy
    reason: str
    sources: tuple[SourcePosition, ...] = field(default=(), compare=False)
    listings: tuple[SourceListing, ...] = field(default=(), compare=False)
    examined: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class PlanStep:
    """One flow of the plan. `dataset`, `flow`, `inputs`: full names. `transforms`: the calls of `lakelet.transforms` in its query."""

    dataset: str
    kind: Kind
    flow: str
    strategy: Strategy
    reason: str
    inputs: tuple[str, ...]
    transforms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they may start. `unchecked`: sentences about datasets that only the update can check."""

    steps: tuple[PlanStep, ...]
    unchecked: tuple[Notice, ...] = ()


def stream_decision(positions: Sequence[SourcePosition], *, started: bool, unfinished: bool) -> Decision:
    """Whether a streaming flow must run.

    `started`: the flow has a checkpoint. `unfinished`: its last micro-batch was planned but not completed.
    """
    sources = tuple(positions)
    if unfinished:
        return Decision(Strategy.STREAM, "its last micro-batch was not completed", sources)
    if not started:
        return Decision(Strategy.STREAM, "it has not run yet", sources)
    pending = [p for p in positions if p.pending is not False]
    if pending or not positions:
        reason = "; ".join(p.text for p in pending) or UNKNOWN_SOURCE
        return Decision(Strategy.STREAM, reason, sources)
    return Decision(Strategy.SKIP, "; ".join(p.text for p in positions), sources)


@dataclass(frozen=True)
class ViewState:
    """Everything that a materialized view's content depends on. `always`: why it can never be skipped, or None.

    `fingerprint` covers plan, rules, table specification, settings and engine version; `inputs` are data versions of its tables. After
    a line end the name of an input may say which table it is: a table that was created again counts its versions from 0 (UP-3).
    """

    fingerprint: str
    inputs: Mapping[str, int]
    always: str | None = None


def view_decision(stored_fingerprint: str | None, stored_inputs: Mapping[str, int], found: ViewState) -> Decision:
    """Whether a materialized view must be computed again."""
    if stored_fingerprint is None:
        return Decision(Strategy.FULL, "it has not been computed yet")
    if found.always:
        return Decision(Strategy.FULL, found.always)
    if stored_fingerprint != found.fingerprint:
        return Decision(Strategy.FULL, "its query, rules, settings or the engine changed")
    changed = sorted(name.partition("\n")[0] for name, version in found.inputs.items() if stored_inputs.get(name) != version)
    if changed:
        return Decision(Strategy.FULL, f"{', '.join(changed[:3])}{' and more' if len(changed) > 3 else ''} changed")
    return Decision(Strategy.SKIP, "its query and its inputs are unchanged")
