"""Materialized views after a change of their input: in part, as a whole, and as Lakelet chooses.

    .venv/bin/python benchmarks/views.py --rows 5000000 --rounds 3
    .venv/bin/python benchmarks/views.py --rows 50000000 --rounds 1 --changes recent-1%

One process, one warm session. A table of eight columns over 90 days, in the order of time, gets a change. Then the same query is brought up
to date in three views, one after the other in an order of chance: with the refresh policy full, incremental and auto. Views: `hourly`
(hour, region, kind: count, sum, mean, greatest), `sums` (without the mean), `daily`, `latest` (the newest row of each of 200,000 users).
Changes: 1 % and 0.01 % of the rows as new ones of the last hour (`recent`) or of all days (`spread`), and as updates of rows of all days
(`update`). The refresh of each view ends in its commit. Prints machine, load, seconds of each with quartiles, the technique that was taken,
and ratios: in part ÷ whole, auto ÷ the better of both. `--fixed`: a change of one row of a small table ÷ a whole refresh of one row.
Bars: in part ÷ whole of 50 million rows after 1 % recent 0.2 (`sums`, `hourly`), 0.3 (`latest`); auto 1.15; fixed part 1.5.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from figures import quartiles

QUERIES = {
    "hourly": "SELECT date_trunc('HOUR', at) AS hour, region, kind, count(*) AS n, sum(amount) AS total, avg(score) AS mean, "
    "max(score) AS top FROM facts GROUP BY 1, 2, 3",
    "sums": "SELECT date_trunc('HOUR', at) AS hour, region, kind, count(*) AS n, sum(amount) AS total, max(score) AS top FROM facts "
    "GROUP BY 1, 2, 3",
    "daily": "SELECT CAST(at AS DATE) AS day, region, kind, count(*) AS n, sum(amount) AS total, avg(score) AS mean FROM facts "
    "GROUP BY 1, 2, 3",
    "latest": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY user ORDER BY at DESC, id DESC) AS place FROM facts) "
    "WHERE place = 1",
}
POLICIES = {"full": "FULL", "part": "INCREMENTAL", "auto": "AUTO"}
CHANGES = ("recent-1%", "recent-0.01%", "spread-1%", "spread-0.01%", "update-0.01%", "update-1%")
COLUMNS = "id LONG, at TIMESTAMP, user LONG, region STRING, kind STRING, amount DECIMAL(12, 2), score DOUBLE, note STRING"
DAYS = 90
_START = "2026-01-01"


def rows(spark: Any, first: int, count: int, where: str) -> Any:
    """`count` rows with ids from `first`. `where`: `all` days in the order of time, the last hour (`recent`), or all days by chance."""
    seconds = {
        "all": f"(id - {first}) * {DAYS * 86400} / {count}",
        "recent": f"{(DAYS - 1) * 86400 + 82800} + pmod(hash(id), 3600)",
        "spread": f"pmod(hash(id, 1), {DAYS * 86400})",
    }[where]
    return spark.range(first, first + count).selectExpr(
        "id",
        f"timestamp'{_START}' + make_dt_interval(0, 0, 0, cast({seconds} AS decimal(18, 6))) AS at",
        f"cast(pmod(hash(id, 2), {500 if where == 'recent' else 200_000}) AS long) AS user",
        "concat('r', pmod(hash(id, 3), 10)) AS region",
        "concat('k', pmod(hash(id, 4), 10)) AS kind",
        "cast(pmod(hash(id, 5), 100000) / 100 AS decimal(12, 2)) AS amount",
        "pmod(hash(id, 6), 1000) / 7 AS score",
        "sha2(cast(id AS string), 256) AS note",
    )


class Pipeline:
    """A pipeline of one table, which this process writes to, and three views of each query."""

    def __init__(self, folder: Path, spark: Any, queries: list[str]) -> None:
        import lakelet

        (folder / "landing").mkdir(parents=True)
        source = f"read_files('{folder}/landing', format => 'json', schema => '{COLUMNS}')"
        text = f"CREATE OR REFRESH STREAMING TABLE facts AS SELECT * FROM STREAM {source};\n"
        for query in queries:
            for name, policy in POLICIES.items():
                text += f"CREATE OR REFRESH MATERIALIZED VIEW {query}_{name} REFRESH POLICY {policy} AS {QUERIES[query]};\n"
        (folder / "pipeline.sql").write_text(text)
        self._pipeline = lakelet.load(folder / "pipeline.sql", storage=folder / "storage", spark=spark)
        self.spark, self.count = spark, 0
        self._run("facts")
        self.table = next((folder / "storage" / "tables").glob("*/*/facts*"))

    def add(self, count: int, where: str, files: int = 1) -> None:
        added = rows(self.spark, self.count, count, where)
        added.repartitionByRange(files, "id").write.format("delta").mode("append").save(str(self.table))
        self.count += count

    def update(self, share: float) -> None:
        self.spark.sql(f"UPDATE delta.`{self.table}` SET score = score + 1 WHERE pmod(hash(id, 9), 10000) < {share * 10000:.0f}")

    def refresh(self, *views: str) -> dict[str, tuple[float, str]]:
        """By view: seconds from the start of its flow to the end, and the technique."""
        return self._run(*views)

    def _run(self, *names: str) -> dict[str, tuple[float, str]]:
        from lakelet.plan.selection import Request

        started: dict[str, float] = {}
        seconds: dict[str, float] = {}
        techniques: dict[str, str] = {}

        def listen(event: Any) -> None:
            flow, now = str(event.origin.flow_name or "").split(".")[-1], time.perf_counter()
            details = event.details.get(str(event.event_type.value), {})
            if event.event_type.value == "planning_information":
                found = details["technique_information"]
                found = json.loads(found) if isinstance(found, str) else found
                techniques[flow] = next(one["maintenance_type"] for one in found if one["is_chosen"]).removeprefix("MAINTENANCE_TYPE_")
            if event.event_type.value == "flow_progress":
                if details.get("status") == "STARTING":
                    started[flow] = now
                elif details.get("status") == "COMPLETED":
                    seconds[flow] = now - started[flow]

        result = self._pipeline.run(Request(select=names), listeners=[listen])
        if result.errors:
            raise SystemExit(str(result.errors[0]))
        return {name: (seconds[name], techniques.get(name, "")) for name in names if name in seconds}


def change(pipeline: Pipeline, asked: str, size: int) -> None:
    where, _, share = asked.partition("-")
    part = float(share.rstrip("%")) / 100
    if where == "update":
        pipeline.update(part)
    else:
        pipeline.add(max(1, int(size * part)), where)


def measure(choice: argparse.Namespace, spark: Any, folder: Path) -> None:
    pipeline = Pipeline(folder, spark, choice.views)
    pipeline.add(choice.rows, "all", files=max(1, choice.rows // 100_000))
    spark.sql(f"ALTER TABLE delta.`{pipeline.table}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    every = [f"{view}_{policy}" for view in choice.views for policy in POLICIES]
    for _ in range(2):  # the first computation, and one to be warm
        for name in every:
            pipeline.refresh(name)
        pipeline.add(10, "recent")
    taken: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    techniques: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for turn in range(choice.rounds):
        for asked in choice.changes:
            change(pipeline, asked, choice.rows)
            for view in choice.views:
                order = list(POLICIES)
                random.Random(f"{turn}{asked}{view}").shuffle(order)
                found = {}
                for policy in order:
                    ((found[policy], technique),) = pipeline.refresh(f"{view}_{policy}").values()
                    techniques[asked, view, policy].add(technique)
                taken[asked, view].append(found)
    worst = []
    for (asked, view), rounds in taken.items():
        parts = [one["part"] / one["full"] for one in rounds]
        chosen = [one["auto"] / min(one["part"], one["full"]) for one in rounds]
        worst.append(statistics.median(chosen))
        how = {policy: "/".join(sorted(techniques[asked, view, policy])) for policy in POLICIES}
        print(f"{asked:13} {view:7} {', '.join(f'{policy} {quartiles([one[policy] for one in rounds], 1)} s' for policy in POLICIES)}")
        print(f"{'':21} part ÷ full {quartiles(parts)} ({how['part']}); auto ÷ better {quartiles(chosen)} ({how['auto']})")
    print(f"auto ÷ better of both: median {statistics.median(worst):.2f}, greatest {max(worst):.2f} (bar 1.15)")


def fixed_part(choice: argparse.Namespace, spark: Any, folder: Path) -> None:
    one_row, small = Pipeline(folder / "one", spark, ["hourly"]), Pipeline(folder / "small", spark, ["hourly"])
    small.add(1_000, "all")
    for pipeline in (one_row, small):
        for policy in POLICIES:
            pipeline.refresh(f"hourly_{policy}")
    found = []
    for _ in range(choice.rounds):
        spark.sql(f"DELETE FROM delta.`{one_row.table}` WHERE id >= 0")
        for pipeline in (one_row, small):
            pipeline.add(1, "recent")
        ((whole, _),) = one_row.refresh("hourly_full").values()
        ((part, how),) = small.refresh("hourly_part").values()
        found.append((part, whole, part / whole))
    parts, wholes, ratios = ([one[at] for one in found] for at in range(3))
    print(f"fixed part: {how} {quartiles(parts)} s, whole of one row {quartiles(wholes)} s, ratio {quartiles(ratios)} (bar 1.5)")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=5_000_000)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--views", nargs="*", choices=list(QUERIES), default=list(QUERIES))
    asked.add_argument("--changes", nargs="*", choices=CHANGES, default=list(CHANGES))
    asked.add_argument("--fixed", action="store_true")
    choice = asked.parse_args()
    from lakelet.spark.launch.session import start_session

    with tempfile.TemporaryDirectory(prefix="views-") as folder:
        spark = start_session(app_name="views", input_bytes=choice.rows * 90)
        print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {choice.rows:,} rows, {choice.rounds} rounds")
        (fixed_part if choice.fixed else measure)(choice, spark, Path(folder))
        spark.stop()


if __name__ == "__main__":
    main()
