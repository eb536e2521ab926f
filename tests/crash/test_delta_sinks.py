"""Flows into a Delta sink, killed at any point: every row is there, and none twice; a handler gets the batch again under its number."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
import dlt

out = spark.conf.get("landing") + "/../out"

dlt.create_sink("outside", "delta", {"path": out + "/sent"})

@dlt.foreach_batch_sink
def handled(df, batch_id):
    ids = ",".join(str(row.id) for row in df.sort("id").collect())
    with open(out + "/calls", "a") as file:
        file.write(f"{batch_id}:{ids};")

@dlt.view
def new():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing")).select("id")

@dlt.append_flow(target="outside")
def live():
    return dlt.read_stream("new")

@dlt.append_flow(target="outside", once=True)
def old():
    return spark.createDataFrame([(0,)], "id BIGINT")

@dlt.append_flow(target="handled")
def to_function():
    return dlt.read_stream("new")
"""
POINTS = (
    "batch.started@1",
    "batch.started@2",
    "batch.started@3",
    "batch.committed",
    "batch.committed@2",
    "flow.drained@2",
    "flow.finished@2",
)


def first_update(project: Project) -> None:
    (project.folder / "out").mkdir()
    project.write(PIPELINE).arrive("a.json", {"id": 1}, {"id": 2})


FIRST_UPDATE = Scenario(first_update, POINTS)


@pytest.mark.in_ci("batch.committed")
@pytest.mark.parametrize("failpoint", POINTS)
def test_rows_of_an_update_that_died_there_are_sent_once(failpoint: str, deaths: Deaths, spark: Any) -> None:
    project = deaths.left_at(FIRST_UPDATE, failpoint)
    project.run()
    project.arrive("b.json", {"id": 3})
    project.run()
    project.run()
    assert set(project.statuses().values()) == {"IDLE"}
    sent = spark.read.format("delta").load(str(project.folder / "out" / "sent"))
    assert sorted(row.id for row in sent.collect()) == [0, 1, 2, 3]
    calls = (project.folder / "out" / "calls").read_text()
    assert set(calls.rstrip(";").split(";")) == {"0:1,2", "1:3"}
    assert calls.count("0:") in (1, 2)
    assert [i for i, n in Counter(r["id"] for r in project.logged()).items() if n > 1] == []
