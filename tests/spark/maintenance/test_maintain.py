"""`lakelet maintain` between updates: fewer files, the same answers, nothing that a stream or a reader needs is gone (MT-1 to MT-13)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.base.errors import LakeletError
from lakelet.files.delta_log import TableLog
from lakelet.maintenance.layout import OptimizeKind
from lakelet.maintenance.maintain import maintain
from lakelet.maintenance.results import Amount
from lakelet.storage.environments import begin_environment, drop_environment, environment_root, find_environment
from lakelet.storage.eventlog.reading import read_events
from tests.crash.environment_steps import NAME, run_environment
from tests.spark.cdc.test_bitemporal import SECOND, THIRD, TIMES, ordered
from tests.spark.conftest import Project

pytestmark = pytest.mark.long

APPENDING = """
import dlt

PROPERTIES = {"lakelet.quarantine": "true", "delta.deletedFileRetentionDuration": "interval 0 seconds"}

@dlt.table(table_properties=PROPERTIES)
@dlt.expect_or_drop("positive", "n > 0")
def raw():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
    return reader.option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing"))

@dlt.table
def copy():
    return spark.readStream.table("raw")

@dlt.table
def skipping():
    return spark.readStream.option("skipChangeCommits", "true").table("raw")

@dlt.table
def totals():
    return spark.read.table("raw").groupBy("kind").count()

@dlt.table
def late_totals():
    return spark.readStream.table("totals_of_stream")

@dlt.table
def totals_of_stream():
    return spark.read.table("raw").where("n = 1")
"""


def maintained(p: Any, *names: str, **options: Any) -> dict[str, Any]:
    """What was done to each table, by its unqualified name."""
    found = maintain(p.storage.root, names, spark=p.spark, **options)
    assert [table.error for table in found if table.error] == []
    return {table.name.rsplit(".", 1)[-1]: table for table in found}


def idle(p: Any) -> None:
    """An update finds nothing to do and writes nothing into the tables."""
    versions = p.versions()
    p.run()
    assert [step.reason for step in p.result.steps if step.strategy.value != "skip"] == []
    assert p.versions() == versions


def at_version(p: Any, name: str, version: int) -> list[Any]:
    """The rows of one version. Read by delta-rs, as Spark refuses versions older than the declared retention."""
    return sorted((tuple(row.values()) for row in DeltaTable(str(p.path(name)), version=version).to_pyarrow_table().to_pylist()), key=repr)


def land(p: Any, count: int, start: int = 0) -> None:
    for i in range(start, start + count):
        p.arrive(f"{i}.json", {"n": i + 1, "kind": "even" if i % 2 else "odd"}, {"n": -i, "kind": "held"})


def test_small_files_become_one_and_every_answer_stays(project):
    p = project(APPENDING)
    land(p, 10)
    p.run()
    names = ("raw", "copy", "skipping", "totals", "totals_of_stream", "late_totals", "raw_quarantine")
    before = {name: p.rows(name) for name in names}
    history = {v: at_version(p, "raw", v) for v in range(p.version("raw") + 1)}
    files = p.snapshot()
    planned = maintained(p, dry_run=True)
    assert p.snapshot() == files
    found = maintained(p)
    assert (found["raw"].before.files, found["raw"].after.files, found["raw"].job.how) == (10, 1, OptimizeKind.COMPACT)
    assert found["raw_quarantine"].after.files == 1
    check_events(p, found)
    assert {n: (t.job, t.why, t.after.files) for n, t in planned.items()} == {n: (t.job, t.why, t.after.files) for n, t in found.items()}
    assert found["totals"].left_alone
    assert "none to put together" in found["totals"].why or "would save" in found["totals"].why
    assert {name: p.rows(name) for name in names} == before
    assert {v: at_version(p, "raw", v) for v in history} == history
    idle(p)
    land(p, 1, 10)
    p.run()
    assert p.rows("copy") == p.rows("skipping") == p.rows("raw") == sorted([*before["raw"], *added(p, before["raw"])], key=repr)
    assert sum(p.rows("totals", "count")) == 11
    events = p.logged()
    assert all(table.left_alone for table in maintained(p).values())
    assert p.logged() == events


def check_events(p: Any, found: dict[str, Any]) -> None:
    """The log tells of each table that was changed, once, under the id of the maintenance; the update before is what it was."""
    told = p.logged(event_type="maintenance_progress")
    assert sorted(row["origin"]["dataset_name"] for row in told) == sorted(t.name for t in found.values() if not t.left_alone)
    assert len({row["origin"]["maintenance_id"] for row in told}) == 1
    assert {(row["origin"]["update_id"], row["level"], row["maturity_level"]) for row in told} == {(None, "INFO", "STABLE")}
    update, mine = p.logged(event_type="create_update")[0]["origin"], told[0]["origin"]
    assert (mine["pipeline_id"], mine["pipeline_name"]) == (update["pipeline_id"], update["pipeline_name"])
    raw = next(row["details"]["maintenance_progress"] for row in told if row["origin"]["dataset_name"].endswith(".raw"))
    assert (raw["state"], raw["optimize"], raw["before"]["files"], raw["after"]["files"]) == ("COMPLETED", "compact", 10, 1)
    assert {event["origin"]["update_id"] for event in read_events(p.storage.root)} == {p.result.update_id}
    assert len(read_events(p.storage.root, every=True)) == len(p.logged())


def added(p: Any, before: list[Any]) -> list[Any]:
    return [row for row in p.rows("raw") if row not in before]


def test_files_that_a_stream_has_still_to_read_are_kept_until_it_has(project):
    p = project(APPENDING)
    land(p, 2)
    p.run()
    land(p, 9, 2)
    p.run(select=("raw",))
    found = maintained(p, "raw", least=0)["raw"]
    assert (found.after.files, found.removed.files) == (1, 2)
    assert any("kept for" in note and "copy" in note and "skipping" in note for note in found.notes)
    p.run()
    assert p.rows("copy") == p.rows("skipping") == p.rows("raw")
    assert len(p.rows("raw")) == 11
    assert maintained(p, "raw", least=0)["raw"].removed.files == 9
    p.write(APPENDING.replace("def copy", "def another") + "\n@dlt.table\ndef copy():\n    return spark.readStream.table('raw')\n")
    p.run()  # a new stream begins with the files that are there
    assert p.rows("another") == p.rows("raw")
    assert maintained(p, "raw", least=0)["raw"].left_alone


def test_files_that_an_environment_reads_are_kept_until_it_is_dropped(project):
    p = project(APPENDING)
    land(p, 2)
    p.run()
    root = environment_root(p.storage.root, NAME)
    begin_environment(p.storage.root, root)
    land(p, 9, 2)
    p.run()
    pinned = DeltaTable(str(p.path("raw")), version=p.version("raw") - 9).file_uris()
    found = maintained(p, least=0)["raw"]
    assert (found.after.files, found.removed.files) == (1, 9)
    assert f"2 old files are kept for environment {NAME}, which has still to read them" in found.notes
    assert all(Path(file).exists() for file in pinned)
    p.write(APPENDING.replace('groupBy("kind")', 'groupBy("n")'))
    run_environment(p, root, "totals")
    there = p.spark.read.format("delta").load(str(root / p.path("totals").relative_to(p.storage.root)))
    assert sorted(row["n"] for row in there.collect()) == [1, 2]
    drop_environment(find_environment(p.storage.root, NAME))
    assert maintained(p, "raw", least=0)["raw"].removed.files == 2


def test_no_file_is_deleted_before_the_declared_retention_and_never_within_an_hour(project):
    p = project(APPENDING)
    land(p, 9)
    p.run()
    assert maintained(p)["raw"].retention == 3600
    again = maintained(p)
    assert (again["raw"].removed.files, again["copy"].retention) == (0, 7 * 86_400)


@pytest.mark.slow
def test_a_file_that_no_commit_names_yet_stays_for_an_hour(project):
    p = project(APPENDING)
    land(p, 2)
    p.run()
    left, fresh = (p.path("raw") / f"part-0000{n}-6a1b2c3d-0000-4000-8000-00000000000{n}-c000.snappy.parquet" for n in range(2))
    for orphan in (left, fresh):
        orphan.write_bytes(b"PAR1")
    os.utime(left, (time.time() - 7200,) * 2)
    planned = maintained(p, "raw", dry_run=True)["raw"]
    found = maintained(p, "raw")["raw"]
    assert found.removed == planned.removed == Amount(1, 4)
    assert (left.exists(), fresh.exists()) == (False, True)


ORDERED = """
import dlt
from pyspark.sql import functions as F

def source(name, **more):
    @dlt.table(name=name, **more)
    def table():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
        return reader.schema("n LONG, kind STRING").load(spark.conf.get("landing"))

source("sorted", table_properties={"pipelines.autoOptimize.zOrderCols": "n, kind"})
source("clustered", cluster_by=["n"])
source("kept", table_properties={"pipelines.autoOptimize.managed": "false"})
source("parted", partition_cols=["kind"], table_properties={"pipelines.autoOptimize.zOrderCols": "kind, nothing"})
source("large", table_properties={"delta.targetFileSize": "1kb"})
"""


@pytest.mark.slow
def test_rows_are_sorted_as_declared_once_and_what_is_switched_off_is_left_alone(project):
    p = project(ORDERED)
    land(p, 9)
    p.run()
    names = ("sorted", "clustered", "kept", "parted", "large")
    before = {name: p.rows(name) for name in names}
    found = maintained(p)
    assert {n: t.job and (t.job.how, t.job.columns) for n, t in found.items()} == {
        "sorted": (OptimizeKind.ZORDER, ("n", "kind")), "clustered": (OptimizeKind.CLUSTER, ("n",)), "kept": None,
        "parted": (OptimizeKind.COMPACT, ()), "large": None,
    }  # fmt: skip
    assert {n: t.after.files for n, t in found.items()} == {"sorted": 1, "clustered": 1, "kept": 9, "parted": 3, "large": 9}
    assert found["parted"].notes == tuple(f"pipelines.autoOptimize.zOrderCols: {c} is not a column to sort by" for c in ("kind", "nothing"))
    assert {name: p.rows(name) for name in names} == before
    assert all(table.left_alone for table in maintained(p).values())
    idle(p)


DECLARE = """
import dlt

def declare(name, **more):
    @dlt.view(name=f"feed_of_{name}")
    def feed():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
        return reader.schema("id INT, seq INT, seen INT, name STRING, op STRING").load(spark.conf.get("landing"))

    dlt.create_streaming_table(name, table_properties={
        "delta.enableChangeDataFeed": "true", "delta.deletedFileRetentionDuration": "interval 0 seconds"
    })
    dlt.create_auto_cdc_flow(
        target=name, source=f"feed_of_{name}", keys=["id"], sequence_by="seq", apply_as_deletes="op = 'd'",
        except_column_list=["op", "seq"], **more)
"""
CHANGES = f"""{DECLARE}
declare("latest")

@dlt.table
def feed_of_changes():
    return spark.readStream.option("readChangeFeed", "true").table("latest")
"""
ALL_TYPES = f"""{CHANGES}
declare("history", stored_as_scd_type=2)
declare("both_times", stored_as_scd_type="bitemporal", system_sequence_by="seen")
"""
EVENTS = [(1, 10, 1, "a"), (2, 10, 2, "b"), (3, 10, 3, "c"), (1, 20, 4, "A"), (2, 20, 5, None), (4, 5, 6, "d")]
LATER = [(1, 15, 7, "late"), (2, 15, 8, "late"), (4, 6, 9, None)]


def changes(p: Any, events: list[tuple[Any, ...]]) -> None:
    for id, seq, seen, name in events:
        p.arrive(f"{seen}.json", {"id": id, "seq": seq, "seen": seen, "name": name, "op": "u" if name else "d"})


FEED = ("id", "name", "_change_type")


def without_maintenance(folder: Path, p: Any, source: str) -> Any:
    """A project with the same events in the same updates, which nobody maintains."""
    plain = type(p)(folder / "plain", p.spark).write(source)
    for events in (EVENTS, LATER):
        changes(plain, events)
        plain.run()
    return plain


def kept_for_the_feed(found: dict[str, Any]) -> bool:
    return any("kept for feed_of_changes" in note for note in found["latest"].notes)


@pytest.mark.slow
def test_a_stream_of_a_change_feed_that_lags_behind_reads_what_vacuum_left_for_it(project, tmp_path, monkeypatch):
    monkeypatch.setattr("lakelet.maintenance.layout.WORTH_FILES", 1)
    p = project(CHANGES)
    changes(p, EVENTS)
    p.run()
    changes(p, LATER)
    p.run(select=("latest",))
    found = maintained(p, least=0)
    assert found["latest"].removed.files > 0
    assert kept_for_the_feed(found)
    p.run()
    plain = without_maintenance(tmp_path, p, CHANGES)
    assert p.rows("latest") == plain.rows("latest")
    assert p.rows("feed_of_changes", *FEED) == plain.rows("feed_of_changes", *FEED)
    assert not kept_for_the_feed(maintained(p, least=0))


@pytest.mark.slow
def test_change_tables_of_all_types_give_the_same_rows_with_and_without_maintenance(project, tmp_path, monkeypatch):
    monkeypatch.setattr("lakelet.maintenance.layout.WORTH_FILES", 1)
    p = project(ALL_TYPES)
    changes(p, EVENTS)
    p.run()
    tables = ("latest", "history", "both_times")
    before = {name: p.rows(name) for name in tables}
    versions = {name: {v: at_version(p, name, v) for v in range(p.version(name) + 1)} for name in tables}
    feed = p.rows("feed_of_changes")
    found = maintained(p)
    assert all(found[name].after.files < found[name].before.files for name in tables)
    assert {name: p.rows(name) for name in tables} == before
    assert {name: {v: at_version(p, name, v) for v in found} for name, found in versions.items()} == versions
    idle(p)
    found = maintained(p, least=0)
    assert all(found[name].removed.files > 0 for name in tables)
    assert p.rows("feed_of_changes") == feed
    idle(p)
    changes(p, LATER)
    p.run(select=tables)
    assert kept_for_the_feed(maintained(p, least=0))
    p.run()
    maintained(p, least=0)
    now = p.versions()
    p.run()  # the stream over the change feed looks again, as without maintenance: its offset lies within a version
    assert p.versions() == now
    plain = without_maintenance(tmp_path, p, ALL_TYPES)
    assert {name: p.rows(name) for name in tables} == {name: plain.rows(name) for name in tables}
    assert p.rows("feed_of_changes", *FEED) == plain.rows("feed_of_changes", *FEED)


@pytest.mark.slow
def test_a_bitemporal_table_is_maintained_between_two_updates_and_keeps_every_belief(project, monkeypatch):
    monkeypatch.setattr("lakelet.maintenance.layout.WORTH_FILES", 1)
    p = project(f"""{DECLARE}\ndeclare("both_times", stored_as_scd_type="bitemporal", system_sequence_by="seen")""")
    changes(p, [(1, 1001, 1005, "v1"), (1, 1215, 1220, "v2")])
    p.run()
    found = maintained(p, least=0)["both_times"]
    assert found.after.files < found.before.files
    assert found.removed.files > 0
    assert p.rows("both_times", "id", "name", *TIMES) == ordered(SECOND)
    changes(p, [(1, 1205, 1225, "v3")])
    p.run()
    assert p.rows("both_times", "id", "name", *TIMES) == ordered(THIRD)


@pytest.mark.slow
def test_a_change_table_that_others_wrote_to_waits_for_the_next_update(project):
    p = project(f"""{DECLARE}\ndeclare("latest")""")
    changes(p, EVENTS[:1])
    p.run()
    p.spark.sql(f"INSERT INTO delta.`{p.path('latest')}` (id, seen, name) VALUES (9, 9, 'hand')")
    before = TableLog(p.path("latest") / "_changes").version()
    found = maintained(p, "latest", least=0)["latest"]
    assert found.left_alone
    assert "others committed" in found.why
    assert TableLog(p.path("latest") / "_changes").version() == before


def test_maintenance_is_refused_while_an_update_runs_and_an_update_while_maintenance_does(project):
    p = project(APPENDING)
    land(p, 1)
    p.run()
    for dry_run in (False, True):
        with p.storage.lease("11111111-update"), pytest.raises(LakeletError) as caught:
            maintain(p.storage.root, spark=p.spark, dry_run=dry_run)
        assert caught.value.code == "LAKELET_STORAGE_BUSY"
        assert "update 11111111 of process" in str(caught.value)
    with p.storage.lease("maintain-1"), pytest.raises(LakeletError, match="lakelet maintain"):
        p.pipeline.run()


@pytest.mark.slow
def test_names_and_globs_choose_tables_and_an_unknown_one_is_named(project):
    p = project(APPENDING)
    land(p, 1)
    p.run()
    assert set(maintained(p, "total*", "main.default.raw")) == {"totals", "totals_of_stream", "raw"}
    with pytest.raises(LakeletError, match="rew") as caught:
        maintain(p.storage.root, ["rew"], spark=p.spark)
    assert (caught.value.code, caught.value.nearest[:1]) == ("UNKNOWN_TABLE", ("main.default.raw",))
    shown = json.loads(json.dumps([t.as_json() for t in maintain(p.storage.root, ["raw"], spark=p.spark)]))
    assert shown[0]["name"] == "main.default.raw"
    assert shown[0]["left_alone"] is True
    assert DeltaTable(str(p.path("raw"))).version() == p.version("raw")


ODD = """
import dlt

@dlt.table(partition_cols=["kind"], table_properties={"delta.deletedFileRetentionDuration": "interval 0 seconds"})
def raw():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
    return reader.schema("n LONG, kind STRING").load(spark.conf.get("landing"))

@dlt.table
def copy():
    return spark.readStream.table("raw")
"""


@pytest.mark.slow
def test_files_with_odd_characters_in_their_paths_are_known_as_those_that_a_stream_needs(spark, tmp_path):
    p = Project(tmp_path / "my 100% ü+project", spark).write(ODD)
    odd = "a b/ü%20:+'"
    p.arrive("0.json", {"n": 0, "kind": odd})
    p.run()
    for number in range(1, 10):
        p.arrive(f"{number}.json", {"n": number, "kind": odd})
    p.run(select=("raw",))
    found = maintained(p, "raw", least=0)["raw"]
    assert (found.before.files, found.after.files, found.removed.files) == (10, 1, 1)  # the first one was read
    p.run()
    assert p.rows("copy") == p.rows("raw")
    assert len(p.rows("copy")) == 10
    assert maintained(p, "raw", least=0)["raw"].removed.files == 9
