"""Two updates at once on one storage: the second is refused, and nothing is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from lakelet.plan.selection import Request
from tests.crash.conftest import check_all
from tests.crash.scenario import SECOND


def second_update(project) -> subprocess.CompletedProcess[str]:
    """`lakelet run` on the same storage, in a process of its own."""
    words = ["run", str(project.folder / "pipeline.py"), "--storage", str(project.storage.root), "--param", f"landing={project.landing}"]
    return subprocess.run([sys.executable, "-m", "lakelet.cli.main", *words], capture_output=True, text=True, timeout=60)


def stored_files(project) -> dict[str, bytes]:
    """All files but the event log, which the running update may be writing."""
    return {name: content for name, content in project.snapshot().items() if not name.startswith("system/events")}


def test_an_update_is_refused_while_another_one_runs_and_that_one_completes(scene):
    project, refusals = scene.project, []
    scene.land(SECOND)

    def meanwhile(event) -> None:
        if event.event_type == "update_progress" and event.body["state"] == "SETTING_UP_TABLES":
            before = stored_files(project)
            refusals.append(second_update(project))
            assert stored_files(project) == before

    assert project.pipeline.run(Request(), listeners=[meanwhile]).state == "COMPLETED"
    (refused,) = refusals
    assert refused.returncode == 1
    assert "[LAKELET_STORAGE_BUSY]" in refused.stderr
    assert f"process {os.getpid()} on " in refused.stderr
    assert " holds it since 20" in refused.stderr
    assert refused.stdout == ""
    check_all(project, scene.drops)


def test_a_lease_whose_process_id_was_given_to_another_process_is_taken_over(scene):
    project = scene.project
    with project.storage.lease("11111111-0000-4000-8000-000000000000"):
        (lease,) = project.storage.system.glob("lease-*.json")
        facts = json.loads(lease.read_text())
    lease.write_text(json.dumps({**facts, "process_started": facts["process_started"] - 3600}))
    scene.land(SECOND)
    project.run()
    check_all(project, scene.drops)
