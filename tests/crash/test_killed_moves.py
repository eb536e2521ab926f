"""A project that is renamed or copied after an update died in it, and one that dies while it finds out that it was moved."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash.conftest import check_log, check_tables, check_warnings, measured
from tests.crash.deaths import Deaths, Scenario, remove
from tests.crash.scenario import FIRST, SECOND, answer
from tests.crash.test_failpoints import SECOND_UPDATE, both_refreshes
from tests.moving import at, copied, renamed
from tests.spark.conftest import Project

PARAMETER = {"kind_known"}  # of a view that a new path of the landing folder, a parameter, lets be computed once more


@pytest.mark.in_ci("ledger.planned", "batch.files_written", "batch.committed")
@pytest.mark.parametrize("number", range(len(SECOND_UPDATE.points)), ids=SECOND_UPDATE.points)
def test_an_update_that_died_is_made_good_in_a_renamed_folder_or_a_copy(number: int, deaths: Deaths) -> None:
    left = deaths.left_at(SECOND_UPDATE, SECOND_UPDATE.points[number])
    remove(left.folder.with_name("another"), left.spark)
    another = left.folder.with_name("another") / "name"
    moved = copied(left, another, times=True) if number % 2 else renamed(left, another)
    moved.run()
    judged = {rule: counts for rule, counts in measured(moved).items() if rule not in PARAMETER}
    assert judged == {rule: counts for rule, counts in both_refreshes().items() if rule not in PARAMETER}
    check_tables(moved, answer([FIRST, SECOND]))
    check_log(moved)
    check_warnings(moved, answer([FIRST, SECOND]))


PIPELINE = """
    import dlt

    @dlt.table
    def loaded():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
                .load(spark.conf.get("landing")))

    @dlt.table
    def plain():
        return spark.readStream.format("json").schema("id BIGINT").option("maxFilesPerTrigger", "1").load(spark.conf.get("landing"))
"""


def moved_project(project: Project) -> None:
    """A project that ran elsewhere, with three more files."""
    shutil.rmtree(project.folder)
    former = at(project, project.folder.with_name("former"))
    former.landing.mkdir(parents=True)
    former.write(PIPELINE)
    for number in range(12):  # more than Spark keeps in single files of its log
        former.arrive(f"{number}.json", {"id": number})
    former.run()
    former.folder.rename(project.folder)
    project.files, project._clock = [project.folder / "pipeline.py"], former._clock
    for number in range(12, 15):
        project.arrive(f"{number}.json", {"id": number})


MOVED = Scenario(moved_project, ("source.noted", "source.journaled", "source.log_moved", "ledger.planned", "batch.committed"))


@pytest.mark.in_ci("source.journaled-False", "source.noted-True", "source.journaled-True", "source.log_moved-True")
@pytest.mark.parametrize(("failpoint", "again"), [("source.journaled", False), *((point, True) for point in MOVED.points)])
def test_an_update_that_dies_in_a_moved_project_is_made_good(failpoint: str, again: bool, deaths: Deaths) -> None:
    project = deaths.left_at(MOVED, failpoint)
    if again:
        remove(project.folder.with_name("project-2"), project.spark)
        project = renamed(project, Path(f"{project.folder}-2"))
    project.run()
    assert {name: sorted(project.rows(name, "id")) for name in ("loaded", "plain")} == {name: [*range(15)] for name in ("loaded", "plain")}
    check_log(project)
