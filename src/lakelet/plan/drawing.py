"""The graph as a picture: SVG, and a page of HTML around it. Pure: values in, text out; nothing is fetched when it is shown.

The column of a dataset is the number of datasets before it; within a column they are ordered so that few lines cross. The colour shows the
layer, the border and the word below the name the state after the last update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from lakelet.base.text import cut, shortener
from lakelet.language.model import Kind
from lakelet.plan.explanation import Standing, kind_text
from lakelet.plan.layers import LAYERS, depths, layers

if TYPE_CHECKING:
    from lakelet.plan.graph import Graph, Node

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

    node: Node
    layer: str
    x: int
    y: int


@dataclass(frozen=True)
class GraphLayout:
    """The boxes by key, in the order of the graph, and the lines between them as paths of SVG."""

    boxes: Mapping[str, Box]
    lines: tuple[str, ...]


def graph_svg(graph: Graph, states: Mapping[str, Standing] | None = None) -> str:
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


def graph_html(graph: Graph, title: str, states: Mapping[str, Standing] | None = None) -> str:
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


def _box(box: Box, short: Callable[[str], str], state: Standing | None) -> str:
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


__all__ = ["Box", "GraphLayout", "Spot", "graph_html", "graph_svg", "order_columns", "placed", "route"]
