"""All about the refresh of single datasets, as text and as JSON values: what `lakelet plan --explain NAME` prints. Pure.

In: steps of a plan. Out: per step the technique and its reason, the keys, what is read and how it changed, what else is possible and why it
is not taken, estimates, and what earlier refreshes cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import Namespace
from lakelet.base.text import bytes_text, counted, listed, seconds_text, shortener
from lakelet.plan.decisions import Plan, PlanStep, Strategy
from lakelet.plan.refreshes import Issue, Leaf, Refresh, TableChange, Technique, ViewShape


def explained_steps(plan: Plan, names: Sequence[str], namespace: Namespace) -> tuple[PlanStep, ...]:
    """Return the steps of the named datasets. Raises UNKNOWN_SELECTION for a name without a step."""
    by_key: dict[str, list[PlanStep]] = {}
    for step in plan.steps:
        by_key.setdefault(step.dataset.lower(), []).append(step)
    found: dict[str, list[PlanStep]] = {}
    for name in names:
        try:
            key = namespace.resolve(name).key
        except ValueError as problem:
            raise LakeletError("UNKNOWN_SELECTION", f"--explain: {problem}") from None
        if key not in by_key:
            raise LakeletError(
                "UNKNOWN_SELECTION",
                f"--explain names {name!r}, no table of this pipeline",
                nearest=nearest_names(name, [steps[0].dataset for steps in by_key.values()]),
                todo="List all names: lakelet graph",
            )
        found[key] = by_key[key]
    return tuple(step for steps in found.values() for step in steps)


def short_reason(step: PlanStep, short: Callable[[str], str]) -> str:
    """Return the reason of a step; that of a refresh with short names of the inputs."""
    reason = step.reason
    for name in step.inputs if step.refresh is not None else ():
        reason = reason.replace(name, short(name))
    return reason


def technique_name(technique: Technique) -> str:
    """Return the name of a technique in lower case, as it is printed: `groups`."""
    return technique.name.lower()


# --- text --------------------------------------------------------------------------------------------------------------------------------


def explanation_text(steps: Sequence[PlanStep]) -> str:
    """Return one paragraph per step: its strategy and reason, then a line per fact."""
    short = shortener(name for step in steps for name in (step.dataset, *step.inputs))
    return "\n\n".join("\n".join(_paragraph(step, short)) for step in steps)


def _paragraph(step: PlanStep, short: Callable[[str], str]) -> Iterator[str]:
    yield f"{short(step.dataset)}: {step.strategy.value}, because {short_reason(step, short)}"
    facts = list(_facts(step, short))
    width = max((len(label) for label, _ in facts), default=0)
    before = ""
    for label, text in facts:
        yield f"  {(label if label != before else '').ljust(width)}  {text}"
        before = label


def _facts(step: PlanStep, short: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    view, refresh = step.view, step.refresh
    if step.strategy is Strategy.EXCLUDED or view is None:
        yield "reads", listed([short(name) for name in step.inputs], 8) or "no table of this pipeline"
        return
    yield "policy", view.policy.value
    if isinstance(view.shape, ViewShape):
        yield "keys", listed(keys_of(step), 8) or "none"
        if view.shape.ordered_by_chance:
            yield "order", f"{view.shape.ordered_by_chance}: a full refresh may give other rows, too"
    yield from (("reads", text) for text in _reads(step, short))
    if refresh is not None:
        yield from _techniques(refresh)
        yield from (("learned", text) for text in _learned_texts(refresh))
    elif isinstance(view.shape, Issue):
        yield "always full", _issue_text(view.shape)


def keys_of(step: PlanStep) -> list[str]:
    """Return the names of the columns by which the view's rows are found; none where it has no such columns."""
    view = step.view
    return [view.columns[position] for position in view.shape.keys] if view and isinstance(view.shape, ViewShape) else []


def _reads(step: PlanStep, short: Callable[[str], str]) -> Iterator[str]:
    """Yield a text per leaf of the plan; per input where there is no shape."""
    names = {name.lower(): name for name in step.inputs}
    changes = {change.key: change for change in step.refresh.changes} if step.refresh else {}
    shape = step.view.shape if step.view else None
    leaves = shape.leaves if isinstance(shape, ViewShape) else tuple(Leaf(key, 0) for key in names)
    for leaf in leaves:
        joined = listed([short(names.get(leaves[other].key, leaves[other].key)) for other in sorted(leaf.joined)], 4)
        parts = [
            _change_text(changes.get(leaf.key)),
            *([f"joined with {joined}"] if joined else []),
            *([] if leaf.preserved else ["on the side that an outer join fills with NULL"]),
        ]
        yield f"{short(names.get(leaf.key, leaf.key))} {'; '.join(parts)}"


def _change_text(change: TableChange | None) -> str:
    if change is None or change.is_empty:
        return "unchanged"
    sizes = [f"{bytes_text(change.added)} added"] if change.added else []
    sizes += [f"{bytes_text(change.removed)} removed"] if change.removed else []
    share = [f"{(change.added + change.removed) / change.size * 100:.1f} % of {bytes_text(change.size)}"] if change.size else []
    rows = [] if change.rows is None else [counted(change.rows, "row")]
    versions = f"versions {change.before + 1} to {change.after}" if change.after > change.before + 1 else f"version {change.after}"
    return f"{'appended' if change.appends else 'changed'} in {versions}: {', '.join([*sizes, *share, *rows])}"


def _techniques(refresh: Refresh) -> Iterator[tuple[str, str]]:
    if refresh.applicable:
        yield "possible", ", ".join(map(technique_name, refresh.applicable))
    for technique, issues in refresh.refused.items():
        yield from (("not taken", f"{technique_name(technique)}: {_issue_text(issue)}") for issue in issues)
    estimate = refresh.estimate
    known = [(technique_name(refresh.estimated), estimate.partial)] if refresh.estimated else []
    texts = [f"{name} {seconds_text(seconds)}" for name, seconds in (*known, ("full", estimate.full)) if seconds is not None]
    yield "estimates", ", ".join(texts) or "none yet"


def _issue_text(issue: Issue) -> str:
    return f"{issue.reason} [{issue.name}]{f'. {issue.remedy}' if issue.remedy else ''}"


def _learned_texts(refresh: Refresh) -> Iterator[str]:
    learned = refresh.learned
    for name, words in (("full", "the last full refresh"), ("partial", "the last refresh in part")):
        seconds, size = learned.get(f"{name}_seconds"), learned.get(f"{name}_bytes")
        if seconds is not None:
            yield f"{words} took {seconds_text(seconds)}" + (f" and read {bytes_text(int(size))}" if size is not None else "")
    fixed = learned.get("fixed_seconds")
    if fixed is not None:
        yield f"a refresh by keys takes {seconds_text(fixed)} whatever its size"


# --- JSON --------------------------------------------------------------------------------------------------------------------------------


def refresh_json(step: PlanStep) -> dict[str, Any]:
    """Return what is known of the refresh of a view as JSON values; nothing for other steps."""
    refresh = step.refresh
    if refresh is None:
        return {}
    full = refresh.technique is Technique.FULL
    return {
        "technique": technique_name(refresh.technique),
        "applicable": [technique_name(one) for one in refresh.applicable],
        "issue_type": refresh.issues[0].type if full and refresh.issues else None,
        "issues": [_issue_json(issue) for issue in refresh.issues],
        "changes": [_change_json(change) for change in refresh.changes],
        "estimate": {"partial": refresh.estimate.partial, "full": refresh.estimate.full},
    }


def explanation_json(steps: Sequence[PlanStep]) -> dict[str, Any]:
    """Return all about the steps as JSON values: `{"steps": [...]}`, those of views with policy, keys and what they read."""
    return {"steps": [{**_step_json(step), **_view_json(step), **refresh_json(step), **_details_json(step)} for step in steps]}


def _step_json(step: PlanStep) -> dict[str, Any]:
    return {
        "dataset": step.dataset,
        "kind": step.kind.value,
        "flow": step.flow,
        "strategy": step.strategy.value,
        "reason": step.reason,
        "inputs": list(step.inputs),
    }


def _view_json(step: PlanStep) -> dict[str, Any]:
    view = step.view
    if view is None:
        return {}
    shape = view.shape if isinstance(view.shape, ViewShape) else None
    names = {name.lower(): name for name in step.inputs}
    return {
        "policy": view.policy.value,
        "keys": keys_of(step),
        "reads": [_leaf_json(leaf, names) for leaf in shape.leaves] if shape else [],
        "ordered_by_chance": shape.ordered_by_chance if shape else None,
        "always_full": _issue_json(view.shape) if isinstance(view.shape, Issue) else None,
    }


def _details_json(step: PlanStep) -> dict[str, Any]:
    refresh = step.refresh
    if refresh is None:
        return {}
    refused = {technique_name(one): [_issue_json(issue) for issue in issues] for one, issues in refresh.refused.items()}
    return {"not_taken": refused, "learned": dict(refresh.learned)}


def _leaf_json(leaf: Leaf, names: dict[str, str]) -> dict[str, Any]:
    return {"dataset": names.get(leaf.key, leaf.key), "preserved": leaf.preserved, "joined": sorted(leaf.joined)}


def _issue_json(issue: Issue) -> dict[str, Any]:
    return {"type": issue.type, "sub_type": issue.sub_type, "reason": issue.reason, "remedy": issue.remedy}


def _change_json(change: TableChange) -> dict[str, Any]:
    return {
        "dataset": change.key,
        "appends": change.appends,
        "from_version": change.before,
        "to_version": change.after,
        "added_bytes": change.added,
        "removed_bytes": change.removed,
        "rows": change.rows,
        "bytes": change.size,
    }


__all__ = ["explained_steps", "explanation_json", "explanation_text", "keys_of", "refresh_json", "short_reason", "technique_name"]
