"""Records at the end of an update what the next one depends on, and the events of one with nothing to do (IF-3 to IF-8)."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.discovery.path_patterns import fixed_folder
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.base.redaction import redacted
from lakelet.base.terminals import VOLATILE
from lakelet.files import signatures
from lakelet.files.reads import Access
from lakelet.files.stores import scheme_of
from lakelet.flows.environment import UpdateMemory
from lakelet.flows.stream_decisions import note_decision
from lakelet.language.model import Kind
from lakelet.language.sinks import HANDLER
from lakelet.plan.decisions import PlanStep, Strategy
from lakelet.quality.validation import is_fresh
from lakelet.spark.launch.environment import cache_folder, find_java
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.states import FlowState, UpdateState
from lakelet.storage.root import INTERNAL, Storage
from lakelet.update.idle import facts
from lakelet.update.idle.facts import Fact, FactKind
from lakelet.update.idle.record import (
    PLACEHOLDER_ID,
    IdleRecord,
    names_placeholder_id,
    record_file,
    remove_record,
    save_record,
    stale_reason_json,
)
from lakelet.update.idle.recording_begun import Recording
from lakelet.update.idle.stale_reasons import HARMLESS, SPARK, is_plain, is_standard, stale_reasons_of
from lakelet.update.initialization import report_notices, report_plan, report_start
from lakelet.update.opened import OpenedPipeline
from lakelet.update.progress import UpdateProgress
from lakelet.update.tasks import FlowTask, Task, UnanalyzedTask, decide

_AGING = ("cleansource", "maxfileage")
"""Options of cloudFiles with which a source has work to do only because time passes."""
_KNOWN_SINKS = frozenset({"delta", "kafka", HANDLER})
"""Sinks for which the checkpoint alone says whether there are rows to send."""
_ACCESS = {Access.FILE: FactKind.FILE, Access.NAMES: FactKind.NAMES, Access.ENTRIES: FactKind.ENTRIES}


class _StaleReason(Exception):
    """The reason why the next update must start Spark."""


def finish(recording: Recording, opened: OpenedPipeline, everything: Sequence[Task], progress: UpdateProgress, *, completed: bool) -> str:
    """Store the record of an update that completed, or the reason why there is none, and return that; else remove the last record.

    The caller holds the lease and has written everything else. `completed`: the update has completed, and no critical check fails. Returns
    an empty text where the next update can be answered from the record, and where nothing is known. Raises nothing.
    """
    if record_file(opened.storage) is None:
        return ""
    if not completed:
        remove_record(opened.storage)
        return ""
    reason = ""
    try:
        text = _record(recording, opened, everything, progress).to_json()
    except Exception as problem:  # whatever goes wrong with a record must not change how the update ended
        reason = f"{problem}" if isinstance(problem, _StaleReason) else f"{type(problem).__name__}: {problem}"
        text = stale_reason_json(reason)
    with suppress(LakeletError):
        save_record(opened.storage, text)
    return reason


def _record(recording: Recording, opened: OpenedPipeline, everything: Sequence[Task], progress: UpdateProgress) -> IdleRecord:
    """Return the record. Raises _StaleReason.

    Its facts are taken before the flows are decided again: what comes later counts as a change.
    """
    for reason in (*recording.reads.stale_reasons, *_of_pipeline(opened, everything, progress), *_of_code(opened)):
        raise _StaleReason(reason)
    found = (*recording.start, *_read(recording, opened, everything), *facts.looked_up(recording.here, _stored(opened)))
    events, steps = idle_update(opened, everything)
    if names_placeholder_id(events):
        raise _StaleReason("an event names the update")
    return IdleRecord(recording.here.key, found, tuple(events), steps, _without_secrets(opened.checked().as_json()))


def _without_secrets(checked: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the values, or None where one of their texts, such as the condition of a rule, has a secret in it."""
    text = json.dumps(checked)
    return checked if redacted(text) == text else None


def _read(recording: Recording, opened: OpenedPipeline, everything: Sequence[Task]) -> Iterator[Fact]:
    """Yield facts about the files that loading and analysis read, and the folders of data. Raises _StaleReason."""
    trees = tuple(dict.fromkeys(_trees(everything)))
    below = tuple(tree + os.sep for tree in trees)
    found = {(_ACCESS[access], path): value for (access, path), value in recording.reads.found.items()}
    files = {path for (kind, path), value in found.items() if kind is FactKind.FILE and _is_file(value)}
    noted = {(kind, path): value for (kind, path), value in found.items() if not f"{path}/".startswith(below)}
    modules = set(_modules(opened)) - {path for _, path in noted}
    for path in files | modules:
        if signatures.is_newer(path, recording.moment):
            raise _StaleReason(f"{path} has changed since the update began, or as it did")
    yield from (Fact(kind, path, value) for (kind, path), value in noted.items())
    installed = [(FactKind.NAMES, path) for path in _installed()]
    yield from facts.looked_up(
        recording.here, [*((FactKind.FILE, path) for path in modules), *installed, *((FactKind.TREE, tree) for tree in trees)]
    )


def _is_file(signature: str) -> bool:
    return signature != signatures.ABSENT and not signatures.is_folder(signature)


# --- what cannot be recorded --------------------------------------------------------------------------------------------------------------


def _of_pipeline(opened: OpenedPipeline, everything: Sequence[Task], progress: UpdateProgress) -> Iterator[str]:
    """Yield a stale reason for each flow that always runs, and for each whose next analysis may differ from this one."""
    for table in opened.config.tables.values():
        if scheme_of(table.path) is not None:
            yield f"{table.given} does not lie on this machine"
    if opened.loaded.definitions.hooks:
        yield "the pipeline has event hooks"
    if any(is_fresh(check) for checks in opened.checks.values() for check in checks):
        yield "a check asks how old the rows are"
    if opened.analysis.failures or opened.loaded.errors:
        yield "a dataset could not be analysed"
    ran = any(step.strategy is not Strategy.SKIP for step in progress.steps.values())
    for task in everything:
        if isinstance(task, UnanalyzedTask):
            yield f"{task.name} could not be analysed"
            continue
        yield from _of_flow(task)
        yield from _of_table(task, opened.storage, ran=ran)
        for spec in task.flow.sources:
            yield from _of_source(spec)


def _of_flow(task: FlowTask) -> Iterator[str]:
    stream, changes = task.flow.stream, task.declared.changes
    if stream.unversioned:
        yield f"{task.name}: {stream.unversioned}"
    if any(stream.topics):
        yield f"{task.name} reads topics, which only a broker knows"
    if stream.processor:
        yield f"{task.name} may have timers"
    if changes is not None and callable(changes.snapshots):
        yield f"{task.name} asks a function for snapshots"


def _of_table(task: FlowTask, storage: Storage, *, ran: bool) -> Iterator[str]:
    """Yield the stale reasons of one target. `ran`: flows of this update ran, so the analysis saw the tables of before."""
    if task.dataset.sink is not None:
        if task.dataset.sink.format.lower() not in _KNOWN_SINKS:
            yield f"{task.target} may read what it has sent"
        return
    stored = storage.registry().datasets.get(task.target)
    if stored is None or stored.described != task.description():
        yield f"{task.target} is not described as declared yet"
    elif ran and task.dataset_kind is Kind.STREAMING_TABLE and stored.columns != task.analyzed.schema.json():
        yield f"{task.target} has other columns than it was analysed with"


def _of_source(spec: SourceSpec) -> Iterator[str]:
    given = {key.lower().removeprefix("cloudfiles."): value for key, value in spec.options.items()}
    if any(key.startswith(_AGING) and str(value).upper() != "OFF" for key, value in given.items()):
        yield f"{spec.path} has something to do as time passes"
    if "schemalocation" in given:
        yield f"{spec.path}: others may write its columns, too"
    if scheme_of(spec.path) not in (None, "file"):
        yield f"{spec.path} does not lie on this machine"


def _of_code(opened: OpenedPipeline) -> Iterator[str]:
    """Yield the stale reasons of the source files and of the modules that they import, but for Python's, Spark's, and harmless ones."""
    helpers = {module.__name__.partition(".")[0] for module in opened.loaded.helpers}
    own = [*map(str, opened.config.files), *(file for module in opened.loaded.helpers if (file := getattr(module, "__file__", None)))]
    for file in own:
        if not is_plain(file):
            yield f"{file} is not a plain source file"
        elif file.endswith(".py"):
            yield from stale_reasons_of(Path(file).read_text(encoding="utf-8"), file, known=helpers, volatile=VOLATILE)
    for name in _imported_by(own, helpers):
        yield f"the code imports {name}"


def _imported_by(files: Sequence[str], helpers: Iterable[str]) -> Iterator[str]:
    """Yield the names of other modules that were loaded from the folders of the source files, such as compiled ones."""
    folders = tuple({os.path.dirname(os.path.abspath(file)) + os.sep for file in files})
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and file.startswith(folders) and name.partition(".")[0] not in {*helpers, *SPARK, *HARMLESS} and not is_standard(name):
            yield name


# --- facts --------------------------------------------------------------------------------------------------------------------------------


def _stored(opened: OpenedPipeline) -> Iterator[tuple[FactKind, str]]:
    """Yield the parts of the storage: registry, logs of all tables, state of flows and sources, small files. Raises _StaleReason."""
    yield FactKind.REGISTRY, ""
    yield FactKind.STATE, "checkpoints"
    yield FactKind.STATE, "autoloader"
    for dataset in opened.storage.registry().datasets.values():
        table = opened.storage.at(dataset.path)
        if not isinstance(table, Path):
            raise _StaleReason(f"{dataset.name} does not lie on this machine")
        yield FactKind.LOG, str(table)
        yield FactKind.LOG, str(table / INTERNAL)
    for file in opened.storage.system.glob("*.json"):
        if not file.name.startswith(("registry", "lease-", "idle")):
            yield FactKind.FILE, str(file)


def _trees(everything: Sequence[Task]) -> Iterator[str]:
    """Yield the folders of file sources, which are compared file by file."""
    for task in everything:
        for spec in task.flow.sources if isinstance(task, FlowTask) else ():
            yield fixed_folder(files_for(spec.path)[1])


def _modules(opened: OpenedPipeline) -> Iterator[str]:
    """Yield the files of all modules of this process, Lakelet's own included, of Java, and of the machine's time zone."""
    for module in (*list(sys.modules.values()), *opened.loaded.helpers):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and os.path.isabs(file):
            yield file
    yield os.path.realpath(find_java().executable)
    yield from filter(os.path.exists, ["/etc/localtime"])


def _installed() -> Iterator[str]:
    """Yield the folders whose entries are named after the installed packages and jars and their versions."""
    yield from {path for name, path in sysconfig.get_paths().items() if name in ("purelib", "platlib")}
    yield str(cache_folder() / "jars")
    yield os.path.join(os.path.dirname(str(sys.modules["pyspark"].__file__)), "jars")


# --- what an idle update reports ----------------------------------------------------------------------------------------------------------


def idle_update(opened: OpenedPipeline, everything: Sequence[Task]) -> tuple[list[Event], tuple[PlanStep, ...]]:
    """Return the events and steps of an update that would begin now. Raises _StaleReason if a flow would run."""
    events: list[Event] = []
    reporter = opened.reporter.of_update(PLACEHOLDER_ID, events.append)
    idle = replace(opened, environment=replace(opened.environment, reporter=reporter, memory=UpdateMemory()))
    progress = UpdateProgress(idle.environment)
    report_start(idle, progress, attempt=0)
    report_notices(idle)
    report_plan(idle, progress, everything)
    for task in [replace(task, environment=idle.environment) if isinstance(task, FlowTask) else task for task in everything]:
        progress.flow_is(task, FlowState.STARTING, f"Flow '{task.name}' is STARTING.")
        decision = decide(task)
        if isinstance(task, FlowTask):
            note_decision(task, decision)
        if decision.strategy is not Strategy.SKIP:
            raise _StaleReason(f"{task.name} would run: {decision.reason}")
        progress.decided(task, decision)
        progress.flow_is_idle(task, decision)
    progress.update_is(UpdateState.COMPLETED)
    return events, tuple(progress.steps.values())


__all__ = ["finish", "idle_update"]
