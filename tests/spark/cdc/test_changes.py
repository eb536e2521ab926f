"""Change tables through whole updates: one feed, type 1 and type 2 beside each other, readers of the target, growth, full refresh."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.files.delta_log import TableLog

PIPELINE = """
import dlt
from pyspark.sql.functions import col, expr

@dlt.view
def feed():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing"))

dlt.create_streaming_table("current", expect_all_or_drop={"named": "name IS NOT NULL OR op = 'DELETE'"})
dlt.apply_changes(
    target="current", source="feed", keys=["id"], sequence_by=col("seq"),
    apply_as_deletes=expr("op = 'DELETE'"), except_column_list=["op", "seq"],
)

dlt.create_streaming_table("history")
dlt.create_auto_cdc_flow(
    target="history", source="feed", keys=["id"], sequence_by="seq", stored_as_scd_type=2,
    apply_as_deletes="op = 'DELETE'", except_column_list=["op", "seq"],
)

@dlt.table
def names():
    return dlt.read("current").selectExpr("count(*) AS people", "max(name) AS last")
"""


def event(id: int, seq: int, name: str | None = None, op: str = "UPSERT", **more: object) -> dict[str, object]:
    return {"id": id, "seq": seq, "name": name, "op": op, **more}


def metrics(project: Any, name: str) -> dict[str, Any]:
    """Metrics of the newest commit that the log tells of."""
    told = [r for r in project.logged(event_type="flow_progress") if _of(r, name)]
    newest: dict[str, Any] = max(told, key=lambda r: r["timestamp"])["details"]["flow_progress"]["metrics"]
    return newest


def _of(row: dict[str, Any], name: str) -> bool:
    metrics = row["details"]["flow_progress"].get("metrics", {})
    return row["origin"]["flow_name"].endswith(f".{name}") and not {"num_output_rows", "num_upserted_rows"}.isdisjoint(metrics)


@pytest.mark.long
def test_late_repeated_and_early_events_give_the_same_tables_as_the_feed_in_order(project):
    p = project(PIPELINE)
    p.arrive("a.json", event(1, 1, "ann"), event(2, 5, op="DELETE"), event(3, 1, "cy"), event(9, 1))
    p.run()
    assert p.rows("current", "id", "name") == [(1, "ann"), (3, "cy")]
    assert p.rows("names", "people", "last") == [(2, "cy")]
    found = metrics(p, "current")
    assert (found["num_upserted_rows"], found["num_deleted_rows"], found["rewritten_rows_per_changed_row"]) == (2, 0, 1.0)
    assert "num_output_rows" not in found

    late, again, gone = event(2, 3, "bob"), event(1, 1, "ann"), event(1, 7, op="DELETE")
    p.arrive("b.json", late, again, event(3, 4, "cyd"), gone, event(4, 2, "dee", town="Oslo"))
    p.run()
    assert p.rows("current", "id", "name", "town") == [(3, "cyd", None), (4, "dee", "Oslo")]
    assert p.rows("history", "id", "name", "__START_AT", "__END_AT") == [
        (1, "ann", 1, 7),
        (2, "bob", 3, 5),
        (3, "cy", 1, 4),
        (3, "cyd", 4, None),
        (4, "dee", 2, None),
        (9, None, 1, None),
    ]
    assert p.rows("names", "people", "last") == [(2, "dee")]
    found = metrics(p, "current")
    assert (found["num_upserted_rows"], found["num_deleted_rows"]) == (2, 1)

    versions = p.versions()
    p.run()
    assert p.versions() == versions  # nothing new: no commit

    p.run(full_refresh=["current"])
    assert p.rows("current", "id", "name", "town") == [(3, "cyd", None), (4, "dee", "Oslo")]


@pytest.mark.slow
def test_a_batch_without_sequence_or_key_fails_and_leaves_the_table(project):
    p = project(PIPELINE)
    p.arrive("a.json", event(1, 1, "ann"))
    p.run()
    p.arrive("b.json", event(2, 2, "bob"), {"id": None, "seq": 3, "name": "nobody", "op": "UPSERT"})
    p.run(expect="FAILED")
    assert p.statuses()["current"] == "FAILED"
    assert p.rows("current", "id", "name") == [(1, "ann")]


@pytest.mark.long
def test_another_key_set_is_refused_until_a_full_refresh(project):
    p = project(PIPELINE)
    p.arrive("a.json", event(1, 1, "ann"))
    p.run()
    p.write(PIPELINE.replace('target="current", source="feed", keys=["id"]', 'target="current", source="feed", keys=["id", "name"]'))
    p.arrive("b.json", event(1, 2, "anna"))
    p.run(expect="FAILED")
    assert p.errors() == {"current": "CDC_STATE_CHANGED"}
    assert p.rows("current", "id", "name") == [(1, "ann")]
    p.run(full_refresh=["current"])
    assert p.rows("current", "id", "name") == [(1, "ann"), (1, "anna")]


@pytest.mark.long
def test_snapshots_one_per_update_and_one_by_one_from_a_function(project):
    p = project("""
    import dlt

    @dlt.view
    def people():
        return spark.read.schema("id INT, name STRING, age INT").json(spark.conf.get("landing"))

    dlt.create_streaming_table("current")
    dlt.apply_changes_from_snapshot(target="current", source="people", keys=["id"], stored_as_scd_type=1)

    COPIES = [(1, [(1, "a", 1), (2, "b", 1), (4, "d", 1)]), (2, [(2, "B", 1), (3, "c", 1), (4, "d", 2)]), (3, [(2, "B", 1), (4, "d", 2)])]

    def copies(last):
        for version, rows in COPIES:
            if last is None or version > last:
                return spark.createDataFrame(rows, "id INT, name STRING, age INT"), version
        return None

    dlt.create_streaming_table("history")
    dlt.create_auto_cdc_from_snapshot_flow(
        target="history", source=copies, keys=["id"], stored_as_scd_type=2, track_history_column_list=["name"]
    )
    """)
    p.arrive("a.json", {"id": 1, "name": "ann", "age": 3}, {"id": 2, "name": "bob", "age": 4})
    p.run()
    assert p.rows("current", "id", "name", "age") == [(1, "ann", 3), (2, "bob", 4)]
    history = [(1, "a", 1, 1, 2), (2, "B", 1, 2, None), (2, "b", 1, 1, 2), (3, "c", 1, 2, 3), (4, "d", 2, 1, None)]
    assert p.rows("history", "id", "name", "age", "__START_AT", "__END_AT") == history
    (p.landing / "a.json").unlink()
    p.arrive("b.json", {"id": 2, "name": "bob", "age": 5}, {"id": 3, "name": "cy", "age": 1})
    p.run()
    assert p.rows("current", "id", "name", "age") == [(2, "bob", 5), (3, "cy", 1)]
    assert p.rows("history", "id", "name", "age", "__START_AT", "__END_AT") == history


@pytest.mark.slow
def test_rows_loaded_once_and_a_feed_make_one_table_in_either_order(project):
    p = project("""
    import dlt
    from pyspark.sql.functions import lit

    @dlt.view
    def seed():
        return spark.createDataFrame([(1, "s", 0), (2, "t", 0)], "id INT, name STRING, seq INT")

    @dlt.view
    def feed():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, name STRING, seq INT")
        return reader.load(spark.conf.get("landing"))

    dlt.create_streaming_table("people")
    same = {"target": "people", "keys": ["id"], "sequence_by": "seq", "except_column_list": ["seq"]}
    dlt.create_auto_cdc_flow(name="load", source="seed", once=True, **same)
    dlt.create_auto_cdc_flow(name="feed_in", source="feed", **same)
    """)
    p.arrive("a.json", {"id": 1, "name": "n", "seq": 5})
    p.run()
    assert p.rows("people", "id", "name") == [(1, "n"), (2, "t")]
    versions = p.versions()
    p.run()
    assert p.versions() == versions


@pytest.mark.slow
def test_a_first_batch_whose_rows_are_all_dropped_is_counted_in_the_table_s_log(project):
    p = project(PIPELINE)
    p.arrive("a.json", event(1, 1), event(2, 2))
    p.run()
    assert p.rows("current", "id") == []
    assert p.quality("current") == {"named": (0, 2)}
    kept = [(c.user_metadata or {}).get("lakelet") for c in TableLog(p.path("current")).commits(-1, p.version("current")) or []]
    assert [facts["dropped"] for facts in kept if facts] == [2]


@pytest.mark.long
def test_the_log_of_a_change_table_gets_checkpoints_and_is_read_on_from_them(project):
    source = "def feed():\n    return spark.readStream.schema('id INT, seq INT, name STRING').option('maxFilesPerTrigger', 1)"
    view = f"import dlt\n\n@dlt.view\n{source}.json(spark.conf.get('landing'))\n\ndlt.create_streaming_table('people')\n"
    p = project(view + "dlt.apply_changes('people', 'feed', keys=['id'], sequence_by='seq', except_column_list=['seq'])\n")
    for n in range(12):
        p.arrive(f"{n:02}.json", {"id": n % 5, "seq": n, "name": f"n{n}"})
    p.run()
    log = p.storage.root / "tables" / "main" / "default" / "people" / "_delta_log"
    assert [path.name for path in sorted(log.glob("*.checkpoint.parquet"))] == [f"{10:020}.checkpoint.parquet"]
    assert p.rows("people") == [(0, "n10"), (1, "n11"), (2, "n7"), (3, "n8"), (4, "n9")]
    p.arrive("12.json", {"id": 2, "seq": 12, "name": "n12"})
    p.run()
    assert p.rows("people")[2] == (2, "n12")
