"""Beginning an environment over a storage of 1,000 tables, against validating the same pipeline.

    .venv/bin/python benchmarks/environments.py --tables 1000 --rounds 3

The pipeline has one table and views of it, as many as asked for, in chains of ten. The storage is filled without Spark: a Delta table of a
few commits for each. A round is `lakelet validate`, then `lakelet run --env NAME --select` of one view, each in a process of its own, from
its start to its end, and the seconds of `begin_environment` alone. Prints machine, load, quartiles and the ratio. Bar: a run in a new
environment takes less than twice as long as `lakelet validate`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from figures import quartiles

from lakelet.config.update_config import load_config
from lakelet.language.model import Kind
from lakelet.storage.environments import begin_environment, environment_root
from lakelet.storage.root import LastUpdate, Storage, StorageRegistry, StoredDataset

CHAIN = 10


def write_project(folder: Path, tables: int) -> None:
    """A project whose last update is recorded as complete."""
    lines = ["CREATE MATERIALIZED VIEW t0 AS SELECT id, id % 7 AS kind FROM range(100);"]
    lines += [
        f"CREATE MATERIALIZED VIEW t{n} AS SELECT id, kind FROM t{n - 1 if n % CHAIN else 0} WHERE id > {n};" for n in range(1, tables)
    ]
    (folder / "pipeline.sql").write_text("\n".join(lines))
    (folder / "pyproject.toml").write_text("[tool.lakelet]\nsources = ['pipeline.sql']\n")
    config = load_config([str(folder)], cwd=folder)
    storage = Storage(config.storage)
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "kind": pa.array([n % 7 for n in range(100)], pa.int64())})
    write_deltalake(str(folder / "made"), rows)
    for _ in range(4):
        write_deltalake(str(folder / "made"), rows, mode="overwrite")
    datasets = {}
    for n in range(tables):
        name = config.namespace.resolve(f"t{n}")
        path = f"tables/{name.catalog}/{name.schema}/t{n}"
        shutil.copytree(folder / "made", Path(str(storage.root / path)))
        datasets[name.key] = StoredDataset(str(name), Kind.MATERIALIZED_VIEW, path)
    registry = StorageRegistry(namespace=config.namespace, datasets=datasets, last_update=LastUpdate("0" * 32, "2026-01-01T00:00:00", True))
    storage.save(registry)


def timed(folder: Path, words: Sequence[str]) -> float:
    """The seconds of a command in a process of its own."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "lakelet", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"lakelet {' '.join(words)}\n{done.stderr[-3000:]}")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lakelet-environments-"))
    try:
        write_project(folder, given.tables)
        main_storage = load_config([str(folder)], cwd=folder).storage
        print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {given.tables:,} tables")
        validated, ran, begun = list[float](), list[float](), list[float]()
        for number in range(given.rounds):
            validated.append(timed(folder, ["validate"]))
            ran.append(timed(folder, ["run", "--env", f"e{number}", "--select", f"t{given.tables - 1}"]))
            start = time.perf_counter()
            begin_environment(main_storage, environment_root(main_storage, f"b{number}"))
            begun.append(time.perf_counter() - start)
        for name, found in (("validate", validated), ("run in a new environment", ran), ("begin_environment alone", begun)):
            print(f"{name:26} {quartiles(found)} s")
        ratios = [a / b for a, b in zip(ran, validated, strict=True)]
        print(f"{'ratio':26} {quartiles(ratios)}; bar 2")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
