"""The graph of datasets and its traversal (no Spark)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from lakelet.base.errors import Location
from lakelet.base.names import Namespace
from lakelet.language.model import Kind
from lakelet.plan.graph import Graph, GraphNode, topological

NAMES = Namespace("main", "default")


def node(name: str, *inputs: str, kind: Kind = Kind.STREAMING_TABLE) -> GraphNode:
    return GraphNode(NAMES.resolve(name), kind, tuple(NAMES.resolve(i) for i in inputs), (), (name,), (), (), Location("p.py", 1))


def graph(*nodes: GraphNode) -> Graph:
    return Graph(nodes)


def short(keys: Sequence[str] | set[str]) -> list[str]:
    return sorted(key.rsplit(".", 1)[-1] for key in keys)


MEDALLION = graph(
    node("bronze"),
    node("checked", "bronze", kind=Kind.VIEW),
    node("again", "checked", kind=Kind.VIEW),
    node("Silver", "again", "bronze"),
    node("gold", "SILVER", kind=Kind.MATERIALIZED_VIEW),
    node("other"),
)


def test_names_are_found_without_regard_to_case() -> None:
    assert MEDALLION.by_key["main.default.silver"].name.name == "Silver"
    assert short(MEDALLION.readers["main.default.silver"]) == ["gold"]


def test_readers_are_the_direct_ones() -> None:
    assert short(MEDALLION.readers["main.default.bronze"]) == ["checked", "silver"]
    assert MEDALLION.readers["main.default.gold"] == ()


def test_stored_inputs_look_through_views_and_name_each_table_once() -> None:
    assert MEDALLION.stored_inputs("main.default.silver") == ("main.default.bronze",)
    assert MEDALLION.stored_inputs("main.default.gold") == ("main.default.silver",)
    assert MEDALLION.stored_inputs("main.default.bronze") == ()


def test_downstream_holds_the_start_and_everything_below() -> None:
    assert short(MEDALLION.downstream(["main.default.bronze"])) == ["again", "bronze", "checked", "gold", "silver"]
    assert short(MEDALLION.downstream(["main.default.gold", "main.default.other"])) == ["gold", "other"]
    assert MEDALLION.downstream([]) == set()


def test_a_sorted_graph_has_inputs_first_and_keeps_the_order_given_otherwise() -> None:
    assert topological(["c", "b", "a"], {"a": [], "b": ["a"], "c": []}) == ["c", "a", "b"]
    assert topological(["d", "b", "c", "a"], {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}) == ["a", "b", "c", "d"]
    assert topological([], {}) == []


def test_random_graphs_are_sorted_with_inputs_first() -> None:
    chance = random.Random(7)
    for _ in range(50):
        names = [str(i) for i in range(30)]
        inputs = {n: chance.sample(names[:i], min(i, chance.randint(0, 4))) for i, n in enumerate(names)}
        chance.shuffle(names)
        order = topological(names, inputs)
        assert sorted(order) == sorted(names)
        assert all(order.index(above) < order.index(n) for n in names for above in inputs[n])


def test_a_chain_of_thousands_is_sorted_without_deep_recursion() -> None:
    names = [str(i) for i in range(5000)]
    inputs = {n: [str(int(n) + 1)] if int(n) < 4999 else [] for n in names}
    assert topological(names, inputs) == names[::-1]
