"""`lakelet sql "SELECT count(*) …"` against bare DuckDB processes that read the same table, each in new processes.

    .venv/bin/python benchmarks/looking.py --rows 1000000 --files 10 --rounds 9

All take turns in going first; wall time and processor time (user and system, also of threads) of whole processes count. One bare process
imports duckdb and deltalake and opens the table with delta-rs; the other imports duckdb alone and reads all Parquet files of the folder by
`read_parquet`, which is right only because no file of this table was ever replaced. A bare process fetches 20 rows of `SELECT *`, where the
command shows 20 and counts the others. The answers are compared first. `lakelet --version` shows what starting the command costs.
Prints machine, load, medians and ratios. Bars: 1.0 s wall, and 2 times the bare process over
delta-rs.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import quartiles

BARE = """
import os
import sys
import duckdb
from deltalake import DeltaTable
rows = DeltaTable(sys.argv[1]).to_pyarrow_dataset()
print(duckdb.sql(sys.argv[2]).fetchall(), flush=True)
os._exit(0)  # threads of the data set have aborted the interpreter's end
"""
PARQUET = """
import sys
import duckdb
rows = duckdb.read_parquet(sys.argv[1] + "/*.parquet")
print(duckdb.sql(sys.argv[2]).fetchall(), flush=True)
"""
OURS, DELTA_RS, FILES = "lakelet sql", "bare DuckDB over delta-rs", "bare DuckDB over Parquet files"
COUNT, EVERYTHING = "SELECT count(*) AS n FROM {}", "SELECT * FROM {}"
GROUPED = "SELECT word, count(*) AS n, max(id) AS last FROM {} WHERE id > 100 GROUP BY word ORDER BY n DESC, word LIMIT 5"


def stored(root: Path, rows: int, files: int) -> Path:
    """A storage with one table `events` of so many rows and files; returns the path of the table."""
    import pyarrow as pa
    from deltalake import write_deltalake

    from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

    path = root / "tables/main/default/events"
    path.mkdir(parents=True)
    for number in range(files):
        ids = range(number * rows // files, (number + 1) * rows // files)
        table = pa.table({"id": pa.array(ids, pa.int64()), "word": [f"word {i % 97}" for i in ids], "amount": [i / 8 for i in ids]})
        write_deltalake(str(path), table, mode="append")
    dataset = StoredDataset("main.default.events", "streaming_table", "tables/main/default/events")  # type: ignore[arg-type]
    Storage(root).save(StorageRegistry(datasets={dataset.name: dataset}))
    return path


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds of a process: wall, processor."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if "Spark" in done.stderr:
        raise SystemExit(f"not answered by DuckDB: {done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=9)
    choice = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "storage"
        path = stored(root, choice.rows, choice.files)
        lakelet = [sys.executable, "-m", "lakelet.cli.main"]
        for title, query, bare in (
            ("count(*)", COUNT, COUNT),
            ("grouped", GROUPED, GROUPED),
            ("SELECT *", EVERYTHING, f"{EVERYTHING} LIMIT 20"),
        ):
            commands = {
                OURS: [*lakelet, "sql", query.format("events"), "--storage", str(root)],
                DELTA_RS: [sys.executable, "-c", BARE, str(path), bare.format("rows")],
                FILES: [sys.executable, "-c", PARQUET, str(path), bare.format("rows")],
                "lakelet --version": [*lakelet, "--version"],
            }
            if query == bare:
                check(commands)
            compare(title, commands, choice.rounds)


def check(commands: dict[str, list[str]]) -> None:
    """Raise SystemExit unless all give the same rows."""
    rows = [tuple(row.values()) for row in json.loads(printed([*commands[OURS], "--json"]))]
    for rival in (DELTA_RS, FILES):
        if ast.literal_eval(printed(commands[rival])) != rows:
            raise SystemExit(f"another answer by {rival}: {printed(commands[rival])} instead of {rows}")


def printed(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def compare(title: str, commands: dict[str, list[str]], rounds: int) -> None:
    """Run the commands in turns and print the medians, and the ratios of the first to each rival."""
    for command in commands.values():
        timed(command)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(rounds):
        for name in sorted(commands, reverse=bool(turn % 2)):
            found[name].append(timed(commands[name]))
    for name, seconds in found.items():
        wall, cpu = (statistics.median(column) for column in zip(*seconds, strict=True))
        print(f"{title}: {name}: {wall:.2f} s wall, {cpu:.2f} s processor (median of {rounds}, fastest {min(seconds)[0]:.2f} s)")
    for rival in (DELTA_RS, FILES):
        ratios = [[ours[at] / bare[at] for ours, bare in zip(found[OURS], found[rival], strict=True)] for at in (0, 1)]
        bar = " (bar 2)" if rival == DELTA_RS else ""
        print(f"{title}: {OURS} / {rival}: {quartiles(ratios[0])} wall{bar}, {quartiles(ratios[1])} processor")


if __name__ == "__main__":
    main()
