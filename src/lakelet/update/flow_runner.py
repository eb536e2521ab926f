"""Runs the flows of one update: decides each when its turn comes, and makes of its failure an event and perhaps another attempt."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from lakelet.base.errors import LakeletError
from lakelet.flows import descriptions
from lakelet.flows.context import FlowRun
from lakelet.flows.source_cleanup import clean_sources
from lakelet.flows.target_kind import check_role
from lakelet.language.model import Kind
from lakelet.plan.decisions import Strategy
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.storage.delta.tables import TableLog, stored_schema
from lakelet.storage.eventlog.states import FlowState, Level
from lakelet.update.continuous import Rounds
from lakelet.update.executor import RetryAfter
from lakelet.update.initial_events import emit_definitions
from lakelet.update.opened import OpenedPipeline
from lakelet.update.progress import UpdateProgress
from lakelet.update.retries import Retries
from lakelet.update.tasks import Work, bring_up_to_date, decide_flow


class FlowRunner:
    """The work of an update's flows. `rounds`: of a continuous update."""

    def __init__(self, opened: OpenedPipeline, progress: UpdateProgress, retries: Retries, rounds: Rounds | None) -> None:
        self._opened, self._environment = opened, opened.environment
        self._progress, self._retries, self._rounds = progress, retries, rounds
        self._idle: set[str] = set()  # flows that were reported idle in an earlier round
        self._found: dict[str, list[Work]] = {}  # by dataset that was analysed again: its flows

    def work(self, work: Work) -> bool | RetryAfter:
        """Run one flow; its failure becomes an event, and another attempt or an error of the update."""
        try:
            self._bring_up_to_date(work)
        except BaseException as failure:  # Ctrl-C is raised in the main thread, not in those of flows
            problem = failure if isinstance(failure, LakeletError) else _unexpected(failure, work)
            self._register(work)
            if self._progress.is_stopping:  # its jobs were cancelled
                self._progress.flow_stopped(work)
                return False
            conf = FlowRun(self._environment, work.analyzed, work.flow).conf if work.analyzed and work.flow else {}
            retry = self._retries.after_flow(work.key, conf, problem)
            if retry is None:
                self._progress.flow_failed(work, problem)
                return False
            message = f"Flow '{work.key}' has FAILED: {problem.what}; {retry[1]} follows in {retry[0]:g} s."
            self._progress.flow_is(work, FlowState.FAILED, message, level=Level.WARN, error=problem)
            if self._rounds is None:
                return RetryAfter(retry[0])
            self._rounds.postpone(work.key, retry[0])  # the other flows of the round do not wait for it
            return True
        self._retries.flow_succeeded(work.key)
        return True

    def _register(self, work: Work) -> None:
        """Put the table of a flow that failed into the registry if one of its first commits has made it: its rows are to be seen."""
        if work.analyzed is None or work.flow is None or work.target in self._opened.storage.registry().datasets:
            return
        run = FlowRun(self._environment, work.analyzed, work.flow)
        if work.kind is not Kind.SINK and TableLog(run.path()).version() >= 0:
            with suppress(LakeletError):  # a disk that is full: the next update finds the table
                self._opened.storage.remember(replace(run.stored(), columns=stored_schema(self._environment.spark, run.path()).json()))

    def _looked_at_again(self, work: Work) -> list[Work]:
        """The flows of a dataset that could not be analysed before anything ran; what it reads is up to date now (decision 19)."""
        known = self._found.get(work.key)
        if known is not None:
            return known
        analyzed = self._environment.analyses.dataset(work.target)
        found = [replace(work, key=f.flow.name, analyzed=analyzed, flow=f, kind=analyzed.kind) for f in analyzed.flows]
        emit_definitions(self._opened.reporter, found, self._opened.analysis.graph, self._opened.config.root)
        self._found[work.key] = found
        return found

    def _bring_up_to_date(self, work: Work) -> None:
        if work.analyzed is None or work.flow is None:
            for found in self._looked_at_again(work):
                self._bring_up_to_date(found)
            return
        if work.key in self._idle and self._still_idle(work, FlowRun(self._environment, work.analyzed, work.flow)):
            return
        self._progress.flow_is(work, FlowState.STARTING, f"Flow '{work.key}' is STARTING.")
        decision = decide_flow(self._environment, work, remember=True)
        self._progress.decided(work, decision)
        run = FlowRun(self._environment, work.analyzed, work.flow)
        if decision.strategy is Strategy.SKIP:
            descriptions.refresh(run)
            if work.kind is not Kind.MATERIALIZED_VIEW:
                clean_sources(run)
            self._progress.flow_is(work, FlowState.IDLE, f"Flow '{work.key}' is IDLE: {decision.reason}.")
            if self._rounds is not None:
                self._idle.add(work.key)
            return
        check_role(run)
        self._progress.flow_is(work, FlowState.RUNNING, f"Flow '{work.key}' is RUNNING because {decision.reason}.")
        descriptions.refresh(run)
        bring_up_to_date(run, work)
        descriptions.refresh(run)
        self._progress.flow_is(work, FlowState.COMPLETED, f"Flow '{work.key}' has COMPLETED.")

    def _still_idle(self, work: Work, run: FlowRun) -> bool:
        """Whether a flow that was reported idle is idle in this round too; then nothing is reported."""
        if decide_flow(self._environment, work, remember=False).strategy is not Strategy.SKIP:
            self._idle.discard(work.key)
            return False
        if work.kind is not Kind.MATERIALIZED_VIEW:
            clean_sources(run)
        return True


def _unexpected(problem: BaseException, work: Work) -> LakeletError:
    if work.analyzed is None or work.flow is None:
        return LakeletError("FLOW_FAILED", f"the flow failed: {type(problem).__name__}", dataset=work.key, why=str(problem))
    what = f"the flow failed: {type(problem).__name__}"
    return run_failure(problem, dataset=str(work.analyzed.dataset.name), where=work.flow.flow.where, what=what)
