"""What each hook that only saves time gains of a whole command: the command with all of them against the command without one, in turn.

    .venv/bin/python benchmarks/hooks.py --rounds 6
    .venv/bin/python benchmarks/hooks.py --rounds 6 --command test
    .venv/bin/python benchmarks/hooks.py --rounds 6 --command follow

Commands: `run`, the first update of five datasets over JSON files by Auto Loader, in a new folder each time; `test`, a pytest process with
one test of a function; `follow`, a continuous update of the same datasets for twenty files, each landed when the one before is in all
tables. A round starts the command once with all hooks and once without each, in an order of chance. Wall and processor time of whole
processes count, those of Java and Python workers included. Prints machine, load, and for each hook the quartiles of what the command
takes longer without it, in per cent of the command of the same round; the first line is the command against itself.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from cold_run import make_landing
from figures import quartiles
from first_test import project
from processes import ENVIRONMENT, Measured, measured

SPEC = """\
name: hooks
catalog: spark_catalog
database: default
storage: {storage}
libraries:
  - glob: {{include: transformations/**}}
"""
PIPELINE = """\
import dlt
from pyspark.sql import functions as F

HINTS = "id LONG, amount DOUBLE, at TIMESTAMP"


@dlt.table
def raw():
    source = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return source.option("cloudFiles.schemaHints", HINTS).load("{landing}")


@dlt.table
@dlt.expect_or_drop("amount_is_there", "amount IS NOT NULL")
def large():
    return spark.readStream.table("raw").where("amount >= 50")


@dlt.table
def small():
    return spark.readStream.table("raw").where("amount < 50").withColumn("day", F.to_date("at"))


@dlt.table
def kinds():
    return spark.read.table("large").groupBy("kind").agg(F.count("*").alias("rows"))


@dlt.table
def days():
    return spark.read.table("small").groupBy("day").agg(F.count("*").alias("rows"))
"""


def _nothing(*_: Any, **__: Any) -> None:
    """What a hook does that is left out."""


def _replace(module: str, name: str, other: Callable[..., Any]) -> None:
    """Put another function in the place of a hook, in the module of the launch that calls it."""
    found = importlib.import_module(f"lakelet.spark.launch.{module}")
    if not hasattr(found, name):
        raise SystemExit(f"lakelet.spark.launch.{module} has no {name}")
    setattr(found, name, other)


def _without_archive() -> None:
    _replace("java_process", "archive_path", lambda *_: Path("/nonexistent.jsa"))


def _without_constructor() -> None:
    def public(_: Any) -> Any:
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate()

    _replace("session", "session_of", public)


def _without_sources() -> None:
    _replace("session", "look_up_sources", _nothing)


def _without_quick_start() -> None:
    _replace("session", "import_pyspark", _nothing)
    _replace("quick_start", "leave_pandas", _nothing)


def _without_checksum_files() -> None:
    _replace("session", "write_no_checksum_files", _nothing)


def _without_local_files() -> None:
    _replace("session", "use_quick_local_files", _nothing)


def _without_forgotten_servers() -> None:
    importlib.import_module("lakelet.update.update").forget_servers = _nothing  # type: ignore[attr-defined]


def _without_later_checkpoints() -> None:
    from lakelet.jvm import later_checkpoint

    later_checkpoint.begin = lambda spark, log: log.startTransaction()


def _without_fork_server() -> None:
    os.environ["LAKELET_PLAIN_PYTHON"] = "1"


HOOKS: dict[str, Callable[[], None]] = {
    "nothing": _nothing,
    "class-data archive": _without_archive,
    "session's constructor": _without_constructor,
    "look-up of sources": _without_sources,
    "quick start": _without_quick_start,
    "no checksum files": _without_checksum_files,
    "fork server": _without_fork_server,
    "quick local files": _without_local_files,
    "forgotten servers": _without_forgotten_servers,
    "later checkpoints": _without_later_checkpoints,
}
CHILD = """
import sys
sys.path.insert(0, {here!r})
import hooks
hooks.HOOKS[{hook!r}]()
sys.argv = ["lakelet", *sys.argv[1:]]
if sys.argv[1] == "run":
    from lakelet.cli.main import entry
    entry()
else:
    import pytest
    sys.exit(pytest.main(sys.argv[2:]))
"""


def run(hook: str, landing: Path) -> Measured:
    """The first update of the five datasets, without a hook."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "transformations").mkdir()
        (Path(folder) / "spark-pipeline.yml").write_text(SPEC.format(storage=(Path(folder) / "state").as_uri()))
        (Path(folder) / "transformations" / "all.py").write_text(PIPELINE.format(landing=landing))
        return _child(hook, folder, "run")


def test(hook: str, landing: Path) -> Measured:
    """A pytest process with one test of a function, without a hook."""
    with tempfile.TemporaryDirectory() as folder:
        project(Path(folder), "function", 1)
        return _child(hook, folder, "test", "-q", "-p", "no:cacheprovider", "-p", "lakelet.testing.plugin")


FILES = 20
"""Files that a continuous update gets: two checkpoints of each Delta log are due meanwhile."""


def follow(hook: str, landing: Path) -> Measured:
    """A continuous update of the five datasets that gets one file after the other, without a hook."""
    with tempfile.TemporaryDirectory() as folder:
        files, source = sorted(landing.rglob("*.json")), Path(folder, "landing")
        source.mkdir()
        (Path(folder) / "transformations").mkdir()
        (Path(folder) / "spark-pipeline.yml").write_text(SPEC.format(storage=(Path(folder) / "state").as_uri()))
        (Path(folder) / "transformations" / "all.py").write_text(PIPELINE.format(landing=source))
        lander = threading.Thread(target=_land, args=(files[0], source, Path(folder, "state", "tables", "spark_catalog", "default")))
        lander.start()
        try:
            return _child(hook, folder, "run", "--continuous", ended_by=signal.SIGINT)
        finally:
            lander.join()


def _land(file: Path, source: Path, tables: Path) -> None:
    """Land copies of a file, each when both views have a version with the one before; then interrupt the update."""
    for number in range(FILES):
        shutil.copy(file, source / f"{number}.part")
        (source / f"{number}.part").rename(source / f"{number}.json")
        while any(len(list((tables / view / "_delta_log").glob("*.json"))) <= number for view in ("kinds", "days")):
            time.sleep(0.05)
    for child in psutil.Process().children():
        child.send_signal(signal.SIGINT)


def _child(hook: str, folder: str, *words: str, ended_by: int = 0) -> Measured:
    line = [sys.executable, "-c", CHILD.format(here=str(Path(__file__).parent), hook=hook), *words]
    found = measured(line, Path(folder), {**ENVIRONMENT, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    if found.code not in (0, 128 + ended_by if ended_by else 0):
        raise SystemExit(found.printed)
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rounds", type=int, default=6)
    asked.add_argument("--command", choices=["run", "test", "follow"], default="run")
    asked.add_argument("--hooks", nargs="*", choices=list(HOOKS), default=list(HOOKS))
    choice = asked.parse_args()
    command = {"run": run, "test": test, "follow": follow}[choice.command]
    found: dict[str, list[tuple[float, float]]] = {hook: [] for hook in choice.hooks}
    whole: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="hooks-") as work:
        landing = Path(work, "landing")
        make_landing(landing, 1, 2_000)
        command("nothing", landing)
        for turn in range(choice.rounds):
            order = ["", *choice.hooks]
            random.Random(turn).shuffle(order)
            spent = {hook: command(hook or "nothing", landing) for hook in order}
            base = spent[""]
            whole.append(base)
            for hook in choice.hooks:
                one = spent[hook]
                found[hook].append((100 * (one.wall / base.wall - 1), 100 * (one.processor / base.processor - 1)))
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {choice.rounds} rounds of {choice.command}")
    print(f"whole command: wall {quartiles([b.wall for b in whole])} s, processor {quartiles([b.processor for b in whole])} s")
    for hook, gains in found.items():
        wall, processor = quartiles([g[0] for g in gains], 1), quartiles([g[1] for g in gains], 1)
        print(f"without {hook:22} wall {wall} %, processor {processor} %")


if __name__ == "__main__":
    main()
