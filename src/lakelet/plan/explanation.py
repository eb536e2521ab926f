"""Plan and graph as text, as JSON values, as a Mermaid chart and as a picture: what `lakelet plan` and `lakelet graph` print.

Pure: values in, text out; nothing is fetched when a picture is shown. Tests compare with golden files. In a picture the column of a
dataset is the number of datasets before it; within a column they are ordered so that few lines cross. The colour shows the layer, the
border and the word below the name the state after the last update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from lakelet.base.text import aligned, counted, cut, listed, shortener
from lakelet.language.model import Kind
from lakelet.plan.decisions import Plan, PlanStep, Strategy
from lakelet.plan.definition_changes import DefinitionParts, changes_text
from lakelet.plan.graph import LAYERS, Graph, GraphNode, depths, layers
from lakelet.plan.refreshes import Technique
from lakelet.plan.view_explanation import refresh_json, short_reason

_STRATEGY_ORDER = ("stream", "append", "merge", "groups", "partitions", "full", "replace", "skip", "excluded")
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
class DatasetState:
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
    rows = [(step.strategy.value, _step_name(step, short), kind_text(step.kind), _because(step, short)) for step in steps]
    counts = Counter(step.strategy.value for step in plan.steps)
    summary = ", ".join(f"{counts[name]:,} {name}" for name in sorted(counts, key=_strategy_rank))
    applied = [
        (_step_name(step, short), " → ".join(call.partition("(")[0] for call in step.transforms)) for step in plan.steps if step.transforms
    ]
    transforms = ["", *aligned(applied, header=("dataset", "transforms"))] if applied else []
    return "\n".join(
        [
            *aligned(rows, header=("step", "dataset", "kind", "because")),
            *transforms,
            *(["", *changes_text(plan.changes)] if plan.changes else []),
            "",
            f"{counted(len(plan.steps), 'step')}: {summary}",
        ]
    )


def _because(step: PlanStep, short: Callable[[str], str]) -> str:
    """Return the reason; of a refresh with short names, and with what the author can do about a view that is computed as a whole."""
    reason = short_reason(step, short)
    issues = step.refresh.issues if step.refresh is not None and step.refresh.technique is Technique.FULL else ()
    remedy = issues[0].remedy if issues else None
    return f"{reason}; remedy: {remedy[0].lower()}{remedy[1:].rstrip('.')}" if remedy else reason


def _strategy_rank(name: str) -> int:
    return _STRATEGY_ORDER.index(name) if name in _STRATEGY_ORDER else len(_STRATEGY_ORDER)


def _step_name(step: PlanStep, short: Callable[[str], str]) -> str:
    dataset = short(step.dataset)
    flow = short(step.flow)
    return dataset if flow in (dataset, step.dataset) else f"{dataset} (flow {flow})"


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values: `{"steps": [{dataset, kind, flow, strategy, reason, inputs}]}`, with `transforms` where there are any.
    `changes` has what changed in definitions since the last update, where something did.

    Steps of materialized views have the technique too, what else is possible, why not, what changed, and the estimates (`refresh_json`).
    """
    steps = [
        {
            "dataset": step.dataset,
            "kind": step.kind.value,
            "flow": step.flow,
            "strategy": step.strategy.value,
            "reason": step.reason,
            "inputs": list(step.inputs),
            **({"transforms": list(step.transforms)} if step.transforms else {}),
            **refresh_json(step),
        }
        for step in plan.steps
    ]
    return {"steps": steps, **({"changes": [change.as_json() for change in plan.changes]} if plan.changes else {})}


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


def graph_json(graph: Graph, definitions: Mapping[str, DefinitionParts] | None = None) -> dict[str, Any]:
    """The graph as JSON values: `{"datasets": [...]}`, inputs before readers.

    `definitions`: of the stored datasets, by key; with them the output is a manifest for `--select state:modified:PATH`.
    """
    found = definitions or {}
    datasets = [_node_json(node) for node in graph.nodes]
    of_nodes = [{"definition": found[node.name.key].as_json()} if node.name.key in found else {} for node in graph.nodes]
    return {"datasets": [{**one, **of_node} for one, of_node in zip(datasets, of_nodes, strict=True)]}


def _node_json(node: GraphNode) -> dict[str, Any]:
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


def graph_mermaid(graph: Graph, states: Mapping[str, DatasetState] | None = None) -> str:
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


def _state_classes(states: Mapping[str, DatasetState], identifiers: Mapping[str, str]) -> Iterator[str]:
    for state in dict.fromkeys(states.values()):
        named = [identifiers[key] for key, found in states.items() if found == state and key in identifiers]
        if named:
            yield f"  classDef {state.text} {_CLASSES.get(state.mark, _OTHER)}"
            yield f"  class {','.join(named)} {state.text}"


def _by_layer(graph: Graph) -> dict[str, list[GraphNode]]:
    inputs = {key: [source.key for source in node.inputs] for key, node in graph.by_key.items()}
    layer = layers({key: node.where.file for key, node in graph.by_key.items()}, inputs)
    found = {name: [node for key, node in graph.by_key.items() if layer[key] == name] for name in LAYERS}
    return {name: nodes for name, nodes in found.items() if nodes}


def _escaped(text: str) -> str:
    return text.replace('"', "#quot;")


_FILLS = {"bronze": "#f6e3d3", "silver": "#e6eaee", "gold": "#faeeb8"}
_GOOD, _BAD, _QUIET = "#2e7d4f", "#c0392b", "#8a8f98"
_BORDERS = {"good": _GOOD, "warning": "#b7791f", "bad": _BAD}
_CORNERS = {Kind.STREAMING_TABLE: 14, Kind.VIEW: 22, Kind.SINK: 0}
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN, _TOP = 200, 46, 70, 16, 20, 40
_LONGEST, _SWEEPS = 27, 3
_STYLE = (
    "text{font-family:system-ui,sans-serif;font-size:13px;fill:#1c2127}"
    ".small{font-size:11px;fill:#5b6470}.line{fill:none;stroke:#9aa3ad;stroke-width:1.3}"
)


Spot = tuple[int, str]
"""Column and key: the position of a dataset, or of its lines past a later column."""


@dataclass(frozen=True)
class Box:
    """One dataset in the picture, its upper left corner in pixels."""

    node: GraphNode
    layer: str
    x: int
    y: int


@dataclass(frozen=True)
class GraphLayout:
    """The boxes by key, in the order of the graph, and the lines between them as paths of SVG."""

    boxes: Mapping[str, Box]
    lines: tuple[str, ...]


def graph_svg(graph: Graph, states: Mapping[str, DatasetState] | None = None) -> str:
    """Return the graph as one SVG element. `states`: the state of each dataset after the last update, by key."""
    layout = placed(graph)
    boxes = layout.boxes
    short = shortener(str(node.name) for node in graph.nodes)
    width = max((box.x + _WIDTH for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + _HEIGHT for box in boxes.values()), default=_TOP) + _MARGIN
    lines = [f'<path class="line" d="{path}"/>' for path in layout.lines]
    drawn = [_box(box, short, (states or {}).get(key)) for key, box in boxes.items()]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">']
    parts += [f"<style>{_STYLE}</style>", *_legend(), *lines, *drawn, "</svg>"]
    return "\n".join(parts)


def graph_html(graph: Graph, title: str, states: Mapping[str, DatasetState] | None = None) -> str:
    """Return an HTML page with the picture. It loads nothing."""
    style = "body{margin:24px;font-family:system-ui,sans-serif;color:#1c2127}h1{font-size:18px}div{overflow:auto}"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(title)}</title><style>{style}</style></head>",
            f"<body><h1>{escape(title)}</h1><div>",
            graph_svg(graph, states),
            "</div></body></html>",
        ]
    )


def placed(graph: Graph) -> GraphLayout:
    """Return the positions of all datasets and the lines between them."""
    inputs = {key: [source.key for source in node.inputs if source.key in graph.by_key] for key, node in graph.by_key.items()}
    layer = layers({key: node.where.file for key, node in graph.by_key.items()}, inputs)
    depth = depths(list(graph.by_key), inputs)
    routes = [route(source, key, depth) for key, sources in inputs.items() for source in sources]
    spots = dict.fromkeys([*((depth[key], key) for key in graph.by_key), *(spot for route in routes for spot in route)])
    columns: list[list[Spot]] = [[spot for spot in spots if spot[0] == at] for at in range(max(depth.values(), default=-1) + 1)]
    order_columns(columns, routes)
    tops = {spot: top for column in columns for spot, top in _tops(column, depth)}
    boxes = {key: Box(node, layer[key], _left(depth[key]), tops[depth[key], key]) for key, node in graph.by_key.items()}
    return GraphLayout(boxes, tuple(_path(route, tops, depth) for route in routes))


def route(source: str, reader: str, depth: Mapping[str, int]) -> list[Spot]:
    """Return the spots that a line goes through; all lines of a dataset share one spot per column."""
    return [*((column, source) for column in range(depth[source], depth[reader])), (depth[reader], reader)]


def order_columns(columns: Sequence[list[Spot]], routes: Sequence[Sequence[Spot]]) -> None:
    """Sort each column by the mean row of the connected spots, from the left, then from the right, several times."""
    before: dict[Spot, list[Spot]] = {}
    after: dict[Spot, list[Spot]] = {}
    for route in routes:
        for left, right in pairwise(route):
            before.setdefault(right, []).append(left)
            after.setdefault(left, []).append(right)
    rows = {spot: number for column in columns for number, spot in enumerate(column)}
    for beside, ordered in ((before, columns), (after, columns[::-1])) * _SWEEPS:
        for column in ordered:
            middles = {spot: _middle([rows[other] for other in beside.get(spot, ())], rows[spot]) for spot in column}
            column.sort(key=middles.__getitem__)
            rows.update({spot: number for number, spot in enumerate(column)})


def _middle(rows: Sequence[int], own: int) -> float:
    return sum(rows) / len(rows) if rows else own


def _tops(column: Sequence[Spot], depth: Mapping[str, int]) -> Iterator[tuple[Spot, int]]:
    top = _TOP
    for spot in column:
        yield spot, top
        top += (_HEIGHT if depth[spot[1]] == spot[0] else 0) + _GAP_Y


def _left(column: int) -> int:
    return _MARGIN + column * (_WIDTH + _GAP_X)


def _path(route: Sequence[Spot], tops: Mapping[Spot, int], depth: Mapping[str, int]) -> str:
    """Return the line through the spots: curves between columns, straight lines past the datasets of a column."""
    heights = [tops[spot] + (_HEIGHT // 2 if depth[spot[1]] == spot[0] else 0) for spot in route]
    x, y = _left(route[0][0]) + _WIDTH, heights[0]
    drawn = f"M{x} {y}"
    for (column, _), height in zip(route[1:], heights[1:], strict=True):
        left, bend = _left(column), _GAP_X // 2
        drawn += f" C{left - bend} {y} {left - bend} {height} {left} {height}"
        drawn += f" H{left + _WIDTH}" if (column, height) != (route[-1][0], heights[-1]) else ""
        y = height
    return drawn


def _box(box: Box, short: Callable[[str], str], state: DatasetState | None) -> str:
    name, kind = str(box.node.name), kind_text(box.node.kind)
    border = _BORDERS.get(state.mark, _QUIET) if state else _QUIET
    shown = f"{kind} · {state.text}" if state else kind
    corner, edge = _CORNERS.get(box.node.kind, 6), 2 if state else 1
    described = escape(f"{name}: {box.layer}, {shown}; {box.node.where}")
    return (
        f"<g><title>{described}</title>"
        f'<rect x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" rx="{corner}" fill="{_FILLS[box.layer]}"'
        f' stroke="{border}" stroke-width="{edge}"/>'
        f'<text x="{box.x + 10}" y="{box.y + 19}">{escape(cut(short(name), _LONGEST))}</text>'
        f'<text class="small" x="{box.x + 10}" y="{box.y + 36}">{escape(shown)}</text></g>'
    )


def _legend() -> list[str]:
    return [
        f'<rect x="{_MARGIN + 90 * number}" y="12" width="12" height="12" rx="2" fill="{_FILLS[layer]}" stroke="{_QUIET}"/>'
        f'<text class="small" x="{_MARGIN + 90 * number + 18}" y="22">{layer}</text>'
        for number, layer in enumerate(LAYERS)
    ]
