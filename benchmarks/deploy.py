"""20 pipelines and 200 files to a workspace on loopback: plan, deployment, nothing to do; against importing the SDK alone.

    .venv/bin/python benchmarks/deploy.py --pipelines 20 --files 200 --rounds 5

Each command is a process of its own, as a user starts it. The pipelines are not analysed (`--no-validate`): that costs a start of Spark
and is not done where there is nothing to do. The rival is a process that imports the SDK. All take turns. Prints machine, load,
quartiles of wall and processor time, and how many requests each needs. Bars: plan 3 s, nothing to do 5 s, help 0.4 s.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from figures import quartiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.workspace_double import Workspace

BUNDLE = """
bundle:
  name: shop
include:
  - resources/*.yml
targets:
  dev:
    mode: development
    default: true
"""
PIPELINE = """
resources:
  pipelines:
    p{n}:
      name: p{n}
      catalog: main
      schema: s{n}
      serverless: true
      root_path: ${{workspace.file_path}}
      libraries:
        - glob:
            include: ../pipelines/p{n}/**
      configuration:
        landing: /Volumes/main/s{n}/landing
  jobs:
    j{n}:
      name: j{n}
      tasks:
        - task_key: update
          pipeline_task:
            pipeline_id: ${{resources.pipelines.p{n}.id}}
"""
SOURCE = "import dlt\n\n@dlt.table\ndef t{n}_{m}():\n    return spark.range({m})\n"


@dataclass
class Timed:
    """One command: its arguments, and what its rounds took."""

    name: str
    arguments: list[str]
    bar: float | None = None
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    requests: int = 0


def write_project(folder: Path, pipelines: int, files: int) -> None:
    (folder / "resources").mkdir()
    (folder / "databricks.yml").write_text(BUNDLE)
    for n in range(pipelines):
        (folder / f"resources/p{n}.yml").write_text(PIPELINE.format(n=n))
        (folder / f"pipelines/p{n}").mkdir(parents=True)
        for m in range(files // pipelines):
            (folder / f"pipelines/p{n}/t{m}.py").write_text(SOURCE.format(n=n, m=m))


def run(timed: Timed, folder: Path, workspace: Workspace, expected: int) -> None:
    before, begun, asked = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic(), len(workspace.requests)
    done = subprocess.run(timed.arguments, cwd=folder, env={**os.environ, **workspace.environment}, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != expected:
        raise SystemExit(f"{timed.name} ended with {done.returncode}, not {expected}:\n{done.stderr}")
    timed.wall.append(time.monotonic() - begun)
    timed.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    timed.requests = len(workspace.requests) - asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipelines", type=int, default=20)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    choice = parser.parse_args()
    lakelet = [sys.executable, "-m", "lakelet"]
    commands = {
        "sdk": Timed("importing the SDK", [sys.executable, "-c", "import databricks.sdk"]),
        "help": Timed("lakelet deploy --help", [*lakelet, "deploy", "--help"], 0.4),
        "plan": Timed("plan of all", [*lakelet, "deploy", "--plan", "--no-validate"], 3),
        "deploy": Timed("first deployment", [*lakelet, "deploy", "--no-validate"]),
        "again": Timed("nothing to do", [*lakelet, "deploy"], 5),
        "change": Timed("plan of one changed file", [*lakelet, "deploy", "--plan", "--no-validate"], 3),
        "one": Timed("deployment of one changed file", [*lakelet, "deploy", "--no-validate"]),
    }
    print(
        f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {choice.pipelines} pipelines, {choice.files} files"
    )
    for _ in range(choice.rounds):
        with Workspace() as workspace, tempfile.TemporaryDirectory() as work:
            folder = Path(work)
            write_project(folder, choice.pipelines, choice.files)
            for key in ("sdk", "help"):
                run(commands[key], folder, workspace, 0)
            run(commands["plan"], folder, workspace, 4)
            run(commands["deploy"], folder, workspace, 0)
            run(commands["again"], folder, workspace, 0)
            (folder / "pipelines/p0/t0.py").write_text("import dlt\n")
            run(commands["change"], folder, workspace, 4)
            run(commands["one"], folder, workspace, 0)
    rival = statistics.median(commands["sdk"].cpu)
    for timed in commands.values():
        bar = f", bar {timed.bar:g} s" if timed.bar else ""
        ratio = f", {statistics.median(timed.cpu) / rival:.2f} x the SDK's import by processor" if timed is not commands["sdk"] else ""
        print(f"{timed.name}: {quartiles(timed.wall)} s wall, {quartiles(timed.cpu)} s processor{bar}; {timed.requests} requests{ratio}")


if __name__ == "__main__":
    main()
