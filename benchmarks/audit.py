"""System D, audit logs: queries on the table against the raw files, files per second, and what an update costs when there is more history.

    .venv/bin/python benchmarks/audit.py                      # all parts, some 40 minutes
    .venv/bin/python benchmarks/audit.py queries --days 40    # one part

queries   Ad-hoc questions, the same SQL text on all sides. These are the gz files by plain Spark and by DuckDB (`read_json`, `unnest`),
both with the columns given by hand. They are compared with the table `events` by Spark, by DuckDB in a running process (what `lakelet
sql` does), and by
          `lakelet sql` as a new process. A ratio compares one engine with itself, or says that the engine changes. The files of this
          part hold no record twice and no broken one, so that a rival needs no dedup to give the table's answers; all are compared.
          Before, the first update: files per second, and the same by a hand-written stream without dedup and without gold.
history   The same new files after few and after a hundred times as many old ones, each update in a new process, in turns. Prints how many
          identities the state of the dedup holds, and Spark's class of state store. `--history-records 200` makes a state ten times as
          large as the default.

Prints machine, load, medians with quartiles of wall and processor time, and ratios. Bars: 50 times faster; 1.15 times the cost.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import psutil
from figures import quartiles

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "audit"
LAKELET = [sys.executable, "-m", "lakelet.cli.main"]
UPDATES = "SELECT flow_name, duration_s FROM event_log.flow_metrics WHERE duration_s IS NOT NULL"
LATEST = f"{UPDATES} AND update_id = (SELECT update_id FROM event_log.updates ORDER BY started_at DESC LIMIT 1)"

RECORD = """
    eventID STRING, eventTime TIMESTAMP, eventName STRING, eventSource STRING, awsRegion STRING, sourceIPAddress STRING, userAgent STRING,
    userIdentity STRUCT<type: STRING, arn: STRING, userName: STRING, accountId: STRING,
                        sessionContext: STRUCT<sessionIssuer: STRUCT<userName: STRING>>>,
    recipientAccountId STRING, errorCode STRING, errorMessage STRING, readOnly BOOLEAN, requestParameters STRING, responseElements STRING
"""
COLUMNS = [
    *("r.eventID AS event_id", "r.eventTime AS event_time", "to_date(r.eventTime) AS event_date", "r.eventName AS event_name"),
    *("r.eventSource AS event_source", "r.awsRegion AS aws_region", "r.sourceIPAddress AS source_ip", "r.userAgent AS user_agent"),
    *("r.userIdentity.type AS user_type", "r.userIdentity.arn AS user_arn", "r.errorCode AS error_code"),
    *("r.errorMessage AS error_message", "r.readOnly AS read_only", "r.requestParameters AS request_parameters"),
    "r.responseElements AS response_elements",
]
QUESTIONS = {
    "calls per service": "SELECT event_source, count(*) AS calls FROM events GROUP BY event_source ORDER BY calls DESC",
    "refused, per person": """SELECT user_arn, count(*) AS refused, max(event_time) AS last_at FROM events
        WHERE error_code LIKE '%Denied%' GROUP BY user_arn ORDER BY refused DESC, user_arn LIMIT 10""",
    "one day": """SELECT event_name, count(*) AS calls FROM events WHERE event_date = DATE '2026-03-03'
        GROUP BY event_name ORDER BY calls DESC, event_name LIMIT 10""",
    "one address": """SELECT event_time, event_name, user_arn FROM events WHERE source_ip = '203.0.113.7' AND event_name = 'ConsoleLogin'
        ORDER BY event_time, event_name, user_arn LIMIT 50""",
    "who stopped logging": """SELECT event_time, event_name, user_arn, source_ip FROM events
        WHERE event_name IN ('StopLogging', 'DeleteTrail') ORDER BY event_time, event_name, user_arn, source_ip LIMIT 50""",
}
RATIOS = {
    "Spark alone": ("raw files by Spark", "table by Spark"),
    "DuckDB alone": ("raw files by DuckDB", "table by DuckDB"),
    "from Spark to DuckDB": ("raw files by Spark", "table by DuckDB"),
    "from Spark to a new `lakelet sql`": ("raw files by Spark", "lakelet sql, new process"),
}
"""What is compared: the rival, and our side. Where the engine changes, the ratio says what a user gains, not what the table does."""
STATE = """
import sys
from lakelet.spark.launch.session import start_session
spark = start_session(app_name="state", input_bytes=1 << 30)
spark.streams.active  # starts the coordinator of state stores, without which they cannot be read
print("identities", spark.read.format("statestore").load(sys.argv[1]).count())
"""
STORE = "spark.sql.streaming.stateStore.providerClass"


@dataclass(frozen=True)
class Spent:
    """Seconds of the wall clock and of processors."""

    wall: float
    processor: float


def generator() -> Any:
    """The module examples/audit/generate.py."""
    spec = importlib.util.spec_from_file_location("audit_generate", EXAMPLE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def land(folder: Path, files: Iterable[tuple[str, bytes]]) -> tuple[int, int]:
    """Write files below a folder; how many, and how many bytes."""
    count = size = 0
    for name, content in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        count, size = count + 1, size + len(content)
    return count, size


def project(folder: Path) -> Path:
    """A copy of the example with an empty landing folder."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("landing", ".lakelet", "__pycache__"))
    (folder / "landing").mkdir()
    return folder


def in_process(command: list[str], folder: Path) -> Spent:
    """What a new process costs with all that it starts; nobody waits for its Java, so the times of each are polled meanwhile."""
    times: dict[int, float] = {}
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = psutil.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        while process.poll() is None:
            note_times(process, times)
            time.sleep(0.05)
        wall = time.perf_counter() - started
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{command} ended with {process.returncode}: {output.read()[-2000:]}")
    return Spent(wall, sum(times.values()))


def note_times(process: psutil.Process, times: dict[int, float]) -> None:
    """Note the processor seconds of a process and of all below it, by id."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times[each.pid] = sum(each.cpu_times()[:2])


def spent(action: Callable[[], object]) -> Spent:
    """What an action in this process costs, its Java process included."""
    me = psutil.Process()
    family = [me, *(p for p in me.children(recursive=True) if "java" in p.name())]

    def used() -> float:
        return sum(sum(p.cpu_times()[:2]) for p in family)

    before, started = used(), time.perf_counter()
    action()
    return Spent(time.perf_counter() - started, used() - before)


def show(name: str, rounds: list[Spent]) -> None:
    print(f"  {name}: {quartiles([r.wall for r in rounds])} s wall, {quartiles([r.processor for r in rounds])} s processor", flush=True)


# --------------------------------------------------------------------------------------------------------------- queries


def queries(work: Path, choice: argparse.Namespace) -> None:
    """Part one: the first update, then every question on all sides in turns."""
    ours = project(work / "queries")
    made = generator()
    made.REPEATED = made.REJECTED = 0.0
    count, size = land(ours / "landing", made.files(choice.days, choice.files_per_day, choice.records, 1))
    print(f"{count} files, {size / 1e6:.0f} MB gz, {count * choice.records:,} records in {choice.days} days", flush=True)
    update = in_process([*LAKELET, "run"], ours)
    tell_load("first update, all tables, new process", update, count)
    from lakelet.spark.launch.session import start_session

    spark = start_session(app_name="audit", input_bytes=1 << 30)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    by_hand = spent(lambda: hand_written(spark, ours / "landing", work / "by-hand"))
    tell_load("hand-written stream into one table, without dedup, running session", by_hand, count)
    ratios: dict[str, list[list[float]]] = {name: [] for name in RATIOS}
    for name, question in QUESTIONS.items():
        print(f"{name}:")
        found = asked(spark, ours, question, choice.rounds)
        for what, (rival, side) in RATIOS.items():
            ratios[what].append([r.wall / s.wall for r, s in zip(found[rival], found[side], strict=True)])
            print(f"  {rival} / {side}: {quartiles(ratios[what][-1], 1)} ×", flush=True)
    print("all questions, ratio of wall times: geometric mean of the medians (least and greatest median); quartiles of all rounds")
    for what, (rival, side) in RATIOS.items():
        medians = [statistics.median(rounds) for rounds in ratios[what]]
        mean, every = statistics.geometric_mean(medians), [ratio for rounds in ratios[what] for ratio in rounds]
        print(f"  {what}: {rival} / {side}: {mean:.1f} × ({min(medians):.1f} to {max(medians):.1f}); {quartiles(every, 1)}")
    print("  bar: 50, from Spark on raw files to DuckDB on the table")


def tell_load(what: str, load: Spent, files: int) -> None:
    print(f"{what}: {load.wall:.1f} s wall, {load.processor:.1f} s processor, {files / load.wall:.0f} files/s", flush=True)


def hand_written(spark: Any, landing: Path, out: Path) -> None:
    """The job of the publication in plain Spark: explode, flatten, partition by date; each file once by a checkpoint."""
    query = (
        exploded(
            spark.readStream.schema(f"Records ARRAY<STRUCT<{_as_struct(RECORD)}>>").option("recursiveFileLookup", "true").json(str(landing))
        )
        .writeStream.format("delta")
        .partitionBy("event_date")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "table"))
    )
    query.awaitTermination()


def exploded(files: Any) -> Any:
    return files.selectExpr("explode(Records) AS r").selectExpr(*COLUMNS)


def _as_struct(columns: str) -> str:
    """A list of columns as the fields of a struct type."""
    depth, fields, held = 0, [], ""
    for sign in columns:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            fields.append(held)
            held = ""
        else:
            held += sign
    return ", ".join(": ".join(field.split(None, 1)) for field in (*fields, held))


def asked(spark: Any, ours: Path, question: str, rounds: int) -> dict[str, list[Spent]]:
    """Ask one question on all sides in turns, once they have given the same answer; what each round of each side cost."""
    from lakelet.inspection.inspector import duck_table, run_sql

    storage = ours / ".lakelet"
    schema = f"Records ARRAY<STRUCT<{_as_struct(RECORD)}>>"
    raw = exploded(spark.read.schema(schema).option("recursiveFileLookup", "true").json(str(ours / "landing")))
    table = spark.read.format("delta").load(str(storage / "tables/main/audit/events"))
    duck = duck_on_files(ours / "landing")

    def by_spark(frame: Any) -> Any:
        frame.createOrReplaceTempView("events")
        return spark.sql(question)

    def refuse(text: str) -> None:
        raise SystemExit(f"not answered by DuckDB: {text}")

    new_process = [*LAKELET, "sql", question]
    answers = {
        "table by DuckDB": duck_table(storage, question),
        "table by Spark": by_spark(table).toArrow(),
        "raw files by Spark": by_spark(raw).toArrow(),
        "raw files by DuckDB": duck.sql(question).to_arrow_table(),
    }
    expected = comparable(answers["table by DuckDB"].to_pylist())
    for side, answer in answers.items():
        if comparable(answer.to_pylist()) != expected:
            raise SystemExit(f"another answer by {side}: {answer.to_pylist()[:5]} instead of {expected[:5]}")
    printed = subprocess.run([*new_process, "--json"], cwd=ours, capture_output=True, text=True, check=True).stdout
    if json.loads(printed) != list(run_sql(storage, question, note=refuse).rows):
        raise SystemExit(f"another answer by {new_process}: {printed[:500]}")
    print(f"  {len(expected)} rows, the same on all sides")
    sides: dict[str, Callable[[], Spent]] = {
        "raw files by Spark": lambda: spent(lambda: by_spark(raw).collect()),
        "raw files by DuckDB": lambda: spent(lambda: duck.sql(question).fetchall()),
        "table by Spark": lambda: spent(lambda: by_spark(table).collect()),
        "table by DuckDB": lambda: spent(lambda: list(run_sql(storage, question, note=refuse).rows)),
        "lakelet sql, new process": lambda: in_process(new_process, ours),
    }
    for ask in sides.values():
        ask()
    found: dict[str, list[Spent]] = {side: [] for side in sides}
    for turn in range(rounds):
        for side in sorted(sides, reverse=bool(turn % 2)):
            found[side].append(sides[side]())
    for side in sides:
        show(side, found[side])
    return found


def duck_on_files(landing: Path) -> Any:
    """A connection of DuckDB in which `events` reads the gz files, with the same columns."""
    record = RECORD.replace("STRUCT<", "STRUCT(").replace(">", ")").replace(":", "").replace("STRING", "VARCHAR")
    columns = ", ".join(COLUMNS).replace("to_date(r.eventTime)", "CAST(r.eventTime AS DATE)")
    files = f"read_json('{landing}/**/*.json.gz', columns = {{Records: 'STRUCT({record})[]'}})"
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    duck.execute(f"CREATE VIEW events AS SELECT {columns} FROM (SELECT unnest(Records) AS r FROM {files})")
    return duck


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as sorted texts: times in UTC, whether or not they say so."""

    def text(value: Any) -> str:
        return str(value.astimezone(timezone.utc).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value)

    return sorted(str([text(value) for value in row.values()]) for row in rows)


# --------------------------------------------------------------------------------------------------------------- history


def history(work: Path, choice: argparse.Namespace) -> None:
    """Part two: the same new files after few and after many old ones."""
    made = generator()
    days = {"few": choice.few // choice.new, "many": choice.few // choice.new * choice.times}
    folders = {}
    for name, of in days.items():
        folders[name] = project(work / name)
        count, size = land(folders[name] / "landing", made.files(of, choice.new, choice.history_records, 2))
        loaded = in_process([*LAKELET, "run"], folders[name])
        print(
            f"{name}: {count} old files, {size / 1e6:.0f} MB, {of} days, loaded in {loaded.wall:.0f} s, {count / loaded.wall:.0f} files/s",
            flush=True,
        )
        tell_state(name, folders[name])
    for what, arguments in (("whole update", []), ("without gold", ["--select", "audit_records,events,records_apart"])):
        found: dict[str, list[Spent]] = {name: [] for name in folders}
        flows: dict[str, dict[str, list[float]]] = {name: {} for name in folders}
        for turn in range(choice.rounds + 1):
            day = 2 * max(days.values()) + turn + (1000 if arguments else 0)
            for name in sorted(folders, reverse=bool(turn % 2)):
                land(folders[name] / "landing", (made.file(3, day, n, choice.new, choice.history_records) for n in range(choice.new)))
                one = in_process([*LAKELET, "run", *arguments], folders[name])
                if turn:
                    found[name].append(one)
                    for flow, seconds in durations(folders[name]):
                        flows[name].setdefault(flow, []).append(seconds)
        compare(what, found, flows, choice.new)
    for name, folder in folders.items():
        tell_state(f"{name}, in the end", folder)


def tell_state(name: str, folder: Path) -> None:
    """How many identities the dedup holds as Spark's state, by the checkpoint, and in which class of state store."""
    from lakelet.inspection.inspector import run_sql

    [checkpoint] = {state.parent for state in (folder / ".lakelet" / "checkpoints").glob("**/state") if "events" in str(state)}
    read = subprocess.run([sys.executable, "-c", STATE, str(checkpoint)], capture_output=True, text=True)
    if read.returncode:
        raise SystemExit(read.stderr[-2000:])
    identities = int(read.stdout.split("identities")[1])
    events = next(iter(run_sql(folder / ".lakelet", "SELECT count(*) AS n FROM events").rows))["n"]
    if identities != events:
        raise SystemExit(f"{identities} identities of {events} events")
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    store = json.loads(newest.read_text().splitlines()[1])["conf"][STORE].rsplit(".", 1)[-1]
    size = sum(path.stat().st_size for path in (checkpoint / "state").glob("**/*") if path.is_file())
    print(f"{name}: {identities:,} identities in the state of events, by {store}, {size / 1e6:.1f} MB in the checkpoint", flush=True)


def durations(folder: Path) -> Iterable[tuple[str, float]]:
    """Seconds of each flow of the latest update."""
    from lakelet.inspection.inspector import run_sql

    return [(row["flow_name"], row["duration_s"]) for row in run_sql(folder / ".lakelet", LATEST).rows]


def compare(what: str, found: dict[str, list[Spent]], flows: dict[str, dict[str, list[float]]], new: int) -> None:
    print(f"{what}, {new} new files, new process:")
    for name, rounds in found.items():
        show(name, rounds)
    for unit in ("wall", "processor"):
        ratios = [getattr(m, unit) / getattr(f, unit) for f, m in zip(found["few"], found["many"], strict=True)]
        print(f"  many / few, {unit}: {quartiles(ratios)} × (bar 1.15)")
    for flow, seconds in flows["few"].items():
        print(f"    {flow}: {statistics.median(seconds):.2f} s, {statistics.median(flows['many'].get(flow, [0.0])):.2f} s")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["all", "queries", "history"], default="all")
    parser.add_argument("--days", type=int, default=40)
    parser.add_argument("--files-per-day", type=int, default=100)
    parser.add_argument("--records", type=int, default=200, help="records of a file, for the queries")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--few", type=int, default=500, help="old files of the small history")
    parser.add_argument("--times", type=int, default=100, help="how much more the large history has")
    parser.add_argument("--new", type=int, default=50, help="new files of an update, which are a day's files")
    parser.add_argument("--history-records", type=int, default=20, help="records of a file, for the histories")
    choice = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}", flush=True)
    work = Path(tempfile.mkdtemp(prefix="audit-"))
    try:
        for name, part in (("queries", queries), ("history", history)):
            if choice.part in ("all", name):
                part(work, choice)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
