"""A table that is replaced by every micro-batch whose process is killed there: its groups count each row once, and so do the rules."""

from __future__ import annotations

import pytest

from tests.crash.conftest import check_log, measured
from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
import dlt
from pyspark.sql import functions as F

@dlt.table
@dlt.expect("small", "total < 10")
def totals():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    rows = reader.option("cloudFiles.maxFilesPerTrigger", "1").load(spark.conf.get("landing"))
    return rows.groupBy("kind").agg(F.sum("amount").alias("total"))
"""
POINTS = ("batch.started", "batch.files_written", "batch.committed", "batch.committed@2", "flow.drained")


def second_files_landed(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", {"kind": "x", "amount": 1}, {"kind": "y", "amount": 2})
    project.run()
    project.arrive("b.json", {"kind": "x", "amount": 4})
    project.arrive("c.json", {"kind": "x", "amount": 8}, {"kind": "z", "amount": 1})


SECOND_UPDATE = Scenario(second_files_landed, POINTS)


@pytest.mark.in_ci("batch.files_written", "batch.committed")
@pytest.mark.parametrize("failpoint", POINTS)
def test_a_replaced_table_of_an_update_that_died_there_counts_each_row_once(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(SECOND_UPDATE, failpoint)
    project.run()
    assert project.rows("totals") == [("x", 13), ("y", 2), ("z", 1)]
    assert measured(project) == {"small": (2 + 2 + 2, 1)}  # after a: x, y; after b: x, y; after c: y and z, x is 13
    check_log(project)
    versions = project.versions()
    project.run()
    assert project.versions() == versions
