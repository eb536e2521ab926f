"""Maintenance whose process is killed between two steps: every answer is the same, the next command or update finishes what was left."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.maintenance.maintain import maintain
from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
import dlt

KEPT = {"delta.deletedFileRetentionDuration": "interval 0 seconds", "delta.enableChangeDataFeed": "true"}

@dlt.view
def feed():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
    return reader.schema("id INT, seq INT, name STRING").load(spark.conf.get("landing"))

for name, type in (("current", 1), ("history", 2)):
    dlt.create_streaming_table(name, table_properties=KEPT)
    dlt.apply_changes(target=name, source="feed", keys=["id"], sequence_by="seq", stored_as_scd_type=type)

@dlt.table(table_properties=KEPT)
def rows():
    return spark.readStream.table("feed")

@dlt.table
def copy():
    return spark.readStream.table("rows")
"""
TABLES = ("current", "history", "rows", "copy")


def four_files_read(project: Project) -> None:
    land(project.write(PIPELINE), 1, 2, 3, 4)
    project.run()


MAINTENANCE = Scenario(four_files_read, ("maintain.optimized@2", "maintain.mirrored", "maintain.deleted@2"), (("maintain", ()),))
ROWS = [(0, "name 3"), (1, "name 1"), (1, "name 4"), (2, "name 2")]
BEFORE = {"current": [(0, "name 3"), (1, "name 4"), (2, "name 2")], "history": ROWS, "rows": ROWS, "copy": ROWS}


def content(project: Project) -> dict[str, list[Any]]:
    return {name: project.rows(name, "id", "name") for name in TABLES}


def land(project: Project, *sequences: int) -> None:
    for seq in sequences:
        project.arrive(f"{seq}.json", {"id": seq % 3, "seq": seq, "name": f"name {seq}"})


@pytest.mark.in_ci("maintain.optimized@2-True", "maintain.mirrored-False", "maintain.deleted@2-True")
@pytest.mark.parametrize(
    ("failpoint", "then_maintained"),
    [("maintain.optimized@2", True), ("maintain.optimized@2", False), ("maintain.mirrored", False), ("maintain.deleted@2", True)],
)
def test_maintenance_that_died_there_loses_nothing(failpoint: str, then_maintained: bool, deaths: Deaths, spark: Any) -> None:
    project = deaths.left_at(MAINTENANCE, failpoint)
    assert content(project) == BEFORE
    if then_maintained:
        assert [table.error for table in maintain(project.storage.root, spark=spark, least=0) if table.error] == []
        assert content(project) == BEFORE
    project.run()
    assert content(project) == BEFORE
    assert {step.strategy.value for step in project.result.steps} == {"skip"}
    land(project, 5, 6, 7)
    project.run()
    assert project.rows("copy") == project.rows("rows")
    assert sorted(project.rows("rows", "seq")) == [1, 2, 3, 4, 5, 6, 7]
    assert project.rows("current", "id", "name") == [(0, "name 6"), (1, "name 7"), (2, "name 5")]
    assert sorted(project.rows("history", "name")) == [f"name {seq}" for seq in range(1, 8)]
