"""A flow that runs once, killed at any point: its rows are in the table one time, and so are their counts in the log."""

from __future__ import annotations

import pytest

from tests.crash.conftest import check_log, measured
from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
import dlt

dlt.create_streaming_table("orders", expect_all_or_drop={"priced": "price > 0"})

@dlt.append_flow(target="orders", name="old", once=True)
def back_fill():
    return spark.createDataFrame([(1, 10), (2, -1), (3, 30)], "id BIGINT, price BIGINT")
"""
POINTS = (
    "batch.started",
    "batch.files_written",
    "batch.committed",
    "flow.drained",
    "flow.finished",
    "update.before_terminal",
)


def first_update(project: Project) -> None:
    project.write(PIPELINE)


FIRST_UPDATE = Scenario(first_update, POINTS)


@pytest.mark.in_ci("batch.committed")
@pytest.mark.parametrize("failpoint", POINTS)
def test_the_batch_of_an_update_that_died_there_is_appended_once(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(FIRST_UPDATE, failpoint)
    project.run()
    assert project.rows("orders") == [(1, 10), (3, 30)]
    assert measured(project) == {"priced": (2, 1)}
    check_log(project)
    versions = project.versions()
    project.run()
    assert project.versions() == versions
    assert project.statuses() == {"old": "IDLE"}
    project.run(full_refresh=("orders",))
    assert project.rows("orders") == [(1, 10), (3, 30)]


STREAM = """
import dlt

@dlt.view
def copied():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
    return reader.schema("id INT, name STRING, seq INT").load(spark.conf.get("landing"))

dlt.create_streaming_table("people", expect_all={"named": "name IS NOT NULL"})
dlt.create_auto_cdc_flow("people", "copied", name="copy", once=True, keys=["id"], sequence_by="seq", except_column_list=["seq"])
"""


def two_files(project: Project) -> None:
    project.write(STREAM).arrive("a.json", {"id": 1, "name": "one", "seq": 0}, {"id": 2, "seq": 0})
    project.arrive("b.json", {"id": 3, "name": "three", "seq": 0})


READING = Scenario(two_files, ("changes.merged", "changes.mirrored", "flow.drained", "flow.finished"))


@pytest.mark.in_ci("changes.merged", "flow.drained")
@pytest.mark.parametrize("failpoint", READING.points)
def test_a_stream_that_is_read_once_is_not_read_on_after_its_update_died_there(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(READING, failpoint)
    project.arrive("c.json", {"id": 4, "name": "late", "seq": 0})
    project.run()
    assert project.rows("people", "id", "name") == [(1, "one"), (2, None), (3, "three")]
    assert measured(project) == {"named": (2, 1)}
    check_log(project)
    versions = project.versions()
    project.run()
    assert project.versions() == versions
    assert project.statuses() == {"copy": "IDLE"}
    project.run(full_refresh=("people",))
    assert project.rows("people", "id", "name") == [(1, "one"), (2, None), (3, "three"), (4, "late")]


def one_file(project: Project) -> None:
    project.write(STREAM).arrive("a.json", {"id": 1, "name": "one", "seq": 0})


BEGINNING = Scenario(one_file, ("once.started", "batch.started"))


@pytest.mark.in_ci("once.started")
@pytest.mark.parametrize("failpoint", BEGINNING.points)
def test_a_stream_that_is_read_once_and_was_not_committed_is_read_in_the_next_update(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(BEGINNING, failpoint)
    project.arrive("b.json", {"id": 4, "name": "late", "seq": 0})
    project.run()
    assert project.rows("people", "id", "name") == [(1, "one"), (4, "late")]
    check_log(project)
    project.arrive("c.json", {"id": 5, "name": "too late", "seq": 0})
    project.run()
    assert project.rows("people", "id", "name") == [(1, "one"), (4, "late")]
