"""Which files of a partitioned table a streaming flow waits for."""

from __future__ import annotations

import pytest

from lakelet.analysis.plan_facts import Placeholders, stream_plan

COLUMNS = "kind string, n bigint, day date, x double, payload struct<kind: string>, folded string collate UTF8_LCASE"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("kind = 'a'", {"kind": {"a"}}),
        ("'a' = kind", {"kind": {"a"}}),
        ("raw.KIND = 'a'", {"kind": {"a"}}),
        ("kind = 'a' AND n = 3L", {"kind": {"a"}, "n": {"3"}}),
        ("kind IN ('a', 'b') AND kind = 'b'", {"kind": {"b"}}),
        ("n IN (1L, 2L)", {"n": {"1", "2"}}),
        (r"kind = 'it\'s (a) AND b'", {"kind": {"it's (a) AND b"}}),
        ("kind = 'a' OR kind = 'b'", {}),
        ("NOT (kind = 'a')", {}),
        ("lower(kind) = 'a'", {}),
        ("kind IN ('a', concat('b', n))", {}),
        ("day = DATE '2026-01-02'", {"day": {"2026-01-02"}}),
        ("day = DATE '1969-12-31'", {"day": {"1969-12-31"}}),
        ("kind = 'a' AND x > 3", {"kind": {"a"}}),
        ("payload.kind = 'x'", {}),
        ("raw.payload.kind IN ('x', 'y')", {}),
        ("kind = 1", {}),
        ("folded = 'a'", {}),
        ("kind <=> NULL", {}),
    ],
)
def test_only_equalities_that_must_hold_narrow_the_partitions(spark, condition, found):
    placeholders = Placeholders(spark)
    stream = placeholders.frame("raw", spark.createDataFrame([], COLUMNS).schema, streaming=True).alias("raw")
    ((_, allowed),) = stream_plan(stream.where(condition), placeholders).leaves
    assert {column: set(values) for column, values in allowed.items()} == found


@pytest.mark.long
def test_a_filter_on_a_nested_field_named_as_the_partition_column_loses_no_rows(project):
    p = project("""
    import dlt

    @dlt.table(partition_cols=["event_type"])
    def raw():
        return (
            spark.readStream.format("cloudFiles")
            .option("cloudFiles.format", "json")
            .schema("id bigint, event_type string, payload struct<event_type: string>")
            .load(spark.conf.get("landing"))
        )

    @dlt.table
    def nested():
        return spark.readStream.table("raw").where("payload.event_type = 'x'").select("id")

    @dlt.table
    def outer():
        return spark.readStream.table("raw").where("event_type = 'x'").select("id")
    """)
    p.arrive("1.json", {"id": 1, "event_type": "x", "payload": {"event_type": "x"}})
    p.run()
    p.arrive("2.json", {"id": 2, "event_type": "y", "payload": {"event_type": "x"}})
    p.run()
    assert p.rows("nested", "id") == [1, 2]
    assert p.rows("outer", "id") == [1]
    assert p.statuses()["outer"] == "IDLE"
