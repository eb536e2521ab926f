"""Which way a materialized view is refreshed: what is right now, what each way is estimated to take, what its policy asks for. Pure.

    RefreshFacts    shape of the query, changes of its inputs, policy, rules, readers, and what earlier refreshes cost
    Learned         what the refreshes of one view have cost, kept with the view
    never           why a definition can only be computed as a whole, whatever changes
    choose          facts → `Refresh`, before any Spark job
    keys_now        the keys of a view that are keys while certain inputs have changes
    reconsidered    the choice once the touched keys are counted: may turn to FULL

docs/semantics/refresh-policies.md has the rules (IV-40 to IV-53).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from lakelet.base.errors import LakeletError
from lakelet.plan.refresh_facts import BY_KEY, MERGE_FIXED, Learned, RefreshFacts, share_of
from lakelet.plan.refresh_rules import every_issue, keys_now, never, problems, techniques
from lakelet.plan.refreshes import NO_OP, Estimate, Issue, IssueType, Refresh, RefreshPolicy, Technique, ViewShape

_WRITE_RATE = 50e6
"""Bytes of the result that are written again in a second."""

_SCANNED: Mapping[Technique, float] = {Technique.GROUPS: 0.5, Technique.WINDOWS: 0.25, Technique.ROWS: 0.5}
"""The share of a full refresh that goes into reading the inputs; the rest follows the number of keys."""

_LARGEST_CHANGE = 0.25
"""With a larger share of the inputs' bytes changed, keys are not looked for."""

_GAIN = 0.8
"""A refresh in part is chosen up to this share of a full one."""


def choose(facts: RefreshFacts) -> Refresh:
    """Return how a view is refreshed whose inputs or definition changed, before any job runs.

    Under INCREMENTAL_STRICT raises REFRESH_WOULD_BE_FULL instead of a full refresh, but for the first computation.
    """
    if _nothing_changed(facts):
        return NO_OP
    found_issues = {technique: tuple(problems(facts, technique)) for technique in techniques(facts)}
    right = tuple(technique for technique, issues in found_issues.items() if not issues)
    refused = {technique: issues for technique, issues in found_issues.items() if issues}
    found = Refresh(
        Technique.FULL,
        applicable=(*right, Technique.FULL),
        issues=every_issue(facts, refused),
        changes=facts.changed,
        refused=refused,
        size=facts.size,
        learned=asdict(facts.learned),
    )
    if facts.forced is not None and facts.forced in found.applicable:
        return _forced(facts, found)
    if facts.policy is RefreshPolicy.FULL:
        return _with_issue(facts, found, Issue(IssueType.POLICY, "its refresh policy is full"))
    if not right:
        return _strict(facts, replace(found, estimate=Estimate(None, full_seconds(facts))))
    if facts.policy is not RefreshPolicy.AUTO:
        return _estimated(facts, found, right[0])
    return _cheapest(facts, found, right)


def reconsidered(refresh: Refresh, facts: RefreshFacts, *, keys: int, groups: int | None, pruned_bytes: int) -> Refresh:
    """Return the choice once the touched keys are known; it may turn to FULL.

    `keys`: touched ones; `groups`: keys that the view has, None where not known, so that the share of the keys is taken for that of the
    changed bytes; `pruned_bytes`: bytes of the inputs that must be read.
    """
    if refresh.technique not in BY_KEY:
        return refresh
    share = share_of(pruned_bytes, facts.input_bytes)
    of_keys = min(1.0, keys / groups) if groups else facts.changed_share
    found = replace(refresh, estimate=Estimate(_by_key_seconds(facts, refresh.technique, share, of_keys), full_seconds(facts)))
    free = facts.policy is RefreshPolicy.AUTO and facts.forced is not refresh.technique
    issue = _too_slow(found.estimate) if free else None
    return found if issue is None else turned(found, issue)


def turned(refresh: Refresh, issue: Issue) -> Refresh:
    """Return a refresh as a whole where one in part was chosen, because of `issue`."""
    refused = {**refresh.refused, refresh.technique: (issue,)}
    return replace(refresh, technique=Technique.FULL, issues=(issue, *refresh.issues), refused=refused)


def refuse_full(policy: RefreshPolicy, issue: Issue) -> None:
    """Raise REFRESH_WOULD_BE_FULL where a policy forbids to compute all of a view that has been computed before."""
    if policy is not RefreshPolicy.INCREMENTAL_STRICT:
        return
    raise LakeletError(
        "REFRESH_WOULD_BE_FULL",
        "its refresh policy is incremental_strict, and this update would compute all of it",
        why=f"[{issue.name}] {issue.reason}",
        todo=f"{f'{issue.remedy} ' if issue.remedy else ''}To compute all of it once, run with --full-refresh and its name.",
    )


# --- what is chosen ----------------------------------------------------------------------------------------------------------------------


def _nothing_changed(facts: RefreshFacts) -> bool:
    """Whether all inputs are as the view was computed from. A view whose rows depend on more is never skipped."""
    return bool(facts.changes) and not isinstance(facts.changes, Issue) and isinstance(facts.shape, ViewShape) and not facts.changed


def _forced(facts: RefreshFacts, found: Refresh) -> Refresh:
    assert facts.forced is not None
    if facts.forced is Technique.FULL:
        return _with_issue(facts, found, Issue(IssueType.POLICY, "a full refresh is forced by LAKELET_REFRESH"))
    return _estimated(facts, found, facts.forced)


def _with_issue(facts: RefreshFacts, found: Refresh, issue: Issue) -> Refresh:
    """Return a full refresh because of `issue`; that versions cannot be compared comes before it."""
    others: dict[Technique, tuple[Issue, ...]] = {one: (issue,) for one in found.applicable if one is not Technique.FULL}
    refused = {**found.refused, **others}
    issues = (facts.changes, issue) if isinstance(facts.changes, Issue) else (issue,)
    issues = tuple(dict.fromkeys((*issues, *found.issues)))
    return replace(found, issues=issues, refused=refused, estimate=Estimate(None, full_seconds(facts)))


def _strict(facts: RefreshFacts, found: Refresh) -> Refresh:
    """Return a full refresh, or raise where the policy forbids it."""
    if not (isinstance(facts.changes, Issue) and facts.changes.type is IssueType.FIRST_COMPUTATION):
        refuse_full(facts.policy, found.issues[0])
    return found


def _estimated(facts: RefreshFacts, found: Refresh, technique: Technique) -> Refresh:
    """Return the refresh by a technique, with what it is estimated to take before keys are counted."""
    estimate = Estimate(_partial_seconds(facts, technique), full_seconds(facts))
    return replace(found, technique=technique, estimate=estimate, estimated=technique)


def _cheapest(facts: RefreshFacts, found: Refresh, right: Sequence[Technique]) -> Refresh:
    """Return the first technique that pays, or FULL with the reason against each."""
    tried = found
    for technique in right:
        tried = _estimated(facts, tried, technique)
        issue = _PAYS[technique](facts, tried) if technique in _PAYS else None
        if issue is None:
            return tried
        tried = replace(tried, issues=(issue, *tried.issues), refused={**tried.refused, technique: (issue,)})
    return replace(tried, technique=Technique.FULL, issues=tuple(dict.fromkeys(tried.issues)))


def _merge_pays(facts: RefreshFacts, tried: Refresh) -> Issue | None:
    return _too_slow(tried.estimate)


def _keys_pay(facts: RefreshFacts, tried: Refresh) -> Issue | None:
    """Return why keys are not even looked for. The estimate is one for keys that lie together: more is known once they are counted."""
    share = facts.changed_share
    if share is not None and share > _LARGEST_CHANGE:
        return Issue(IssueType.COST, "more than a quarter of what it reads changed", "CHANGESET_SIZE_THRESHOLD_EXCEEDED")
    return _too_slow(tried.estimate)


_PAYS: Mapping[Technique, Callable[[RefreshFacts, Refresh], Issue | None]] = {
    Technique.MERGE: _merge_pays,
    **dict.fromkeys(BY_KEY, _keys_pay),
}
"""The others always pay: they run the author's query once, as a full refresh does, on fewer rows, and write fewer; nothing is looked for
before."""


def _too_slow(estimate: Estimate) -> Issue | None:
    if estimate.partial is None or estimate.full is None:
        return Issue(IssueType.COST, "what its refreshes take is not known yet")
    return None if estimate.partial <= _GAIN * estimate.full else Issue(IssueType.COST, "computing all is cheaper")


# --- estimates ---------------------------------------------------------------------------------------------------------------------------


def full_seconds(facts: RefreshFacts) -> float | None:
    """Return the estimated seconds of a full refresh; None before the first one."""
    return facts.learned.full_estimate(facts.input_bytes)


def _partial_seconds(facts: RefreshFacts, technique: Technique) -> float | None:
    if technique in BY_KEY:
        return _by_key_seconds(facts, technique, facts.changed_share, facts.changed_share)
    full = full_seconds(facts)
    share = _read_share(facts) if technique in (Technique.APPEND, Technique.MERGE) else None
    if full is None or share is None:
        return None
    fixed = facts.learned.full_fixed_part()
    if technique is Technique.APPEND:
        return fixed + (full - fixed) * share
    return facts.learned.fixed_part() * MERGE_FIXED + full * share + _rewriting(facts, share)


def _by_key_seconds(facts: RefreshFacts, technique: Technique, read: float | None, keys: float | None) -> float | None:
    """Return the seconds of a refresh by keys: to find them, to read a share of the inputs, and to compute a share of the keys."""
    full = full_seconds(facts)
    if full is None or read is None or keys is None:
        return None
    scanned, finding = _SCANNED[technique], facts.searched_share or 0.0
    return facts.learned.fixed_part() + full * (scanned * (finding + read) + (1 - scanned) * keys) + _rewriting(facts, max(read, keys))


def _rewriting(facts: RefreshFacts, share: float) -> float:
    """Return the seconds to write the touched files of the result again, taken for the same share of it as of the inputs."""
    return (facts.size or 0) * share / _WRITE_RATE


def _read_share(facts: RefreshFacts) -> float | None:
    """Return the share of the inputs that the query of the new rows reads: these, and what they are joined with."""
    if isinstance(facts.changes, Issue) or isinstance(facts.shape, Issue):
        return None
    leaves = facts.shape.leaves
    changed = {change.key for change in facts.changed}
    beside = {leaves[other].key for leaf in leaves if leaf.key in changed for other in leaf.joined} - changed
    read = sum(change.added for change in facts.changed) + sum(change.size or 0 for change in facts.changes if change.key in beside)
    return share_of(read, facts.input_bytes)


__all__ = [
    "BY_KEY",
    "Learned",
    "RefreshFacts",
    "choose",
    "full_seconds",
    "keys_now",
    "never",
    "reconsidered",
    "refuse_full",
    "turned",
]
