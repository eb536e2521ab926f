"""One update, from its first event to its terminal one.

Analysis comes first and writes nothing; then the lease is taken, what a crash left is repaired, resets are recorded, and the flows run.
"""

from __future__ import annotations

import getpass
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from lakelet.analysis.analyzer import Analysis
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.base.redaction import shown_options
from lakelet.base.version import VERSION
from lakelet.config.properties import MAX_FLOWS, look_up, whole
from lakelet.config.update_config import PipelineConfig
from lakelet.flows import descriptions
from lakelet.flows.context import Environment, FlowRun
from lakelet.flows.source_cleanup import clean_sources
from lakelet.flows.target_kind import check_role
from lakelet.language.loader import Loaded
from lakelet.language.model import Kind
from lakelet.plan.decisions import Decision, Step, Strategy
from lakelet.plan.selection import Selection
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.storage.delta.tables import TableLog, stored_schema
from lakelet.storage.eventlog import writer
from lakelet.storage.eventlog.events import ERROR, INFO, WARN, Event, Origin
from lakelet.storage.ownership import Owner, claimed
from lakelet.storage.published_views import published, save_views
from lakelet.storage.root import LastUpdate, Storage
from lakelet.update.continuous import Rounds, pace
from lakelet.update.executor import Again, execute
from lakelet.update.hook_runner import HookRunner
from lakelet.update.inactive_tables import drop, sort_out, told
from lakelet.update.initial_events import definitions, left_by_resets
from lakelet.update.recovery import repair
from lakelet.update.resets import with_resets
from lakelet.update.retries import Retries
from lakelet.update.stopping import cancellation_cause
from lakelet.update.tasks import Work, bring_up_to_date, decide, works

WORKERS = "4"
"""Flows at work at the same time, unless it is set."""
_UNENDED = frozenset({"QUEUED", "STARTING", "RUNNING"})


@dataclass(frozen=True)
class UpdateResult:
    """How an update ended. `state`: COMPLETED, FAILED or CANCELED; `errors`: one per failed flow; `steps`: what was done and why.

    `retry_after`: when it is to be tried again, in seconds; None for never.
    """

    update_id: str
    state: str
    errors: tuple[LakeletError, ...]
    seconds: float
    steps: tuple[Step, ...]
    retry_after: float | None = None


@dataclass
class Update:
    """Runs one update. `clock` gives seconds; events go to `events`."""

    config: PipelineConfig
    storage: Storage
    environment: Environment
    analysis: Analysis
    loaded: Loaded
    selection: Selection
    events: writer.EventWriter
    owner: Owner
    clock: Callable[[], float] = time.monotonic
    errors: list[LakeletError] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    attempt: int = 0
    """How many updates for the same command failed before this one."""

    def __post_init__(self) -> None:
        config = self.config
        self._retries = Retries(config.parameters, config.development, config.continuous, self.attempt)
        self._rounds: Rounds | None = None
        self._idle: set[str] = set()
        self._state = ""
        self._statuses: dict[str, str] = {}
        self._found: dict[str, list[Work]] = {}
        self._hooks = HookRunner(self.loaded.definitions.hooks, self.emit)
        self.events.tell(self._hooks)

    @property
    def id(self) -> str:
        return self.environment.update_id

    @property
    def pipeline_id(self) -> str:
        return self.owner.id

    @property
    def cause(self) -> str:
        return "RETRY_ON_FAILURE" if self.attempt else "USER_ACTION"

    # ------------------------------------------------------------------------------------------------------ events

    def emit(
        self,
        event_type: str,
        message: str,
        body: Mapping[str, Any],
        *,
        dataset: str | None = None,
        flow: str | None = None,
        level: str = INFO,
        error: BaseException | None = None,
        id: str | None = None,
        batch_id: int | None = None,
    ) -> None:
        origin = self._origin(self.id, dataset, flow, batch_id)
        event = Event(event_type, message, origin, {event_type: dict(body)}, level=level, error=error)
        self.events.emit(replace(event, id=id) if id else event)

    def _origin(self, update_id: str, dataset: str | None, flow: str | None, batch_id: int | None) -> Origin:
        known = self.environment.catalog.datasets.get(dataset.lower()) if dataset else None
        sink = dataset if known is not None and known.kind is Kind.SINK else None
        flow_id = self._flow_id(dataset, flow)
        return Origin(self.pipeline_id, self.config.name, update_id, None if sink else dataset, flow, flow_id, batch_id, sink)

    def _flow_id(self, dataset: str | None, flow: str | None) -> str | None:
        """Stays the same over updates, is new after a full refresh or a reset of the checkpoint (EL-5)."""
        if dataset is None or flow is None:
            return None
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.pipeline_id}|{flow}|{self.storage.beginning(dataset.lower(), flow)}"))

    def state(self, state: str, *, error: BaseException | None = None, again: str = "", cause: str | None = None) -> None:
        """`again`: when the update is tried again after this state, in words. `cause`: who stopped it (EL-9)."""
        self._state = state
        level = INFO if state != "FAILED" else WARN if again else ERROR
        body = {"state": state, **({"cancellation_cause": cause} if cause else {})}
        self.emit("update_progress", f"Update {self.id[:6]} is {state}{again}.", body, level=level, error=error)

    def progress(self, work: Work, status: str, message: str, *, level: str = INFO, error: BaseException | None = None) -> None:
        name = str(self.environment.catalog.datasets[work.target].name)
        self._statuses[work.key] = status
        self.emit("flow_progress", message, {"status": status}, dataset=name, flow=work.key, level=level, error=error)

    # --------------------------------------------------------------------------------------------------------- run

    def run(self) -> UpdateResult:
        """Bring the selected datasets up to date. A flow that fails becomes an error of the result.

        Raises LAKELET_STORAGE_BUSY if another update holds the lease: nothing was written. Raises whatever stops the update after that, in
        its preparation too (repairs, registry, drops, resets), once the event FAILED is written, and KeyboardInterrupt once CANCELED is:
        what was committed and registered until then stays.
        """
        started = self.clock()
        everything = works(self.analysis)
        with self.storage.lease(self.id):
            self.events.start()
            try:
                self._begin(everything)
                state = self._flows(everything)
            except KeyboardInterrupt as stop:
                self._stopping(stop)
                self._stopped(everything)
                self._end("CANCELED", cause=cancellation_cause(stop))
                raise
            except BaseException as problem:
                self._end("FAILED", problem)
                raise
            retry = self._retries.after_update(self.errors) if state == "FAILED" else None
            self._end(state, again=f"; {retry[1]} follows in {retry[0]:g} s" if retry else "")
        return UpdateResult(
            self.id, state, tuple(self.errors), self.clock() - started, tuple(self.steps.values()), retry[0] if retry else None
        )

    def _begin(self, everything: Sequence[Work]) -> None:
        runs = [FlowRun(self.environment, w.analyzed, w.flow) for w in everything if w.analyzed and w.flow]
        repaired = repair(self.environment, self.storage.reload(), runs, self._origin)
        recovered = self.storage.recovered
        registry = repaired.registry
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        mine = claimed(registry, self.owner, self.environment.catalog.datasets)
        found = sort_out(mine.datasets, self.analysis.graph, self.config.parameters, owner=self.pipeline_id, partial=self.owner.partial)
        last = LastUpdate(self.id, now, clean=False)
        self.storage.save(replace(mine, namespace=self.config.namespace, datasets=found.datasets, last_update=last))
        views = published(flow for flows in self.environment.catalog.flows.values() for flow in flows)
        save_views(self.storage, views, owner=self.pipeline_id)
        drop(self.storage, self.storage.registry(), found.drop)
        if not self.attempt:
            user = getpass.getuser()
            self.emit("user_action", f"User {user} started an update.", {"action": "START", "user_name": user})
        self.emit("create_update", f"Update {self.id[:6]} started by {self.cause}.", self._settings())
        self.emit("runtime_details", f"Lakelet {VERSION}", {"runtime_version": {"dbr_version": f"lakelet-{VERSION}"}})
        for state in ("QUEUED", "CREATED", "INITIALIZING"):
            self.state(state)
        if repaired.died is not None:
            self._tell_repaired(repaired.died, repaired.told)
        if recovered is not None:
            text = f"{recovered}; the registry as it was before its last change was used. Nothing is to be done if the tables look right."
            self.emit("notice", text, {"text": text}, level=WARN)
        for notice in self.loaded.notices:
            self.emit("notice", f"{notice.where}: {notice.text}", {"text": notice.text, "where": str(notice.where)}, level=WARN)
        for dataset, text, level in told(found):
            self.emit("notice", text, {"text": text}, dataset=dataset, level=level)
        if self.selection.reset or self.selection.checkpoints:  # before any event of a flow: a reset gives flows new ids
            self.state("RESETTING")
            self._reset()
        self._define(everything)
        self._notices(everything)
        for event in left_by_resets(everything, self.selection, self.environment.catalog.datasets):
            self.emit(event.event_type, event.message, event.body, dataset=event.dataset, flow=event.flow, level=WARN)
        self.state("SETTING_UP_TABLES")
        self.state("RUNNING")
        for work in everything:
            if work.target in self.selection.refresh:
                self.progress(work, "QUEUED", f"Flow '{work.key}' is QUEUED.")
            else:
                self.progress(work, "EXCLUDED", f"Flow '{work.key}' is EXCLUDED: it was not selected.")
                self._step(work, Decision(Strategy.EXCLUDED, "it was not selected"))

    def _tell_repaired(self, died: LastUpdate, events: int) -> None:
        text = f"The update before, {died.id[:6]} of {died.started[:19]}, ended with its process; this one goes on where it stopped."
        self.emit("notice", text, {"text": "last update died", "update_id": died.id, "events_added": events}, level=WARN)

    def _settings(self) -> dict[str, Any]:
        return {
            "cause": self.cause,
            "runtime_version": {"dbr_version": f"lakelet-{VERSION}"},
            "catalog": self.config.namespace.catalog,
            "schema": self.config.namespace.schema,
            "storage": str(self.storage.root),
            "configuration": shown_options(self.config.parameters),
            "refresh_selection": sorted(self.selection.refresh),
            "full_refresh_selection": sorted(self.selection.reset),
            "reset_checkpoint_selection": sorted(self.selection.checkpoints),
            "development": self.config.development is not False,
            "continuous": self.config.continuous,
        }

    def _notices(self, everything: Sequence[Work]) -> None:
        """One warning per flow and place in its code, naming all that has no effect there."""
        for work in everything:
            if work.target not in self.selection.refresh:
                continue
            told: dict[str, list[str]] = {}
            for notice in self.environment.notices.get(work.key, ()):
                told.setdefault(str(notice.where), []).append(notice.text)
            name = str(self.environment.catalog.datasets[work.target].name)
            for where, texts in told.items():
                text = "; ".join(texts)
                self.emit("notice", f"{where}: {text}", {"text": text, "where": where}, dataset=name, flow=work.key, level=WARN)

    def _define(self, everything: Sequence[Work]) -> None:
        for event in definitions(everything, self.analysis.graph):
            self.emit(event.event_type, event.message, event.body, dataset=event.dataset, flow=event.flow)

    def _reset(self) -> None:
        """Record the resets that were asked for."""
        registry, analyzed = self.storage.registry(), self.analysis.datasets
        self.storage.save(with_resets(registry, self.selection, root=self.storage.root, analyzed=analyzed))
        reached("reset.recorded")

    def _flows(self, everything: Sequence[Work]) -> str:
        chosen = {w.key: w for w in everything if w.target in self.selection.refresh}
        into: dict[str, list[str]] = {}
        for work in everything:
            into.setdefault(work.target, []).append(work.key)
        inputs = {key: [flow for i in work.inputs for flow in into[i]] for key, work in chosen.items()}

        def run(flows: Sequence[str]) -> None:
            execute(
                flows,
                inputs,
                lambda key: self._work(chosen[key]),
                skipped=lambda key, roots: self._skipped(chosen[key], roots),
                workers=max(1, whole(look_up(self.config.parameters, MAX_FLOWS) or WORKERS)),
                stopping=self._stopping,
                hurry=self._cancel,
            )

        if self.config.continuous:
            self._rounds = Rounds({key: self._pace(work) for key, work in chosen.items()})
            self._rounds.go_on(run, ended=lambda: bool(self.errors))
        else:
            run(list(chosen))
        return "FAILED" if self.errors else "COMPLETED"

    def _pace(self, work: Work) -> float:
        """Seconds between two looks at what a flow reads, in a continuous update."""
        if work.analyzed is None or work.flow is None:
            return pace([self.config.parameters], streaming=True, external=True)
        dataset, flow = work.analyzed.dataset, work.flow.flow
        settings = (flow.spark_conf, dataset.spark_conf, dataset.table_properties, self.config.parameters)
        return pace(settings, streaming=work.flow.streaming, external=bool(self.analysis.graph.by_key[work.target].external))

    def _work(self, work: Work) -> bool | Again:
        """Run one flow; its failure becomes an event, and another attempt or an error of the update."""
        try:
            self._bring_up_to_date(work)
        except BaseException as failure:  # Ctrl-C is raised in the main thread, not in those of flows
            problem = failure if isinstance(failure, LakeletError) else _unexpected(failure, work)
            self._register(work)
            if self._state == "STOPPING":  # its jobs were cancelled
                self.progress(work, "STOPPED", f"Flow '{work.key}' was STOPPED.")
                return False
            conf = FlowRun(self.environment, work.analyzed, work.flow).conf if work.analyzed and work.flow else {}
            retry = self._retries.after_flow(work.key, conf, problem)
            if retry is None:
                self._failed(work, problem)
                return False
            told = f"Flow '{work.key}' has FAILED: {problem.what}; {retry[1]} follows in {retry[0]:g} s."
            self.progress(work, "FAILED", told, level=WARN, error=problem)
            if self._rounds is None:
                return Again(retry[0])
            self._rounds.postpone(work.key, retry[0])  # the other flows of the round do not wait for it
            return True
        self._retries.flow_succeeded(work.key)
        return True

    def _register(self, work: Work) -> None:
        """Put the table of a flow that failed into the registry if one of its first commits has made it: its rows are to be seen."""
        if work.analyzed is None or work.flow is None or work.target in self.storage.registry().datasets:
            return
        run = FlowRun(self.environment, work.analyzed, work.flow)
        if work.kind is not Kind.SINK and TableLog(run.path()).version() >= 0:
            with suppress(LakeletError):  # a disk that is full: the next update finds the table
                self.storage.remember(replace(run.stored(), columns=stored_schema(self.environment.spark, run.path()).json()))

    def _looked_at_again(self, work: Work) -> list[Work]:
        """The flows of a dataset that could not be analysed before anything ran; what it reads is up to date now (decision 19)."""
        known = self._found.get(work.key)
        if known is not None:
            return known
        analyzed = self.environment.analyze(work.target)
        found = [replace(work, key=f.flow.name, analyzed=analyzed, flow=f, kind=analyzed.kind) for f in analyzed.flows]
        self._define(found)
        self._found[work.key] = found
        return found

    def _bring_up_to_date(self, work: Work) -> None:
        if work.analyzed is None or work.flow is None:
            for found in self._looked_at_again(work):
                self._bring_up_to_date(found)
            return
        if work.key in self._idle and self._still_idle(work, FlowRun(self.environment, work.analyzed, work.flow)):
            return
        self.progress(work, "STARTING", f"Flow '{work.key}' is STARTING.")
        decision = decide(self.environment, work, remember=True)
        self._step(work, decision)
        run = FlowRun(self.environment, work.analyzed, work.flow)
        if decision.strategy is Strategy.SKIP:
            descriptions.refresh(run)
            if work.kind is not Kind.MATERIALIZED_VIEW:
                clean_sources(run)
            self.progress(work, "IDLE", f"Flow '{work.key}' is IDLE: {decision.reason}.")
            if self._rounds is not None:
                self._idle.add(work.key)
            return
        check_role(run)
        self.progress(work, "RUNNING", f"Flow '{work.key}' is RUNNING because {decision.reason}.")
        descriptions.refresh(run)
        bring_up_to_date(run, work)
        descriptions.refresh(run)
        self.progress(work, "COMPLETED", f"Flow '{work.key}' has COMPLETED.")

    def _still_idle(self, work: Work, run: FlowRun) -> bool:
        """Whether a flow that was told to be idle is so in this round too; then nothing is told about it."""
        if decide(self.environment, work, remember=False).strategy is not Strategy.SKIP:
            self._idle.discard(work.key)
            return False
        if work.kind is not Kind.MATERIALIZED_VIEW:
            clean_sources(run)
        return True

    def _step(self, work: Work, decision: Decision) -> None:
        names = self.environment.catalog.datasets
        inputs = tuple(str(names[i].name) for i in work.inputs)
        self.steps[work.key] = Step(str(names[work.target].name), work.kind, work.key, decision.strategy, decision.reason, inputs)

    def _failed(self, work: Work, problem: LakeletError) -> None:
        self.errors.append(problem)
        self.progress(work, "FAILED", f"Flow '{work.key}' has FAILED: {problem.what}", level=ERROR, error=problem)

    def _skipped(self, work: Work, roots: tuple[str, ...]) -> None:
        """Report a flow below a failed one. Also called for a flow whose analysis failed because of the failed one."""
        self.progress(work, "SKIPPED", f"Flow '{work.key}' was SKIPPED because {', '.join(roots)} failed.", level=WARN)

    def _stopping(self, stop: BaseException) -> None:
        """Somebody stops the update: told before the flows at work are waited for, whose jobs are cancelled."""
        if isinstance(stop, KeyboardInterrupt) and self._state != "STOPPING":
            self.state("STOPPING", cause=cancellation_cause(stop))
            self._cancel()

    def _cancel(self) -> None:
        self.environment.spark.sparkContext.cancelAllJobs()

    def _stopped(self, everything: Sequence[Work]) -> None:
        """The flows that did not get to their end."""
        for work in everything:
            if work.target in self.selection.refresh and self._statuses.get(work.key, "QUEUED") in _UNENDED:
                self.progress(work, "STOPPED", f"Flow '{work.key}' was STOPPED.")

    def _end(self, state: str, problem: BaseException | None = None, *, again: str = "", cause: str | None = None) -> None:
        reached("update.before_terminal")
        self.state(state, error=problem, again=again, cause=cause)
        self._hooks.close()
        self.events.close()
        registry = self.storage.registry()
        if registry.last_update is not None and registry.last_update.id == self.id:
            # What failed or was interrupted may have left more than it knows: the next update looks.
            self.storage.save(replace(registry, last_update=replace(registry.last_update, clean=state == "COMPLETED")))


def _unexpected(problem: BaseException, work: Work) -> LakeletError:
    if work.analyzed is None or work.flow is None:
        return LakeletError("FLOW_FAILED", f"the flow failed: {type(problem).__name__}", dataset=work.key, why=str(problem))
    what = f"the flow failed: {type(problem).__name__}"
    return run_failure(problem, dataset=str(work.analyzed.dataset.name), where=work.flow.flow.where, what=what)
