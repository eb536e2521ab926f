"""The graph as a picture (no Spark)."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from lakelet.base.errors import Location
from lakelet.base.names import Namespace
from lakelet.language.model import Kind
from lakelet.plan.explanation import DatasetState, graph_html, graph_mermaid, graph_svg, placed
from lakelet.plan.graph import Graph, GraphNode

NAMES = Namespace("main", "shop")
SVG = "{http://www.w3.org/2000/svg}"


def _node(name: str, *inputs: str, kind: Kind = Kind.STREAMING_TABLE) -> GraphNode:
    return GraphNode(NAMES.resolve(name), kind, tuple(map(NAMES.resolve, inputs)), (), (name,), (), (), Location("p.py", 1))


GRAPH = Graph(
    (
        _node("a_raw"),
        _node("b_raw"),
        _node("b", "b_raw"),
        _node("a", "a_raw"),
        _node("seen", "a", kind=Kind.VIEW),
        _node("daily", "seen", "b", kind=Kind.MATERIALIZED_VIEW),
        _node('`<odd> & "long" name that goes on and on`', "daily", kind=Kind.SINK),
    )
)
STATES = {"main.shop.a": DatasetState("completed", "good"), "main.shop.daily": DatasetState("failed", "bad")}


def test_the_svg_is_well_formed_and_shows_every_dataset_with_its_layer_and_state():
    root = ElementTree.fromstring(graph_svg(GRAPH, STATES))
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert titles[0] == "main.shop.a_raw: bronze, streaming table; p.py, line 1"
    assert "main.shop.daily: silver, materialized view · failed; p.py, line 1" in titles
    assert len(titles) == len(GRAPH.nodes)
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert all(len(text) <= 40 for text in texts)
    assert len(list(root.iter(f"{SVG}path"))) == 6


def test_inputs_stand_left_of_their_readers_and_boxes_do_not_overlap():
    boxes = placed(GRAPH).boxes
    for box in boxes.values():
        assert all(boxes[source.key].x < box.x for source in box.node.inputs)
    assert len({(box.x, box.y) for box in boxes.values()}) == len(boxes)
    # few crossings: b stands beside b_raw, a beside a_raw
    assert (boxes["main.shop.a"].y < boxes["main.shop.b"].y) == (boxes["main.shop.a_raw"].y < boxes["main.shop.b_raw"].y)


def test_a_line_over_several_columns_passes_beside_the_boxes_between():
    graph = Graph((_node("a"), _node("b", "a"), _node("c", "b", "a")))
    layout = placed(graph)
    (long,) = (line for line in layout.lines if " H" in line)
    height, box = int(re.search(r"(\d+) H", long)[1]), layout.boxes["main.shop.b"]
    assert not box.y <= height <= box.y + 46


def test_the_page_loads_nothing_and_escapes_names():
    page = graph_html(GRAPH, "<shop>", STATES)
    assert "<title>&lt;shop&gt;</title>" in page
    assert not re.search(r"(src|href)=", page)
    assert "<odd>" not in page


def test_the_chart_has_layers_and_states():
    chart = graph_mermaid(GRAPH, STATES).splitlines()
    assert chart[0] == "flowchart LR"
    assert [line.split()[1] for line in chart if line.startswith("  subgraph")] == ["bronze", "silver", "gold"]
    assert [line for line in chart if line.startswith("  class ")] == ["  class d3 completed", "  class d5 failed"]


def test_an_empty_graph_is_an_empty_picture():
    ElementTree.fromstring(graph_svg(Graph(())))
