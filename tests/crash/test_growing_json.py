"""Flows with a `from_json` whose schema grows, killed while it does (docs/semantics/json-columns.md, JC-3)."""

from __future__ import annotations

import pytest

from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
import dlt
from pyspark.sql.functions import from_json

@dlt.table
def parsed():
    texts = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").load(spark.conf.get("landing"))
    return texts.select(from_json("value", None, {"schemaLocationKey": "docs"}).alias("doc")).select("doc.*")
"""


def empty(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", {"id": 1}, {"id": 2, "name": "b"})


def grown(project: Project) -> None:
    empty(project)
    project.run()
    project.arrive("b.json", {"id": 3, "more": [1]}, {"id": "four"})


POINTS = ("schema_log.before", "schema_log.written", "batch.files_written", "batch.committed", "flow.drained")
FIRST = Scenario(empty, ("schema_log.before@2", "schema_log.written@2", *POINTS[2:]))
LATER = Scenario(grown, POINTS)


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", FIRST.points)
def test_JC3_the_first_texts_are_there_once_after_a_death(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(FIRST, failpoint)
    project.run()
    assert project.rows("parsed", "id", "name", "_rescued_data") == [(1, None, None), (2, "b", None)]


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", LATER.points)
def test_JC3_new_fields_are_there_once_after_a_death(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(LATER, failpoint)
    project.run()
    rows = project.rows("parsed", "id", "name", "more", "_rescued_data")
    assert rows == [(1, None, None, None), (2, "b", None, None), (3, None, [1], None), (None, None, None, '{"id":"four"}')]
    changes = [row["details"]["schema_change"] for row in project.logged(event_type="schema_change")]
    assert [(change["source"], [added["name"] for added in change["added"]]) for change in changes] == [("from_json:docs", ["more"])]
