"""Hostile files: no record vanishes, nothing but named failures ends a run, and memory stays bounded (see tests/hostile.py)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

TESTS = ROOT / "tests"
SOURCES = TESTS.parent / "src"


def attack(name: str, files: int, folder: Path, seed: int = 1) -> dict[str, Any]:
    """The report of a process of its own, which may be killed by what it reads."""
    command = [sys.executable, str(TESTS / "hostile.py"), name, str(files), str(seed), str(folder)]
    path = os.pathsep.join([str(SOURCES), str(TESTS)])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize(("name", "files"), [("json", 160), ("csv", 80), ("parquet", 60)])
def test_no_record_of_a_hostile_file_is_lost(name: str, files: int, tmp_path: Path) -> None:
    report = attack(name, files, tmp_path)
    assert report["findings"] == []
    assert report["memory"] < 1000


@pytest.mark.parametrize(("shape", "megabytes"), [("whole", 20), ("broken", 20), ("unknown", 20)])
def test_a_line_of_many_megabytes_takes_a_bounded_multiple_of_its_size(shape: str, megabytes: int, tmp_path: Path) -> None:
    report = attack(f"line:{shape}", megabytes, tmp_path)
    assert report["findings"] == []
    assert report["memory"] < 250 + 14 * megabytes


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rounds"), [("json", 24), ("csv", 10), ("parquet", 6)])
def test_no_record_of_ten_thousand_hostile_files_is_lost(name: str, rounds: int, tmp_path: Path) -> None:
    for seed in range(2, 2 + rounds):  # 250 files each: the program that judges holds all their rows
        report = attack(name, 250, tmp_path / str(seed), seed)
        assert report["findings"] == [], f"seed {seed}"
        assert report["memory"] < 1000, f"seed {seed}"
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["whole", "broken", "unknown"])
def test_a_line_of_100_megabytes_takes_a_bounded_multiple_of_its_size(shape: str, tmp_path: Path) -> None:
    report = attack(f"line:{shape}", 100, tmp_path)
    assert report["findings"] == []
    assert report["memory"] < 250 + 14 * 100
