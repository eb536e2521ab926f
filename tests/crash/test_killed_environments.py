"""Environments whose process is killed between two steps: the main storage stays as it was, and what comes next completes a promotion."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from lakelet.storage.environments import environment_names, environment_root
from lakelet.storage.promotion import is_unfinished
from tests.crash.deaths import Deaths, Scenario
from tests.crash.environment_steps import CHANGED, NAME, PIPELINE, TABLES, promote, run_environment
from tests.spark.conftest import Project

BEGINNING = (
    "environment.begun",
    "environment.table_copied@2",
    "environment.flows_copied@2",
    "environment.begun_again@2",
    "view.committed@2",
)
PROMOTING = (
    "promotion.files_linked",
    "promotion.staged",
    "promotion.committed",
    "promotion.committed@3",
    "promotion.flows_removed@2",
    "promotion.flows_moved",
    "promotion.registered",
)


def two_files_read_and_one_more(project: Project) -> None:
    project.write(PIPELINE)
    project.arrive("1.json", {"id": 1, "amount": 1}, {"id": 2, "amount": 2})
    project.run()
    project.arrive("2.json", {"id": 1, "amount": 3})
    project.run()
    project.arrive("3.json", {"id": 3, "amount": 4}, {"id": 1, "amount": 2})
    (project.folder / "before.json").write_text(json.dumps(tree(project)))


def tree(project: Project) -> dict[str, str]:
    """A digest of each file of the main storage, environments left out."""
    found = project.snapshot()
    return {name: sha256(content).hexdigest() for name, content in found.items() if not name.startswith("environments/")}


STEPS = Scenario(two_files_read_and_one_more, (*BEGINNING, *PROMOTING, "environment.dropped"), (("environment", ("bronze+",)),))
EXPECTED = {
    "bronze": [(1, 1), (1, 2), (1, 3), (2, 2), (3, 4)],
    "latest": [(1, 3), (2, 2), (3, 4)],
    "silver": [(1, 1), (1, 20), (1, 3), (2, 2), (3, 40)],
    "gold": [(1, 24), (2, 2), (3, 40)],
}


def check(project: Project) -> None:
    """The main storage is as after a run of the changed code, and goes on."""
    assert {name: project.rows(name) for name in TABLES} == EXPECTED
    assert set(project.run().statuses().values()) == {"IDLE"}
    project.arrive("4.json", {"id": 2, "amount": 9})
    project.run()
    assert project.rows("gold") == [(1, 24), (2, 92), (3, 40)]
    assert project.rows("latest") == [(1, 3), (2, 9), (3, 4)]


@pytest.mark.in_ci("environment.flows_copied@2", "environment.begun_again@2")
@pytest.mark.parametrize("point", BEGINNING)
def test_an_environment_that_died_there_has_written_nothing_of_the_main_storage(point: str, deaths: Deaths) -> None:
    project = deaths.left_at(STEPS, point).write(CHANGED)
    assert tree(project) == json.loads((project.folder / "before.json").read_text())
    root = environment_root(project.storage.root, NAME)
    run_environment(project, root, "bronze+")
    assert tree(project) == json.loads((project.folder / "before.json").read_text())
    assert {one.action for one in promote(project, root)} == {"swapped in"}
    check(project)


@pytest.mark.in_ci("promotion.files_linked-True", "promotion.staged-False", "promotion.committed-True", "promotion.flows_removed@2-False")
@pytest.mark.parametrize("again", [True, False], ids=str)
@pytest.mark.parametrize("point", PROMOTING)
def test_a_promotion_that_died_there_is_completed_by_what_comes_next(point: str, again: bool, deaths: Deaths) -> None:
    project = deaths.left_at(STEPS, point).write(CHANGED)
    if again:
        promote(project, environment_root(project.storage.root, NAME))
    else:
        project.run()
    assert not is_unfinished(project.storage)
    check(project)


def test_an_environment_whose_removal_died_is_gone(deaths: Deaths) -> None:
    project = deaths.left_at(STEPS, "environment.dropped").write(CHANGED)
    assert environment_names(project.storage.root) == []
    check(project)
