"""A process that dies while it writes the page leaves the old page or the new one, whole, and the next report cleans up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.dashboard.page import write_report
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage
from tests.event_samples import Log, first_update, second_update
from tests.paths import ROOT

WRITE = "import sys; from pathlib import Path; from lakelet.dashboard.page import write_report; write_report(*map(Path, sys.argv[1:4]))"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("failpoint", "updates"), [("report.written", 1), ("report.replaced", 2)])
def test_a_report_whose_process_was_killed_there_is_the_old_one_or_the_new_one(failpoint: str, updates: int, tmp_path: Path) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "report"
    log = Log()
    first_update(log)
    append(Storage(storage).events, log.events)
    write_report(storage, tmp_path, folder)
    before, said = content(folder), len(log.events)
    second_update(log)
    append(Storage(storage).events, log.events[said:])
    command = [sys.executable, "-c", WRITE, str(storage), str(tmp_path), str(folder)]
    environment = {**os.environ, "LAKELET_FAILPOINT": failpoint, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, env=environment, start_new_session=True).returncode == -signal.SIGKILL
    assert (content(folder) == before) == (updates == 1)
    assert sum(name.startswith("data/update-") for name in content(folder)) == updates
    assert len(list(tmp_path.glob(".report.*"))) == 1
    write_report(storage, tmp_path, folder)
    assert sum(name.startswith("data/update-") for name in content(folder)) == 2
    assert list(tmp_path.glob(".report.*")) == []
