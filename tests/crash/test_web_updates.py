"""examples/web, whose update is killed: the next one, with a second delivery, leaves the tables that the files say."""

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


def test_an_update_of_the_web_example_that_was_killed_is_finished_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    folder = copied(tmp_path / "web")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LAKELET_SECRET_WEB_PII_KEY", KEY)
    subprocess.run([sys.executable, "generate.py", "1"], check=True)
    environment = {**os.environ, "LAKELET_FAILPOINT": "batch.committed"}
    killed = subprocess.run(
        [sys.executable, "-m", "lakelet", "run"], env=environment, capture_output=True, text=True, timeout=180, start_new_session=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    subprocess.run([sys.executable, "generate.py", "2"], check=True)
    assert main(["run"]) == 0
    check(folder)
