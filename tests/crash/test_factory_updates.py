"""examples/factory, whose updates are killed: the next one leaves the tables that the files say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.factory_example import FactoryExample

KILLED_AT = ("batch.files_written", "batch.committed", "view.committed")


@pytest.mark.slow
def test_an_update_of_the_factory_example_that_was_killed_is_finished_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    example = FactoryExample(tmp_path / "factory")
    monkeypatch.chdir(example.folder)
    for number, failpoint in enumerate(KILLED_AT):
        deliver(example, number)
        environment = {**os.environ, "LAKELET_FAILPOINT": failpoint}
        command = [sys.executable, "-m", "lakelet", "run"]
        killed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, start_new_session=True)
        assert killed.returncode == -signal.SIGKILL, f"{failpoint} was never reached: {killed.stderr}"
    assert main(["run"]) == 0
    example.check()


def deliver(example: FactoryExample, number: int) -> None:
    arguments = ["landing", "--drops", "4", "--boxes-per-drop", "5", "--seed", "7", "--start-drop", str(4 * number)]
    subprocess.run([sys.executable, "generate.py", *arguments], cwd=example.folder, check=True)
