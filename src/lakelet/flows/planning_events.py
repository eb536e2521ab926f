"""What is reported of a decision about a materialized view: the `planning_information` event, in Databricks' fields (EL-16).

In: a decision with its `Refresh`. Out: the event, a warning where a policy asked for less than all of the view, and another id of its flow
where all of it is computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.flows.context import FlowTask
from lakelet.language.model import RefreshPolicy
from lakelet.plan.decisions import Decision, Strategy, issue_text, refresh_decision
from lakelet.plan.refresh_choice import refuse_full, turned
from lakelet.plan.refreshes import Issue, IssueType, Refresh, TableChange, Technique
from lakelet.storage.eventlog.events import Reporter
from lakelet.storage.eventlog.states import EventType

_BY_STRATEGY = {Strategy.SKIP: Technique.SKIP, Strategy.PARTITIONS: Technique.PARTITIONS}
"""Techniques of decisions that name no refresh, such as those about a part of a table; the others compute all of it."""

_SUB_TYPES = {
    IssueType.PLAN: "plan_not_incrementalizable_sub_type",
    IssueType.NOT_DETERMINISTIC: "plan_not_deterministic_sub_type",
    IssueType.COST: "cost_model_rejection_subtype",
}


def emit_technique(reporter: Reporter, decision: Decision, *, dataset: str, flow: str, names: Mapping[str, str] | None = None) -> None:
    """Report how a materialized view, or the part of a table that a flow replaces, is brought up to date, and why (EL-16).

    `names`: full names of the datasets that it reads, by key.
    """
    chosen = decision.refresh.technique if decision.refresh else _BY_STRATEGY.get(decision.strategy, Technique.FULL)
    body = {**_details(decision.refresh, chosen, dataset, names or {}), "reason": decision.reason}
    text = f"Flow '{flow}' has been planned to be executed as {chosen.value} because {decision.reason}."
    reporter.emit(EventType.PLANNING_INFORMATION, text, body, dataset=dataset, flow=flow)


def warn_of_full(reporter: Reporter, decision: Decision, policy: RefreshPolicy, *, dataset: str, flow: str) -> None:
    """Warn where a view whose policy is incremental is computed as a whole, but for the first time (IV-45)."""
    refresh = decision.refresh
    if policy is not RefreshPolicy.INCREMENTAL or refresh is None or refresh.technique is not Technique.FULL:
        return
    if any(issue.type is IssueType.FIRST_COMPUTATION for issue in refresh.issues):
        return
    because = issue_text(refresh.issues[0]) if refresh.issues else decision.reason
    text = f"{dataset}: its refresh policy is incremental, and all of it is computed because {because}"
    reporter.notice(text, dataset=dataset, flow=flow)


def note_recompute(task: FlowTask) -> None:
    """Give the flow of a view another id in the events from here on: all of the view is computed again (EL-5)."""
    if task.stored().fingerprint is not None:
        known = task.environment.storage.registry().flow(task.target, task.name)
        task.environment.storage.note_flow(replace(known, recomputed=known.recomputed + 1))


def turned_to_full(task: FlowTask, refresh: Refresh, issue: Issue) -> Refresh:
    """Report that a refresh in part computes all of the view after all, because of `issue`; return the refresh that is done.

    Raises REFRESH_WOULD_BE_FULL where the policy is incremental_strict.
    """
    policy, dataset = task.dataset.refresh_policy, str(task.dataset.name)
    try:
        refuse_full(policy, issue)
    except LakeletError as problem:
        problem.dataset, problem.where = dataset, task.dataset.where
        raise
    found = turned(refresh, issue)
    names = {key: str(task.environment.catalog.datasets[key].name) for key in task.inputs}
    decision = refresh_decision(found, names=names)
    note_recompute(task)
    emit_technique(task.environment.reporter, decision, dataset=dataset, flow=task.name, names=names)
    warn_of_full(task.environment.reporter, decision, policy, dataset=dataset, flow=task.name)
    return found


def _details(refresh: Refresh | None, chosen: Technique, dataset: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the techniques, and what is known of the tables. Without a refresh the chosen one and FULL are known to be possible."""
    if refresh is None:
        return {"technique_information": [_technique(one, one is chosen, one in (chosen, Technique.FULL)) for one in Technique]}
    techniques = [{**_technique(one, one is chosen, one in refresh.applicable), **_more(one, refresh)} for one in Technique]
    found: dict[str, Any] = {"technique_information": techniques}
    if refresh.changes:
        found["source_table_information"] = [_source(change, names) for change in refresh.changes]
    if refresh.size is not None:
        found["target_table_information"] = {"table_name": dataset, "full_size": refresh.size}
    return found


def _technique(one: Technique, is_chosen: bool, is_applicable: bool) -> dict[str, Any]:
    return {"maintenance_type": f"MAINTENANCE_TYPE_{one.value}", "is_chosen": is_chosen, "is_applicable": is_applicable}


def _more(one: Technique, refresh: Refresh) -> dict[str, Any]:
    """Return the cost of a technique in seconds where it is known, and what speaks against it."""
    estimate, issues = refresh.estimate, refresh.refused.get(one, ())
    cost = estimate.full if one is Technique.FULL else estimate.partial if one is refresh.estimated else None
    found: dict[str, Any] = {} if cost is None else {"cost": round(cost, 3)}
    return {**found, "incrementalization_issues": [_issue(issue) for issue in issues]} if issues else found


def _issue(issue: Issue) -> dict[str, Any]:
    sub_type = {_SUB_TYPES.get(issue.type, "sub_type"): issue.sub_type} if issue.sub_type else {}
    remedy = {"remedy": issue.remedy} if issue.remedy else {}
    return {"issue_type": issue.type, **sub_type, "prevent_incrementalization": True, "reason": issue.reason, **remedy}


def _source(change: TableChange, names: Mapping[str, str]) -> dict[str, Any]:
    size = {} if change.size is None else {"full_size": change.size}
    return {
        "table_name": names.get(change.key, change.key),
        **size,
        "change_size": change.added + change.removed,
        "table_change_type": "APPEND_ONLY" if change.appends else "GENERAL_CHANGE",
    }


__all__ = ["emit_technique", "note_recompute", "turned_to_full", "warn_of_full"]
