"""A change table that others wrote to, whose process is killed while it takes that over: nothing is lost, nothing is done twice."""

from __future__ import annotations

import pytest

from lakelet.files.delta_log import TableLog
from tests.crash.conftest import check_log, measured
from tests.crash.deaths import Deaths, Scenario
from tests.crash.test_change_tables import FIRST, OF_OTHERS, PIPELINE, SECOND, SECOND_UPDATE
from tests.spark.conftest import Project

CURRENT = [(1, "anna"), (3, "cy"), (7, "hand")]
HISTORY = [(1, "ann", 1, 2), (1, "anna", 4, None), (1, "anne", 2, 4), (2, "bob", 3, 5), (3, "cy", 2, None), (7, "hand", 3, None)]


def written_by_hand(project: Project) -> None:
    ends = "__START_AT, __END_AT"
    for name, columns, values in (("current", "id, name", "7, 'hand'"), ("history", f"id, name, {ends}", "7, 'hand', 3, NULL")):
        table = f"delta.`{project.path(name)}`"
        project.spark.sql(f"INSERT INTO {table} ({columns}) VALUES ({values})")
        project.spark.sql(f"OPTIMIZE {table}")


def check(project: Project) -> None:
    project.run()
    assert project.rows("current", "id", "name") == CURRENT
    assert project.rows("history", "id", "name", "__START_AT", "__END_AT") == HISTORY
    assert measured(project) == {"named_current": (5, 1), "named_history": (5, 1)}
    check_log(project)
    versions = project.versions()
    project.run()
    assert project.versions() == versions


def others_wrote(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", *FIRST)
    project.run()
    written_by_hand(project)
    project.arrive("b.json", *SECOND)


TAKING_OVER = Scenario(others_wrote, tuple(sorted(OF_OTHERS)))


@pytest.mark.parametrize("failpoint", TAKING_OVER.points)
def test_what_others_wrote_is_taken_over_once_though_the_update_died_there(failpoint: str, deaths: Deaths) -> None:
    check(deaths.left_at(TAKING_OVER, failpoint))


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", ["changes.merged", "changes.merged@2"])
def test_what_others_wrote_after_an_update_died_between_the_two_logs_is_kept(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(SECOND_UPDATE, failpoint)
    written_by_hand(project)
    check(project)
    assert TableLog(project.path("current")).version() == project.version("current")
