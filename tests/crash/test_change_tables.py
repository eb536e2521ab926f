"""A change table whose process is killed between its two logs: nothing is lost, nothing is doubled, the counts are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet.base.failpoints import FAILPOINTS
from tests.crash.conftest import check_log, measured
from tests.crash.deaths import Deaths, Scenario
from tests.crash.victim_processes import kill_at
from tests.spark.conftest import Project

PIPELINE = """
import dlt

@dlt.view
def feed():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing"))

for name, type in (("current", 1), ("history", 2)):
    dlt.create_streaming_table(name, expect_all={f"named_{name}": "name IS NOT NULL"})
    dlt.apply_changes(
        target=name, source="feed", keys=["id"], sequence_by="seq", stored_as_scd_type=type,
        apply_as_deletes="gone", except_column_list=["seq", "gone"],
    )
"""
FIRST = [{"id": 1, "seq": 1, "name": "ann", "gone": False}, {"id": 2, "seq": 5, "name": None, "gone": True}]
SECOND = [
    {"id": 2, "seq": 3, "name": "bob", "gone": False},
    {"id": 1, "seq": 4, "name": "anna", "gone": False},
    {"id": 3, "seq": 2, "name": "cy", "gone": False},
    {"id": 1, "seq": 2, "name": "anne", "gone": False},
]
CONVERTING = "changes.converted"  # only reached where the options of a flow changed
PREPARING = "changes.prepared"  # only reached where the table gets column mapping or type widening
COMPACTING = "changes.compacted"  # only reached after many commits; see tests/spark/cdc/test_heads.py
OF_OTHERS = {"changes.taken", "changes.adopted", "changes.settled"}  # see test_commits_of_others.py
POINTS = [
    *(point for point in FAILPOINTS if point.startswith("changes.") and point not in {CONVERTING, PREPARING, COMPACTING, *OF_OTHERS}),
    "changes.mirrored@2",
    "batch.started@2",
]


def second_file_landed(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", *FIRST)
    project.run()
    project.arrive("b.json", *SECOND)


def second_file_with_an_odd_column_landed(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", *FIRST)
    project.run()
    project.arrive("b.json", *({**row, "sent by": "x"} for row in SECOND))


SECOND_UPDATE = Scenario(second_file_landed, (*POINTS, "changes.merged@2"))  # the last one: see test_commits_of_others.py
SWITCHING = Scenario(second_file_with_an_odd_column_landed, (PREPARING, f"{PREPARING}@2"))


@pytest.mark.in_ci("changes.merged", "changes.mirrored")
@pytest.mark.parametrize("failpoint", POINTS)
def test_changes_of_an_update_that_died_there_are_applied_once(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(SECOND_UPDATE, failpoint)
    project.run()
    assert project.rows("current", "id", "name") == [(1, "anna"), (3, "cy")]
    assert project.rows("history", "id", "name", "__START_AT", "__END_AT") == [
        (1, "ann", 1, 2),
        (1, "anna", 4, None),
        (1, "anne", 2, 4),
        (2, "bob", 3, 5),
        (3, "cy", 2, None),
    ]
    assert measured(project) == {"named_current": (5, 1), "named_history": (5, 1)}
    check_log(project)
    versions = project.versions()
    project.run()
    assert project.versions() == versions


def test_a_state_that_was_converted_by_an_update_that_was_killed_is_converted_once(tmp_path: Path, spark: Any) -> None:
    one = PIPELINE.replace('(("current", 1), ("history", 2))', '(("current", 1),)')
    project = Project(tmp_path / "project", spark).write(one)
    project.arrive("a.json", *FIRST, {"id": 4, "seq": 5, "name": "dee", "gone": False})
    project.run()
    project.write(one.replace("keys=", "ignore_null_updates=True, keys="))
    project.arrive("b.json", *SECOND, {"id": 4, "seq": 7, "name": None, "gone": False}, {"id": 4, "seq": 3, "name": "old", "gone": False})
    kill_at(CONVERTING, project.folder)
    project.run()
    assert project.rows("current", "id", "name") == [(1, "anna"), (3, "cy"), (4, "dee")]
    state = spark.read.format("delta").load(str(project.path("current") / "_changes")).where("__lakelet_part = 'state'")
    events = state.groupBy("id", "__lakelet_seq").count()
    assert events.where("count > 1").count() == 0


@pytest.mark.in_ci("changes.prepared")
@pytest.mark.parametrize("failpoint", SWITCHING.points)
def test_an_update_that_died_while_it_switched_column_mapping_on_is_gone_on_with(failpoint: str, deaths: Deaths, spark: Any) -> None:
    project = deaths.left_at(SWITCHING, failpoint)
    project.run()
    rows = spark.read.format("delta").load(str(project.path("current"))).collect()
    assert sorted((row["id"], row["name"], row["sent by"]) for row in rows) == [(1, "anna", "x"), (3, "cy", "x")]
    rows = spark.read.format("delta").load(str(project.path("history"))).collect()
    assert sorted((row["id"], row["name"], row["__START_AT"]) for row in rows) == [
        (1, "ann", 1),
        (1, "anna", 4),
        (1, "anne", 2),
        (2, "bob", 3),
        (3, "cy", 2),
    ]
    assert measured(project) == {"named_current": (5, 1), "named_history": (5, 1)}


BELIEFS = """
import dlt

@dlt.view
def feed():
    return spark.readStream.schema("id INT, at INT, known INT, name STRING, gone BOOLEAN").json(spark.conf.get("landing"))

dlt.create_streaming_table("beliefs", expect_all={"named_beliefs": "name IS NOT NULL"})
dlt.create_auto_cdc_flow(
    target="beliefs", source="feed", keys=["id"], sequence_by="at", system_sequence_by="known", stored_as_scd_type="bitemporal",
    apply_as_deletes="gone", except_column_list=["at", "known", "gone"],
)
"""
TIMES = ("__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT")


def believed(id: int, at: int, known: int, name: str | None = None) -> dict[str, Any]:
    """An upsert, or without a name a delete."""
    return {"id": id, "at": at, "known": known, "name": name, "gone": name is None}


def second_beliefs_landed(project: Project) -> None:
    project.write(BELIEFS).arrive("a.json", believed(1, 1001, 1005, "v1"), believed(1, 1215, 1220, "v2"))
    project.run()
    project.arrive("b.json", believed(1, 1205, 1225, "v3"), believed(1, 1230, 1230))


BELIEVING = Scenario(second_beliefs_landed, ("batch.files_written", "changes.merged", "changes.mirrored", "flow.drained"))


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", BELIEVING.points)
def test_beliefs_of_an_update_that_died_there_are_added_once(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(BELIEVING, failpoint)
    project.run()
    assert project.rows("beliefs", "name", *TIMES) == [
        ("v1", 1001, 1205, 1225, None),
        ("v1", 1001, 1215, 1220, 1225),
        ("v1", 1001, None, 1005, 1220),
        ("v2", 1215, 1230, 1230, None),
        ("v2", 1215, None, 1220, 1230),
        ("v3", 1205, 1215, 1225, None),
    ]
    assert measured(project) == {"named_beliefs": (3, 1)}
    check_log(project)
    versions = project.versions()
    project.run()
    assert project.versions() == versions
