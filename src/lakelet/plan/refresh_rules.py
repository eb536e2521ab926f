"""Which techniques are right for a refresh: by the query, by the view's rules and readers, by what changed. Pure.

In: `RefreshFacts`. Out: for each technique that comes into question the issues against it; none where it is right (IV-40 to IV-42).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from lakelet.base.text import listed
from lakelet.plan.refresh_facts import BY_KEY, RefreshFacts
from lakelet.plan.refreshes import OPERATOR, Issue, IssueType, Leaf, Technique, ViewShape


def never(facts: RefreshFacts) -> Issue | None:
    """Return why every refresh computes all of the view, whatever changes in its inputs; None where another technique may be right."""
    if facts.partitions is not None:
        return None
    found = {technique: tuple(_definition_problems(facts, technique)) for technique in techniques(facts)}
    return every_issue(facts, found)[0] if all(found.values()) else None


def techniques(facts: RefreshFacts) -> tuple[Technique, ...]:
    """Return the techniques that are tried, in this order: those whose cost follows the change alone come first."""
    partitions = () if facts.partitions is None else (Technique.PARTITIONS,)
    if isinstance(facts.shape, Issue):
        return (Technique.APPEND, Technique.MERGE, *partitions)
    together = facts.shape.merges is not None or facts.shape.technique is Technique.GROUPS
    return (Technique.APPEND, *((Technique.MERGE,) if together else ()), *partitions, facts.shape.technique)


def problems(facts: RefreshFacts, technique: Technique) -> Iterator[Issue]:
    """Yield what speaks against a technique now; nothing where it is right. Partitions were found to be right before."""
    if technique is Technique.PARTITIONS:
        return
    if isinstance(facts.changes, Issue):
        yield facts.changes
    yield from _definition_problems(facts, technique)
    if isinstance(facts.changes, Issue) or isinstance(facts.shape, Issue):
        return
    if not facts.changes:
        yield Issue(IssueType.NOT_IN_DELTA, "it reads no table whose changes are known")
    hidden = [change.key for change in facts.changed if change.key not in {leaf.key for leaf in facts.shape.leaves}]
    if hidden:
        yield Issue(IssueType.PLAN, f"the plan of its query does not show how it reads {listed(hidden, 3)}", OPERATOR)
    if technique not in BY_KEY:
        yield from _change_problems(facts, facts.shape)
    elif facts.shape.keys and not keys_now(facts.shape, [change.key for change in facts.changed]):
        remedy = "Return a column of the left side of the join that the query groups, partitions or joins by."
        yield Issue(IssueType.PLAN, "its rows are found by columns of an outer join's other side, which changed", OPERATOR, remedy)


def _definition_problems(facts: RefreshFacts, technique: Technique) -> Iterator[Issue]:
    """Yield what speaks against a technique whatever changes."""
    shape = facts.shape
    if facts.identities:
        remedy = "Number the rows in a streaming table, or by a function of their columns."
        yield Issue(IssueType.PLAN, "it has identity columns, whose numbers are given when rows are written", OPERATOR, remedy)
    if facts.quarantined:
        yield Issue(IssueType.EXPECTATIONS, "it keeps the rows that its rules drop", remedy="Put the rules on a table that the view reads.")
    if isinstance(shape, Issue):
        yield shape
        return
    if technique is Technique.APPEND and not shape.linear:
        yield Issue(IssueType.PLAN, "its query puts rows together, so new rows change rows that are there", OPERATOR)
    if technique is Technique.MERGE and shape.merges is None:
        yield Issue(IssueType.PLAN, "its results of old and of new rows cannot be put together", "AGGREGATE_WITH_UNSUPPORTED_EXPRESSION")
    if technique in BY_KEY and not shape.keys:
        remedy = "Return the columns that the query groups, partitions or joins by."
        yield Issue(IssueType.PLAN, "none of its columns says which input rows a row depends on", OPERATOR, remedy)
    if technique is not Technique.APPEND:
        yield from _stored_rows_problems(facts)


def _stored_rows_problems(facts: RefreshFacts) -> Iterator[Issue]:
    """Yield what speaks against changing rows that are there."""
    if "drop" in facts.rules:
        yield Issue(
            IssueType.EXPECTATIONS,
            "it has rules that drop rows, and the rows dropped earlier would not be counted",
            remedy="Put the rules that drop rows on a table that the view reads.",
        )
    if facts.streamed:
        yield Issue(IssueType.PLAN, "a stream reads it, so the rows that are there must stay", OPERATOR, "Read it as a batch.")


def _change_problems(facts: RefreshFacts, shape: ViewShape) -> Iterator[Issue]:
    """Yield why the query of the new rows alone is not what the result gets in addition."""
    gone = [change.key for change in facts.changed if not change.appends]
    if gone:
        yield Issue(IssueType.OTHER_DATA, f"rows of {listed(gone, 3)} were updated or deleted")
    keys = {change.key for change in facts.changed}
    changed = {number: leaf for number, leaf in enumerate(shape.leaves) if leaf.key in keys}
    filled = _names(leaf for leaf in changed.values() if not leaf.preserved)
    if filled:
        yield Issue(IssueType.PLAN, f"new rows of {filled} take the place of rows that its outer join filled with NULL", OPERATOR)
    both = _names(leaf for number, leaf in changed.items() if leaf.joined & (changed.keys()))
    if both:
        yield Issue(IssueType.PLAN, f"new rows of {both} come together with new rows on the other side of a join", OPERATOR)


def keys_now(shape: ViewShape, changed: Collection[str]) -> tuple[int, ...]:
    """Return the numbers of `shape.keys` that are keys while these datasets have changes: one that an outer join fills may be none."""
    leaves = {number for number, leaf in enumerate(shape.leaves) if leaf.key in changed}
    return tuple(number for number in range(len(shape.keys)) if not shape.nullable_keys.get(number, frozenset()) & leaves)


def _names(leaves: Iterator[Leaf]) -> str:
    return listed(list(dict.fromkeys(leaf.key for leaf in leaves)), 3)


def every_issue(facts: RefreshFacts, refused: Mapping[Technique, Sequence[Issue]]) -> tuple[Issue, ...]:
    """Return all issues, each once: first those of techniques that the definition allows, and there those of the most general one."""
    general_first = list(refused)[::-1]
    never_right = {technique: any(_definition_problems(facts, technique)) for technique in refused}
    order = [one for one in general_first if not never_right[one]] + [one for one in general_first if never_right[one]]
    return tuple(dict.fromkeys(issue for technique in order for issue in refused[technique]))


__all__ = ["every_issue", "keys_now", "never", "problems", "techniques"]
