"""What a command writes for others stays on stdout, also when the terminal has shown a phase meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys, time
from types import SimpleNamespace
from lakelet.cli.console import shown_phases
from lakelet.cli.run import stdout_for_data
with stdout_for_data(SimpleNamespace(as_json=True)), shown_phases(sys.stderr):
    time.sleep(2)
    print("of the code")
print("data")
"""


def test_json_goes_to_the_file_after_a_phase_was_drawn_on_the_terminal() -> None:
    terminal, end = os.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=end, text=True, timeout=60, check=True)
        drawn = os.read(terminal, 100_000).decode()
    finally:
        os.close(end)
        os.close(terminal)
    assert done.stdout == "data\n"
    assert "Starting" in drawn
    assert "of the code" in drawn
