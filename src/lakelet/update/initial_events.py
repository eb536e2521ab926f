"""What an update reports before its flows run: what is defined, and what resets leave behind. Values in, parts of events out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lakelet.analysis.analyzer import AnalyzedFlow
from lakelet.analysis.sink_paths import sink_definition
from lakelet.config.properties import RESET_ALLOWED, reset_allowed
from lakelet.language.model import Dataset, Kind
from lakelet.plan.graph import Graph
from lakelet.plan.selection import Selection
from lakelet.update.tasks import Work


class Telling(NamedTuple):
    """An event without its surroundings; `dataset` and `flow`: what it is about."""

    event_type: str
    message: str
    body: Mapping[str, Any]
    dataset: str
    flow: str | None = None


def definitions(everything: Sequence[Work], graph: Graph) -> Iterator[Telling]:
    """What the datasets and flows are (EL-6)."""
    defined: set[str] = set()
    for work in everything:
        if work.analyzed is None or work.flow is None:
            continue
        if work.target not in defined:
            defined.add(work.target)
            yield _dataset(work.analyzed.dataset, work.kind, len(work.analyzed.flows))
        yield _flow(work.analyzed.dataset, work.flow, [str(i) for i in graph.by_key[work.target].inputs])


def _dataset(dataset: Dataset, kind: Kind, flows: int) -> Telling:
    name = str(dataset.name)
    if dataset.sink is not None:
        return Telling("sink_definition", f"Sink '{name}' defined.", sink_definition(dataset), name)
    rules = [{"name": r.name, "constraint": r.text, "action": r.action.value} for r in dataset.expectations]
    body = {"dataset_type": kind.name, "num_flows": flows, "expectations": rules}
    return Telling("dataset_definition", f"Dataset '{name}' defined.", body, name)


def _flow(dataset: Dataset, analyzed: AnalyzedFlow, inputs: Sequence[str]) -> Telling:
    name, flow, kind = str(dataset.name), analyzed.flow, _flow_type(analyzed)
    body = {
        "output_sink" if dataset.sink is not None else "output_dataset": name,
        "input_datasets": list(inputs) or None,
        "flow_type": kind,
        "is_streaming": analyzed.streaming,
        "comment": flow.comment or dataset.comment or "",
        "spark_conf": {**dataset.spark_conf, **flow.spark_conf},
        "language": flow.language,
        "once": flow.once or (flow.changes is not None and flow.changes.once),
        "schema": [{"name": f.name, "data_type": f.dataType.simpleString().upper()} for f in analyzed.schema.fields],
        "schema_json": analyzed.schema.json(),
    }
    told = "COMPLETE" if kind == "MATERIALIZED_VIEW" else kind
    return Telling("flow_definition", f"Flow '{flow.name}' defined as {told}.", body, name, flow.name)


def _flow_type(flow: AnalyzedFlow) -> str:
    """The kind of a flow in the words of the event log (EL-6)."""
    changes = flow.flow.changes
    if changes is not None:
        return "CHANGE" if changes.snapshots is None else "SNAPSHOT_CHANGE"
    if flow.complete:
        return "COMPLETE"
    if flow.flow.update:
        return "UPDATE"
    return "APPEND" if flow.streaming or flow.flow.once else "MATERIALIZED_VIEW"


def left_by_resets(everything: Sequence[Work], selection: Selection, datasets: Mapping[str, Dataset]) -> Iterator[Telling]:
    """What was not reset with the others; streaming tables that keep their rows and read a reset one from the start (decision 5)."""
    for key in sorted(selection.protected):
        name, text = str(datasets[key].name), f"it was not reset, because {RESET_ALLOWED} is false"
        yield Telling("notice", f"{datasets[key].where}: {name}: {text}", {"text": text}, name)
    for work in everything:
        above = [str(datasets[i].name) for i in work.inputs if i in selection.reset]
        if not above or work.kind not in (Kind.STREAMING_TABLE, Kind.SINK) or work.target in selection.reset:
            continue
        name = str(datasets[work.target].name)
        keeps, rebuild = "keeps its rows and reads", f"; to rebuild it too: lakelet run --full-refresh {name}"
        if not reset_allowed(datasets[work.target].table_properties):
            rebuild = f": {RESET_ALLOWED} is false, so that rows may come twice"
        if work.kind is Kind.SINK:
            keeps, rebuild = "is a sink: what was written stays, and its flow reads", ""
        text = f"{name} {keeps} {', '.join(above)} again from the start{rebuild}"
        yield Telling("notice", text, {"text": "upstream was reset", "upstream": above}, name, work.key)
