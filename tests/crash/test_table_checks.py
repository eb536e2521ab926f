"""An update that dies around the checks of its tables: their results are in the log once, and those of the last versions are there."""

from __future__ import annotations

import pytest

from tests.crash.conftest import check_log
from tests.crash.deaths import Deaths, Scenario
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


def first_update(project: Project) -> None:
    project.write(PIPELINE)
    (project.folder / "expectations").mkdir()
    (project.folder / "expectations" / "orders.yml").write_text(CHECKS)
    project.arrive("1.json", {"id": 1, "at": "2026-03-01T00:00:00Z"})


FIRST_UPDATE = Scenario(first_update, ("checks.validated", "checks.reported", "events.before_flush", "update.before_terminal"))


@pytest.mark.in_ci("checks.validated", "checks.reported")
@pytest.mark.parametrize("failpoint", FIRST_UPDATE.points)
def test_the_checks_of_an_update_that_died_there_are_in_the_log_once(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(FIRST_UPDATE, failpoint)
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
