"""examples/audit, killed while it reads the first delivery and while it replaces partitions after the second one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.audit_example import check, copied

LANDED = ["--days", "2", "--files-per-day", "6", "--records-per-file", "50"]
RUN = ["run", "--param", "files_per_batch=3"]


def generate(project: Path, *more: str) -> None:
    subprocess.run([sys.executable, "generate.py", "landing", *LANDED, *more], cwd=project, check=True, capture_output=True)


def killed(project: Path, failpoint: str) -> None:
    """An update in a process of its own that dies at the failpoint."""
    environment = {**os.environ, "LAKELET_FAILPOINT": failpoint}
    command = [sys.executable, "-m", "lakelet.cli.main", *RUN]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, start_new_session=True)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


@pytest.mark.slow
def test_an_audit_update_that_was_killed_leaves_nothing_out_and_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    project = copied(tmp_path / "audit")
    monkeypatch.chdir(project)
    generate(project)
    killed(project, "batch.committed@2")  # between the second commit of the records and Spark's note of it
    assert main(RUN) == 0
    check(project)
    generate(project, "--late")
    killed(project, "view.committed@2")  # two of three rollups have their new partitions, and no note of it
    assert main(RUN) == 0
    check(project)
