"""What rules and a quarantine cost: whole updates of one streaming table, with a real write, the variants in turns.

    .venv/bin/python benchmarks/rules.py --sources delta json --rows 2000000 --broken 3 --rounds 5

Variants: no rule, 10 rules, 50 rules (they count); the same conditions as a filter of the query that keeps every row, which is what
judging them costs without counting; 10 rules that drop the broken rows, and the same with `lakelet.quarantine`. `3 samples` and the like
are rules of which three rows are kept (`lakelet.sampleRows`), against `3 rules` without. A source is a Delta table
or JSON files, made once; every update starts with an empty storage in the same Spark session. The time is that of the flow, from its
event RUNNING to COMPLETED, and processor time of Python and Java beside it. Prints quartiles per variant and the ratios of the medians.
Bars: 10 rules 1.05, 50 rules 1.15 of none; quarantine 1.3 of the same rules without it, at a few percent of broken rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from figures import quartiles

COLUMNS = 20
RATIOS = (
    ("10 rules", "none", 1.05),
    ("50 rules", "none", 1.15),
    ("10 filters", "none", None),
    ("50 filters", "none", None),
    ("10 rules", "10 filters", None),
    ("50 rules", "50 filters", None),
    ("3 samples", "3 rules", None),
    ("10 samples", "10 rules", None),
    ("drop samples", "drop", None),
    ("quarantine", "drop", 1.3),
    ("clean quarantine", "clean drop", 1.05),
)
SCHEMA = ", ".join(["id BIGINT", *(f"s{n} STRING" for n in range(COLUMNS - 8)), *(f"n{n} BIGINT" for n in range(8))])
READ = {
    "delta": 'spark.readStream.table("bronze")',
    "json": 'spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema(SCHEMA).load(spark.conf.get("landing"))',
}


def pipeline(source: str, variant: str, broken: float) -> str:
    """The code of one variant; `broken`: percent of the rows that break a rule that drops."""
    number = variant.split()[0]
    count = 0 if variant == "none" else int(number) if number.isdigit() else 10
    share = 0 if variant.startswith("clean") else round(broken * 10)
    rules = [f"n{n % 8} >= 0 AND length(s{n % (COLUMNS - 8)}) > {n % 3}" for n in range(count)]
    action = "expect_all"
    if "drop" in variant or "quarantine" in variant:
        action, rules[0] = "expect_all_or_drop", f"id % 1000 >= {share}"
    properties = ', table_properties={"lakelet.quarantine": "true"}' if "quarantine" in variant else ""
    named = {} if "filters" in variant else {f"r{n}": rule for n, rule in enumerate(rules)}
    kept = " AND ".join(f"({rule})" for rule in rules) + " OR id >= 0"
    return "\n".join(
        [
            "import dlt",
            f"SCHEMA = {SCHEMA!r}",
            f"@dlt.table(name='target'{properties})",
            *([f"@dlt.{action}({named!r})"] if named else []),
            "def target():",
            f"    return {READ[source]}" + (f".where({kept!r})" if "filters" in variant else ""),
        ]
    )


def make(spark: Any, folder: Path, source: str, rows: int) -> Path:
    """The source's files; each JSON file has some 50,000 rows."""
    place = folder / source
    texts = [f"concat('value {n} ', (id * {n + 7}) % 1000003) AS s{n}" for n in range(COLUMNS - 8)]
    frame = spark.range(0, rows, 1, max(2, rows // 50_000)).selectExpr("id", *texts, *(f"(id * {n + 3}) % 977 AS n{n}" for n in range(8)))
    if source == "delta":
        frame.write.format("delta").save(str(place))
    else:
        frame.write.json(str(place))
        for file in [*place.glob("_*"), *place.glob(".*")]:
            file.unlink()
    return place


def timed(spark: Any, folder: Path, code: str, place: Path, source: str, rows: int, samples: bool) -> tuple[float, float]:
    """Seconds of the flow in an update from an empty storage, on the clock and of processors."""
    from lakelet import load

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "pipeline.py").write_text(code)
    tables = {"bronze": str(place)} if source == "delta" else {}
    parameters = {"landing": str(place), "lakelet.sampleRows": "3" if samples else "0"}
    found = load(folder / "pipeline.py", storage=folder / "storage", parameters=parameters, tables=tables, spark=spark)
    marks: dict[str, tuple[datetime, float]] = {}
    offered = 0

    def listen(event: Any) -> None:
        nonlocal offered
        if event.event_type == "flow_progress":
            marks.setdefault(event.body["status"], (event.timestamp, processor_seconds()))
            offered += event.body.get("metrics", {}).get("num_output_rows", 0) + event.body.get("data_quality", {}).get(
                "dropped_records", 0
            )

    result = found.run(listeners=[listen])
    assert result.state == "COMPLETED", result.errors
    assert offered == rows, (offered, rows)
    (began, before), (ended, after) = marks["RUNNING"], marks["COMPLETED"]
    return (ended - began).total_seconds(), after - before


def processor_seconds() -> float:
    me = psutil.Process()
    return sum(sum(p.cpu_times()[:2]) for p in [me, *me.children(recursive=True)])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sources", nargs="+", default=["delta", "json"], choices=list(READ))
    asked.add_argument("--rows", type=int, default=2_000_000)
    asked.add_argument("--broken", type=float, default=3.0, help="percent of the rows that are dropped")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument(
        "--variants",
        nargs="+",
        default=["none", "10 rules", "50 rules", "10 filters", "50 filters", "drop", "quarantine", "clean drop", "clean quarantine"],
    )
    given = asked.parse_args()
    from lakelet.spark.launch.session import start_session

    folder = Path(tempfile.mkdtemp(prefix="lakelet-expectations-"))
    spark = start_session(app_name="expectations", input_bytes=given.rows * 400)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.rows:,} rows, {given.broken:g} % broken")
    try:
        for source in given.sources:
            place = make(spark, folder, source, given.rows)
            clock: dict[str, list[float]] = {variant: [] for variant in given.variants}
            processor: dict[str, list[float]] = {variant: [] for variant in given.variants}
            for number in range(given.rounds + 1):  # the first one warms up
                for variant in given.variants:
                    code = pipeline(source, variant, given.broken)
                    seconds, used = timed(spark, folder / "run", code, place, source, given.rows, "samples" in variant)
                    if number:
                        clock[variant].append(seconds)
                        processor[variant].append(used)
            for variant in given.variants:
                print(f"{source:6} {variant:17} {quartiles(clock[variant])} s   processor {quartiles(processor[variant])} s")
            ratios = [r for r in RATIOS if r[0] in clock and r[1] in clock]
            ratios_found = {
                f"{more} / {less}": (
                    round(statistics.median(clock[more]) / statistics.median(clock[less]), 3),
                    round(statistics.median(processor[more]) / statistics.median(processor[less]), 3),
                    bar,
                )
                for more, less, bar in ratios
            }
            print(f"{source:6} ratios (clock, processor, bar): {json.dumps(ratios_found)}")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
