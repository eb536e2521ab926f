"""Draws the Mermaid charts of the pages as SVG while the site is built, so that a reader's browser loads no library for them.

Understood is what the pages use: `graph LR` and `graph TD`, nodes of five shapes, `subgraph`, arrows. Any other line is an error.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from lakelet.plan.explanation import Spot, order_columns, route
from lakelet.plan.graph import depths

_SHAPES = {"[(": "table", "([": "view", "[/": "files", "[": "box"}
_NODE = re.compile(r'(?P<id>\w+)(?:(?P<open>\[\(|\(\[|\[/|\[)"?(?P<text>[^"\[\]]*?)"?(?:\)\]|\]\)|/\]|\]))?')
_FILLS = {"bronze": "#f6e3d3", "silver": "#e6eaee", "gold": "#faeeb8"}
_PLAIN, _EDGE = "#eef2f6", "#8a8f98"
_LETTER, _LINE, _PAD, _WRAP = 7.2, 17, 11, 34
_ALONG, _BELOW, _ACROSS, _PASSING, _MARGIN = 56, 34, 18, 14, 6


@dataclass
class Chart:
    """A chart as it is written: `across` for left to right; texts, shapes and groups by id; arrows in order."""

    across: bool = True
    texts: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    arrows: list[tuple[str, str]] = field(default_factory=list)


def read(source: str) -> Chart:
    """Read the lines of a chart. Raises ValueError with a line that is not understood."""
    head, *lines = (line.strip() for line in source.strip().splitlines())
    if head not in ("graph LR", "graph TD"):
        raise ValueError(f"a chart begins with graph LR or graph TD, not with {head!r}")
    chart, group = Chart(head.endswith("LR")), ""
    for line in filter(None, lines):
        if line.startswith("subgraph "):
            group = line.removeprefix("subgraph ")
        elif line == "end":
            group = ""
        else:
            ids = [_node(part.strip(), line, group, chart) for part in line.split("-->")]
            chart.arrows += pairwise(ids)
    return chart


def _node(text: str, line: str, group: str, chart: Chart) -> str:
    found = _NODE.fullmatch(text)
    if found is None:
        raise ValueError(f"a line of a chart is not understood: {line}")
    name = found["id"]
    chart.texts.setdefault(name, name)
    if found["open"]:
        chart.texts[name], chart.shapes[name] = found["text"], _SHAPES[found["open"]]
    if group and name not in chart.groups:
        chart.groups[name] = group
    return name


def drawn(source: str) -> str:
    """The chart as one SVG element without an empty line."""
    chart = read(source)
    inputs: dict[str, list[str]] = {name: [] for name in chart.texts}
    for before, after in chart.arrows:
        inputs[after].append(before)
    depth = depths(list(inputs), inputs)
    routes = [route(before, after, depth) for before, after in chart.arrows]
    spots = dict.fromkeys([*((depth[name], name) for name in inputs), *(spot for way in routes for spot in way)])
    layers: list[list[Spot]] = [[spot for spot in spots if spot[0] == at] for at in range(max(depth.values()) + 1)]
    order_columns(layers, routes)
    lines = {name: _lines(text) for name, text in chart.texts.items()}
    size = {name: (max(map(len, rows)) * _LETTER + 2 * _PAD, len(rows) * _LINE + _PAD) for name, rows in lines.items()}
    boxes, extent = _placed(layers, depth, size, across=chart.across)
    paths = [_path(way, boxes, across=chart.across) for way in routes]
    nodes = [_box(chart, name, lines[name], boxes[depth[name], name]) for name in chart.texts]
    width, height = (round(number + 2 * _MARGIN) for number in extent)
    style = "text{font:13px system-ui,sans-serif;fill:#1c2127}.chart-line{fill:none;stroke:#8a8f98;stroke-width:1.3}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" class="chart">'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    tip += f'<path d="M0 0L8 4L0 8z" fill="{_EDGE}"/></marker>'
    return "\n".join([head, f"<style>.chart {style.replace('}.', '}.chart .')}</style>", f"<defs>{tip}</defs>", *paths, *nodes, "</svg>"])


def _lines(text: str) -> list[str]:
    title, colon, rest = text.partition(": ")
    return [title, *textwrap.wrap(rest, _WRAP)] if colon else textwrap.wrap(text, _WRAP)


Rectangle = tuple[float, float, float, float]
"""Left, top, width, height."""


def _placed(
    layers: list[list[Spot]], depth: dict[str, int], size: dict[str, tuple[float, float]], *, across: bool
) -> tuple[dict[Spot, Rectangle], tuple[float, float]]:
    """The rectangle of each spot, in the middle of its column or row, and the size of the whole."""

    def measure(spot: Spot) -> tuple[float, float]:
        """Along the arrows, and across them."""
        if depth[spot[1]] != spot[0]:
            return 0, _PASSING
        width, height = size[spot[1]]
        return (width, height) if across else (height, width)

    wide = [sum(measure(spot)[1] + _ACROSS for spot in layer) - _ACROSS for layer in layers]
    rectangles, along, gap = {}, float(_MARGIN), _ALONG if across else _BELOW
    for layer, breadth in zip(layers, wide, strict=True):
        thick = max(measure(spot)[0] for spot in layer)
        at = _MARGIN + (max(wide) - breadth) / 2
        for spot in layer:
            own, broad = measure(spot)
            start, length = (along, own or thick) if across else (along + (thick - own) / 2 if own else along, own or thick)
            rectangles[spot] = (start, at, length, broad) if across else (at, start, broad, length)
            at += broad + _ACROSS
        along += thick + gap
    end = along - gap - _MARGIN
    return rectangles, (end, max(wide)) if across else (max(wide), end)


def _path(way: list[Spot], boxes: dict[Spot, Rectangle], *, across: bool) -> str:
    """An arrow through its spots: curves between columns or rows, straight lines past what stands in one."""

    def ends(spot: Spot) -> tuple[tuple[float, float], tuple[float, float]]:
        left, top, width, height = boxes[spot]
        if across:
            return (left, top + height / 2), (left + width, top + height / 2)
        return (left + width / 2, top), (left + width / 2, top + height)

    x, y = ends(way[0])[1]
    drawn = f"M{x:.0f} {y:.0f}"
    for spot in way[1:]:
        (to_x, to_y), leaving = ends(spot)
        bend = ((x + to_x) / 2, y, (x + to_x) / 2, to_y) if across else (x, (y + to_y) / 2, to_x, (y + to_y) / 2)
        drawn += " C" + " ".join(f"{number:.0f}" for number in (*bend, to_x, to_y))
        if spot != way[-1]:
            drawn += f" L{leaving[0]:.0f} {leaving[1]:.0f}"
        x, y = leaving
    return f'<path class="chart-line" marker-end="url(#tip)" d="{drawn}"/>'


def _box(chart: Chart, name: str, lines: list[str], place: Rectangle) -> str:
    left, top, width, height = place
    shape, fill = chart.shapes.get(name, "box"), _FILLS.get(chart.groups.get(name, ""), _PLAIN)
    corner = {"table": 14, "view": height / 2, "files": 0}.get(shape, 5)
    dash = ' stroke-dasharray="4 3"' if shape == "files" else ""
    frame = f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="{corner:.0f}"'
    drawn = f'{frame} fill="{fill}" stroke="{_EDGE}"{dash}/>'
    for number, line in enumerate(lines):
        weight = ' font-weight="600"' if number == 0 and len(lines) > 1 else ""
        y = top + _PAD / 2 + 13 + number * _LINE
        drawn += f'<text x="{left + width / 2:.0f}" y="{y:.0f}" text-anchor="middle"{weight}>{escape(line)}</text>'
    return drawn
