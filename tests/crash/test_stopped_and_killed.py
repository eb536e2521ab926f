"""A copy taken while an update is stopped at a point holds what a process that is killed there leaves: `deaths` stands on this."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.crash.deaths import Deaths
from tests.crash.test_complete_tables import SECOND_UPDATE, second_files_landed
from tests.crash.victim_processes import kill_at
from tests.spark.conftest import Project

OWN_NAMES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|tmp-[0-9a-f]+")


def left(project: Project) -> tuple[list[str], list[int], list[Any]]:
    """Files of tables and checkpoints, without the names that each run makes up; versions of tables; rows.

    The event log is left out: it commits every two seconds, so its version depends on how long an update took.
    """
    storage = project.storage.root
    found = [file for part in ("tables", "checkpoints", "autoloader") for file in (storage / part).rglob("*") if file.is_file()]
    versions = [DeltaTable(str(log.parent)).version() for log in sorted((storage / "tables").rglob("_delta_log"))]
    return sorted(OWN_NAMES.sub("*", str(file.relative_to(storage))) for file in found), versions, project.rows("totals")


@pytest.mark.in_ci("batch.files_written")
@pytest.mark.parametrize("failpoint", ["batch.files_written", "batch.committed@2"])
def test_a_copy_at_a_stop_holds_what_a_kill_leaves(failpoint: str, deaths: Deaths, tmp_path: Path, spark: Any) -> None:
    killed = Project(tmp_path / "project", spark)
    second_files_landed(killed)
    kill_at(failpoint, killed.folder)
    assert left(deaths.left_at(SECOND_UPDATE, failpoint)) == left(killed)
