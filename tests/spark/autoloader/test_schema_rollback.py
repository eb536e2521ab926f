"""`lakelet schema --rollback` on a real stream: what the next updates do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakelet.inspection.schema_history import read_history, roll_back

SOURCE = """
import dlt
from pyspark.sql import SparkSession
spark = SparkSession.getActiveSession()

@dlt.table
def t():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing"))
"""


@pytest.mark.long
def test_after_going_back_updates_work_and_the_column_comes_again_with_its_next_file(project: Callable[..., Any]) -> None:
    made = project(SOURCE)
    made.arrive("a.json", {"id": 1})
    made.run()
    made.arrive("b.json", {"id": 2, "n": 1})
    made.run()
    root = made.storage.root
    (history,) = read_history(root, "t")
    assert [(v.number, [c.name for c in v.changes]) for v in history.versions] == [(0, ["id"]), (1, ["n"])]
    assert history.versions[1].file.endswith("/b.json")
    assert all(v.at for v in history.versions)

    roll_back(root, "t", 0)
    made.arrive("c.json", {"id": 3})
    made.run()
    assert made.rows("t", "id", "n") == [(1, None), (2, 1), (3, None)]
    assert [v.number for v in read_history(root, "t")[0].versions] == [0, 1, 2]

    made.arrive("d.json", {"id": 4, "n": 7})
    made.run()
    assert made.rows("t", "id", "n")[-1] == (4, 7)
    assert read_history(root, "t")[0].versions[-1].file.endswith("/d.json")
