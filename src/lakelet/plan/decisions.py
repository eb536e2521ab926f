"""Plan of an update, with reasons, as data. Pure: positions and fingerprints in, strategies out.

The same functions decide when a plan is printed and again when a step's turn comes, on the facts at that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from lakelet.base.text import counted, seconds_text
from lakelet.language.model import Kind
from lakelet.language.registry import Notice
from lakelet.plan.definition_changes import DefinitionChange
from lakelet.plan.refreshes import Issue, IssueType, Refresh, RefreshPolicy, TableChange, Technique, ViewShape

UNKNOWN_SOURCE = "its source cannot be compared without running it"
"""Reason to run a flow whose source says nothing of what is new."""

UNCHANGED = "its query and its inputs are unchanged"
"""Reason to leave a view as it is."""


class Strategy(Enum):
    """How one step brings its dataset up to date.

    Of a materialized view: FULL computes all of it, APPEND adds the rows of new input rows, GROUPS computes the rows with touched keys
    again, MERGE puts aggregates of new rows together with the stored ones, PARTITIONS computes the partitions that can have changed.
    REPLACE: the part of a table that its flow's condition names.
    """

    STREAM = "stream"
    FULL = "full"
    APPEND = "append"
    GROUPS = "groups"
    MERGE = "merge"
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
    not be listed; `examined`, by key of a table the version up to which it has nothing for the flow. Of a materialized view
    `refresh`: the technique, what else is possible, and why not.
    """

    strategy: Strategy
    reason: str
    sources: tuple[SourcePosition, ...] = field(default=(), compare=False)
    listings: tuple[SourceListing, ...] = field(default=(), compare=False)
    examined: Mapping[str, int] = field(default_factory=dict, compare=False)
    refresh: Refresh | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ViewFacts:
    """Of a materialized view: its policy, the names of its columns, and what its query does to the rows that it reads."""

    policy: RefreshPolicy
    columns: tuple[str, ...]
    shape: ViewShape | Issue | None


@dataclass(frozen=True)
class PlanStep:
    """One flow of the plan. `dataset`, `flow`, `inputs`: full names. `transforms`: the calls of `lakelet.transforms` in its query.

    `refresh`: that of its decision. `view`: of a materialized view, what is known before its inputs are compared.
    """

    dataset: str
    kind: Kind
    flow: str
    strategy: Strategy
    reason: str
    inputs: tuple[str, ...]
    transforms: tuple[str, ...] = ()
    refresh: Refresh | None = field(default=None, compare=False)
    view: ViewFacts | None = field(default=None, compare=False)


def step_of(decision: Decision, dataset: str, kind: Kind, flow: str, inputs: tuple[str, ...], transforms: tuple[str, ...] = ()) -> PlanStep:
    """Return the step of a decision about a flow."""
    return PlanStep(dataset, kind, flow, decision.strategy, decision.reason, inputs, transforms, decision.refresh)


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they may start.

    `unchecked`: sentences about datasets that only the update can check. `changes`: of definitions since the last update.
    """

    steps: tuple[PlanStep, ...]
    unchecked: tuple[Notice, ...] = ()
    changes: tuple[DefinitionChange, ...] = ()


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
    return Decision(Strategy.SKIP, UNCHANGED)


_STRATEGIES: Mapping[Technique, Strategy] = {
    Technique.SKIP: Strategy.SKIP,
    Technique.APPEND: Strategy.APPEND,
    Technique.GROUPS: Strategy.GROUPS,
    Technique.WINDOWS: Strategy.GROUPS,
    Technique.ROWS: Strategy.GROUPS,
    Technique.MERGE: Strategy.MERGE,
    Technique.PARTITIONS: Strategy.PARTITIONS,
    Technique.FULL: Strategy.FULL,
}

_PLAIN_TYPES = frozenset({IssueType.FIRST_COMPUTATION, IssueType.OTHER_QUERY, IssueType.OTHER_DATA, IssueType.COST, IssueType.POLICY})
"""Types whose name says no more than the reason."""


def strategy_of(refresh: Refresh) -> Strategy:
    """Return the strategy by which a refresh is carried out."""
    return _STRATEGIES[refresh.technique]


def refresh_decision(refresh: Refresh, *, names: Mapping[str, str] | None = None, partitions: int | None = None) -> Decision:
    """Return the decision about a view that is refreshed in this way: what changed, why all of it is computed, and the estimates.

    `names`: how datasets are called, by key. `partitions`: how many of the view can have changed, where these are computed.
    """
    strategy = strategy_of(refresh)
    if strategy is Strategy.SKIP:
        return Decision(strategy, UNCHANGED, refresh=refresh)
    changed = changes_text(refresh.changes, names or {})
    if strategy is Strategy.FULL:
        parts = [*([changed] if changed else []), *(issue_text(issue) for issue in refresh.issues[:1])]
    else:
        parts = [f"{changed} in {counted(partitions, 'partition')}" if strategy is Strategy.PARTITIONS and partitions else changed]
    return Decision(strategy, "; ".join([*parts, *estimate_texts(refresh)]), refresh=refresh)


def changes_text(changes: Sequence[TableChange], names: Mapping[str, str], limit: int = 3) -> str:
    """Return `silver.events appended 1.0 %, silver.users changed 0.2 %`, or an empty text where nothing changed."""
    shown = [_change_text(change, names.get(change.key, change.key)) for change in changes[:limit]]
    return ", ".join(shown) + (" and more" if len(changes) > limit else "")


def _change_text(change: TableChange, name: str) -> str:
    share = f" {min(1.0, (change.added + change.removed) / change.size) * 100:.1f} %" if change.size else ""
    return f"{name} {'appended' if change.appends else 'changed'}{share}"


def issue_text(issue: Issue) -> str:
    """Return the reason with the most exact of Databricks' names: `current_date() in the query (TIME_FUNCTION)`."""
    name = issue.sub_type or (None if issue.type in _PLAIN_TYPES else issue.type)
    return f"{issue.reason} ({name})" if name else issue.reason


def estimate_texts(refresh: Refresh) -> list[str]:
    """Return `est. 3.1 s, full 12.0 s` in a list, that of the chosen way first; an empty one where neither is known."""
    in_part, full = (None if seconds is None else seconds_text(seconds) for seconds in (refresh.estimate.partial, refresh.estimate.full))
    if refresh.technique is Technique.FULL:
        shown = [*([f"full {full}"] if full else []), *([f"in part {in_part}"] if in_part else [])]
    else:
        shown = [*([in_part] if in_part else []), *([f"full {full}"] if full else [])]
    return [f"est. {', '.join(shown)}"] if shown else []
