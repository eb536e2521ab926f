"""Plan and graph as text, as JSON values and as a Mermaid chart: what `lakelet plan` and `lakelet graph` print.

Pure: values in, text out. Tests compare with golden files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelet.base.text import aligned, counted, listed, shortener
from lakelet.language.model import Kind
from lakelet.plan.decisions import Strategy
from lakelet.plan.layers import LAYERS, layers

if TYPE_CHECKING:
    from lakelet.plan.decisions import Plan, Step
    from lakelet.plan.graph import Graph, Node

_STRATEGY_ORDER = ("stream", "full", "partitions", "replace", "skip", "excluded")
_BOX = '["{}"]'
_CLASSES = {
    "good": "stroke:#2e7d4f,stroke-width:2px",
    "warning": "stroke:#b7791f,stroke-width:2px",
    "bad": "stroke:#c0392b,stroke-width:3px",
}
_OTHER = "stroke:#8a8f98"
_RESTING = (Strategy.SKIP, Strategy.EXCLUDED)
_SHAPES = {Kind.STREAMING_TABLE: '[("{}")]', Kind.VIEW: '(["{}"])', Kind.SINK: '[/"{}"/]'}


@dataclass(frozen=True)
class Standing:
    """State of a dataset after the last update. `text`: in lower case; `mark`: `good`, `warning`, `bad`, or "" for none of these."""

    text: str
    mark: str


def kind_text(kind: Kind) -> str:
    """The kind in words: `streaming table`."""
    return kind.replace("_", " ")


def plan_text(plan: Plan) -> str:
    """One line per step (strategy, dataset, reason), what of `lakelet.transforms` it applies, the number of steps per strategy.

    Steps that do something come first; otherwise they are in the order in which they may start.
    """
    if not plan.steps:
        return "Nothing to do: the pipeline has no steps."
    short = shortener(name for step in plan.steps for name in (step.dataset, *step.inputs))
    steps = sorted(plan.steps, key=lambda step: step.strategy in _RESTING)  # what does something comes first
    rows = [(step.strategy.value, _step_name(step, short), kind_text(step.kind), step.reason) for step in steps]
    counts = Counter(step.strategy.value for step in plan.steps)
    summary = ", ".join(f"{counts[name]:,} {name}" for name in sorted(counts, key=_strategy_rank))
    applied = [
        (_step_name(step, short), " → ".join(call.partition("(")[0] for call in step.transforms)) for step in plan.steps if step.transforms
    ]
    transforms = ["", *aligned(applied, header=("dataset", "transforms"))] if applied else []
    return "\n".join(
        [*aligned(rows, header=("step", "dataset", "kind", "because")), *transforms, "", f"{counted(len(plan.steps), 'step')}: {summary}"]
    )


def _strategy_rank(name: str) -> int:
    return _STRATEGY_ORDER.index(name) if name in _STRATEGY_ORDER else len(_STRATEGY_ORDER)


def _step_name(step: Step, short: Callable[[str], str]) -> str:
    dataset = short(step.dataset)
    flow = short(step.flow)
    return dataset if flow in (dataset, step.dataset) else f"{dataset} (flow {flow})"


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values: `{"steps": [{dataset, kind, flow, strategy, reason, inputs}]}`, with `transforms` where there are any."""
    steps = [
        {
            "dataset": step.dataset,
            "kind": step.kind.value,
            "flow": step.flow,
            "strategy": step.strategy.value,
            "reason": step.reason,
            "inputs": list(step.inputs),
            **({"transforms": list(step.transforms)} if step.transforms else {}),
        }
        for step in plan.steps
    ]
    return {"steps": steps}


def graph_text(graph: Graph) -> str:
    """One line per dataset in topological order: what it is, what it reads, its size in columns and rules, where it is written."""
    short = shortener(str(node.name) for node in graph.nodes)
    rows = [
        (
            short(str(node.name)),
            kind_text(node.kind),
            listed([*(short(str(i)) for i in node.inputs), *node.external], 4) or "-",
            str(len(node.columns)),
            str(len(node.expectations)),
            f"{node.where.file}{f' cell {node.where.cell}' if node.where.cell else ''}:{node.where.line}",
        )
        for node in graph.nodes
    ]
    counts = Counter(kind_text(node.kind) for node in graph.nodes)
    summary = ", ".join(counted(number, kind) for kind, number in sorted(counts.items()))
    header = ("dataset", "kind", "reads", "columns", "rules", "defined in")
    return "\n".join([*aligned(rows, header=header, right=(3, 4)), "", f"{counted(len(rows), 'dataset')}: {summary}"])


def graph_json(graph: Graph) -> dict[str, Any]:
    """The graph as JSON values: `{"datasets": [...]}`, inputs before readers."""
    return {"datasets": [_node_json(node) for node in graph.nodes]}


def _node_json(node: Node) -> dict[str, Any]:
    return {
        "name": str(node.name),
        "kind": node.kind.value,
        "inputs": [str(i) for i in node.inputs],
        "external": list(node.external),
        "flows": list(node.flows),
        "columns": [{"name": name, "type": kind} for name, kind in node.columns],
        "expectations": [{"name": e.name, "constraint": e.text, "action": e.action.value} for e in node.expectations],
        "file": node.where.file,
        "line": node.where.line,
        **({"cell": node.where.cell} if node.where.cell else {}),
    }


def graph_mermaid(graph: Graph, states: Mapping[str, Standing] | None = None) -> str:
    """The graph as a Mermaid flow chart: streaming tables are cylinders, views rounded, sinks slanted; dashed arrows come from outside.

    Where there are several layers, each is a subgraph. `states`: how the last update left each dataset, by key; they are classes.
    """
    short = shortener(str(node.name) for node in graph.nodes)
    identifiers = {str(node.name).lower(): f"d{number}" for number, node in enumerate(graph.nodes)}
    outside = {text: f"x{number}" for number, text in enumerate(dict.fromkeys(e for node in graph.nodes for e in node.external))}
    lines = ["flowchart LR"]
    lines += [f'  {key}{{{{"{_escaped(text)}"}}}}' for text, key in outside.items()]
    by_layer = _by_layer(graph)
    for layer, nodes in by_layer.items():
        indent = "    " if len(by_layer) > 1 else "  "
        lines += [f"  subgraph {layer}"] if len(by_layer) > 1 else []
        lines += [f"{indent}{identifiers[n.name.key]}{_SHAPES.get(n.kind, _BOX).format(_escaped(short(str(n.name))))}" for n in nodes]
        lines += ["  end"] if len(by_layer) > 1 else []
    for node in graph.nodes:
        here = identifiers[node.name.key]
        lines += [f"  {outside[text]} -.-> {here}" for text in node.external]
        lines += [f"  {identifiers[source.key]} --> {here}" for source in node.inputs if source.key in identifiers]
    return "\n".join([*lines, *_state_classes(states or {}, identifiers)])


def _state_classes(states: Mapping[str, Standing], identifiers: Mapping[str, str]) -> Iterator[str]:
    for state in dict.fromkeys(states.values()):
        named = [identifiers[key] for key, found in states.items() if found == state and key in identifiers]
        if named:
            yield f"  classDef {state.text} {_CLASSES.get(state.mark, _OTHER)}"
            yield f"  class {','.join(named)} {state.text}"


def _by_layer(graph: Graph) -> dict[str, list[Node]]:
    inputs = {key: [source.key for source in node.inputs] for key, node in graph.by_key.items()}
    layer = layers({key: node.where.file for key, node in graph.by_key.items()}, inputs)
    found = {name: [node for key, node in graph.by_key.items() if layer[key] == name] for name in LAYERS}
    return {name: nodes for name, nodes in found.items() if nodes}


def _escaped(text: str) -> str:
    return text.replace('"', "#quot;")
