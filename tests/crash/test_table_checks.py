"""An update that dies around the checks of its tables: their results are in the log once, and those of the last versions are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import check_log
from tests.crash.victim_processes import kill_at
from tests.spark.conftest import Project

PIPELINE = """
import dlt

@dlt.table
def orders():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, at TIMESTAMP")
        .load(spark.conf.get("landing")))
"""
CHECKS = """\
datasets:
  orders:
    checks:
      fresh: {fresh: {column: at, within: 1 day}, severity: critical}
      unknown: {unique: nope}
"""


@pytest.mark.parametrize("failpoint", ["checks.validated", "checks.reported", "events.before_flush", "update.before_terminal"])
def test_the_checks_of_an_update_that_was_killed_there_are_in_the_log_once(failpoint: str, tmp_path: Path, spark: Any) -> None:
    project = Project(tmp_path / "project", spark).write(PIPELINE)
    (project.folder / "expectations").mkdir()
    (project.folder / "expectations" / "orders.yml").write_text(CHECKS)
    project.arrive("1.json", {"id": 1, "at": "2026-03-01T00:00:00Z"})
    kill_at(failpoint, project.folder)
    project.run()
    assert project.result.failed_checks == ("main.default.orders.fresh",)
    project.run()
    check_log(project)
    found = [row["details"]["table_check"] for row in project.logged(event_type="table_check")]
    assert sorted((one["name"], one["table_version"], one["success"]) for one in found) == [
        ("fresh", project.version("orders"), False),
        ("unknown", project.version("orders"), False),
    ]
    assert project.result.failed_checks == ("main.default.orders.fresh",)
