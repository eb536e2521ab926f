"""What a check found is read from an update's record as it was stored (IF-11)."""

from __future__ import annotations

import json
from dataclasses import replace

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.language.model import Action, Expectation, Kind
from lakelet.language.registry import Notice
from lakelet.plan.checked import Checked, RuledDataset
from lakelet.plan.definition_changes import DefinitionChange, DefinitionParts
from lakelet.plan.graph import Graph, GraphNode

RAW, SILVER = TableName("main", "shop", "raw"), TableName("main", "shop", "Silver")
WHERE = Location("shop.ipynb", 4, 2, "@dlt.table", cell=3)
RULE = Expectation("positive", "id > 0", Action.DROP, Location("rules.yml", 2), None, "Ids count from 1", "shop", ("ids", "keys"))
CHECKED = Checked(
    Graph(
        (
            GraphNode(RAW, Kind.STREAMING_TABLE, (), ("json files",), ("raw", "more"), (("id", "bigint"),), (), WHERE),
            GraphNode(SILVER, Kind.MATERIALIZED_VIEW, (RAW,), (), ("silver",), (("id", "bigint"), ("a b", "string")), (RULE,), WHERE),
        )
    ),
    (Notice("it has no effect here", WHERE, magic="%pip"),),
    (Notice("only an update can check it", Location("a.sql", 1)),),
    {"main.shop.raw": DefinitionParts({"raw": "1"}, {"positive": "2"}, {"comment": "3"})},
    rules=(RuledDataset(SILVER, "shop", (RULE,)), RuledDataset(RAW, "", ())),
)


def test_what_is_stored_is_read_as_it_was() -> None:
    found = Checked.from_json(json.loads(json.dumps(CHECKED.as_json())))
    assert found == CHECKED
    assert found.graph.nodes[0].where.source == "@dlt.table"


def test_changes_are_not_stored_and_a_condition_is_its_text() -> None:
    column = replace(RULE, constraint=object(), written="col('id') > 0")
    checked = replace(CHECKED, changes=(DefinitionChange("main.shop.raw"),), rules=(RuledDataset(RAW, "", (column,)),))
    found = Checked.from_json(checked.as_json())
    assert found.changes == ()
    assert found.rules[0].expectations[0].text == "col('id') > 0"
