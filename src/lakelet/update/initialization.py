"""Initialization of an update that holds the lease: repairs, registry, resets, and all events before its flows run.

In: an opened pipeline and its tasks. Out: a storage that is ready for the flows; events of definitions, of what resets leave, and of the
plan.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.analysis.file_sources import given_moves
from lakelet.analysis.results import AnalyzedDataset, AnalyzedFlow
from lakelet.analysis.sink_paths import sink_definition
from lakelet.base import VERSION
from lakelet.base.errors import Location
from lakelet.base.failpoints import reached
from lakelet.base.redaction import shown_options
from lakelet.config.properties import RESET_ALLOWED, reset_allowed
from lakelet.flows.context import FlowTask
from lakelet.flows.kinds import EXECUTIONS
from lakelet.flows.replays import finish_replay
from lakelet.language.model import Dataset, Expectation, Kind
from lakelet.plan.decisions import Decision, Strategy
from lakelet.plan.graph import Graph
from lakelet.plan.selection import Selection
from lakelet.storage.eventlog.events import Reporter
from lakelet.storage.eventlog.states import EventType, FlowState, FlowType, Level, UpdateState
from lakelet.storage.ownership import claimed
from lakelet.storage.published_views import event_log_view, published, save_views
from lakelet.storage.root import LastUpdate
from lakelet.update.opened import OpenedPipeline
from lakelet.update.progress import UpdateProgress
from lakelet.update.recovery import RepairResult, repair
from lakelet.update.resets import Activity, activity_notices, compare_activity, drop_inactive, with_resets
from lakelet.update.tasks import Task, UnanalyzedTask

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

_PUBLISHING_MODE = "DEFAULT_PUBLISHING_MODE"
"""Databricks' word for pipelines whose code may name any catalog and schema, as it may here."""


def begin(opened: OpenedPipeline, progress: UpdateProgress, everything: Sequence[Task], *, attempt: int) -> None:
    """Leave the storage ready for the flows, and report all that is known before they run. `attempt`: see `Update`."""
    flows = [task for task in everything if isinstance(task, FlowTask)]
    last = opened.storage.reload().last_update
    repaired = repair(opened.environment, opened.storage.registry(), flows)
    recovered = opened.storage.recovered
    found = _register(opened, repaired)
    report_start(opened, progress, attempt=attempt)
    _report_repairs(opened, repaired, recovered)
    report_notices(opened)
    for dataset, text, level in activity_notices(found):
        opened.reporter.notice(text, dataset=dataset, level=level)
    if last is not None and not last.clean:
        _finish_replays(opened, flows)
    if opened.selection.reset or opened.selection.checkpoints:  # before any event of a flow: a reset gives flows new ids
        progress.update_is(UpdateState.RESETTING)
        _reset(opened)
    report_plan(opened, progress, everything)


def report_plan(opened: OpenedPipeline, progress: UpdateProgress, everything: Sequence[Task]) -> None:
    """Emit the definitions and the plan."""
    emit_definitions(opened.reporter, everything, opened.analysis.graph, opened.config.root)
    _report_notices_of_flows(opened, everything)
    emit_left_by_resets(opened.reporter, everything, opened.selection, opened.environment.catalog.datasets)
    progress.update_is(UpdateState.SETTING_UP_TABLES)
    progress.update_is(UpdateState.RUNNING)
    for task in everything:
        if opened.selects(task):
            progress.flow_is(task, FlowState.QUEUED, f"Flow '{task.name}' is QUEUED.")
        else:
            progress.flow_is(task, FlowState.EXCLUDED, f"Flow '{task.name}' is EXCLUDED: it was not selected.")
            progress.decided(task, Decision(Strategy.EXCLUDED, "it was not selected"))


def _register(opened: OpenedPipeline, repaired: RepairResult) -> Activity:
    """Record the update, its tables and views in the registry, and drop inactive tables where that is configured."""
    config, owner, storage, catalog = opened.config, opened.owner, opened.storage, opened.environment.catalog
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    mine = claimed(repaired.registry, owner, catalog.datasets)
    found = compare_activity(
        mine.datasets,
        opened.analysis.graph,
        config.parameters,
        owner=owner.id,
        partial=owner.partial,
        quarantines=frozenset(d.quarantine.key for d in catalog.datasets.values() if d.keeps_dropped),
    )
    last = LastUpdate(opened.id, now, clean=False)
    storage.save(replace(mine, namespace=config.namespace, datasets=found.datasets, last_update=last))
    views = published(flow for flows in catalog.flows.values() for flow in flows)
    named = [event_log_view(config.event_log)] if config.event_log is not None else []
    save_views(storage, [*views, *named], owner=owner.id)
    if storage.base is None:  # in an environment they are the main storage's, which drops them itself
        drop_inactive(storage, storage.registry(), found.drop)
    return found


def report_start(opened: OpenedPipeline, progress: UpdateProgress, *, attempt: int) -> None:
    """Emit the first events: who started the update, its settings, its first states. `attempt`: see `Update`."""
    emit, cause = opened.reporter.emit, "RETRY_ON_FAILURE" if attempt else "USER_ACTION"
    if not attempt:
        user = getpass.getuser()
        emit(EventType.USER_ACTION, f"User {user} started an update.", {"action": "START", "user_name": user})
    emit(EventType.CREATE_UPDATE, f"Update {opened.id[:6]} started by {cause}.", _settings(opened, cause))
    emit(EventType.RUNTIME_DETAILS, f"Lakelet {VERSION}", {"runtime_version": {"dbr_version": f"lakelet-{VERSION}"}})
    for state in (UpdateState.QUEUED, UpdateState.CREATED, UpdateState.INITIALIZING):
        progress.update_is(state)


def _report_repairs(opened: OpenedPipeline, repaired: RepairResult, recovered: str | None) -> None:
    """Emit notices about repairs of what the previous update left."""
    reporter, died = opened.reporter, repaired.died
    if died is not None:
        text = f"The update before, {died.id[:6]} of {died.started[:19]}, ended with its process; this one goes on where it stopped."
        reporter.notice(text, text="last update died", update_id=died.id, events_added=repaired.events_added)
    if recovered is not None:
        text = f"{recovered}; the registry as it was before its last change was used. Nothing is to be done if the tables look right."
        reporter.notice(text)


def report_notices(opened: OpenedPipeline) -> None:
    """Emit the notices about code and configuration without effect."""
    for notice in opened.loaded.notices:
        opened.reporter.notice(f"{notice.where}: {notice.text}", text=notice.text, where=str(notice.where))


def report_unused_moves(opened: OpenedPipeline) -> None:
    """Emit a warning for each `--moved` that fits no source of a flow that was decided."""
    for given, move in zip(opened.config.paths.moved, given_moves(), strict=True):
        if move not in opened.environment.sources.moves:
            opened.reporter.notice(
                f"--moved {'='.join(given)} has no effect: no stream of this update has read {given[0]} and reads {given[1]}"
            )


def _finish_replays(opened: OpenedPipeline, flows: Sequence[FlowTask]) -> None:
    """Give datasets the rows that a replay has released for them, where it did not get to that."""
    for task in {task.target: task for task in reversed(flows)}.values():
        name = str(task.dataset.name)
        if finish_replay(task):
            opened.reporter.notice(f"{name}: the rows that a replay had released were added.", dataset=name, level=Level.INFO)


def _settings(opened: OpenedPipeline, cause: str) -> dict[str, Any]:
    graph, selection = opened.analysis.graph, opened.selection
    everything = {node.name.key for node in graph.nodes if node.kind is not Kind.VIEW}

    def named(keys: frozenset[str]) -> list[str]:
        return sorted(str(graph.by_key[key].name) for key in keys)

    return {
        "cause": cause,
        "effective_publishing_mode": _PUBLISHING_MODE,
        "runtime_version": {"dbr_version": f"lakelet-{VERSION}"},
        "catalog": opened.config.namespace.catalog,
        "schema": opened.config.namespace.schema,
        "storage": str(opened.storage.root),
        "configuration": shown_options(opened.config.parameters),
        "full_refresh": bool(selection.reset) and everything <= selection.reset | selection.protected,
        "validate_only": False,
        "explore_only": False,
        "refresh_selection": [] if everything <= selection.refresh else named(selection.refresh),
        "full_refresh_selection": named(selection.reset),
        "reset_checkpoint_selection": sorted(selection.checkpoints),
        "development": opened.config.development is not False,
        "continuous": opened.config.continuous,
    }


def _report_notices_of_flows(opened: OpenedPipeline, everything: Sequence[Task]) -> None:
    """Emit one warning per flow and line of its code, which names everything without effect there."""
    for task in everything:
        if not opened.selects(task):
            continue
        by_location: dict[str, list[str]] = {}
        for notice in opened.analysis.notices.get(task.name, ()):
            by_location.setdefault(str(notice.where), []).append(notice.text)
        name = str(opened.environment.catalog.datasets[task.target].name)
        for where, texts in by_location.items():
            text = "; ".join(texts)
            opened.reporter.notice(f"{where}: {text}", text=text, where=where, dataset=name, flow=task.name)


def _reset(opened: OpenedPipeline) -> None:
    """Record the resets that were asked for."""
    registry, analyzed = opened.storage.registry(), opened.analysis.results
    opened.storage.save(with_resets(registry, opened.selection, root=opened.storage.root, analyzed=analyzed))
    reached("reset.recorded")


def emit_definitions(reporter: Reporter, everything: Sequence[Task], graph: Graph, root: Path) -> None:
    """Report what the datasets and flows are (EL-6), and what their columns are made of (EL-11). `root`: the project's folder."""
    defined: set[str] = set()
    for task in everything:
        if isinstance(task, UnanalyzedTask):
            continue
        if task.target not in defined:
            defined.add(task.target)
            _emit_dataset(reporter, task.analyzed.dataset, task.dataset_kind, len(task.analyzed.flows), root)
        _emit_flow(reporter, task.analyzed, task.flow, graph, root)
        if task.analyzed.dataset.sink is None:
            _emit_columns(reporter, task.analyzed.dataset, task.flow, graph)


def _emit_dataset(reporter: Reporter, dataset: Dataset, kind: Kind, flows: int, root: Path) -> None:
    name = str(dataset.name)
    if dataset.sink is not None:
        reporter.emit(EventType.SINK_DEFINITION, f"Sink '{name}' defined.", sink_definition(dataset), dataset=name)
        return
    rules = [_rule(r, dataset.owner) for r in dataset.expectations]
    about = _said({"comment": dataset.comment, "owner": dataset.owner, "tags": list(dataset.tags)})
    about |= _said({"personal_columns": list(dataset.personal_columns)})
    place = source_code(dataset.where, root)
    body = {"dataset_type": kind.name, "num_flows": flows, **about, "expectations": rules, "source_code": place}
    reporter.emit(EventType.DATASET_DEFINITION, f"Dataset '{name}' defined.", body, dataset=name)


def _rule(rule: Expectation, owner: str = "") -> dict[str, Any]:
    """`owner`: of the dataset, who answers for the rules that name nobody."""
    about = {"description": rule.description, "owner": rule.owner or owner, "tags": list(rule.tags)}
    return {"name": rule.name, "constraint": rule.text, "action": rule.action.value, **_said(about)}


def _said(about: Mapping[str, Any]) -> dict[str, Any]:
    """What has a value: most datasets and rules say nothing about themselves, and each update describes them."""
    return {key: value for key, value in about.items() if value}


def _emit_flow(reporter: Reporter, target: AnalyzedDataset, analyzed: AnalyzedFlow, graph: Graph, root: Path) -> None:
    dataset, comments = target.dataset, {f.name: (f.metadata or {}).get("comment") for f in target.schema.fields}
    name, flow, kind = str(dataset.name), analyzed.declared, EXECUTIONS[analyzed.kind].flow_type
    inputs = [str(i) for i in graph.by_key[dataset.name.key].inputs]
    of_views = [{"dataset": str(view.name), **_rule(r)} for view in graph.views_read(dataset.name.key) for r in view.expectations]
    body = {
        "output_sink" if dataset.sink is not None else "output_dataset": name,
        "input_datasets": inputs or None,
        "flow_type": kind,
        "is_streaming": analyzed.kind.streams,
        "comment": flow.comment or dataset.comment or "",
        "spark_conf": shown_options({**dataset.spark_conf, **flow.spark_conf}),
        "language": flow.language,
        "once": flow.runs_once,
        "schema": [_column(f, comments.get(f.name)) for f in analyzed.schema.fields],
        "schema_json": analyzed.schema.json(),
        "source_code": source_code(flow.where, root),
        **({"view_expectations": of_views} if of_views else {}),
        **({"transforms": list(analyzed.transforms)} if analyzed.transforms else {}),
    }
    shown = FlowType.COMPLETE if kind is FlowType.MATERIALIZED_VIEW else kind
    reporter.emit(EventType.FLOW_DEFINITION, f"Flow '{flow.name}' defined as {shown}.", body, dataset=name, flow=flow.name)


def _column(field: StructField, comment: str | None) -> dict[str, str]:
    return {"name": field.name, "data_type": field.dataType.simpleString().upper(), **_said({"comment": comment})}


def _emit_columns(reporter: Reporter, dataset: Dataset, analyzed: AnalyzedFlow, graph: Graph) -> None:
    name, flow = str(dataset.name), analyzed.name
    traced = [
        {"name": c.name, "inputs": [{"dataset": str(graph.by_key[i.dataset].name), "column": i.column} for i in c.inputs]}
        for c in analyzed.plan.columns(analyzed.schema.fieldNames())
    ]
    body = {"flow_name": flow, "output_dataset": name, "columns": traced}
    reporter.emit(EventType.COLUMN_LINEAGE, f"Columns of flow '{flow}' traced.", body, dataset=name, flow=flow)


def source_code(where: Location, root: Path) -> dict[str, Any]:
    """Where something is declared: `file` is relative to the project's folder if it lies below it, else absolute; `line` counts from 1.

    `cell`, of a Jupyter notebook only: counted from 1 over all its cells; `line` is within it.
    """
    file = Path(os.path.abspath(where.file))
    shown = file.relative_to(root.absolute()) if file.is_relative_to(root.absolute()) else file
    cell = {} if where.cell is None else {"cell": where.cell}
    return {"file": shown.as_posix(), "line": where.line, **cell}


def emit_left_by_resets(reporter: Reporter, everything: Sequence[Task], selection: Selection, datasets: Mapping[str, Dataset]) -> None:
    """Warn of what was not reset, and of streaming tables that keep their rows and read a reset one from the start (decision 5)."""
    for key in sorted(selection.protected):
        name, text = str(datasets[key].name), f"it was not reset, because {RESET_ALLOWED} is false"
        reporter.notice(f"{datasets[key].where}: {name}: {text}", text=text, dataset=name)
    for task in everything:
        above = [str(datasets[i].name) for i in task.inputs if i in selection.reset]
        if not above or task.dataset_kind not in (Kind.STREAMING_TABLE, Kind.SINK) or task.target in selection.reset:
            continue
        name = str(datasets[task.target].name)
        keeps, rebuild = "keeps its rows and reads", f"; to rebuild it too: lakelet run --full-refresh {name}"
        if not reset_allowed(datasets[task.target].table_properties):
            rebuild = f": {RESET_ALLOWED} is false, so that rows may come twice"
        if task.dataset_kind is Kind.SINK:
            keeps, rebuild = "is a sink: what was written stays, and its flow reads", ""
        text = f"{name} {keeps} {', '.join(above)} again from the start{rebuild}"
        reporter.notice(text, text="upstream was reset", upstream=above, dataset=name, flow=task.name)
