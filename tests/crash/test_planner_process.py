"""The Python process that plans the batches of an Auto Loader source dies alone: the update goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.crash.conftest import measured
from tests.crash.victim_processes import end
from tests.paths import ROOT
from tests.spark.conftest import Project

PIPELINE = """
import dlt

@dlt.table
@dlt.expect_or_drop("id_known", "id IS NOT NULL")
def bronze():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
    return reader.schema("id BIGINT").load(spark.conf.get("landing"))
"""


def test_a_dead_planner_costs_a_start_and_no_row(tmp_path: Path, spark: Any) -> None:
    project = Project(tmp_path / "project", spark).write(PIPELINE)
    for number in range(3):
        project.arrive(f"{number}.json", {"id": number}, {"id": None})
    # Each planner dies at its second batch: after it has written the list of files, before Spark has the offset.
    bystander = subprocess.Popen(["sleep", "300"], start_new_session=True)  # its group is killed in place of the update's
    paths = {"PYTHONPATH": str(ROOT), "LAKELET_FAILPOINT": "ledger.planned@2", "LAKELET_FAILPOINT_GROUP": str(bystander.pid)}
    runner = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("runner.py")), str(project.folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **paths}, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = runner.communicate("{}\n", timeout=240)
    finally:
        end(runner)
        bystander.kill()
        bystander.wait()
    assert said.splitlines() == ["ready", "completed"]
    assert sorted(project.rows("bronze", "id")) == [0, 1, 2]
    notices = [e["details"]["notice"]["text"] for e in project.logged(event_type="notice")]
    assert notices == ["the Python process that plans its batches ended"] * 2
    assert measured(project) == {"id_known": (3, 3)}
