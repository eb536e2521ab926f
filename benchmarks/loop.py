"""Validating a project: in a new process, beside a `lakelet watch`, and in the watch itself when a file is saved.

    .venv/bin/python -m pip install grpcio grpcio-status googleapis-common-protos zstandard   # what the rival needs
    .venv/bin/python benchmarks/loop.py --domains 5 --rows 20000 --rounds 5

The project is that of cold_run.py, 25 datasets, after its first update. The rival is Spark's own `spark-pipelines dry-run`, a new process
each time, over the same files; both take turns. Then a watch runs: each round saves the file of one domain with another limit in a silver
table, and counts from the moment the file is there until the watch has written that the table is valid, and until it has written the
preview. Prints machine, load, quartiles and ratios of the medians. Bars: 6 s for `validate` in a new process, 0.3 s from a save to
valid, 2 s to the preview.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import cold_run
from cold_run import run
from figures import quartiles
from processes import Findings, watching

RIVAL = "spark-pipelines dry-run"


def next_event(events: Findings, name: str) -> float:
    """The time of the next event of that name. Raises SystemExit at an error that the watch found."""
    while True:
        at, event = events.get(timeout=120)
        if event["event"] == "error":
            raise SystemExit(json.dumps(event))
        if event["event"] == name:
            return at


def save(folder: Path, domain: int, limit: int) -> float:
    """Save the file of a domain with another limit of its table `small_…`; the time when it was there."""
    text = cold_run.DOMAIN.format(n=domain, landing=folder.parent / "landing" / str(domain)).replace("amount < 50", f"amount < {limit}")
    file = folder / "transformations" / f"domain_{domain}.py"
    beside = folder / f".{file.name}"
    beside.write_text(text)
    beside.replace(file)
    return time.perf_counter()


def tell(name: str, seconds: list[float], bar: str = "") -> None:
    print(f"{name:44} {quartiles(seconds)} s{bar}", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--domains", type=int, default=5, help="five datasets each")
    asked.add_argument("--rows", type=int, default=20_000, help="of each domain")
    asked.add_argument("--rounds", type=int, default=5)
    choice = asked.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {5 * choice.domains} datasets", flush=True)
    with tempfile.TemporaryDirectory(prefix="loop-") as work:
        folder = Path(work, "project")
        cold_run.make_landing(Path(work, "landing"), choice.domains, choice.rows)
        cold_run.make_project(folder, Path(work, "landing"), choice.domains)
        run(folder, "lakelet", "run")
        cold: dict[str, list[float]] = {"lakelet validate": [], RIVAL: [], "lakelet preview": []}
        for turn in range(choice.rounds):
            for name in sorted(cold, reverse=bool(turn % 2)):
                cold[name].append(run(folder, *name.split(), *(["small_0"] if name == "lakelet preview" else [])).wall)
        tell(f"{RIVAL}, new process", cold[RIVAL])
        tell("lakelet validate, new process", cold["lakelet validate"], " (bar 6)")
        tell("lakelet preview of one table, new process", cold["lakelet preview"])
        valid, previewed = [], []
        with watching(folder, cold_run.ENVIRONMENT) as events:
            next_event(events, "valid")
            time.sleep(2)  # the files are watched from now on
            for turn in range(choice.rounds + 1):
                saved = save(folder, turn % choice.domains, 51 + turn)
                found = next_event(events, "valid") - saved, next_event(events, "preview") - saved
                if turn:  # the first one loads what all later ones use
                    valid.append(found[0])
                    previewed.append(found[1])
                time.sleep(0.5)
            beside = [run(folder, "lakelet", "validate").wall for _ in range(choice.rounds)]
        tell("lakelet watch: from a save to valid", valid, " (bar 0.3)")
        tell("lakelet watch: from a save to the preview", previewed, " (bar 2)")
        tell("lakelet validate beside the watch", beside)
        rival = statistics.median(cold[RIVAL])
        ours = {
            "validate": cold["lakelet validate"],
            "save to valid": valid,
            "save to preview": previewed,
            "validate beside a watch": beside,
        }
        for name, seconds in ours.items():
            print(f"{name} / {RIVAL}: {statistics.median(seconds) / rival:.3f}")


if __name__ == "__main__":
    main()
