"""Change tables through whole updates: one feed, type 1 and type 2 beside each other, readers of the target, growth, full refresh."""

from __future__ import annotations

from typing import Any

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
    return row["origin"]["flow_name"].endswith(f".{name}") and "metrics" in row["details"]["flow_progress"]


def test_late_repeated_and_early_events_give_the_same_tables_as_the_feed_in_order(project):
    p = project(PIPELINE)
    p.arrive("a.json", event(1, 1, "ann"), event(2, 5, op="DELETE"), event(3, 1, "cy"), event(9, 1))
    p.run()
    assert p.rows("current", "id", "name") == [(1, "ann"), (3, "cy")]
    assert p.rows("names", "people", "last") == [(2, "cy")]
    found = metrics(p, "current")
    assert (found["num_upserted_rows"], found["num_deleted_rows"], found["rewritten_rows_per_changed_row"]) == (2, 0, 1.0)

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


def test_a_batch_without_sequence_or_key_fails_and_leaves_the_table(project):
    p = project(PIPELINE)
    p.arrive("a.json", event(1, 1, "ann"))
    p.run()
    p.arrive("b.json", event(2, 2, "bob"), {"id": None, "seq": 3, "name": "nobody", "op": "UPSERT"})
    p.run(expect="FAILED")
    assert p.statuses()["current"] == "FAILED"
    assert p.rows("current", "id", "name") == [(1, "ann")]


def test_another_key_set_is_refused_until_a_full_refresh(project):
    p = project(PIPELINE)
    p.arrive("a.json", event(1, 1, "ann"))
    p.run()
    p.write(PIPELINE.replace('target="current", source="feed", keys=["id"]', 'target="current", source="feed", keys=["id", "name"]'))
    p.arrive("b.json", event(1, 2, "anna"))
    p.run(expect="FAILED")
    assert p.statuses()["current"] == "FAILED"
    assert p.rows("current", "id", "name") == [(1, "ann")]
    p.run(full_refresh=["current"])
    assert p.rows("current", "id", "name") == [(1, "ann"), (1, "anna")]


