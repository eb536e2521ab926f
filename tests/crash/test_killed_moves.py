"""A project that is renamed or copied after an update died in it, and one that dies while it finds out that it was moved."""

from __future__ import annotations

import shutil

import pytest

from tests.crash.conftest import check_log, check_tables, check_warnings, measured
from tests.crash.deaths import Deaths, Scenario, remove
from tests.crash.scenario import FIRST, SECOND, answer
from tests.crash.test_failpoints import SECOND_UPDATE, both_refreshes
from tests.moving import at, copied, renamed
from tests.spark.conftest import Project

PARAMETER = {"kind_known"}  # of a view that a new path of the landing folder, a parameter, lets be computed once more


@pytest.mark.in_ci("ledger.planned-renamed", "batch.files_written-copied", "batch.committed-renamed")
@pytest.mark.parametrize("how", ["renamed", "copied"])
@pytest.mark.parametrize("point", SECOND_UPDATE.points)
def test_an_update_that_died_is_made_good_in_a_renamed_folder_or_a_copy(point: str, how: str, deaths: Deaths) -> None:
    moved = moved_again(deaths.left_at(SECOND_UPDATE, point), how)
    moved.run()
    judged = {rule: counts for rule, counts in measured(moved).items() if rule not in PARAMETER}
    assert judged == {rule: counts for rule, counts in both_refreshes().items() if rule not in PARAMETER}
    check_tables(moved, answer([FIRST, SECOND]))
    check_log(moved)
    check_warnings(moved, answer([FIRST, SECOND]))


def moved_again(project: Project, how: str) -> Project:
    """The project as it runs from another folder: `renamed`, `copied`, or "" for where it is."""
    folder = project.folder.with_name("another") / "name"
    remove(folder.parent, project.spark)
    return {"": lambda *_: project, "renamed": renamed, "copied": lambda *two: copied(*two, times=True)}[how](project, folder)


PIPELINE = """
    import dlt

    @dlt.table
    def loaded():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
                .load(spark.conf.get("landing")))

    @dlt.table
    def plain():
        return spark.readStream.format("json").schema("id BIGINT").option("maxFilesPerTrigger", "1").load(spark.conf.get("landing"))

    for kind in ("1", "2"):
        dlt.create_streaming_table(f"current_{kind}")
        dlt.apply_changes(target=f"current_{kind}", source="loaded", keys=["id"], sequence_by="id", stored_as_scd_type=kind)
"""
TABLES = ("loaded", "plain", "current_1", "current_2")


def check_rows(project: Project) -> None:
    """No row twice, none lost."""
    assert {name: sorted(project.rows(name, "id")) for name in TABLES} == {name: [*range(15)] for name in TABLES}
    check_log(project)


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


def project_with_more_files(project: Project) -> None:
    """A project that ran where it is, with three more files."""
    project.write(PIPELINE)
    for number in range(12):
        project.arrive(f"{number}.json", {"id": number})
    project.run()
    for number in range(12, 15):
        project.arrive(f"{number}.json", {"id": number})


POINTS = ("ledger.planned", "batch.committed")
MOVED = Scenario(moved_project, ("source.noted", "source.journaled", "source.log_moved", *POINTS))
STAYED = Scenario(project_with_more_files, POINTS)


@pytest.mark.in_ci("source.journaled-", "source.noted-renamed", "source.journaled-copied", "source.log_moved-renamed")
@pytest.mark.parametrize("how", ["", "renamed", "copied"])
@pytest.mark.parametrize("failpoint", MOVED.points)
def test_an_update_that_dies_in_a_moved_project_is_made_good(failpoint: str, how: str, deaths: Deaths) -> None:
    project = moved_again(deaths.left_at(MOVED, failpoint), how)
    project.run()
    check_rows(project)


@pytest.mark.in_ci("batch.committed")
@pytest.mark.parametrize("failpoint", POINTS)
def test_an_update_that_died_is_made_good_with_its_files_in_a_folder_that_the_user_names(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(STAYED, failpoint)
    old, new = project.landing, project.folder.with_name("elsewhere")
    remove(new, project.spark)
    old.rename(new)
    project.landing, project.parameters, project.moved = new, {**project.parameters, "landing": str(new)}, [(str(old), str(new))]
    project.run()
    check_rows(project)
