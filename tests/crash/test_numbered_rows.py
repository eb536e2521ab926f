"""A table with an IDENTITY column whose update is killed while it writes: each row is there once, and no number is given twice."""

from __future__ import annotations

import pytest

from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
import dlt

@dlt.table(schema="id BIGINT GENERATED ALWAYS AS IDENTITY, word STRING")
def numbered():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("word STRING")
    return reader.option("cloudFiles.maxFilesPerTrigger", "1").load(spark.conf.get("landing"))
"""
POINTS = ("batch.files_written", "batch.committed", "batch.files_written@2", "batch.committed@2")


def first_words_numbered(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", {"word": "a"}, {"word": "b"})
    project.run()
    project.arrive("b.json", {"word": "c"}, {"word": "d"})
    project.arrive("c.json", {"word": "e"})


SECOND_UPDATE = Scenario(first_words_numbered, POINTS)


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", POINTS)
def test_rows_of_an_update_that_died_there_are_numbered_once(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(SECOND_UPDATE, failpoint)
    before = dict(project.rows("numbered"))
    project.run()
    after = dict(project.rows("numbered"))
    assert sorted(after.values()) == ["a", "b", "c", "d", "e"]
    assert before.items() <= after.items()
