"""Changes on their way into folders of files, killed at any point: each change is there once, and no half file is ever seen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
import dlt

@dlt.view
def events():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing"))

dlt.create_streaming_table("people", table_properties={"delta.enableChangeDataFeed": "true"})
dlt.apply_changes(
    target="people", source="events", keys=["id"], sequence_by="seq", apply_as_deletes="gone", except_column_list=["seq", "gone"]
)

out = spark.conf.get("landing") + "/../out"
for format in ("csv", "parquet"):
    dlt.create_sink(format, format, {"path": f"{out}/{format}", "header": "true"})

    @dlt.append_flow(name=f"to_{format}", target=format)
    def send():
        changes = spark.readStream.option("readChangeFeed", "true").table("people")
        return changes.select("id", "name", "_change_type").repartition(2, "id")

@dlt.append_flow(name="old", target="csv", once=True)
def old():
    return spark.createDataFrame([(0, "zoe", "insert")], "id BIGINT, name STRING, _change_type STRING")
"""
FIRST = [{"id": 1, "seq": 1, "name": "ann", "gone": False}, {"id": 2, "seq": 1, "name": "bob", "gone": False}]
SECOND = [
    {"id": 1, "seq": 2, "name": "anna", "gone": False},
    {"id": 2, "seq": 2, "name": None, "gone": True},
    {"id": 3, "seq": 1, "name": "cy", "gone": False},
]
CHANGES = [
    (1, "ann", "insert"),
    (1, "ann", "update_preimage"),
    (1, "anna", "update_postimage"),
    (2, "bob", "delete"),
    (2, "bob", "insert"),
    (3, "cy", "insert"),
]
POINTS = ("sink.staged@2", "sink.noted@2", "sink.file_moved@2")


def second_file_landed(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", *FIRST)
    project.run()
    project.arrive("b.json", *SECOND)


SECOND_UPDATE = Scenario(second_file_landed, POINTS)


@pytest.mark.parametrize("failpoint", POINTS)
def test_changes_of_an_update_that_died_there_are_in_the_folders_once(failpoint: str, deaths: Deaths, spark: Any) -> None:
    project = deaths.left_at(SECOND_UPDATE, failpoint)
    project.run()
    project.run()
    assert set(project.statuses().values()) == {"IDLE"}
    out = project.folder / "out"
    for format, others in (("csv", [(0, "zoe", "insert")]), ("parquet", [])):
        rows = spark.read.schema("id BIGINT, name STRING, _change_type STRING").option("header", "true").format(format)
        assert sorted(tuple(row) for row in rows.load(str(out / format)).collect()) == [*others, *CHANGES]
        assert not [file for file in (out / format).iterdir() if file.name.startswith(("_lakelet", "."))]
