"""Bitemporal change tables through whole updates and batch by batch (docs/semantics/bitemporal.md)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lakelet.cdc import writing
from lakelet.cdc.change_table import ChangeTable
from lakelet.cdc.changes import layout
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.table_spec import CHANGE_FEED, TableSpec
from lakelet.storage.delta.transaction import Txn
from tests import bitemporal_feeds as feeds
from tests.bitemporal_feeds import OPTIONS, Record, expected, spec
from tests.spark.cdc.test_changes import metrics

TIMES = ("__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT")
FEED = """
import dlt
from pyspark import pipelines as dp
from pyspark.sql.functions import col, expr

@dp.temporary_view
def feed():
    return spark.readStream.schema("id INT, at INT, known INT, name STRING, op STRING").json(spark.conf.get("landing"))
"""
PYTHON = (
    FEED
    + """
dp.create_streaming_table("beliefs")
dp.create_auto_cdc_flow(
    target="beliefs", source="feed", keys=["id"], sequence_by=col("at"), system_sequence_by=col("known"),
    apply_as_deletes=expr("op = 'd'"), except_column_list=["op", "at", "known"], stored_as_scd_type="bitemporal",
)
"""
)
SQL = """
CREATE OR REFRESH STREAMING TABLE beliefs;
CREATE FLOW changes AS AUTO CDC INTO beliefs FROM STREAM(feed) KEYS (id) APPLY AS DELETE WHEN op = 'd'
SEQUENCE BY at SYSTEM SEQUENCE BY known COLUMNS * EXCEPT (op, at, known) STORED AS BITEMPORAL;
"""
MERGED = {CHANGE_FEED: "true"}


def event(id: int, at: int, known: int | None, name: str | None = None) -> dict[str, Any]:
    """An upsert, or without a name a delete."""
    return {"id": id, "at": at, "known": known, "name": name, "op": "d" if name is None else "u"}


LIFE = [event(1, 1001, 1005, "v1"), event(1, 1215, 1220, "v2"), event(1, 1205, 1225, "v3"), event(1, 1230, 1230)]
"""The public example: a company is added, changed, changed before that, deleted; each time it becomes known later."""
FIRST = [(1, "v1", 1001, None, 1005, None)]
SECOND = [(1, "v1", 1001, None, 1005, 1220), (1, "v1", 1001, 1215, 1220, None), (1, "v2", 1215, None, 1220, None)]
THIRD = [
    (1, "v1", 1001, None, 1005, 1220),
    (1, "v1", 1001, 1205, 1225, None),
    (1, "v1", 1001, 1215, 1220, 1225),
    (1, "v2", 1215, None, 1220, None),
    (1, "v3", 1205, 1215, 1225, None),
]
LAST = [
    (1, "v1", 1001, None, 1005, 1220),
    (1, "v1", 1001, 1205, 1225, None),
    (1, "v1", 1001, 1215, 1220, 1225),
    (1, "v2", 1215, 1230, 1230, None),
    (1, "v2", 1215, None, 1220, 1230),
    (1, "v3", 1205, 1215, 1225, None),
]


def ordered(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in the order of `Project.rows`."""
    return sorted(rows, key=repr)


@pytest.fixture
def python(project: Any) -> Any:
    return project(PYTHON)


@pytest.fixture
def sql(project: Any) -> Any:
    return project(FEED).write(SQL, "tables.sql")


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "sql"])
def test_the_documented_life_of_a_company_gives_the_documented_rows_after_each_change(language, request):
    p = request.getfixturevalue(language)
    for number, (change, wanted) in enumerate(zip(LIFE, (FIRST, SECOND, THIRD, LAST), strict=True)):
        p.arrive(f"{number}.json", change)
        p.run()
        assert p.table("beliefs").column_names == ["id", "name", *TIMES]
        assert p.rows("beliefs") == ordered(wanted)


@pytest.mark.slow
def test_the_changes_of_a_company_in_one_update_and_backwards_give_the_same_rows(python):
    python.arrive("a.json", *reversed(LIFE))
    python.run()
    assert python.rows("beliefs") == ordered(LAST)


@pytest.mark.long
def test_the_state_that_was_measured_on_databricks(project):
    """Three events, each known a minute after it took effect; the times stay among the columns, and are times."""
    p = project(
        """
        import dlt

        @dlt.view
        def feed():
            reader = spark.readStream.schema("id STRING, status STRING, at TIMESTAMP, known TIMESTAMP")
            return reader.json(spark.conf.get("landing"))

        dlt.create_streaming_table("t")
        dlt.apply_changes(target="t", source="feed", keys=["id"], sequence_by="at", system_sequence_by="known",
                          stored_as_scd_type="bitemporal")
        """
    )
    minutes = {minute: f"2026-08-30T10:0{minute}:00Z" for minute in range(6)}
    for status, at in (("PENDING", 0), ("ACTIVE", 2), ("SUSPENDED", 4)):
        p.arrive(f"{at}.json", {"id": "42", "status": status, "at": minutes[at], "known": minutes[at + 1]})
    p.run()
    found = [tuple(v.minute if hasattr(v, "minute") else v for v in row) for row in p.rows("t", "status", *TIMES)]
    assert sorted(found, key=repr) == [
        ("ACTIVE", 2, 4, 5, None),
        ("ACTIVE", 2, None, 3, 5),
        ("PENDING", 0, 2, 3, None),
        ("PENDING", 0, None, 1, 3),
        ("SUSPENDED", 4, None, 5, None),
    ]


@pytest.mark.slow
def test_an_early_delete_ends_the_version_as_soon_as_it_is_known(python):
    python.arrive("a.json", event(1, 5, 1), event(1, 2, 3, "ann"), event(2, 2, 3, "bob"), event(2, 5, 4))
    python.run()
    assert python.rows("beliefs") == [(1, "ann", 2, 5, 3, None), (2, "bob", 2, 5, 4, None), (2, "bob", 2, None, 3, 4)]


@pytest.mark.slow
def test_an_event_with_the_same_sequence_that_becomes_known_later_is_a_correction(python):
    python.arrive("a.json", event(1, 2, 7, "anna"), event(2, 2, 3, "bob"), event(3, 2, 3))
    python.run()
    python.arrive("b.json", event(1, 2, 3, "ann"), event(2, 2, 9), event(3, 2, 9, "cy"))
    python.run()
    assert python.rows("beliefs") == [
        (1, "ann", 2, None, 3, 7),
        (1, "anna", 2, None, 7, None),
        (2, "bob", 2, None, 3, 9),
        (3, "cy", 2, None, 9, None),
    ]


@pytest.mark.slow
def test_equal_events_and_ties_do_not_depend_on_the_order_of_arrival(python):
    tied = [event(1, 2, 3, "ann"), event(1, 2, 3, "bob"), event(2, 2, 3, "cy"), event(2, 2, 3)]
    for number, arriving in enumerate(([tied[0], tied[3]], tied[1:], tied[::-1])):
        python.arrive(f"{number}.json", *arriving)
        python.run()
    assert python.rows("beliefs") == [(1, "bob", 2, None, 3, None)]
    versions = python.versions()
    python.arrive("again.json", *tied)
    python.run()
    assert python.rows("beliefs") == [(1, "bob", 2, None, 3, None)]
    assert python.versions()["beliefs"] == versions["beliefs"] + 1


@pytest.mark.long
def test_counts_restart_and_full_refresh(project):
    """BT-15: each update is a new pipeline on the same storage; a declared schema holds the four times."""
    times = ", ".join(f"{name} INT" for name in TIMES)
    p = project(
        PYTHON.replace('create_streaming_table("beliefs")', f'create_streaming_table("beliefs", schema="id INT, name STRING, {times}")')
    )

    def counts() -> tuple[int, int]:
        found = metrics(p, "beliefs")
        return found["num_upserted_rows"], found["num_deleted_rows"]

    p.arrive("a.json", *LIFE[:2], event(2, 1, 1, "ann"))
    p.run()
    assert counts() == (4, 0)
    p.arrive("b.json", LIFE[2])
    p.run()
    assert counts() == (3, 0)  # the belief about v1 is closed, two others open
    version = p.version("beliefs")
    p.run()
    assert p.version("beliefs") == version
    p.arrive("c.json", event(1, 1215, 1210, "v2"), LIFE[1], event(2, 1, 1, "ann"))
    p.run()
    assert counts() == (3, 2)  # v2 was known earlier: other rows, with other starts
    wanted = [
        (1, "v1", 1001, None, 1005, 1210),
        (1, "v1", 1001, 1205, 1225, None),
        (1, "v1", 1001, 1215, 1210, 1225),
        (1, "v2", 1215, None, 1210, None),
        (1, "v3", 1205, 1215, 1225, None),
        (2, "ann", 1, None, 1, None),
    ]
    assert p.rows("beliefs") == ordered(wanted)
    p.run(full_refresh=["beliefs"])
    assert (p.rows("beliefs"), counts()) == (ordered(wanted), (6, 0))


@pytest.mark.long
def test_rows_changed_by_hand_are_refused_until_the_table_is_restored(python):
    """BT-14."""
    p = python
    table = f"delta.`{p.path('beliefs')}`"
    p.arrive("a.json", LIFE[0])
    p.run()
    p.spark.sql(f"OPTIMIZE {table}").collect()
    p.arrive("b.json", LIFE[1])
    p.run()
    assert p.rows("beliefs") == ordered(SECOND)
    version = p.version("beliefs")
    p.spark.sql(f"INSERT INTO {table} VALUES (7, 'by hand', 1, NULL, 1, NULL)").collect()
    p.arrive("c.json", LIFE[2])
    for _ in range(2):
        p.run(expect="FAILED")
        (error,) = p.result.errors
        assert (error.code, '"id":7' in error.what) == ("CDC_ROW_BY_HAND", True)
    assert p.rows("beliefs") == ordered([*SECOND, (7, "by hand", 1, None, 1, None)])
    p.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}").collect()
    p.run()
    assert p.rows("beliefs") == ordered(THIRD)


def test_events_without_a_system_sequence_are_refused_before_anything_is_written(python):
    """BT-12."""
    python.arrive("a.json", event(1, 1, None, "ann"), event(2, 1, 1, "bob"))
    python.run(expect="FAILED")
    (error,) = python.result.errors
    assert (error.code, "system_sequence_by" in error.what) == ("CDC_NULL_SEQUENCE", True)
    assert not python.path("beliefs").exists()
    python.write(PYTHON.replace('col("known")', 'expr("map(1, known)")'))
    (refused,) = python.refused()
    assert (refused.code, "system_sequence_by" in refused.what, refused.where.line) == ("CDC_SEQUENCE_TYPE", True, 11)


@pytest.mark.slow
def test_a_table_does_not_become_bitemporal_without_a_full_refresh(project):
    """BT-13."""
    type_2 = PYTHON.replace(' system_sequence_by=col("known"),', "").replace('"bitemporal"', '"2"')
    p = project(type_2)
    p.arrive("a.json", *LIFE)
    p.run()
    p.write(PYTHON).run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, '"bitemporal", "int", "int"' in error.what) == ("CDC_STATE_CHANGED", True)
    p.run(full_refresh=["beliefs"])
    assert p.rows("beliefs") == ordered(LAST)
    p.write(type_2).run(expect="FAILED")
    assert p.errors() == {"beliefs": "CDC_STATE_CHANGED"}


@pytest.mark.slow
def test_a_stream_over_a_bitemporal_table_goes_on_until_a_belief_is_closed(project):
    """CT-12."""
    p = project(
        PYTHON
        + """
@dp.table
def seen():
    return spark.readStream.table("beliefs").select("id", "name")
"""
    )
    p.arrive("a.json", event(1, 1, 1, "ann"))
    p.run()
    p.arrive("b.json", event(2, 1, 2, "bob"), event(1, 1, 1, "ann"))
    p.run()
    assert p.rows("seen") == [(1, "ann"), (2, "bob")]
    p.arrive("c.json", event(1, 5, 5, "anna"))
    p.run(expect="FAILED")
    assert p.errors() == {"seen": "STREAM_SOURCE_CHANGED"}
    assert (1, "ann", 1, None, 1, 5) in p.rows("beliefs")


def apply(
    spark: Any, folder: Path, flow: Any, batch: Sequence[Record], number: int, properties: Mapping[str, str], ddl: str = feeds.DDL
) -> None:
    """One batch as its flow would apply it."""
    frame = spark.createDataFrame([dict(e) for e in batch], ddl)
    shape = layout(flow, frame)
    wanted = TableSpec(shape.visible, properties=properties)
    measured = BatchMetrics("event", "update", "table", "random", number, 0)
    table = ChangeTable(folder, (flow,), wanted)
    writing.apply(flow, table, frame, shape, txn=Txn("random", number), measure=lambda: measured, replayed=False)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("seed", "properties"), [(1, {}), (2, {}), (3, MERGED), (6, MERGED)], ids=str)
def test_random_feeds_give_the_same_table_as_the_algebra(tmp_path, spark, seed, properties):
    """BT-8, as the table is written again and as it is merged."""
    chance = random.Random(seed)
    flow = spec(**OPTIONS[seed % len(OPTIONS)])
    events = feeds.feed(chance, keys=6, events=80)
    for number, batch in enumerate(feeds.batches(chance, events)):
        apply(spark, tmp_path / "t", flow, batch, number, properties)
    found = [tuple(row) for row in spark.read.format("delta").load(str(tmp_path / "t")).collect()]
    assert sorted(found, key=feeds.sorting) == expected(flow, events)


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("properties", [{}, MERGED], ids=["rewritten", "merged"])
def test_columns_that_come_later_change_no_belief(tmp_path, spark, properties):
    """BT-16."""
    target, flow = str(tmp_path / "t"), spec()
    properties = {**properties, "delta.enableTypeWidening": "true"}
    told = {"id": 1, "op": "u"}
    batches = [
        ("id INT, at INT, known INT, n INT, op STRING", {**told, "at": 1, "known": 1, "n": 1}),
        ("id INT, at INT, known INT, n BIGINT, more STRING, op STRING", {**told, "at": 5, "known": 2, "n": 2**40, "more": "x"}),
        ("id INT, at INT, known INT, n BIGINT, more STRING, op STRING", {**told, "at": 3, "known": 4, "n": 3, "more": "y"}),
    ]
    for number, (ddl, record) in enumerate(batches):
        apply(spark, Path(target), flow, [record], number, properties, ddl)
    found = spark.read.format("delta").load(target)
    assert set(found.columns) == {"id", "n", "more", *TIMES}
    rows = map(tuple, found.select("id", "n", "more", *TIMES).collect())
    assert ordered(rows) == [
        (1, 1, None, 1, 3, 4, None),
        (1, 1, None, 1, 5, 2, 4),
        (1, 1, None, 1, None, 1, 2),
        (1, 1099511627776, "x", 5, None, 2, None),
        (1, 3, "y", 3, 5, 4, None),
    ]


@pytest.mark.slow
def test_other_tracked_columns_count_for_all_beliefs_from_the_next_batch_on(tmp_path, spark):
    """CO-5 for bitemporal tables: what was believed before the batch is computed again too."""
    first = [event(1, 1, 1, "ann"), event(1, 3, 2, "anna"), event(2, 1, 1, "bob")]
    batches = [(spec(), first), (spec(track_history_column_list=()), [event(2, 5, 5, "bobby")])]
    for number, (flow, events) in enumerate(batches):
        apply(spark, tmp_path / "t", flow, [{**e, "team": None} for e in events], number, MERGED)
    rows = map(tuple, spark.read.format("delta").load(str(tmp_path / "t")).select("id", "name", *TIMES).collect())
    assert ordered(rows) == [
        (1, "ann", 1, None, 1, 2),
        (1, "anna", 1, None, 2, None),
        (2, "bob", 1, None, 1, 5),
        (2, "bobby", 1, None, 5, None),
    ]
