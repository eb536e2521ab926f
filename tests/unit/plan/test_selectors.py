"""`--select` with globs and directions, and the layers of a graph (no Spark)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace
from lakelet.language.model import Kind
from lakelet.plan.graph import Graph, GraphNode, declared_layer, depths, layers
from lakelet.plan.selection import Request, Selector, parsed, select

NAMES = Namespace("main", "shop")


def _node(name: str, *inputs: str, kind: Kind = Kind.STREAMING_TABLE, file: str = "p.py") -> GraphNode:
    return GraphNode(NAMES.resolve(name), kind, tuple(map(NAMES.resolve, inputs)), (), (name,), (), (), Location(file, 1))


GRAPH = Graph(
    (
        _node("events_raw"),
        _node("agents_raw"),
        _node("agents", "agents_raw"),
        _node("seen", "events_raw", kind=Kind.VIEW),
        _node("agent_daily", "seen", "agents"),
        _node("team_daily", "agent_daily", kind=Kind.MATERIALIZED_VIEW),
        _node("export.letters", "team_daily", kind=Kind.SINK),
    )
)
ALL = {"events_raw", "agents_raw", "agents", "agent_daily", "team_daily", "letters"}
SELECTED = {
    "agent*": {"agents_raw", "agents", "agent_daily"},
    "AGENT*": {"agents_raw", "agents", "agent_daily"},
    "agents?raw": {"agents_raw"},
    "[et]*": {"events_raw", "team_daily"},
    "export.*": {"letters"},
    "main.shop.*_daily": {"agent_daily", "team_daily"},
    "*": ALL,
    "team_daily+": {"team_daily", "letters"},
    "+agents": {"agents_raw", "agents"},
    "+agent_daily+": ALL,
    "1+agent_daily": {"agents", "agent_daily"},
    "agents_raw+1": {"agents_raw", "agents"},
    "seen+": {"agent_daily", "team_daily", "letters"},
    "+*_daily": ALL - {"letters"},
    "+gold.*": ALL,
    "bronze.*": {"events_raw", "agents_raw"},
    "gold.*": {"letters"},
    "shop.agents": {"agents"},
    "+main.shop.agents": {"agents_raw", "agents"},
}


def selected(*texts: str, graph: Graph = GRAPH) -> set[str]:
    return {key.rsplit(".", 1)[-1] for key in select(Request(select=texts), graph, NAMES).refresh}


@pytest.mark.parametrize("text", SELECTED)
def test_globs_and_directions_mean_stored_datasets(text: str) -> None:
    assert selected(text) == SELECTED[text]


def test_several_texts_add_up_and_go_with_exact_names() -> None:
    assert selected("agents", "team*", "1+agents") == {"agents", "agents_raw", "team_daily"}


def test_a_name_that_is_there_counts_before_what_it_would_mean() -> None:
    graph = Graph((_node("`a+`"), _node("a"), _node("b", "a")))
    assert select(Request(select=("a+",)), graph, NAMES).refresh == {"main.shop.a+"}
    assert select(Request(select=("`a+`+",)), graph, NAMES).refresh == {"main.shop.a+"}


@pytest.mark.parametrize(
    ("text", "nearest"), [("aggent*", "main.shop.agents"), ("+agentss", "main.shop.agents"), ("seen", ""), ("se*", "")]
)
def test_what_matches_no_table_is_refused_with_the_nearest_name(text: str, nearest: str) -> None:
    with pytest.raises(LakeletError) as caught:
        selected(text)
    assert caught.value.code == "UNKNOWN_SELECTION"
    assert repr(text.lstrip("+")) in caught.value.what or repr(text) in caught.value.what
    assert nearest in (*caught.value.nearest, "")


def test_the_number_of_steps_is_read_beside_the_plus() -> None:
    assert parsed("2+a+13") == Selector("a", 2, 13)
    assert parsed("+a") == Selector("a", None, 0)
    assert parsed("a+") == Selector("a", 0, None)
    assert parsed("`1+a`") == Selector("`1+a`")
    assert parsed("a").is_plain
    assert not parsed("a*").is_plain


def test_the_layer_is_the_folder_or_schema_else_the_place_in_the_graph() -> None:
    files = {
        "c.s.a": "pipelines/silver/a.py",
        "c.gold.b": "p.py",
        "c.s.raw": "p.py",
        "c.s.mid": "p.py",
        "c.s.end": None,
        "c.s.over": "p.py",
    }
    inputs = {"c.s.mid": ["c.s.raw"], "c.s.end": ["c.s.mid"], "c.gold.b": ["c.s.raw"], "c.s.over": ["c.gold.b"]}
    found = layers(files, inputs)
    assert found == {"c.s.a": "silver", "c.gold.b": "gold", "c.s.raw": "bronze", "c.s.mid": "silver", "c.s.end": "gold", "c.s.over": "gold"}


@pytest.mark.parametrize(
    ("name", "file", "layer"),
    [
        ("c.s.silver_orders", "gold/p.py", "silver"),
        ("c.s.orders_gold", None, "gold"),
        ("c.02_silver.orders", "pipelines/01-bronze/p.py", "silver"),
        ("c.s.orders", "pipelines/01-bronze/p.py", "bronze"),
        ("c.s.price_of_gold_today", "p.py", ""),
        ("gold", None, ""),
    ],
)
def test_a_layer_is_said_by_the_name_then_the_schema_then_the_folder(name: str, file: str | None, layer: str) -> None:
    assert declared_layer(name, file) == layer


def test_a_circle_has_depths_too() -> None:
    assert depths(["a", "b"], {"a": ["b"], "b": ["a"]}) == {"b": 0, "a": 1}
