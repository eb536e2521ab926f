"""A table with a quarantine whose process is killed at any point: each input row is in exactly one of both, and counted once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import check_log, measured
from tests.crash.deaths import Deaths, Scenario
from tests.crash.victim_processes import kill_at
from tests.spark.conftest import Project

PIPELINE = """
import dlt

KEPT = {"lakelet.quarantine": "true"}
LIMIT = 10

@dlt.table(table_properties=KEPT)
@dlt.expect("known", "kind IS NOT NULL")
@dlt.expect_or_drop("small", f"n < {LIMIT}")
def rows():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
    return reader.schema("n BIGINT, kind STRING").load(spark.conf.get("landing"))

@dlt.table(table_properties=KEPT)
@dlt.expect_or_drop("some", "total BETWEEN 2 AND 3")
def sums():
    return spark.read.table("rows").groupBy("n").agg({"n": "sum"}).withColumnRenamed("sum(n)", "total")
"""
POINTS = [
    "quarantine.written",
    "quarantine.committed",
    "quarantine.committed@2",
    "batch.committed",
    "batch.files_written@2",
    "quarantine.committed@3",  # of the materialized view
    "view.files_written",
    "view.committed",
    "view.recorded",
    "registry.written@2",
    "update.before_terminal",
]


def held(project: Project, name: str, column: str) -> list[Any]:
    rows = project.table(f"{name}_quarantine").to_pylist()
    return sorted((row[column] for row in rows if row["_released_by"] is None), key=_nulls_last)


def _nulls_last(value: int | None) -> tuple[bool, int]:
    return value is None, value or 0


def kept(project: Project) -> list[Any]:
    return sorted(project.rows("rows", "n"))


def land(project: Project) -> None:
    project.arrive("b.json", {"n": 3, "kind": "x"}, {"n": 30, "kind": None}, {"n": None, "kind": "y"})
    project.arrive("c.json", {"n": 4, "kind": "x"}, {"n": 40, "kind": "y"})


def quarantined(project: Project) -> int:
    """Records that the log says were quarantined, in all updates, of the streaming table."""
    bodies = [
        row["details"]["flow_progress"]
        for row in project.logged(event_type="flow_progress")
        if str(row["origin"]["dataset_name"]).endswith(".rows")
    ]
    return sum(body.get("data_quality", {}).get("quarantined_records", 0) for body in bodies)


def updated(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", {"n": 1, "kind": "x"}, {"n": 11, "kind": "x"})
    project.run()


def updated_and_landed(project: Project) -> None:
    updated(project)
    land(project)


SECOND_UPDATE = Scenario(updated_and_landed, tuple(POINTS))


@pytest.mark.in_ci("quarantine.written", "quarantine.committed", "view.committed")
@pytest.mark.parametrize("failpoint", POINTS)
def test_each_row_is_in_one_of_both_tables_after_an_update_that_died_there(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(SECOND_UPDATE, failpoint)
    project.run()
    assert kept(project) == [1, 3, 4]
    assert held(project, "rows", "n") == [11, 30, 40, None]
    assert (project.rows("sums", "total"), held(project, "sums", "total")) == ([3], [1, 4])
    assert measured(project)["small"] == (3, 4)
    assert measured(project)["known"] == (6, 1)
    assert measured(project)["some"] == (1, 1 + 2)
    assert quarantined(project) == 4
    check_log(project)
    versions = project.versions()
    project.run()
    assert project.versions() == versions


@pytest.mark.slow
def test_the_first_quarantine_ever_of_an_update_that_was_killed_there_is_made_good(tmp_path: Path, spark: Any) -> None:
    project = Project(tmp_path / "project", spark).write(PIPELINE)
    project.arrive("a.json", {"n": 1, "kind": "x"}, {"n": 11, "kind": "x"})
    kill_at("quarantine.committed", project.folder)
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([1], [11])
    assert measured(project)["small"] == (1, 1)


def test_an_empty_quarantine_is_there_after_an_update_that_was_killed_when_it_was_made(tmp_path: Path, spark: Any) -> None:
    project = Project(tmp_path / "project", spark).write(PIPELINE)
    project.arrive("a.json", {"n": 1, "kind": "x"}, {"n": 2, "kind": "x"})
    kill_at("quarantine.made", project.folder)
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([1, 2], [])
    assert measured(project)["small"] == (2, 0)


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize(("limit", "stays", "left"), [("35", [1, 3, 4, 30], [11, 40, None]), ("4", [1, 3], [4, 11, 30, 40, None])])
def test_rules_that_change_between_the_death_and_the_next_update_decide_about_the_whole_batch(
    limit: str, stays: list[int], left: list[int | None], deaths: Deaths
) -> None:
    project = deaths.left_at(SECOND_UPDATE, "quarantine.committed")
    project.write(PIPELINE.replace("LIMIT = 10", f"LIMIT = {limit}"))
    project.run()
    assert (kept(project), held(project, "rows", "n")) == (stays, left)


def test_a_batch_that_is_tried_again_without_a_quarantine_leaves_no_row_in_it(deaths: Deaths) -> None:
    project = deaths.left_at(SECOND_UPDATE, "quarantine.committed")
    project.write(PIPELINE.replace("LIMIT = 10", "LIMIT = 35").replace('"true"', '"false"'))
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([1, 3, 4, 30], [11])


@pytest.mark.slow
def test_rows_that_somebody_changed_after_the_death_are_replaced_too(deaths: Deaths, spark: Any) -> None:
    project = deaths.left_at(SECOND_UPDATE, "quarantine.committed")
    path = project.path("rows_quarantine")
    spark.sql(f"UPDATE delta.`{path}` SET kind = 'mended'")
    project.run()
    assert sorted(((r["n"], r["kind"]) for r in project.table("rows_quarantine").to_pylist()), key=repr) == [
        *((11, "mended"), (30, None), (40, "y"), (None, "y"))
    ]


def other_files(project: Project, last: int) -> None:
    updated(project)
    (project.landing / "a.json").unlink()
    project.arrive("b.json", {"n": 2, "kind": "x"})
    project.arrive("c.json", {"n": last, "kind": "x"})


def other_files_without_quarantined_rows(project: Project) -> None:
    other_files(project, 3)


REFRESH = Scenario(
    other_files_without_quarantined_rows, ("reset.recorded", "batch.committed", "flow.drained"), (("full_refresh", ("rows",)),)
)


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", REFRESH.points)
def test_a_full_refresh_that_died_there_leaves_no_old_row_in_the_quarantine(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(REFRESH, failpoint)
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([2, 3], [])


@pytest.mark.slow
def test_a_full_refresh_that_was_killed_between_both_commits_leaves_no_old_row_in_the_quarantine(tmp_path: Path, spark: Any) -> None:
    project = Project(tmp_path / "project", spark)
    other_files(project, 12)
    kill_at("quarantine.committed", project.folder, full_refresh=["rows"])
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([2], [12])


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "stays", "left"), [("10", [1, 1, 3, 4], [11, 30, 40, None]), ("35", [1, 1, 3, 4, 11, 30], [40, None])])
def test_rows_of_a_batch_that_died_are_held_once_though_its_flow_begins_again(
    limit: str, stays: list[int], left: list[int | None], deaths: Deaths
) -> None:
    project = deaths.left_at(SECOND_UPDATE, "quarantine.committed")
    project.write(PIPELINE.replace("LIMIT = 10", f"LIMIT = {limit}"))
    kill_at("quarantine.committed", project.folder, reset_checkpoint=["rows"])
    project.run()
    assert (kept(project), held(project, "rows", "n")) == (stays, left)
    _, found = project.pipeline.replay("rows")
    assert (found.judged, found.waiting) == (len(left), False)


@pytest.mark.slow
def test_a_flow_that_keeps_its_rows_in_spark_meanwhile_and_was_killed_holds_each_row_once(tmp_path: Path, spark: Any) -> None:
    declared = 'schema="n BIGINT, kind VARCHAR(3)", table_properties'
    project = Project(tmp_path / "project", spark).write(PIPELINE.replace("table_properties", declared, 1))
    project.arrive("a.json", {"n": 1, "kind": "x"}, {"n": 11, "kind": "x"})
    project.run()
    land(project)
    kill_at("quarantine.committed", project.folder)
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([1, 3, 4], [11, 30, 40, None])
    assert measured(project)["small"] == (3, 4)


WIDER = PIPELINE.replace("LIMIT = 10", "LIMIT = 12")


def widened(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", {"n": 1, "kind": "x"}, {"n": 11, "kind": "x"}, {"n": 13, "kind": "x"})
    project.run()
    project.write(WIDER)


REPLAY = Scenario(widened, ("quarantine.released", "batch.committed"), (("replay", ("rows",)),))


@pytest.mark.in_ci("quarantine.released")
@pytest.mark.parametrize("failpoint", REPLAY.points)
def test_released_rows_of_a_replay_that_died_there_are_added_once(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(REPLAY, failpoint)
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([1, 11], [13])
    assert measured(project)["small"] == (1 + 1, 2 + 1)
    check_log(project)
    _, found = project.pipeline.replay("rows")
    assert (found.judged, found.released) == (1, 0)
    assert kept(project) == [1, 11]


@pytest.mark.slow
def test_a_replay_after_one_that_died_finishes_that_first(deaths: Deaths) -> None:
    project = deaths.left_at(REPLAY, "quarantine.released")
    project.write(PIPELINE.replace("LIMIT = 10", "LIMIT = 20"))
    project.pipeline.replay("rows")
    assert (kept(project), held(project, "rows", "n")) == ([1, 11, 13], [])


def test_rows_of_a_batch_that_is_not_finished_are_not_replayed(deaths: Deaths) -> None:
    project = deaths.left_at(SECOND_UPDATE, "quarantine.committed")
    project.write(PIPELINE.replace("LIMIT = 10", "LIMIT = 35"))
    _, found = project.pipeline.replay("rows")
    assert (found.judged, found.released, found.waiting) == (1, 1, True)
    assert kept(project) == [1, 11]
    project.run()
    assert (kept(project), held(project, "rows", "n")) == ([1, 3, 4, 11, 30], [40, None])
