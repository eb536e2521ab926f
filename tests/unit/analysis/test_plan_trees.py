"""Plans as trees, and the text of a plan without the columns that are not used. Without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakelet.analysis.plan_tree import PlanTooLarge, plan_tree
from lakelet.analysis.used_columns import UsedColumns, used_columns
from lakelet.analysis.view_shapes import QueryFacts, shape_of
from lakelet.plan.refreshes import Issue, ViewShape

CATALYST = "org.apache.spark.sql.catalyst"


def node(kind: str, children: int = 0, **fields: Any) -> dict[str, Any]:
    return {"class": f"{CATALYST}.{kind}", "num-children": children, **fields}


def column(id: int, name: str) -> list[dict[str, Any]]:
    return [node("AttributeReference", name=name, dataType="long", exprId={"id": id})]


def relation(*columns: list[dict[str, Any]]) -> dict[str, Any]:
    return node("LocalRelation", output=list(columns))


def test_a_reference_has_the_query_of_its_definition_below_it() -> None:
    plan = [
        *(node("WithCTE", 2), node("CTERelationDef", 1, id=0), relation(column(1, "a"), column(2, "b"))),
        *(node("Project", 1, projectList=[column(11, "a")]), node("CTERelationRef", cteId=0, output=[column(11, "a"), column(12, "b")])),
    ]
    root = plan_tree(json.dumps(plan))
    assert [n.kind for n in root.children_first()] == ["LocalRelation", "CTERelationRef", "Project", "WithCTE"]
    used = used_columns(root)
    assert [dict(types) for _, types in used.types] == [{"a": "long"}]
    assert used.unused == {2: "b", 12: "b"}


def test_common_tables_that_read_each_other_again_and_again_are_not_looked_at() -> None:
    parts = [node("CTERelationDef", 1, id=0), relation(column(0, "a"))]
    for n in range(1, 30):
        both = [node("CTERelationRef", cteId=n - 1, output=[column(100 * n + side, "a")]) for side in (0, 1)]
        parts += [node("CTERelationDef", 1, id=n), node("Union", 2), *both]
    root = plan_tree(json.dumps([node("WithCTE", 31), *parts, node("CTERelationRef", cteId=29, output=[column(9999, "a")])]))
    with pytest.raises(PlanTooLarge):
        root.children_first()
    assert used_columns(root).unused == {}


def test_a_deep_plan_is_read() -> None:
    plan = [node("Filter", 1, condition=column(1, "a"))] * 5000
    root = plan_tree(json.dumps([*plan, relation(column(1, "a"), column(2, "b"))]))
    assert len(root.children_first()) == 5001
    assert used_columns(root).unused == {}  # the root gives both


def test_a_plan_that_is_written_differently_is_not_followed() -> None:
    facts = QueryFacts({1: ("orders", 0)}, {("orders", 0): ("a",)}, ["long"])
    assert isinstance(shape_of(plan_tree(json.dumps([relation(column(1, "a"))])), facts), ViewShape)
    reference = node("CTERelationRef", 1, output=[column(11, "a"), column(12, "b")])
    found = shape_of(plan_tree(json.dumps([reference, relation(column(1, "a"))])), facts)
    assert isinstance(found, Issue)
    assert found.reason == "its plan has a form that is not known"


@pytest.mark.parametrize(
    ("unused", "text"),
    [
        ({}, "Project [a#1, b#2L, c, d#3]\n+- Relation [a#1,b#2L,c, d#3] parquet"),
        ({1: "a"}, "Project [b#2L, c, d#3]\n+- Relation [b#2L,c, d#3] parquet"),
        ({2: "b"}, "Project [a#1, c, d#3]\n+- Relation [a#1,c, d#3] parquet"),
        ({3: "c, d"}, "Project [a#1, b#2L]\n+- Relation [a#1,b#2L] parquet"),
        ({2: "b", 3: "c, d"}, "Project [a#1]\n+- Relation [a#1] parquet"),
        ({1: "a", 2: "b"}, "Project [c, d#3]\n+- Relation [c, d#3] parquet"),
        ({1: "a", 2: "b", 3: "c, d"}, "Project []\n+- Relation [] parquet"),
        ({1: "other"}, "Project [a#1, b#2L, c, d#3]\n+- Relation [a#1,b#2L,c, d#3] parquet"),
    ],
)
def test_columns_are_left_out_of_the_text_of_a_plan(unused: dict[int, str], text: str) -> None:
    plan = "Project [a#1, b#2L, c, d#3]\n+- Relation [a#1,b#2L,c, d#3] parquet"
    assert UsedColumns((), unused).text_of(plan) == text
