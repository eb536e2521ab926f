"""The graph as a picture: SVG, and a page of HTML around it. Pure: values in, text out; nothing is fetched when it is shown.

Datasets stand in columns by how many lie before them, ordered within a column so that few lines cross; the colour is the layer, the
border and the word below the name say how the last update left it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
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
_LONGEST, _SWEEPS = 27, 4
_STYLE = (
    "text{font-family:system-ui,sans-serif;font-size:13px;fill:#1c2127}"
    ".small{font-size:11px;fill:#5b6470}.line{fill:none;stroke:#9aa3ad;stroke-width:1.3}.outside{stroke-dasharray:4 3}"
)


@dataclass(frozen=True)
class Box:
    """One dataset in the picture, its upper left corner in pixels."""

    node: Node
    layer: str
    x: int
    y: int


def graph_svg(graph: Graph, states: Mapping[str, Standing] | None = None) -> str:
    """The graph as one SVG element. `states`: how the last update left each dataset, by key."""
    boxes = placed(graph)
    short = shortener(str(node.name) for node in graph.nodes)
    width = max((box.x + _WIDTH for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + _HEIGHT for box in boxes.values()), default=_TOP) + _MARGIN
    lines = [_line(boxes[source.key], boxes[key]) for key, box in boxes.items() for source in box.node.inputs if source.key in boxes]
    drawn = [_box(box, short, (states or {}).get(key)) for key, box in boxes.items()]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">']
    parts += [f"<style>{_STYLE}</style>", *_legend(), *lines, *drawn, "</svg>"]
    return "\n".join(parts)


def graph_html(graph: Graph, title: str, states: Mapping[str, Standing] | None = None) -> str:
    """A page with the picture. It loads nothing."""
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


def placed(graph: Graph) -> dict[str, Box]:
    """Place each dataset, by key, in the order of the graph."""
    inputs = {key: [source.key for source in node.inputs] for key, node in graph.by_key.items()}
    layer = layers({key: node.where.file for key, node in graph.by_key.items()}, inputs)
    depth = depths(list(graph.by_key), inputs)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for key in graph.by_key:
        columns[depth[key]].append(key)
    readers = graph.readers
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        row = {key: number for column in columns for number, key in enumerate(column)}
        for column in columns if forward else reversed(columns):
            beside = inputs if forward else readers
            column.sort(key=lambda key: _middle([row[other] for other in beside[key] if other in row], row[key]))
            row.update({key: number for number, key in enumerate(column)})
    rows = {key: (at, number) for at, column in enumerate(columns) for number, key in enumerate(column)}
    return {key: Box(graph.by_key[key], layer[key], *_corner(*rows[key])) for key in graph.by_key}


def _middle(rows: Sequence[int], own: int) -> float:
    return sum(rows) / len(rows) if rows else own


def _corner(column: int, row: int) -> tuple[int, int]:
    return _MARGIN + column * (_WIDTH + _GAP_X), _TOP + row * (_HEIGHT + _GAP_Y)


def _line(source: Box, reader: Box) -> str:
    x, y, end_x, end_y = source.x + _WIDTH, source.y + _HEIGHT // 2, reader.x, reader.y + _HEIGHT // 2
    bend = max(30, (end_x - x) // 2)
    return f'<path class="line" d="M{x} {y} C{x + bend} {y} {end_x - bend} {end_y} {end_x} {end_y}"/>'


def _box(box: Box, short: Callable[[str], str], state: Standing | None) -> str:
    name, kind = str(box.node.name), kind_text(box.node.kind)
    border = _BORDERS.get(state.mark, _QUIET) if state else _QUIET
    told = f"{kind} · {state.text}" if state else kind
    corner, edge = _CORNERS.get(box.node.kind, 6), 2 if state else 1
    described = escape(f"{name}: {box.layer}, {told}; {box.node.where}")
    return (
        f"<g><title>{described}</title>"
        f'<rect x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" rx="{corner}" fill="{_FILLS[box.layer]}"'
        f' stroke="{border}" stroke-width="{edge}"/>'
        f'<text x="{box.x + 10}" y="{box.y + 19}">{escape(cut(short(name), _LONGEST))}</text>'
        f'<text class="small" x="{box.x + 10}" y="{box.y + 36}">{escape(told)}</text></g>'
    )


def _legend() -> list[str]:
    return [
        f'<rect x="{_MARGIN + 90 * number}" y="12" width="12" height="12" rx="2" fill="{_FILLS[layer]}" stroke="{_QUIET}"/>'
        f'<text class="small" x="{_MARGIN + 90 * number + 18}" y="22">{layer}</text>'
        for number, layer in enumerate(LAYERS)
    ]


__all__ = ["Box", "graph_html", "graph_svg", "placed"]
