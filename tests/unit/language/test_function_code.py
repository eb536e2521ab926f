"""Which edits of a project count as changes of a dataset, and which part of its definition is named. No Spark session."""

from __future__ import annotations

import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakelet.base.names import Namespace, TableName
from lakelet.language.loader import loaded
from lakelet.plan.definition_changes import DefinitionChange, DefinitionParts, definition_changes
from lakelet.plan.graph import Graph, GraphNode
from lakelet.update.dataset_definitions import dataset_definitions

NAMES = Namespace("main", "default")

PIPELINE = '''
import dlt
import names
from names import Scale

RATE = 1.5
LIMITS = {"low": [1, 2]}
SCALE = Scale(3)


def doubled(value):
    return value * 2


@dlt.view
def seen():
    return spark.range(3)


@dlt.table(comment="All orders.", table_properties={"quality": "silver"})
@dlt.expect("positive", "id > 0")
def orders():
    """The orders."""
    frame = names.clean(dlt.read("seen"))  # a comment
    return frame.where(f"id < {doubled(RATE)}").limit(LIMITS["low"][0] + SCALE.size)


for region in ("north", "south"):

    @dlt.table(name=f"orders_{region}")
    def of_region(region=region):
        return dlt.read("orders").where(f"region = '{region}'")


@dlt.table
def called_in_sql():
    return spark.sql("SELECT tidy(id) AS id FROM orders")


def tidy(value):
    return value + 1


spark.udf.register("tidy", tidy, "bigint")
'''
HELPER = """
from dataclasses import dataclass


@dataclass
class Scale:
    size: int

    def grown(self):
        return self.size + 1


def clean(frame):
    return trimmed(frame)


def trimmed(frame):
    return frame.distinct()


def unused(frame):
    return frame
"""
SQL = """
CREATE MATERIALIZED VIEW totals
COMMENT 'Totals.'
AS SELECT region, count(*) AS orders  -- a comment
FROM orders GROUP BY region;
CREATE STREAMING TABLE latest;
CREATE FLOW latest_flow AS AUTO CDC INTO latest FROM STREAM(orders) KEYS (id) SEQUENCE BY at;
"""
READS: dict[str, tuple[str, ...]] = {"orders": ("seen",), "called_in_sql": ("orders",), "totals": ("orders",), "latest": ("orders",)}


def definitions(
    folder: Path, pipeline: str = PIPELINE, helper: str = HELPER, sql: str = SQL, **parameters: str
) -> dict[str, DefinitionParts]:
    """The definitions of a project of three files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("p.py", pipeline), ("names.py", helper), ("q.sql", sql)):
        (folder / name).write_text(textwrap.dedent(text))
    files = (folder / "p.py", folder / "q.sql")
    session = SimpleNamespace(udf=SimpleNamespace(register=lambda *_: None))
    with loaded(files, import_roots=[folder], namespace=NAMES, injected={"spark": session}, parameters=parameters) as found:
        assert not found.errors, found.errors

        def node(name: TableName) -> GraphNode:
            dataset = next(d for d in found.definitions.datasets if d.name == name)
            inputs = tuple(map(NAMES.resolve, READS.get(name.name, ())))
            return GraphNode(name, dataset.kind, inputs, (), (), (), (), dataset.where)

        graph = Graph(tuple(node(d.name) for d in found.definitions.datasets))
        config: Any = SimpleNamespace(root=folder, files=files, parameters=parameters)
        return dataset_definitions(config, found, graph, {})


def changes(tmp_path: Path, before: dict[str, Any], after: dict[str, Any]) -> dict[str, DefinitionChange]:
    first, second = definitions(tmp_path / "a", **before), definitions(tmp_path / "b", **after)
    return {key.rsplit(".", 1)[-1]: change for key, change in definition_changes(first, second, {k: k for k in second}).items()}


EDITS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "the function": ("pipeline", "id < ", "id <= ", {"orders": "code: orders (p.py)"}),
    "a function that it calls": ("pipeline", "value * 2", "value * 3", {"orders": "code: doubled (p.py)"}),
    "a value that it names": ("pipeline", "RATE = 1.5", "RATE = 2.5", {"orders": "code: RATE (p.py)"}),
    "a value inside of a value": ("pipeline", "[1, 2]", "[1, 3]", {"orders": "code: LIMITS (p.py)"}),
    "an object of its own class": ("pipeline", "Scale(3)", "Scale(4)", {"orders": "code: SCALE (p.py)"}),
    "a function of a module": ("helper", "frame.distinct()", "frame.limit(1)", {"orders": "code: trimmed (names.py)"}),
    "a function that nobody calls": ("helper", "    return frame\n", "    return frame.limit(1)\n", {}),
    "the view that it reads": ("pipeline", "range(3)", "range(4)", {"orders": "code: seen (p.py) of the view seen"}),
    "a comment and a docstring": ("pipeline", '"""The orders."""', '"""Orders."""  # all', {}),
    "lines before it": ("pipeline", "RATE = 1.5", "\n\n# the rate\nRATE = 1.5", {}),
    "a rule": ("pipeline", '"id > 0"', '"id > 1"', {"orders": "rules: positive"}),
    "the action of a rule": ("pipeline", "dlt.expect(", "dlt.expect_or_drop(", {"orders": "rules: positive"}),
    "the blanks of a rule": ("pipeline", '"id > 0"', '"id  >  0"', {}),
    "the comment of a table": ("pipeline", "All orders.", "Orders.", {"orders": "settings: comment"}),
    "a property": ("pipeline", '"quality": "silver"', '"quality": "gold"', {"orders": "settings: property quality"}),
    "one of the tables of a loop": ("pipeline", '"south"', '"west"', {"orders_west": "new"}),
    "a function that SQL calls": ("pipeline", "value + 1", "value + 2", {"called_in_sql": "code: tidy (p.py)"}),
    "a query of SQL": ("sql", "count(*)", "sum(id)", {"totals": "code: the query (q.sql)"}),
    "blanks and comments of SQL": ("sql", "-- a comment", "/* another\n one */", {}),
    "the comment in SQL": ("sql", "Totals.", "All.", {"totals": "settings: comment"}),
    "the keys of a change flow": ("sql", "KEYS (id)", "KEYS (no)", {"latest": "code: flow main.default.latest_flow"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_the_datasets_that_use_what_was_edited(tmp_path: Path, edit: str) -> None:
    kind, before, after, expected = EDITS[edit]
    text = {"pipeline": PIPELINE, "helper": HELPER, "sql": SQL}[kind]
    assert before in text
    found = changes(tmp_path, {}, {kind: text.replace(before, after, 1)})
    assert {name: change.text for name, change in found.items()} == expected


def test_the_same_project_in_another_folder_is_unchanged(tmp_path: Path) -> None:
    text = PIPELINE.replace("RATE = 1.5", "from pathlib import Path\nRATE = Path(__file__).parent, str(Path(__file__))")
    assert changes(tmp_path, {"pipeline": text}, {"pipeline": text}) == {}


READING = """
import dlt

@dlt.table
def fixed():
    return spark.range(int(spark.conf.get("days")))

@dlt.table
def built():
    return spark.range(int(spark.conf.get(".".join(["a", "b"]))))

@dlt.table
def plain():
    return spark.range(1)
"""


@pytest.mark.parametrize(
    ("name", "datasets"),
    [
        ("days", {"fixed"}),
        ("a.b", {"fixed", "built"}),  # no code names it: whatever reads configuration may depend on it
        ("spark.sql.ansi.enabled", {"fixed", "built", "plain"}),
        ("pipelines.numUpdateRetryAttempts", set()),
    ],
)
def test_a_parameter_changes_the_datasets_that_may_read_it(tmp_path: Path, name: str, datasets: set[str]) -> None:
    given = {"pipeline": READING, "sql": ""}
    found = changes(tmp_path, {**given, name: "1"}, {**given, name: "2"})
    assert {key: change.text for key, change in found.items()} == dict.fromkeys(datasets, f"settings: parameter {name}")
