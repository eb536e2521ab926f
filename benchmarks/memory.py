"""Memory of a whole run as the summed PSS of its process tree (driver, JVM, workers), sampled while a command runs.

    .venv/bin/python benchmarks/memory.py -- .venv/bin/lakelet run --param landing=/tmp/million/landing --storage /tmp/million/storage

PSS counts a page that n processes share as 1/n in each, so the sum is what the machine really gives. Bar: 4 GB (issue: the medallion runs).
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil


def tree_pss(root: psutil.Process) -> int:
    """Bytes of PSS of a process and everything below it."""
    total = 0
    for process in [root, *root.children(recursive=True)]:
        with suppress(OSError, psutil.NoSuchProcess, ValueError):
            for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def main() -> None:
    command = sys.argv[sys.argv.index("--") + 1 :]
    started = time.monotonic()
    process = subprocess.Popen(command)
    root = psutil.Process(process.pid)
    peak = 0
    while process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            peak = max(peak, tree_pss(root))
        time.sleep(0.5)
    print(f"peak PSS {peak / 1e9:.2f} GB, {time.monotonic() - started:.1f} s, exit code {process.returncode}")


if __name__ == "__main__":
    main()
