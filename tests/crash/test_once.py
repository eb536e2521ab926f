"""A flow that runs once, killed at any point: its rows are in the table one time, and so are their counts in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import check_log, measured
from tests.crash.test_change_tables import kill_at
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


@pytest.mark.parametrize("failpoint", POINTS)
def test_the_batch_of_an_update_that_was_killed_there_is_appended_once(failpoint: str, tmp_path: Path, spark: Any) -> None:
    project = Project(tmp_path / "project", spark).write(PIPELINE)
    kill_at(failpoint, project.folder)
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
