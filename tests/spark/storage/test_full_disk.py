"""A disk that is full when a flow writes rows, its progress or its state: a named error, nothing lost or doubled (SO-8).

Each folder of the storage in turn lies on a small disk of its own, so that what fails is the flow.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelet.inspection.inspector import run_sql
from tests.spark.conftest import Project

PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect("even", "id % 2 = 0")
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
                .load(spark.conf.get("landing")))

    @dlt.table
    def total():
        return dlt.read("raw").groupBy().count()
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, free: int) -> Path:
    """A file that leaves so many bytes on the disk."""
    found = os.statvfs(disk)
    ballast = disk / "ballast"
    with ballast.open("wb") as stream:
        stream.write(b"x" * max(0, found.f_bavail * found.f_frsize - free))
    return ballast


@pytest.mark.slow
def test_a_full_disk_is_named_and_the_next_update_goes_on(project: Callable[..., Project], disk: Path) -> None:
    made = project(PIPELINE)
    for number, (part, free) in enumerate([("autoloader", 0), ("checkpoints", 0), ("tables", 0), ("tables", 8192)]):
        made.arrive(f"{number}-0.json", {"id": 10 * number})
        made.run()
        place, moved = made.storage.root / part, disk / part
        place.rename(place.with_name("aside"))
        subprocess.run(["cp", "-a", str(place.with_name("aside")), str(moved)], check=True)
        place.symlink_to(moved)
        made.arrive(f"{number}-1.json", {"id": 10 * number + 1, f"new{number}": 1}, {"id": 10 * number + 2})
        ballast = fill(disk, free)
        made.run(expect="FAILED")
        assert made.errors()["raw"] == "STORAGE_FAILED", (part, [str(e) for e in made.result.errors])
        assert "No space left on device" in str(made.result.errors[0])
        ballast.unlink()
        made.run()
        ids = [10 * n + i for n in range(number + 1) for i in range(3)]
        assert (made.rows("raw", "id"), made.rows("total")) == (sorted(ids, key=repr), [len(ids)])
        place.unlink()
        subprocess.run(["cp", "-a", str(moved), str(place)], check=True)
        subprocess.run(["rm", "-r", str(moved), str(place.with_name("aside"))], check=True)
        made.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    check_counts(made, ids)


def check_counts(made: Project, ids: list[int]) -> None:
    """The event log has counted each row once."""
    facts = [r["details"]["flow_progress"] for r in made.logged(event_type="flow_progress")]
    found = [e for f in facts for e in f.get("data_quality", {}).get("expectations", [])]
    even = sum(i % 2 == 0 for i in ids)
    assert (sum(e["passed_records"] for e in found), sum(e["failed_records"] for e in found)) == (even, len(ids) - even)


STEPS = [
    *("batch.started", "batch.files_written", "batch.committed", "flow.drained", "flow.finished"),
    *("view.files_written", "view.committed", "view.recorded"),
]


@pytest.mark.in_ci(every=4)
@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_a_disk_that_fills_up_in_the_middle_of_a_step_is_named_and_made_good(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    made = project(PIPELINE)
    made.arrive("a.json", {"id": 1})
    made.run()
    made.arrive("b.json", {"id": 2}, {"id": 3, "new": 1})
    with monkeypatch.context() as patched:
        patched.setattr("lakelet.base.failpoints._hits", Counter())
        patched.setenv("LAKELET_FAILPOINT", f"{step}:ENOSPC")
        made.run(expect="FAILED")
    assert set(made.errors().values()) == {"STORAGE_FAILED"}
    failed = made.events[0].origin.update_id
    made.run()
    assert (made.rows("raw", "id"), made.rows("total")) == ([1, 2, 3], [3])
    check_counts(made, [1, 2, 3])
    if step.startswith("view."):  # the numbers of the commit are told later at the latest, and never that the flow has completed
        status = "RUNNING" if step == "view.committed" else "FAILED"
        query = f"SELECT status, output_rows FROM flow_metrics WHERE update_id = '{failed}' AND dataset = 'main.default.total'"
        assert list(run_sql(made.storage.root, query).rows) == [{"status": status, "output_rows": None if "files" in step else 1}]
