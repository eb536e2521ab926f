"""Runs the flows of one update: decides each when its turn comes, and makes of its failure an event and perhaps another attempt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from lakelet.base.errors import LakeletError
from lakelet.files.delta_log import TableLog
from lakelet.flows.kinds import bring_up_to_date, decide
from lakelet.flows.source_upkeep import clean_sources
from lakelet.flows.stream_decisions import note_decision
from lakelet.flows.target_table import check_role, refresh_description
from lakelet.plan.decisions import Strategy
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.storage.delta.tables import stored_schema
from lakelet.storage.eventlog.states import FlowState, Level
from lakelet.update.executor import RetryAfter, Rounds
from lakelet.update.initialization import emit_definitions
from lakelet.update.opened import OpenedPipeline
from lakelet.update.progress import UpdateProgress, backlog
from lakelet.update.retries import Retries
from lakelet.update.tasks import FlowTask, Task, UnanalyzedTask

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

    def has_work(self, tasks: Sequence[Task]) -> bool:
        """Whether a flow of a round has something to do. After the first sign of it there is a short pause: files that come together,
        for several flows, belong in one round."""
        for task in tasks:
            if not self._rests(task):
                time.sleep(_TOGETHER_SECONDS)
                return True
        return False

    def _rests(self, task: Task) -> bool:
        if task.name not in self._idle or isinstance(task, UnanalyzedTask):
            return False
        try:
            return self._still_idle(task)
        except Exception:  # the flow itself is to fail with it
            return False

    def task(self, task: Task) -> bool | RetryAfter:
        """Run one flow; its failure becomes an event, and another attempt or an error of the update."""
        try:
            for flow in [task] if isinstance(task, FlowTask) else self._analyzed_again(task):
                self._bring_up_to_date(flow)
        except BaseException as failure:  # Ctrl-C is raised in the main thread, not in those of flows
            problem = failure if isinstance(failure, LakeletError) else _unexpected(failure, task)
            if isinstance(task, FlowTask):
                self._register(task)
            if self._progress.is_stopping:  # its jobs were cancelled
                self._progress.flow_stopped(task)
                return False
            retry = self._retries.after_flow(task.name, task.conf if isinstance(task, FlowTask) else {}, problem)
            if retry is None:
                self._progress.flow_failed(task, problem)
                return False
            message = f"Flow '{task.name}' has FAILED: {problem.what}; {retry[1]} follows in {retry[0]:g} s."
            self._progress.flow_is(task, FlowState.FAILED, message, level=Level.WARN, error=problem)
            if self._rounds is None:
                return RetryAfter(retry[0])
            self._rounds.postpone(task.name, retry[0])  # the other flows of the round do not wait for it
            return True
        self._retries.flow_succeeded(task.name)
        return True

    def _register(self, task: FlowTask) -> None:
        """Put the table of a flow that failed into the registry if one of its first commits has made it: its rows must be visible."""
        if task.target in self._opened.storage.registry().datasets:
            return
        if task.dataset.sink is None and TableLog(task.path()).version() >= 0:
            with suppress(LakeletError):  # a disk that is full: the next update finds the table
                self._opened.storage.remember(replace(task.stored(), columns=stored_schema(self._environment.spark, task.path()).json()))

    def _analyzed_again(self, task: UnanalyzedTask) -> list[FlowTask]:
        """The flows of a dataset that could not be analysed before anything ran; what it reads is up to date now (decision 19)."""
        known = self._found.get(task.name)
        if known is not None:
            return known
        analyzed = self._environment.analyzer.dataset(task.target)
        found = [FlowTask(self._environment, analyzed, flow) for flow in analyzed.flows]
        emit_definitions(self._opened.reporter, found, self._opened.analysis.graph, self._opened.config.root)
        self._found[task.name] = found
        return found

    def _bring_up_to_date(self, task: FlowTask) -> None:
        if task.name in self._idle and self._still_idle(task):
            return
        self._progress.flow_is(task, FlowState.STARTING, f"Flow '{task.name}' is STARTING.")
        decision = decide(task)
        note_decision(task, decision)
        self._progress.decided(task, decision)
        if decision.strategy is Strategy.SKIP:
            refresh_description(task)
            self._unpin(task)
            clean_sources(task)
            self._progress.flow_is_idle(task, decision)
            if self._rounds is not None:
                self._idle.add(task.name)
            return
        check_role(task)
        self._progress.flow_is(
            task, FlowState.RUNNING, f"Flow '{task.name}' is RUNNING because {decision.reason}.", more=backlog(decision.sources)
        )
        refresh_description(task)
        try:
            bring_up_to_date(task)
        finally:
            self._unpin(task)
        refresh_description(task)
        self._unpin(task)
        if task.flow.kind.commit_completes:
            self._progress.commit_completed(task)
        else:
            done = backlog(decision.sources, processed=True)
            self._progress.flow_is(task, FlowState.COMPLETED, f"Flow '{task.name}' has COMPLETED.", more=done)

    def _unpin(self, task: FlowTask) -> None:
        """Let views read the table as the flow has left it: its rows, or its columns alone."""
        if task.dataset.sink is None:
            self._environment.memory.unpin(task.path())

    def _still_idle(self, task: FlowTask) -> bool:
        """Whether a flow that was reported idle is idle in this round too; then nothing is reported."""
        if decide(task).strategy is not Strategy.SKIP:
            self._idle.discard(task.name)
            return False
        if task.flow.sources and time.monotonic() >= self._clean_again.get(task.name, 0.0):
            clean_sources(task)
            self._clean_again[task.name] = time.monotonic() + _CLEAN_SECONDS
        return True


def _unexpected(problem: BaseException, task: Task) -> LakeletError:
    if isinstance(task, UnanalyzedTask):
        return LakeletError("FLOW_FAILED", f"the flow failed: {type(problem).__name__}", dataset=task.name, why=str(problem))
    what = f"the flow failed: {type(problem).__name__}"
    return run_failure(problem, dataset=str(task.dataset.name), where=task.declared.where, what=what)
