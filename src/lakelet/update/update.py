"""One update, from its first event to its terminal one.

Analysis comes first and writes nothing; then the lease is taken, what a crash left is repaired, resets are recorded, and the flows run.
A `Replay` is an update that runs no flow: it gives quarantined rows of one dataset back to it (QU-20 ff).
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.config.properties import MAX_FLOWS, look_up, whole
from lakelet.flows.handlers import around_hook
from lakelet.flows.replays import ReplayResult, check_replay, replay
from lakelet.jvm.hadoop import forget_servers
from lakelet.language.model import Kind
from lakelet.storage.delta.deferred_upkeep import DEFERRED
from lakelet.storage.eventlog.states import FlowState, UpdateState
from lakelet.storage.eventlog.writer import EventWriter
from lakelet.storage.recorded_definitions import record_definitions
from lakelet.update.executor import Rounds, execute, flow_threads, pace
from lakelet.update.flow_runner import FlowRunner
from lakelet.update.hook_runner import HookRunner
from lakelet.update.idle.recording import finish
from lakelet.update.idle.recording_begun import Recording
from lakelet.update.initialization import begin, report_unused_moves
from lakelet.update.opened import OpenedPipeline
from lakelet.update.progress import UpdateProgress
from lakelet.update.publishing import Publishing
from lakelet.update.result import UpdateResult
from lakelet.update.retries import Retries
from lakelet.update.stopping import cancellation_cause
from lakelet.update.table_checks import TableChecks
from lakelet.update.tasks import FlowTask, Task, UnanalyzedTask, flow_tasks

WORKERS = "4"
"""Flows that run at the same time, unless it is set."""
TABLES_EVERY_SECONDS = 600.0
"""Between two looks at the tables in a continuous update, which has no end to check and publish them at."""


class Update:
    """Runs one update.

    Args:
        events: where its reporter writes; they go to the log from its beginning on.
        attempt: how many updates for the same command failed before this one.
        recording: what is recorded for the next update, if this one may be followed by one with nothing to do (IF-3).
        clock: gives seconds.
    """

    def __init__(
        self,
        opened: OpenedPipeline,
        events: EventWriter,
        *,
        attempt: int = 0,
        recording: Recording | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        config = opened.config
        self._opened, self._events, self._attempt, self._clock = opened, events, attempt, clock
        self._recording = recording
        self._progress = UpdateProgress(opened.environment)
        self._retries = Retries(config.parameters, config.development, config.continuous, attempt)
        self._checks = TableChecks(opened)
        self._publishing = Publishing(opened)
        self._next_look = -math.inf
        around = functools.partial(around_hook, opened.environment)
        hooks = () if opened.storage.base is not None else opened.loaded.definitions.hooks  # nobody waits for news of an environment
        self._hooks = HookRunner(hooks, opened.reporter.emit, around=around)
        events.add_listener(self._hooks)

    def run(self) -> UpdateResult:
        """Bring the selected datasets up to date. A flow that fails becomes an error of the result.

        Raises LAKELET_STORAGE_BUSY if another update holds the lease: nothing was written. Raises whatever stops the update after that, in
        its preparation too (repairs, registry, drops, resets), once the event FAILED is written, and KeyboardInterrupt once CANCELED is:
        what was committed and registered until then stays.
        """
        started = self._clock()
        everything = flow_tasks(self._opened.analysis, self._opened.environment)
        with self._opened.storage.lease(self._opened.id):
            try:
                self._events.start()
                begin(self._opened, self._progress, everything, attempt=self._attempt)
                state = self._flows(everything)
                report_unused_moves(self._opened)
                self._look_at_tables()
                self._record_definitions(everything)
            except KeyboardInterrupt as stop:
                self._stopping(stop)
                self._stopped(everything)
                self._end(UpdateState.CANCELED, cause=cancellation_cause(stop))
                if self._events.failure is None:
                    self._checks.save()
                raise
            except BaseException as problem:  # whatever ends the update is in its last event
                self._end(UpdateState.FAILED, problem)
                raise
            retry = self._retries.after_update(self._progress.errors) if state is UpdateState.FAILED else None
            state = self._end(state, again=f"; {retry[1]} follows in {retry[0]:g} s" if retry else "")
            if self._events.failure is None:
                self._checks.save()
            needs_spark = ""
            if self._recording is not None:
                completed = state is UpdateState.COMPLETED and not self._checks.failed and not self._publishing.errors
                needs_spark = finish(self._recording, self._opened, everything, self._progress, completed=completed)
        progress = self._progress
        return UpdateResult(
            self._opened.id,
            state,
            tuple(progress.errors),
            self._clock() - started,
            tuple(progress.steps.values()),
            retry_after=retry[0] if retry else None,
            failed_checks=tuple(self._checks.failed),
            unpublished=tuple(self._publishing.errors),
            needs_spark=needs_spark,
        )

    def _flows(self, everything: Sequence[Task]) -> UpdateState:
        """Run what is selected, once or round after round."""
        config, errors = self._opened.config, self._progress.errors
        chosen = {task.name: task for task in everything if self._opened.selects(task)}
        rounds = Rounds({key: self._pace(task) for key, task in chosen.items()}) if config.continuous else None
        runner = FlowRunner(self._opened, self._progress, self._retries, rounds)
        inputs = _inputs(everything, chosen)
        pool = flow_threads(max(1, whole(look_up(config.parameters, MAX_FLOWS) or WORKERS)))

        def run(flows: Sequence[str]) -> None:
            if rounds is not None and not runner.has_work([chosen[key] for key in flows]):
                DEFERRED.do_one(self._opened.environment.spark)
                return
            execute(
                flows,
                inputs,
                lambda key: runner.task(chosen[key]),
                skipped=lambda key, roots: self._progress.flow_skipped(chosen[key], roots),
                pool=pool,
                stopping=self._stopping,
                cancel_running=self._cancel,
            )

        def run_and_look(flows: Sequence[str]) -> None:
            run(flows)
            if not errors and self._clock() >= self._next_look:
                self._look_at_tables()
                self._next_look = self._clock() + TABLES_EVERY_SECONDS

        if rounds is None:
            with pool:
                run(list(chosen))
        else:
            forget_servers(self._opened.environment.spark.sparkContext)
            with self._kept_queries(), DEFERRED.on(), pool:
                rounds.go_on(run_and_look, ended=lambda: bool(errors or self._events.failure))
        return UpdateState.FAILED if errors else UpdateState.COMPLETED

    def _look_at_tables(self) -> None:
        """Check the tables as they are now, and publish those that changed."""
        self._checks.run()
        self._publishing.run()

    @contextmanager
    def _kept_queries(self) -> Iterator[None]:
        """Queries may stay from round to round inside the block."""
        environment = self._opened.environment
        environment.memory.queries.on = True
        try:
            yield
        finally:
            environment.memory.queries.close(environment.spark)

    def _record_definitions(self, everything: Sequence[Task]) -> None:
        """Record with which definition the datasets are up to date now, of which every flow was selected and succeeded."""
        chosen: dict[str, bool] = {}
        for task in everything:
            chosen[task.target] = chosen.get(task.target, True) and self._opened.selects(task) and self._progress.flow_has_succeeded(task)
        definitions = {key: self._opened.definitions[key] for key, good in chosen.items() if good and key in self._opened.definitions}
        record_definitions(self._opened.storage, definitions)

    def _pace(self, task: Task) -> float:
        """Seconds between two checks of what a flow reads, in a continuous update."""
        if isinstance(task, UnanalyzedTask):
            return pace([self._opened.config.parameters], streaming=True, external=True)
        dataset, flow = task.dataset, task.declared
        settings = (flow.spark_conf, dataset.spark_conf, dataset.table_properties, self._opened.config.parameters)
        return pace(settings, streaming=task.flow.kind.streams, external=bool(self._opened.analysis.graph.by_key[task.target].external))

    def _stopping(self, stop: BaseException) -> None:
        """Report that the update is stopped, and cancel the jobs of running flows before waiting for them."""
        if isinstance(stop, KeyboardInterrupt) and not self._progress.is_stopping:
            self._progress.update_is(UpdateState.STOPPING, cause=cancellation_cause(stop))
            self._cancel()

    def _cancel(self) -> None:
        self._opened.environment.spark.sparkContext.cancelAllJobs()

    def _stopped(self, everything: Sequence[Task]) -> None:
        """The flows that did not get to their end."""
        for task in everything:
            if self._opened.selects(task) and not self._progress.flow_has_ended(task):
                self._progress.flow_stopped(task)

    def _end(self, state: UpdateState, problem: BaseException | None = None, *, again: str = "", cause: str | None = None) -> UpdateState:
        """Emit the last event and close the log. Return how the update ended: FAILED too where its events could not be written (ST-17)."""
        reached("update.before_terminal")
        if state is UpdateState.COMPLETED and self._events.failure is not None:
            state, problem = UpdateState.FAILED, self._events.failure
        self._progress.update_is(state, error=problem, again=again, cause=cause)
        self._hooks.close()
        try:
            self._events.close()
        except LakeletError as failure:
            self._progress.errors.append(failure)
            if state is UpdateState.COMPLETED:
                state = UpdateState.FAILED
                self._progress.update_is(state, error=failure)
        storage = self._opened.storage
        registry = storage.registry()
        if registry.last_update is not None and registry.last_update.id == self._opened.id:
            # What failed or was interrupted may have left more than it knows: the next update repairs.
            storage.save(replace(registry, last_update=replace(registry.last_update, clean=state is UpdateState.COMPLETED)))
        return state


def _inputs(everything: Sequence[Task], chosen: Mapping[str, Task]) -> dict[str, list[str]]:
    """By chosen flow: the flows into the datasets that it reads."""
    into: dict[str, list[str]] = {}
    for task in everything:
        into.setdefault(task.target, []).append(task.name)
    return {key: [flow for i in task.inputs for flow in into[i]] for key, task in chosen.items()}


class Replay(Update):
    """Replays the quarantine of the dataset that is selected. `found`: what it did.

    Raises QUARANTINE_REPLAY for a dataset whose rows cannot be replayed, before anything is written.
    """

    def __init__(self, opened: OpenedPipeline, events: EventWriter) -> None:
        super().__init__(opened, events)
        self.found: ReplayResult | None = None
        self._task = _flow_of(opened)
        check_replay(self._task)

    def _record_definitions(self, everything: Sequence[Task]) -> None:
        """Record nothing: no query ran."""

    def _flows(self, everything: Sequence[Task]) -> UpdateState:
        """Replay as one flow of the dataset; its other flows have nothing to do."""
        progress, task = self._progress, self._task
        progress.flow_is(task, FlowState.RUNNING, f"Flow '{task.name}' is RUNNING: held rows are judged again.")
        try:
            self.found = replay(task)
        except LakeletError as problem:
            progress.flow_failed(task, problem)
            return UpdateState.FAILED
        summary = f"{self.found.released} of {self.found.judged} held row(s) were released"
        progress.flow_is(task, FlowState.COMPLETED, f"Flow '{task.name}' has COMPLETED: {summary}.")
        for other in everything:
            if self._opened.selects(other) and other.name != task.name:
                progress.flow_is(other, FlowState.IDLE, f"Flow '{other.name}' is IDLE: a replay reads no source.")
        return UpdateState.COMPLETED


def _flow_of(opened: OpenedPipeline) -> FlowTask:
    """The dataset's default flow, or its first one."""
    (key,) = opened.selection.refresh
    tasks = flow_tasks(opened.analysis, opened.environment)
    found = [task for task in tasks if task.target == key and isinstance(task, FlowTask)]
    if not found or found[0].dataset_kind is Kind.SINK:
        dataset = opened.environment.catalog.datasets[key]
        failure = opened.analysis.failures.get(key)
        raise failure or LakeletError("QUARANTINE_REPLAY", "it stores no rows of its own", dataset=str(dataset.name), where=dataset.where)
    return next((task for task in found if task.declared.default), found[0])


__all__ = ["Replay", "Update", "UpdateResult"]
