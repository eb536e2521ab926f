"""Events of an update before its flows run: definitions, and what resets leave."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lakelet.analysis.analyzed import AnalyzedFlow
from lakelet.analysis.sink_paths import sink_definition
from lakelet.base.errors import Location
from lakelet.base.redaction import shown_options
from lakelet.config.properties import RESET_ALLOWED, reset_allowed
from lakelet.language.model import Dataset, Expectation, Kind
from lakelet.plan.graph import Graph
from lakelet.plan.selection import Selection
from lakelet.storage.eventlog.reporter import Reporter
from lakelet.storage.eventlog.states import EventType, FlowType
from lakelet.update.tasks import Task, UnanalyzedTask


def emit_definitions(reporter: Reporter, everything: Sequence[Task], graph: Graph, root: Path) -> None:
    """Report what the datasets and flows are (EL-6), and what their columns are made of (EL-11). `root`: the project's folder."""
    defined: set[str] = set()
    for task in everything:
        if isinstance(task, UnanalyzedTask):
            continue
        if task.target not in defined:
            defined.add(task.target)
            _emit_dataset(reporter, task.analyzed.dataset, task.dataset_kind, len(task.analyzed.flows), root)
        _emit_flow(reporter, task.analyzed.dataset, task.flow, graph, root)
        if task.analyzed.dataset.sink is None:
            _emit_columns(reporter, task.analyzed.dataset, task.flow, graph)


def _emit_dataset(reporter: Reporter, dataset: Dataset, kind: Kind, flows: int, root: Path) -> None:
    name = str(dataset.name)
    if dataset.sink is not None:
        reporter.emit(EventType.SINK_DEFINITION, f"Sink '{name}' defined.", sink_definition(dataset), dataset=name)
        return
    rules = [_rule(r) for r in dataset.expectations]
    body = {"dataset_type": kind.name, "num_flows": flows, "expectations": rules, "source_code": source_code(dataset.where, root)}
    reporter.emit(EventType.DATASET_DEFINITION, f"Dataset '{name}' defined.", body, dataset=name)


def _rule(rule: Expectation) -> dict[str, str]:
    return {"name": rule.name, "constraint": rule.text, "action": rule.action.value}


def _emit_flow(reporter: Reporter, dataset: Dataset, analyzed: AnalyzedFlow, graph: Graph, root: Path) -> None:
    name, flow, kind = str(dataset.name), analyzed.declared, FlowType(analyzed.kind.event_name)
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
        "schema": [{"name": f.name, "data_type": f.dataType.simpleString().upper()} for f in analyzed.schema.fields],
        "schema_json": analyzed.schema.json(),
        "source_code": source_code(flow.where, root),
        **({"view_expectations": of_views} if of_views else {}),
        **({"transforms": list(analyzed.transforms)} if analyzed.transforms else {}),
    }
    shown = FlowType.COMPLETE if kind is FlowType.MATERIALIZED_VIEW else kind
    reporter.emit(EventType.FLOW_DEFINITION, f"Flow '{flow.name}' defined as {shown}.", body, dataset=name, flow=flow.name)


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
