"""A disk that is full in the middle of an update: a named error, nothing lost, the next update repairs (ST-9)."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress

import pytest

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.pipeline import Request
from tests.disks import Disk, small_disk

__all__ = ["small_disk"]

BRONZE = """
    import dlt

    @dlt.table
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")).select("id", "text"))

    @dlt.table
    def counts():
        return spark.read.table("raw").groupBy().count()
"""


@pytest.fixture
def stored(project, small_disk):
    """A project whose storage lies on a disk of its own; one update has run."""
    p = project(BRONZE)
    (p.folder / "storage").symlink_to(small_disk.folder)
    p.arrive("a.json", {"id": 1, "text": "a"})
    p.run()
    return p


def fails(p) -> set[str]:
    """Run an update that must not succeed; the codes of its errors."""
    try:
        result = p.pipeline.run(Request())
    except LakeletError as problem:
        errors = [problem]
    else:
        assert result.state == "FAILED"
        errors = result.errors
    assert {e.exit_code for e in errors} == {ExitCode.ENVIRONMENT}, [str(e) for e in errors]
    return {e.code for e in errors}


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize(
    "step", ["before", "registry.written", "batch.started", "batch.files_written", "batch.committed", "view.files_written"]
)
def test_a_disk_that_is_full_in_the_middle_of_a_step_loses_nothing(stored, small_disk: Disk, monkeypatch, step):
    stored.arrive("b.json", *({"id": n, "text": "x" * 500} for n in range(2, 2000)))
    spoiling = small_disk.fill
    if step == "before":
        spoiling()
    else:
        small_disk.at(step, spoiling, monkeypatch)
    assert fails(stored) == {"STORAGE_FAILED"}
    small_disk.repair()
    stored.run()
    assert sorted(stored.rows("raw", "id")) == list(range(1, 2000))
    assert stored.rows("counts") == [1999]


def patiently(action) -> None:
    """Do what a file that is being written keeps from happening, as soon as no file is."""
    for _ in range(100):
        with suppress(subprocess.CalledProcessError):
            return action()
        time.sleep(0.05)
    return action()


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize("step", ["batch.started", "batch.files_written", "view.files_written"])
def test_a_disk_that_becomes_read_only_in_the_middle_of_a_step_loses_nothing(stored, small_disk: Disk, monkeypatch, step):
    stored.arrive("b.json", {"id": 2, "text": "b"}, {"id": 3, "text": "c"})
    with monkeypatch.context() as patched:
        small_disk.at(step, lambda: patiently(small_disk.seal), patched)
        assert fails(stored) == {"STORAGE_FAILED"}
    small_disk.repair()
    stored.run()
    assert stored.rows("raw", "id") == [1, 2, 3]
    assert stored.rows("counts") == [3]
