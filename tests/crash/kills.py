"""One pipeline killed at random moments, and its twin that nobody disturbs: what both hold must be equal (test_any_moment.py).

Files arrive, and some updates over them are killed, each in a process of its own. At checkpoints an update runs to its end, and everything
is compared: rows, what sinks got, and what the event log counts since each flow's last reset. The twin reads all files in one update,
into an empty storage. All chances come from one seed; moments are fractions of the time that a whole update takes.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.crash.conftest import Victims, check_log, metrics_events
from tests.crash.victim_processes import end
from tests.spark.conftest import Project

PIPELINE = """
import dlt
from pyspark.sql import functions as F

OUT = spark.conf.get("landing") + "/../out"
RULES = {"amount_known": "amount IS NOT NULL", "kind_known": "kind IN ('x', 'y')"}
INVALID = "NOT (amount IS NOT NULL AND coalesce(kind IN ('x', 'y'), false))"

def landed(folder, **options):
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.option("cloudFiles.maxFilesPerTrigger", "1").options(**options).load(f"{spark.conf.get('landing')}/{folder}")

@dlt.table
@dlt.expect_or_drop("id_known", "id IS NOT NULL")
def bronze():
    return landed("orders", **{"cloudFiles.schemaHints": "amount BIGINT"})

@dlt.view
@dlt.expect("positive", "amount > 0")
def judged():
    return dlt.read_stream("bronze").withColumn("bad", F.expr(INVALID))

@dlt.table
@dlt.expect_all_or_drop(RULES)
def valid():
    return dlt.read_stream("judged").drop("bad")

@dlt.table(partition_cols=["bad"])
def invalid():
    return dlt.read_stream("judged").where("bad")

@dlt.table
@dlt.expect("large", "total > 100")
def totals():
    return dlt.read("valid").groupBy("kind").agg(F.sum("amount").alias("total"), F.count("*").alias("rows"))

@dlt.table
def feed():
    return landed("changes")

@dlt.view
def news():
    return spark.readStream.option("maxFilesPerTrigger", "1").table("feed")

for name, kind in (("people", 1), ("history", 2)):
    dlt.create_streaming_table(name, expect_all={f"named_{name}": "name IS NOT NULL"})
    dlt.apply_changes(target=name, source="news", keys=["id"], sequence_by="seq", stored_as_scd_type=kind,
                      apply_as_deletes="gone", column_list=["id", "name"])

dlt.create_sink("delta_sink", "delta", {"path": OUT + "/delta"})
dlt.create_sink("file_sink", "json", {"path": OUT + "/files"})

@dlt.foreach_batch_sink
def handler(df, batch_id):
    df.write.mode("overwrite").parquet(f"{OUT}/handled/{batch_id}")

for target in ("delta_sink", "file_sink", "handler"):
    @dlt.append_flow(target=target, name="to_" + target)
    def send():
        return dlt.read_stream("feed").select("id", "seq")
"""
TABLES = ("bronze", "valid", "invalid", "totals", "feed", "people", "history")
RESETS = (("valid",), ("people",), ("history",), ("invalid", "totals"), ("people", "history", "valid"), ("bronze", "valid", "invalid"))
_COUNTS = ("num_output_rows", "num_upserted_rows", "num_deleted_rows")


class Twins:
    """The pipeline that is killed, the files that arrived so far, and the chances of it all."""

    def __init__(self, folder: Path, spark: Any, seed: int) -> None:
        self.folder, self.spark, self.chance = folder, spark, random.Random(seed)
        self.killed = Project(folder / "killed", spark).write(PIPELINE)
        self._arrived: list[tuple[str, str, Sequence[Mapping[str, Any]]]] = []
        self._seq = 0

    def arrive(self) -> None:
        """Land a file of orders and one of changes; now and then a record brings a new column."""
        self._arrive("orders", [self._order() for _ in range(self.chance.randint(1, 30))])
        self._arrive("changes", [self._change() for _ in range(self.chance.randint(1, 20))])

    def _arrive(self, folder: str, records: Sequence[Mapping[str, Any]]) -> None:
        name = f"{len(self._arrived):05d}.json"
        self._arrived.append((folder, name, records))
        self.killed.arrive(name, *records, folder=folder)

    def _order(self) -> Mapping[str, Any]:
        known, chance = len(self._arrived), self.chance
        more = {f"extra{known // 10}": known} if chance.random() < 0.02 else {}
        kind, amount = chance.choice(["x", "y", "z", None]), chance.choice([None, -1, 5, 70, "a lot"])
        return {"id": chance.choice([None, *range(1, 9)]), "kind": kind, "amount": amount, **more}

    def _change(self) -> Mapping[str, Any]:
        self._seq += 1
        late, chance = self._seq - self.chance.choice([0, 0, 0, 7]), self.chance
        name = chance.choice([None, "ann", "bob", "cy"])
        return {"id": chance.randint(1, 12), "seq": late * 1000 + self._seq % 1000, "name": name, "gone": chance.random() < 0.2}

    def undisturbed(self) -> Project:
        """The twin after one update over all files."""
        shutil.rmtree(self.folder / "twin", ignore_errors=True)
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        twin = Project(self.folder / "twin", self.spark).write(PIPELINE)
        for folder, name, records in self._arrived:
            twin.arrive(name, *records, folder=folder)
        return twin.run()

    def compare(self) -> None:
        """One update that nobody kills, then everything side by side."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        self.killed.run()
        twin = self.undisturbed()
        found, wanted = state(self.killed), state(twin)
        assert found == wanted, differences(found, wanted)
        check_log(self.killed)


def state(project: Project) -> dict[str, Any]:
    """All that must not depend on kills: rows, what sinks got, counts of each flow since its last reset."""
    found: dict[str, Any] = {name: _rows(project, name) for name in TABLES}
    out = project.folder / "out"
    found["delta_sink"] = sorted(map(str, DeltaTable(str(out / "delta")).to_pyarrow_table().to_pylist()))
    found["handler"] = sorted(str(tuple(row)) for row in project.spark.read.parquet(f"{out}/handled/*").select("id", "seq").collect())
    lines = (line for file in (out / "files").glob("part-*") for line in file.read_text().splitlines())
    found["file_sink"] = sorted(set(lines))  # at least once: a batch that was not marked as done comes again
    found.update({f"counts of {flow}": counts for flow, counts in sums(project).items()})
    return found


def _rows(project: Project, name: str) -> list[str]:
    columns = [c for c in project.table(name).column_names if c != "_rescued_data"]
    return sorted(str(sorted((k, v) for k, v in row.items() if v is not None)) for row in project.table(name).select(columns).to_pylist())


def sums(project: Project) -> dict[str, dict[str, int]]:
    """Counts per flow over its events since its last reset; of the view that is computed again each time, the last ones."""
    events = sorted(metrics_events(project), key=lambda r: (r["timestamp"], r["sequence"]))
    last = {r["origin"]["flow_name"]: r["origin"]["flow_id"] for r in events}
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for r in events:
        flow, body = r["origin"]["flow_name"], r["details"]["flow_progress"]
        if r["origin"]["flow_id"] != last[flow]:
            continue
        if flow.endswith(".totals"):
            found.pop(flow, None)
        into = found[flow]
        for key in _COUNTS:
            into[key] += body["metrics"].get(key) or 0
        quality = body.get("data_quality", {})
        into["dropped"] += quality.get("dropped_records", 0)
        for e in quality.get("expectations", []):
            into[f"{e['name']} passed"] += e["passed_records"]
            into[f"{e['name']} failed"] += e["failed_records"]
    return {flow: dict(counts) for flow, counts in found.items()}


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What the killed pipeline has and its twin has not, and the other way round."""
    told = []
    for name in sorted({*found, *wanted}):
        ours, theirs = found.get(name), wanted.get(name)
        if ours == theirs:
            continue
        if isinstance(ours, list) and isinstance(theirs, list):
            more, less = _without(ours, theirs), _without(theirs, ours)
            told.append(f"{name}: {len(ours)} instead of {len(theirs)} rows; too many: {more[:5]}; missing: {less[:5]}")
        else:
            told.append(f"{name}: {ours} instead of {theirs}")
    return "\n".join(told)


def _without(rows: Sequence[str], others: Sequence[str]) -> list[str]:
    left = list(others)
    found = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            found.append(row)
    return found


# ------------------------------------------------------------------------------------------------------------- killing


@dataclass
class Kills:
    """Kills updates of one pipeline until enough of them were hit. `whole`: seconds that an update takes, as far as is known."""

    twins: Twins
    victims: Victims
    whole: float = 14.0
    hit: int = 0
    log: list[str] = field(default_factory=list)

    def run(self, kills: int, *, in_a_row: int = 5, checkpoint: int = 25) -> Iterator[str]:
        """Kill `kills` updates; yields a line at each checkpoint. A difference raises AssertionError with all kills since the last one."""
        since, next_one = time.monotonic(), checkpoint
        while self.hit < kills:
            self.twins.arrive()
            for _ in range(in_a_row):
                self.hit += self._one()
                if self.hit == kills:
                    break
            if self.hit == kills or self.hit >= next_one:
                next_one = self.hit + checkpoint
                try:
                    self.twins.compare()
                except AssertionError as difference:
                    raise AssertionError("\n".join([*self.log, str(difference)])) from None
                self.log.clear()
                yield f"{self.hit} kills in {time.monotonic() - since:.0f} s, no difference"
        self.victims.close()

    def _one(self) -> bool:
        """One update, killed at a random moment; False if it was done before."""
        chance = self.twins.chance
        request = {"full_refresh": chance.choice(RESETS)} if chance.random() < 0.15 else {}
        moment = chance.random()
        process = self.victims.take(None)
        self.victims.start_ahead(None)
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        started = time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment * self.whole)
        seconds = time.monotonic() - started
        done = process.poll()
        end(process)
        self.log.append(f"{request or ''} {f'killed after {seconds:.1f} s' if done is None else f'ended by itself after {seconds:.1f} s'}")
        if done is not None:
            assert done == 0, "\n".join([*self.log, "an update failed:", Path(self.victims.log.name).read_text()[-5000:]])
            self.whole = 0.7 * self.whole + 0.3 * seconds
        else:
            self.whole *= 1.04  # it grows with the storage
        return done is None
