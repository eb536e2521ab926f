"""Runs the flows of one update: decides each when its turn comes, and makes of its failure an event and perhaps another attempt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pyspark.errors.exceptions.base import PySparkException

from lakelet.base.errors import LakeletError
from lakelet.cdc import guarding
from lakelet.files.delta_log import TableLog
from lakelet.flows.context import FlowRun
from lakelet.flows.source_cleanup import clean_sources
from lakelet.flows.target_kind import check_role
from lakelet.jvm.errors import Py4JJavaError
from lakelet.language.model import Kind
from lakelet.plan.decisions import Strategy
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.storage.delta import column_mapping, schemas, tables
from lakelet.storage.delta.tables import stored_schema
from lakelet.storage.eventlog.states import FlowState, Level
from lakelet.update.continuous import Rounds
from lakelet.update.executor import RetryAfter
from lakelet.update.initial_events import emit_definitions
from lakelet.update.opened import OpenedPipeline
from lakelet.update.planning_events import backlog
from lakelet.update.progress import UpdateProgress
from lakelet.update.retries import Retries
from lakelet.update.tasks import FlowTask, bring_up_to_date, decide_flow

_TOGETHER_SECONDS = 0.03
"""So long after the first new file of a round others are waited for."""

_CLEAN_SECONDS = 60.0
"""How often the sources of idle flows are cleaned: what they keep, they keep for days."""


class FlowRunner:
    """Runs the flows of an update. `rounds`: of a continuous update."""

    def __init__(self, opened: OpenedPipeline, progress: UpdateProgress, retries: Retries, rounds: Rounds | None) -> None:
        self._opened, self._environment = opened, opened.environment
        self._progress, self._retries, self._rounds = progress, retries, rounds
        self._idle: set[str] = set()  # flows that were reported idle in an earlier round
        self._clean_again: dict[str, float] = {}  # by idle flow: when its sources are cleaned again
        self._found: dict[str, list[FlowTask]] = {}  # by dataset that was analysed again: its flows

    def has_work(self, tasks: Sequence[FlowTask]) -> bool:
        """Whether a flow of a round has something to do. After the first sign of it there is a short pause: files that come together,
        for several flows, are to be in one round."""
        for task in tasks:
            if not self._rests(task):
                time.sleep(_TOGETHER_SECONDS)
                return True
        return False

    def _rests(self, task: FlowTask) -> bool:
        if task.key not in self._idle or task.analyzed is None or task.flow is None:
            return False
        try:
            return self._still_idle(task, FlowRun(self._environment, task.analyzed, task.flow))
        except Exception:  # the flow itself is to fail with it
            return False

    def task(self, task: FlowTask) -> bool | RetryAfter:
        """Run one flow; its failure becomes an event, and another attempt or an error of the update."""
        try:
            self._bring_up_to_date(task)
        except BaseException as failure:  # Ctrl-C is raised in the main thread, not in those of flows
            problem = failure if isinstance(failure, LakeletError) else _unexpected(failure, task)
            self._register(task)
            if self._progress.is_stopping:  # its jobs were cancelled
                self._progress.flow_stopped(task)
                return False
            conf = FlowRun(self._environment, task.analyzed, task.flow).conf if task.analyzed and task.flow else {}
            retry = self._retries.after_flow(task.key, conf, problem)
            if retry is None:
                self._progress.flow_failed(task, problem)
                return False
            message = f"Flow '{task.key}' has FAILED: {problem.what}; {retry[1]} follows in {retry[0]:g} s."
            self._progress.flow_is(task, FlowState.FAILED, message, level=Level.WARN, error=problem)
            if self._rounds is None:
                return RetryAfter(retry[0])
            self._rounds.postpone(task.key, retry[0])  # the other flows of the round do not wait for it
            return True
        self._retries.flow_succeeded(task.key)
        return True

    def _register(self, task: FlowTask) -> None:
        """Put the table of a flow that failed into the registry if one of its first commits has made it: its rows are to be seen."""
        if task.analyzed is None or task.flow is None or task.target in self._opened.storage.registry().datasets:
            return
        run = FlowRun(self._environment, task.analyzed, task.flow)
        if task.kind is not Kind.SINK and TableLog(run.path()).version() >= 0:
            with suppress(LakeletError):  # a disk that is full: the next update finds the table
                self._opened.storage.remember(replace(run.stored(), columns=stored_schema(self._environment.spark, run.path()).json()))

    def _looked_at_again(self, task: FlowTask) -> list[FlowTask]:
        """The flows of a dataset that could not be analysed before anything ran; what it reads is up to date now (decision 19)."""
        known = self._found.get(task.key)
        if known is not None:
            return known
        analyzed = self._environment.analyses.dataset(task.target)
        found = [replace(task, key=f.flow.name, analyzed=analyzed, flow=f, kind=analyzed.kind) for f in analyzed.flows]
        emit_definitions(self._opened.reporter, found, self._opened.analysis.graph, self._opened.config.root)
        self._found[task.key] = found
        return found

    def _bring_up_to_date(self, task: FlowTask) -> None:
        if task.analyzed is None or task.flow is None:
            for found in self._looked_at_again(task):
                self._bring_up_to_date(found)
            return
        if task.key in self._idle and self._still_idle(task, FlowRun(self._environment, task.analyzed, task.flow)):
            return
        self._progress.flow_is(task, FlowState.STARTING, f"Flow '{task.key}' is STARTING.")
        decision = decide_flow(self._environment, task, remember=True)
        self._progress.decided(task, decision)
        run = FlowRun(self._environment, task.analyzed, task.flow)
        if decision.strategy is Strategy.SKIP:
            refresh_description(run)
            if task.kind is not Kind.MATERIALIZED_VIEW:
                clean_sources(run)
            self._progress.flow_is_idle(task, decision)
            if self._rounds is not None:
                self._idle.add(task.key)
            return
        check_role(run)
        self._progress.flow_is(
            task, FlowState.RUNNING, f"Flow '{task.key}' is RUNNING because {decision.reason}.", more=backlog(decision.sources)
        )
        refresh_description(run)
        bring_up_to_date(run, task)
        refresh_description(run)
        if task.kind is Kind.MATERIALIZED_VIEW:
            self._progress.view_completed(task)
        else:
            done = backlog(decision.sources, processed=True)
            self._progress.flow_is(task, FlowState.COMPLETED, f"Flow '{task.key}' has COMPLETED.", more=done)

    def _still_idle(self, task: FlowTask, run: FlowRun) -> bool:
        """Whether a flow that was reported idle is idle in this round too; then nothing is reported."""
        if decide_flow(self._environment, task, remember=False).strategy is not Strategy.SKIP:
            self._idle.discard(task.key)
            return False
        if task.kind is not Kind.MATERIALIZED_VIEW and time.monotonic() >= self._clean_again.get(task.key, 0.0):
            clean_sources(run)
            self._clean_again[task.key] = time.monotonic() + _CLEAN_SECONDS
        return True


def _unexpected(problem: BaseException, task: FlowTask) -> LakeletError:
    if task.analyzed is None or task.flow is None:
        return LakeletError("FLOW_FAILED", f"the flow failed: {type(problem).__name__}", dataset=task.key, why=str(problem))
    what = f"the flow failed: {type(problem).__name__}"
    return run_failure(problem, dataset=str(task.analyzed.dataset.name), where=task.flow.flow.where, what=what)


# --- descriptions of tables ---------------------------------------------------------------------------------------------------------------


def refresh_description(run: FlowRun) -> None:
    """Give the table of a flow comment, properties, clustering and NOT NULL as declared, unless the registry has them (TP-1 ff).

    Raises NOT_NULL_VIOLATED, SCHEMA_INCOMPATIBLE for other partition columns, and FLOW_FAILED for what Delta refuses.
    """
    environment = run.environment
    known = environment.storage.registry().datasets.get(run.dataset.name.key)
    wanted = run.description()
    if run.dataset.sink is not None or known is None or known.described == wanted:
        return
    spec, path = column_mapping.without_automatic(run.dataset, run.table_spec(run.analyzed.schema)), run.path()
    change = guarding.redescribe if run.flow.flow.changes is not None else tables.redescribe
    try:
        described = change(environment.spark, path, spec)
    except (LakeletError, schemas.Incompatible, PySparkException, Py4JJavaError) as problem:
        what = "its table could not be described as declared"
        raise run_failure(problem, dataset=str(run.dataset.name), where=run.dataset.where, what=what) from None
    if described:
        environment.storage.remember(replace(run.stored(), described=wanted))
