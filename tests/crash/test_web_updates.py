"""examples/web, killed while it reads the first delivery and while it computes gold tables again after the second one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.web_example import KEY, check, copied


@pytest.mark.slow
def test_an_update_of_the_web_example_that_was_killed_is_finished_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    folder = copied(tmp_path / "web")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LAKELET_SECRET_WEB_PII_KEY", KEY)
    for delivery, failpoint in (("1", "batch.committed"), ("2", "view.committed@2")):  # two of four views have the second one's rows
        subprocess.run([sys.executable, "generate.py", delivery], check=True)
        killed(failpoint)
        assert main(["run"]) == 0
        check(folder)


def killed(failpoint: str) -> None:
    """An update in a process of its own that dies at the failpoint."""
    environment = {**os.environ, "LAKELET_FAILPOINT": failpoint}
    done = subprocess.run(
        [sys.executable, "-m", "lakelet", "run"], env=environment, capture_output=True, text=True, timeout=180, start_new_session=True
    )
    assert done.returncode == -signal.SIGKILL, f"{failpoint} was never reached: {done.stderr}"
