"""How fast and how small Auto Loader's file state is: listing, "which of these are new", and memory.

    python benchmarks/file_state.py [--files 100000] [--folders 100] [--entries 1000000]
    python benchmarks/file_state.py --files 0 --entries 10000000      # the ledger alone, of ten million files

Prints figures of one run, each beside a baseline of the same run: `os.walk` with `os.stat` for the listing, a Python set of paths for the
question. Memory is the peak of a process of its own, less that of the same process before it touches the ledger.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelet.autoloader.discovery.listing import LISTING, Filters, list_files
from lakelet.autoloader.state.ledger import Ledger

_PER_BATCH = 10_000
_BATCHES = 96
"""The ledger compacts with every 32nd batch: more batches only take longer to make."""


def main() -> None:
    options = _arguments()
    if options.ask:
        _ask(options.ask, options.entries)
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.files:
            _listing(Path(folder), options.files, options.folders)
        _entries(folder, options.entries)


def _listing(folder: Path, files: int, folders: int) -> None:
    for number in range(folders):
        (folder / "in" / f"day={number:04d}").mkdir(parents=True)
        for file in range(files // folders):
            (folder / "in" / f"day={number:04d}" / f"part-{file:05d}-0123456789abcdef.json").touch()
    source, ledger = str(folder / "in"), Ledger(str(folder / "state"))
    found = list_files(source, Filters()).found
    for batch, start in enumerate(range(0, len(found), 1000)):
        ledger.plan(batch, found.slice(start, 1000))
    up_to = (len(found) - 1) // 1000

    def second_update() -> None:
        assert len(ledger.unseen(list_files(source, Filters()).found, up_to)) == 0

    walked = _seconds(lambda: _walk(source))
    listed = _seconds(lambda: list_files(source, Filters()))
    print(f"{files} files in {folders} folders")
    print(f"  listing                    {listed:7.3f} s   {listed / walked:5.2f} × os.walk + os.stat + set ({walked:.3f} s)")
    print(f"  which are new: none        {_seconds(lambda: ledger.unseen(found, up_to)):7.3f} s")
    print(f"  both (a second update)     {_seconds(second_update):7.3f} s")


def _walk(source: str) -> set[tuple[str, int]]:
    paths = (os.path.join(above, name) for above, _, names in os.walk(source) for name in names)
    return {(path, os.stat(path).st_mtime_ns) for path in paths}


def _seconds(action: Callable[[], Any], times: int = 3) -> float:
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def _entries(folder: str, entries: int) -> None:
    ledger, per_batch = Ledger(folder + "/million"), max(_PER_BATCH, entries // _BATCHES)
    seconds = []
    for batch, start in enumerate(range(0, entries, per_batch)):
        rows = _synthetic(start, min(entries, start + per_batch))
        started = time.perf_counter()
        ledger.plan(batch, rows)
        seconds.append(time.perf_counter() - started)
    on_disk = sum(file.stat().st_size for file in Path(ledger.folder).iterdir())
    print(f"{entries} entries in {len(seconds)} batches of {per_batch}")
    print(f"  on disk                    {on_disk / 1e6:7.0f} MB   {on_disk / entries:.0f} bytes for a file")
    print(f"  planning a batch           {statistics.median(seconds):7.3f} s   the last one that compacts: {max(seconds[-32:]):.3f} s")
    command = [sys.executable, __file__, "--ask", folder + "/million", "--entries", str(entries)]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


def _ask(state: str, entries: int) -> None:
    """Runs in a process of its own: asks for a listing of all entries and some new files which are new."""
    listing = pa.concat_tables([_synthetic(start, start + 8192) for start in range(0, entries + 1000, 8192)]).slice(0, entries + 1000)
    before = _peak()
    started = time.perf_counter()
    unseen = Ledger(state).unseen(listing, 1 << 40)
    seconds = time.perf_counter() - started
    assert len(unseen) == 1000
    grown = _peak() - before
    new = listing.slice(entries)
    alone = _seconds(lambda: Ledger(state).unseen(new, 1 << 40), times=1)
    paths = listing["path"].to_pylist()
    started = time.perf_counter()
    known = set(paths[:entries])
    assert sum(path not in known for path in paths) == 1000
    by_set = time.perf_counter() - started
    print(f"  which are new: 1000        {seconds:7.3f} s   {seconds / by_set:5.2f} × a set of Python strings ({by_set:.3f} s)")
    print(f"  the same of these 1000 only {alone:6.3f} s   as in a folder that is cleaned after reading")
    print(f"  memory for the answer      {grown:7.0f} MB, and {listing.nbytes / 1e6:.0f} MB for the listing")


def _synthetic(start: int, end: int) -> Any:
    scramble = 0x9E3779B97F4A7C15  # names with a random part, as engines write them: that does not compress
    names = (f"part-{at:08d}-{at * scramble % 2**64:016x}.json" for at in range(start, end))
    paths = [f"/landing/orders/year=2024/day={at % 365:03d}/{name}" for at, name in enumerate(names, start)]
    return pa.table([paths, [100] * len(paths), [1_700_000_000_000_000 + at for at in range(start, end)]], schema=LISTING)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=100)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--ask", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
