"""Kill the process at every named point, run again: nothing is lost, nothing is doubled, the counts are right."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from deltalake import DeltaTable

import lakelet
from lakelet.base.failpoints import FAILPOINTS
from tests.crash.conftest import check_all, check_idle, check_log, land, measured
from tests.crash.deaths import Scenario
from tests.crash.scenario import FIRST, PIPELINE, SECOND, answer

RESETTING = {"reset.recorded"}
REPAIRING = {"update.repaired"}  # only reached by an update that follows a killed one
LEAVES_NO_TRACE = {"lease.acquired"}  # the update had not begun
AFTER_CHANGES = {"ledger.replanned"}  # only reached when the files of a batch have changed
BY_KEY = {"view.keys_found"}  # only reached by a view that follows its inputs: test_views_in_part.py
DESCRIBING = {"table.described"}  # only reached when the definition of a stored table has changed
ELSEWHERE = (
    "changes.",
    "once.",
    "sink.",
    "source.",
    "checks.",
    "quarantine.",
    "events.compact",
    "report.",
    "deploy.",
    "maintain.",
    "upkeep.",
    "scaffold.",
    "environment.",
    "promotion.",
    "diff.",
    "publish.",
)
"""In tests/unit/storage/test_eventlog_table.py, tests/deploy/test_deploy_deaths.py, and files of this folder that have their names."""
COMMON = [point for point in FAILPOINTS if not point.startswith(ELSEWHERE) and point not in AFTER_CHANGES | DESCRIBING | BY_KEY]


def both_refreshes(*, reset: bool = False):
    """Counts of all updates: `totals` is judged at each of its two refreshes; `clean` twice over when it was reset."""
    before, after = answer([FIRST]).quality, dict(answer([FIRST, SECOND]).quality)
    for rule in ["kind_known", *(["positive"] if reset else [])]:
        after[rule] = tuple(a + b for a, b in zip(before[rule], after[rule], strict=True))
    return after


def said_dead(project) -> int:
    """How many updates the log says ended with their process."""
    return sum("its process ended" in e["message"] for e in project.logged(event_type="update_progress", level="ERROR"))


def second_drop_landed(project):
    land(project.write(PIPELINE), FIRST)
    project.run()
    land(project, SECOND)


def first_drop_landed(project):
    land(project.write(PIPELINE), FIRST)


FIRST_UPDATE = Scenario(first_drop_landed, ("lease.acquired", "batch.committed", "flow.drained", "view.committed"))
SECOND_UPDATE = Scenario(second_drop_landed, tuple(point for point in COMMON if point not in RESETTING | REPAIRING))


@pytest.mark.parametrize("failpoint", SECOND_UPDATE.points)
def test_an_update_that_died_there_is_made_good_by_the_next_one(failpoint, deaths):
    project = deaths.left_at(SECOND_UPDATE, failpoint)
    project.run()
    assert measured(project) == both_refreshes()
    assert said_dead(project) == (failpoint not in LEAVES_NO_TRACE)
    check_all(project, [FIRST, SECOND])


@pytest.mark.parametrize("failpoint", sorted(RESETTING | REPAIRING))
def test_an_update_killed_there_is_made_good_by_the_next_one(failpoint, scene, killed_at):
    scene.land(SECOND)
    if failpoint in REPAIRING:
        killed_at("batch.committed")
    killed_at(failpoint, **({"full_refresh": ["clean"]} if failpoint in RESETTING else {}))
    scene.project.run()
    assert measured(scene.project) == both_refreshes(reset=failpoint in RESETTING)
    assert said_dead(scene.project) == 1
    check_all(scene.project, scene.drops)


@pytest.mark.parametrize("failpoint", FIRST_UPDATE.points)
def test_the_first_update_ever_killed_there_is_made_good_by_the_next_one(failpoint, deaths):
    project = deaths.left_at(FIRST_UPDATE, failpoint)
    project.run()
    assert measured(project) == answer([FIRST]).quality
    check_all(project, [FIRST])


@pytest.mark.parametrize("failpoint", sorted(DESCRIBING))
def test_a_table_that_was_described_again_is_so_once(failpoint, scene, killed_at):
    described = PIPELINE.replace("@dlt.table\n    def clean", '@dlt.table(comment="positive ones")\n    def clean')
    assert described != PIPELINE
    scene.project.write(described)
    scene.land(SECOND)
    killed_at(failpoint)
    scene.project.run()
    assert DeltaTable(str(scene.project.path("clean"))).metadata().description == "positive ones"
    log = [text for file in (scene.project.path("clean") / "_delta_log").glob("*.json") for text in file.read_text().splitlines()]
    described = [text for text in log if text.startswith('{"metaData"') and "positive ones" in text]
    assert len([text for text in described if "note" not in text]) == 1  # the commit of the new column repeats the comment
    assert measured(scene.project) == both_refreshes()
    check_all(scene.project, scene.drops)


@pytest.mark.parametrize("failpoint", ["batch.committed@2"])
def test_the_watermark_moves_on_when_a_batch_was_committed_but_not_marked_as_done(failpoint, scene, killed_at):
    scene.land(SECOND, letters=False)  # the second commit is that of b2.json, which moves the watermark past a row of b4.json
    killed_at(failpoint)
    scene.project.run()
    check_all(scene.project, scene.drops)


@pytest.mark.parametrize("failpoint", sorted(AFTER_CHANGES))
def test_a_batch_whose_files_changed_is_planned_again_and_read_once(failpoint, scene, killed_at):
    scene.land(SECOND)
    killed_at("batch.files_written")
    for file in scene.project.landing.rglob("*.json"):
        os.utime(file, (file.stat().st_mtime + 1,) * 2)
    killed_at(failpoint)
    scene.project.run()
    assert measured(scene.project) == both_refreshes()
    check_all(scene.project, scene.drops)


@pytest.mark.parametrize("failpoint", ["batch.files_written"])
def test_a_table_keeps_its_rows_until_its_full_refresh_has_some(failpoint, scene, killed_at):
    before = scene.project.rows("bronze")
    killed_at(failpoint, select=["bronze"], full_refresh=["bronze"])
    assert scene.project.rows("bronze") == before
    scene.project.run(select=["bronze"])
    assert scene.project.rows("bronze") == before
    twice = {rule: (2 * p, 2 * f) for rule, (p, f) in answer([FIRST]).quality.items()}
    assert {rule: measured(scene.project)[rule] for rule in ("amount_known", "id_known")} == {
        rule: twice[rule] for rule in ("amount_known", "id_known")
    }
    check_log(scene.project)


def test_an_update_whose_end_is_in_the_log_is_not_said_to_have_failed(scene):
    """As if the process had ended between the last event and the note that the update was complete."""
    storage = scene.project.storage
    registry = (storage.system / "registry.json").read_text()
    (storage.system / "registry.json").write_text(registry.replace('"clean": true', '"clean": false'))
    check_idle(scene.project)
    assert said_dead(scene.project) == 0
    check_log(scene.project)


def test_files_of_writes_that_were_not_finished_are_never_read(scene):
    """As if the process had ended in the middle of writing an offset, a commit, a file list, a schema, the registry and rows."""
    root = scene.project.storage.root
    for folder in {f.parent for f in root.rglob("*") if f.is_file()}:
        for name in (".4.0b5e1f6a.tmp", "..4.0b5e1f6a.tmp.crc", ".tmp-0b5e1f6a", ".00000000000000000009.json.0b5e1f6a.tmp"):
            (folder / name).write_text("half of i")
    (root / "tables/main/default/clean/part-00000-0b5e1f6a.snappy.parquet").write_text("half of i")
    scene.land(SECOND)
    scene.project.run()
    check_all(scene.project, scene.drops)


def test_every_point_in_the_code_is_listed():
    """So that each one has its test above."""
    source = Path(lakelet.__file__).parent.rglob("*.py")
    called = re.compile(r'\b(?:reached\(|failpoint(?:: str)? ?= ?)"([^"]+)"')  # at the place, or handed to the function that gets there
    found = {name for file in source for name in called.findall(file.read_text())}
    assert found == set(FAILPOINTS)
