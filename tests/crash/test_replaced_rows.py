"""Tables whose flows replace rows, and whose update is killed while it does (docs/semantics/replacing.md, RP-3)."""

from __future__ import annotations

import pytest

from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

USING = """
from pyspark import pipelines as dp

@dp.table(replace_using=["key"], sequence_by="seq")
def newest():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("key STRING, value STRING, seq INT")
    return reader.option("cloudFiles.maxFilesPerTrigger", "1").load(spark.conf.get("landing"))
"""
WHERE = """
from pyspark import pipelines as dp

@dp.table(replace_where="day >= 2")
def part():
    return spark.read.schema("day INT, value STRING").json(spark.conf.get("landing"))
"""


def row(key: str, value: str, seq: int) -> dict[str, object]:
    return {"key": key, "value": value, "seq": seq}


def first_rows(project: Project) -> None:
    project.write(USING).arrive("a.json", row("a", "first", 1), row("b", "first", 1))
    project.run()
    project.arrive("b.json", row("a", "second", 2), row("a", "with it", 2))
    project.arrive("c.json", row("a", "same", 2), row("b", "late", 0), row("c", "new", 1))


def first_part(project: Project) -> None:
    project.write(WHERE.replace("day >= 2", "day >= 1")).arrive("a.json", {"day": 1, "value": "first"}, {"day": 2, "value": "first"})
    project.run()
    project.write(WHERE).arrive("a.json", {"day": 1, "value": "second"}, {"day": 2, "value": "second"}, {"day": 3, "value": "second"})


STREAM = Scenario(first_rows, ("batch.files_written", "batch.committed", "batch.files_written@2", "batch.committed@2", "flow.drained"))
PART = Scenario(first_part, ("batch.files_written", "batch.committed", "view.recorded"))


@pytest.mark.in_ci("batch.committed")
@pytest.mark.parametrize("failpoint", STREAM.points)
def test_RP3_rows_of_keys_are_replaced_once_after_a_death(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(STREAM, failpoint)
    project.run()
    assert project.rows("newest", "key", "value") == [("a", "same"), ("a", "second"), ("a", "with it"), ("b", "first"), ("c", "new")]
    assert sum(e["num_upserted_rows"] for e in metrics(project)) == 6


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", PART.points)
def test_RP3_a_part_is_computed_whole_after_a_death(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(PART, failpoint)
    project.run()
    assert project.rows("part", "day", "value") == [(1, "first"), (2, "second"), (3, "second")]


def metrics(project: Project) -> list[dict[str, int]]:
    """The counts of all micro-batches in the event log."""
    found = [event["details"]["flow_progress"].get("metrics", {}) for event in project.logged(event_type="flow_progress")]
    return [one for one in found if "num_upserted_rows" in one]
