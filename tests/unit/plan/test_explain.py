"""Plan and graph as text, JSON and Mermaid."""

from __future__ import annotations

import json
from dataclasses import replace

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.language.model import Action, Expectation, Kind
from lakelet.plan.decisions import Plan, PlanStep, Strategy
from lakelet.plan.explanation import graph_json, graph_mermaid, graph_text, plan_json, plan_text
from lakelet.plan.graph import Graph, GraphNode

WHERE = Location("pipelines/shop.py", 12)


def name(text: str, schema: str = "shop") -> TableName:
    return TableName("main", schema, text)


def node(text: str, kind: Kind, *inputs: str, external: tuple[str, ...] = (), rules: tuple[str, ...] = ()) -> GraphNode:
    expectations = tuple(Expectation(rule, "id IS NOT NULL", Action.DROP, WHERE) for rule in rules)
    columns = (("id", "bigint"), ("note", "struct<a:int>"))
    return GraphNode(name(text), kind, tuple(map(name, inputs)), external, (str(name(text)),), columns, expectations, WHERE)


GRAPH = Graph(
    (
        node("orders_raw", Kind.STREAMING_TABLE, external=('cloudFiles "landing/orders"',)),
        node("orders_clean", Kind.STREAMING_TABLE, "orders_raw", rules=("has_id", "recent")),
        node("recent", Kind.VIEW, "orders_clean"),
        node("daily", Kind.MATERIALIZED_VIEW, "recent", "orders_clean", external=("other.ref.countries",)),
    )
)


def step(dataset: str, kind: Kind, strategy: Strategy, reason: str, flow: str | None = None, schema: str = "shop") -> PlanStep:
    full = str(name(dataset, schema))
    return PlanStep(full, kind, flow or full, strategy, reason, ())


PLAN = Plan(
    (
        step("orders_raw", Kind.STREAMING_TABLE, Strategy.STREAM, "2 new files", flow="main.shop.backfill"),
        step("orders_clean", Kind.STREAMING_TABLE, Strategy.STREAM, "orders_raw may get new rows"),
        step("daily", Kind.MATERIALIZED_VIEW, Strategy.FULL, "orders_clean changed"),
        step("names", Kind.MATERIALIZED_VIEW, Strategy.SKIP, "its query and its inputs are unchanged"),
        step("refunds", Kind.STREAMING_TABLE, Strategy.EXCLUDED, "it is not selected"),
    )
)


def test_plan_as_text(golden):
    golden("plan.txt", plan_text(PLAN))


def test_plan_over_several_schemas_keeps_the_schema(golden):
    steps = (*PLAN.steps[:2], step("daily", Kind.MATERIALIZED_VIEW, Strategy.FULL, "it has not been computed yet", schema="gold"))
    golden("plan_schemas.txt", plan_text(Plan(steps)))


def test_plan_names_the_transforms_of_each_flow_without_their_arguments():
    masked, plain = PLAN.steps[:2]
    steps = (replace(masked, transforms=("flatten(separator='_')", "mask_email(columns='mail', keep_domain=True)")), plain)
    lines = plan_text(Plan(steps)).splitlines()
    at = lines.index("")
    assert [line.split(None, 3) for line in lines[at + 1 : at + 3]] == [
        ["dataset", "transforms"],
        ["orders_raw", "(flow", "backfill)", "flatten → mask_email"],
    ]
    assert lines[at + 3 :] == ["", "2 steps: 2 stream"]


def test_an_empty_plan_says_so():
    assert plan_text(Plan(())) == "Nothing to do: the pipeline has no steps."


def test_plan_as_json(golden):
    golden("plan.json", json.dumps(plan_json(PLAN), indent=1))


def test_graph_as_text(golden):
    golden("graph.txt", graph_text(GRAPH))


def test_graph_as_json(golden):
    golden("graph.json", json.dumps(graph_json(GRAPH), indent=1))


def test_graph_as_mermaid(golden):
    golden("graph.mermaid", graph_mermaid(GRAPH))
