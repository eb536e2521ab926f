"""Run lives of many seeds and print how many refreshes were compared, by technique: `python -m tests.view_refreshes --seeds 20`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.spark.conftest import Project
from tests.view_refreshes.lives import Life, LifeSpec
from tests.view_refreshes.tally import Tally

LIVES = (
    *((None, False), ("groups", False), ("merge", True), ("append", True)),
    *(("rows", False), ("windows", False), ("mixed", False), ("full", False)),
)
"""Forced technique, and whether inputs are only appended to; each seed has one life of each."""


def session(folder: Path) -> Any:
    """A session as that of the tests."""
    from lakelet.jvm.local_files import use_quick_local_files
    from lakelet.spark.launch.session import start_session

    made = start_session(app_name="view refreshes", input_bytes=0, conf={"spark.sql.warehouse.dir": folder.as_uri()})
    use_quick_local_files(made.sparkContext)
    return made


def specs(given: argparse.Namespace) -> list[LifeSpec]:
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    lives = LIVES if given.forced is None else [(None if one == "None" else one, given.appends) for one in given.forced.split(",")]
    views: Any = tuple(given.views.split(",")) if given.views else given.count
    return [LifeSpec(seed, given.rounds, forced, appends, views, not given.calm) for seed in seeds for forced, appends in lives]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.view_refreshes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--forced", help="only these techniques, with commas; mixed, or None for what Lakelet chooses")
    parser.add_argument("--appends", action="store_true", help="with --forced: inputs are only appended to")
    parser.add_argument("--views", help="names of views, with commas")
    parser.add_argument("--count", type=int, default=25, help="views of a pipeline")
    parser.add_argument("--calm", action="store_true", help="nothing happens to the pipeline itself")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no life begins after so many")
    parser.add_argument("--keep", type=Path, help="a folder for the projects, which stay there")
    given = parser.parse_args()
    tally, begun = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="view-refreshes-") as made:
        folder = given.keep or Path(made)
        spark = session(Path(made) / "warehouse")
        for spec in specs(given):
            if time.monotonic() - begun > given.seconds:
                break
            seen, at = len(tally.findings), time.monotonic()
            Life(spec, Project(folder / f"{spec.seed}-{spec.forced}-{spec.appends}", spark), tally).run()
            for finding in tally.findings[seen:]:
                print(f"\n{finding}\n", flush=True)
            name = f"seed {spec.seed}, forced {spec.forced}{', appends' * spec.appends}"
            print(f"{name}: {time.monotonic() - at:.0f} s, {dict(tally.compared)}", flush=True)
        spark.stop()
    print(f"\n{tally.views()}\n\n{tally.table()}")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
