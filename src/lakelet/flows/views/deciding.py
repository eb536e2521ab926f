"""Whether and how a materialized view is brought up to date, from logs and the registry alone: no Spark job runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from lakelet.base.errors import LakeletError
from lakelet.flows.context import FlowTask
from lakelet.flows.target_table import is_behind
from lakelet.flows.views.partitions import AffectedPartitions, affected_partitions
from lakelet.flows.views.versions import InputVersions
from lakelet.plan.decisions import Decision, Strategy, refresh_decision, view_decision
from lakelet.plan.refresh_choice import Learned, RefreshFacts, choose
from lakelet.plan.refreshes import OPERATOR, Issue, IssueType, Refresh, RefreshPolicy, TableChange, Technique, ViewShape
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.changed_rows import ChangedFiles
from lakelet.storage.root import StoredDataset

FORCED = "LAKELET_REFRESH"
"""Environment variable with the name of a technique that is taken wherever it is right: for tests that compare techniques."""


@dataclass(frozen=True)
class RefreshPlan:
    """What was decided about one view, and what its run needs of that.

    Attributes:
        versions: of the inputs.
        decision: to skip it, or the reason to compute it and `refresh`.
        facts: what the choice was made of; None for a view that is skipped.
        stored: the view's entry in the registry.
        last: what its last commit keeps; None where nothing may be built on it.
        files: by key of an input what changed; empty where that does not count.
        partitions: those that can have changed, if they alone may be computed.
    """

    versions: InputVersions
    decision: Decision
    stored: StoredDataset
    facts: RefreshFacts | None = None
    last: BatchMetrics | None = None
    files: Mapping[str, ChangedFiles] = field(default_factory=dict)
    partitions: AffectedPartitions | None = None

    @property
    def refresh(self) -> Refresh:
        return self.decision.refresh or Refresh(Technique.FULL)

    @property
    def shape(self) -> ViewShape:
        """The shape of the query, which every technique but FULL and PARTITIONS is chosen by."""
        assert self.facts is not None
        assert isinstance(self.facts.shape, ViewShape)
        return self.facts.shape


def decide_view(task: FlowTask) -> Decision:
    """Whether the view must be computed, and how."""
    plan = refresh_plan(task)
    task.environment.memory.refreshes[task.target] = plan
    return plan.decision


def decided(task: FlowTask) -> RefreshPlan:
    """What was decided about the view last; decided now where that was done already."""
    found: RefreshPlan | None = task.environment.memory.refreshes.pop(task.target, None)
    return found or refresh_plan(task)


def refresh_plan(task: FlowTask) -> RefreshPlan:
    """Decide about a view by the present facts. Raises REFRESH_WOULD_BE_FULL."""
    stored, log = task.stored(), task.environment.memory.log(task.path())
    exists = log.version() >= 0
    versions = InputVersions.of(task, stored.input_versions)
    behind = exists and is_behind(task)
    found = view_decision(stored.fingerprint if exists else None, stored.input_versions, versions.state)
    if found.strategy is Strategy.SKIP and not behind:
        return RefreshPlan(versions, found, stored)
    versions = versions.on_present_columns(task)
    last = _last_commit(task, stored) if exists else None
    changes = _changes(task, versions, stored, last, exists=exists, behind=behind)
    files = {} if isinstance(changes, Issue) else {one.change.key: one for one in changes}
    partitions = affected_partitions(task, versions.state) if exists and not behind else None
    known = changes if isinstance(changes, Issue) else tuple(one.change for one in changes)
    facts = _facts(task, versions, last, known, partitions=None if partitions is None else len(partitions.values))
    names = {key: str(task.environment.catalog.datasets[key].name) for key in task.inputs}
    decision = refresh_decision(_chosen(task, facts), names=names, partitions=facts.partitions)
    return RefreshPlan(versions, decision, stored, facts, last, files, partitions)


def _chosen(task: FlowTask, facts: RefreshFacts) -> Refresh:
    try:
        return choose(facts)
    except LakeletError as problem:
        problem.dataset, problem.where = str(task.dataset.name), task.dataset.where
        raise


def expected_refresh(task: FlowTask, above: Collection[str]) -> Refresh | None:
    """How a view that is up to date will be refreshed if a few rows are added to these inputs: for a plan. None where nothing is known."""
    stored = task.stored()
    last = _last_commit(task, stored)
    if last is None:
        return None
    environment = task.environment
    sizes = {
        key: environment.memory.log(environment.storage.table_path(environment.catalog.datasets[key].name)).bytes() for key in task.inputs
    }
    changes = tuple(TableChange(key, 0, 1, added=int(key in above), size=sizes[key]) for key in task.inputs)
    facts = _facts(task, InputVersions.of(task, stored.input_versions), last, changes, partitions=None)
    strict = facts.policy is RefreshPolicy.INCREMENTAL_STRICT
    found = choose(replace(facts, policy=RefreshPolicy.INCREMENTAL) if strict else facts)
    return replace(found, changes=())


def _facts(
    task: FlowTask,
    versions: InputVersions,
    last: BatchMetrics | None,
    changes: tuple[TableChange, ...] | Issue,
    *,
    partitions: int | None,
) -> RefreshFacts:
    log = task.environment.memory.log(task.path())
    return RefreshFacts(
        policy=task.dataset.refresh_policy,
        shape=_shape(task, versions),
        changes=changes,
        partitions=partitions,
        rules=frozenset(rule.action.value for rule in task.dataset.expectations),
        streamed=task.is_streamed(),
        identities=bool(task.dataset.identities),
        quarantined=task.dataset.keeps_dropped,
        size=log.bytes() if log.version() >= 0 else None,
        learned=last.view.learned if last is not None and last.view is not None else Learned(),
        forced=forced_technique(os.environ),
    )


def forced_technique(environment: Mapping[str, str]) -> Technique | None:
    """The technique that the environment variable `FORCED` names. Raises PROPERTY_INVALID for another name."""
    name = environment.get(FORCED)
    if not name:
        return None
    try:
        return Technique[name.upper()]
    except KeyError:
        known = ", ".join(technique.name.lower() for technique in Technique)
        raise LakeletError("PROPERTY_INVALID", f"{FORCED} is {name!r}, which is not a technique", todo=f"Known are {known}.") from None


def _shape(task: FlowTask, versions: InputVersions) -> ViewShape | Issue:
    batch = task.flow.batch
    if versions.state.always:
        found = batch.shape if isinstance(batch.shape, Issue) else None
        return found or Issue(IssueType.NOT_DETERMINISTIC, versions.state.always)
    return batch.shape or Issue(IssueType.PLAN, "its query was not analysed for that", OPERATOR)


def _last_commit(task: FlowTask, stored: StoredDataset) -> BatchMetrics | None:
    """What the commit keeps that the registry's entry is about; None where others have changed the view since, or it is not known."""
    if stored.version is None:
        return None
    log = task.environment.memory.log(task.path())
    commit = log.commit(stored.version) if log.data_version(stored.version) == stored.version else None
    found = BatchMetrics.of_commit(commit.user_metadata) if commit is not None else None
    return found if found is not None and found.view is not None else None


def _changes(
    task: FlowTask, versions: InputVersions, stored: StoredDataset, last: BatchMetrics | None, *, exists: bool, behind: bool
) -> tuple[ChangedFiles, ...] | Issue:
    """What the inputs got and lost since the view was computed, or why that does not say what the view gets and loses."""
    if not exists or stored.fingerprint is None:
        return Issue(IssueType.FIRST_COMPUTATION, "it has not been computed yet")
    if versions.state.always:
        return Issue(IssueType.NOT_DETERMINISTIC, versions.state.always)
    if behind:
        return Issue(IssueType.EXPECTATIONS, "its quarantine does not have the rows that it left out")
    if stored.fingerprint != versions.state.fingerprint:
        return Issue(IssueType.OTHER_QUERY, "its query, rules, settings or the engine changed")
    if last is None:
        return Issue(IssueType.OTHER_DATA, "its table was changed by something else, or its log was cleaned up")
    outside = [name for name in versions.state.inputs if name not in versions.names.values()]
    changed = [name for name in outside if stored.input_versions.get(name) != versions.state.inputs[name]]
    if changed:
        return Issue(IssueType.NOT_IN_DELTA, f"{changed[0]} changed, which has no log")
    return versions.changes(task, stored.input_versions)


__all__ = ["FORCED", "RefreshPlan", "decide_view", "decided", "expected_refresh", "forced_technique", "refresh_plan"]
