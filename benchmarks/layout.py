"""Files and bytes that typical queries read, by how a table is laid out: the tables that examples/audit, web and factory ship, and others.

    .venv/bin/python benchmarks/layout.py --days 6 --records 36000

Each layout is a copy of the example, with its generator's files. The layout that ships is read from the pipeline's code; for the others
that call of the code gets other arguments. `lakelet maintain` runs once, and Spark's own scan counts what each query reads. Files are kept
small (`delta.targetFileSize`), so that a small table has as many as a large one. Audit events come in batches of three files, some 48 in
all; web events in two deliveries, of which the second has late ones; factory events all at once.
Prints a table per example, a line per query: files read of all files, megabytes read of all. All layouts must give the same rows.
"""

from __future__ import annotations

import argparse
import ast
import os
import platform
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
WORDS = ("partition_cols", "cluster_by", "table_properties")
ZORDER = "pipelines.autoOptimize.zOrderCols"
TARGET = {"delta.targetFileSize": "64kb"}
FILES_PER_DAY = 24
ENVIRONMENT = {**os.environ, "LAKELET_SECRET_WEB_PII_KEY": "only for the benchmark: 32 bytes"}
Layout = dict[str, Any]
Land = Callable[[Path, argparse.Namespace], None]


@dataclass(frozen=True)
class System:
    """One example. `code`: the file that declares `table`; `updates`: what lands before each update, and the arguments of the command.

    `layouts`: by name, what the code says instead of the layout that ships, which is None. `rows`: conditions by question; `{day}`,
    `{user}` and `{event}` are those of one event, whose id is in the middle of all ids.
    """

    table: str
    code: str
    updates: Sequence[tuple[Land, Sequence[str]]]
    layouts: dict[str, Layout | None]
    shown: str
    rows: dict[str, str]


def lands(made: str, *arguments: Any) -> Land:
    """Put a delivery of the web example's generator into the landing folder."""

    def land(folder: Path, choice: argparse.Namespace) -> None:
        runpy.run_path(str(folder / "generate.py"))[made](*arguments, folder / "landing", count=choice.web_rows)

    return land


def audit_files(folder: Path, choice: argparse.Namespace) -> None:
    generator = runpy.run_path(str(folder / "generate.py"))
    for name, content in generator["files"](choice.days, FILES_PER_DAY, choice.records // (choice.days * FILES_PER_DAY), 1):
        generator["write"](folder / "landing" / name, content)


def factory_files(folder: Path, choice: argparse.Namespace) -> None:
    generator = runpy.run_path(str(folder / "generate.py"))
    for drop in range(choice.drops):
        for name, text in generator["files_of_drop"](1, 20, drop):
            generator["write"](folder / "landing" / name, text)


SYSTEMS = {
    "audit": System(
        table="events",
        code="pipelines/silver.py",
        updates=[(audit_files, ["--select", "audit_records,events", "--param", "files_per_batch=3"])],
        layouts={
            "as it came": {},
            "partitioned by day": {"partition_cols": ["event_date"]},
            "as shipped": None,
            "partitioned by day, ZORDER by user and id": {
                "partition_cols": ["event_date"],
                "table_properties": {ZORDER: "user_arn, event_id"},
            },
            "clustered by day and user": {"cluster_by": ["event_date", "user_arn"]},
        },
        shown="event_id",
        rows={
            "one day": "event_date = '{day}'",
            "one user on one day": "event_date = '{day}' AND user_arn = '{user}'",
            "one user, all days": "user_arn = '{user}'",
            "one service, one week": ("event_date BETWEEN '{day}' AND date_add('{day}', 6) AND event_source = 'iam.amazonaws.com'"),
            "one event by its id": "event_id = '{event}'",
        },
    ),
    "web": System(
        table="web_events",
        code="pipelines/web_events.py",
        updates=[(lands("write", 1), ["--select", "web_events"]), (lands("write", 2), ["--select", "web_events"])],
        layouts={"as it came": {}, "as shipped": None},
        shown="event_id",
        rows={
            "one day, some of whose events came late": "event_date = '2026-03-02'",
            "one day, whose events came in one delivery": "event_date = '2026-03-05'",
            "purchases of all days": "type = 'purchase'",
        },
    ),
    "factory": System(
        table="movements_raw",
        code="pipelines/movements.py",
        updates=[(factory_files, ["--select", "movements_raw"])],
        layouts={"as it came": {}, "as shipped": None},
        shown="factory",
        rows={"lines for `movements`": "is_quarantined = false", "lines for `broken_lines`": "is_quarantined"},
    ),
}


def declaration(tree: ast.Module) -> ast.Call:
    """The one call in the code of a pipeline that lays a table out."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and any(k.arg == "partition_cols" for k in n.keywords)]
    if len(calls) != 1:
        raise SystemExit(f"{len(calls)} calls with partition_cols")
    return calls[0]


def shipped(code: str) -> Layout:
    """The layout that the code declares."""
    return {word.arg: ast.literal_eval(word.value) for word in declaration(ast.parse(code)).keywords if word.arg in WORDS}


def laid_out(code: str, layout: Layout | None) -> str:
    """The code with another layout (None: its own) and small files. Other properties of the table stay."""
    tree, ships = ast.parse(code), shipped(code)
    others = {name: value for name, value in ships.get("table_properties", {}).items() if name != ZORDER}
    words = ships if layout is None else {"table_properties": others, **layout}
    words = {**words, "table_properties": {**words.get("table_properties", {}), **TARGET}}
    call = declaration(tree)
    call.keywords = [word for word in call.keywords if word.arg not in WORDS]
    call.keywords += [ast.keyword(name, ast.parse(repr(value), mode="eval").body) for name, value in words.items()]
    return ast.unparse(ast.fix_missing_locations(tree))


def made(work: Path, example: str, system: System, choice: argparse.Namespace) -> dict[str, str]:
    """Run the copies of an example; the path of each one's table by layout."""
    paths = {}
    for number, (name, layout) in enumerate(system.layouts.items()):
        folder = work / f"{example}-{number}"
        shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns("landing", ".lakelet", "__pycache__", "tests"))
        code = folder / system.code
        code.write_text(laid_out(code.read_text(), layout))
        for land, arguments in system.updates:
            land(folder, choice)
            lakelet(folder, "run", "--param", "landing=landing", *arguments)
        lakelet(folder, "maintain", system.table)
        [path] = (folder / ".lakelet" / "tables").glob(f"*/*/{system.table}")
        paths[name] = str(path)
    return paths


def lakelet(folder: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "lakelet", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def measured(spark: Any, example: str, system: System, paths: dict[str, str]) -> Iterator[str]:
    """The lines of an example's table."""
    ships = shipped((EXAMPLES / example / system.code).read_text())
    sorted_by = ships.get("table_properties", {}).get(ZORDER)
    words = f"partitioned by {', '.join(ships['partition_cols'])}" + (f", ZORDER by {sorted_by}" if sorted_by else "")
    yield f"\n{example}, table {system.table}; it ships {words}"
    yield f"| files and bytes read | rows | {' | '.join(paths)} |"
    yield "|---" * (2 + len(paths)) + "|"
    values = {}
    if "{user}" in str(system.rows):
        events = spark.read.format("delta").load(paths["as shipped"]).where("user_arn IS NOT NULL")
        found = events.select("event_id", "event_date", "user_arn").orderBy("event_id").collect()
        asked = found[len(found) // 2]  # the least and the greatest id would be at the edge of one file
        values = {"day": asked.event_date, "user": asked.user_arn, "event": asked.event_id}
    every = {name: scanned(spark, path, "true", system.shown) for name, path in paths.items()}
    for question, condition in system.rows.items():
        found = {name: scanned(spark, path, condition.format(**values), system.shown) for name, path in paths.items()}
        if len({rows for rows, _, _ in found.values()}) != 1 or not next(iter(found.values()))[0]:
            raise SystemExit(f"{question}: the layouts give {[rows for rows, _, _ in found.values()]} rows")
        cells = [f"{files} of {every[name][1]}, {megabytes(size)} MB" for name, (_, files, size) in found.items()]
        yield f"| {question} | {found['as shipped'][0]:,} | {' | '.join(cells)} |"
    cells = [f"{files}, {megabytes(size)} MB" for _, files, size in every.values()]
    yield f"| all of it | {every['as shipped'][0]:,} | {' | '.join(cells)} |"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.2f}"


def scanned(spark: Any, path: str, condition: str, shown: str) -> tuple[int, int, int]:
    """Rows that pass the condition; files that Spark's scan read for them, and their bytes."""
    frame = spark.read.format("delta").load(path).where(condition).select(shown)
    rows = len(frame.collect())
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(i).metrics() for i in range(leaves.size())]
    files, size = (sum(int(m.apply(name).value()) for m in metrics) for name in ("numFiles", "filesSize"))
    return rows, files, size


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("systems", nargs="*", help=f"of {', '.join(SYSTEMS)} (default: all)")
    asked.add_argument("--days", type=int, default=6, help="of audit events")
    asked.add_argument("--records", type=int, default=36_000, help="audit events in all")
    asked.add_argument("--web-rows", type=int, default=2_000, help="web events of each of the 14 files")
    asked.add_argument("--drops", type=int, default=40, help="quarters of an hour of factory events")
    choice = asked.parse_args()
    if unknown := set(choice.systems) - set(SYSTEMS):
        asked.error(f"no such example: {', '.join(unknown)}")
    print(f"{platform.machine()}, {os.cpu_count()} cores; {choice.days} days with {choice.records:,} records", flush=True)
    from lakelet.spark.launch.session import start_session

    with tempfile.TemporaryDirectory(prefix="layout-bench-") as work:
        chosen = {name: SYSTEMS[name] for name in choice.systems or SYSTEMS}
        paths = {name: made(Path(work), name, system, choice) for name, system in chosen.items()}
        spark = start_session(app_name="layout-bench", input_bytes=1 << 30)
        spark.sparkContext.setLogLevel("ERROR")
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # the plan that ran is then the plan that is asked
        for name, system in chosen.items():
            for line in measured(spark, name, system, paths[name]):
                print(line, flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
