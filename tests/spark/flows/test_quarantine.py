"""Rows that drop rules leave out are kept beside their dataset, each row in exactly one of both (docs/semantics/quarantine.md)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.spark.conftest import codes

OWN = ["_broken_rules", "_quarantined_at", "_update_id", "_flow_name", "_source_file", "_released_by"]
WORKED = """
    import dlt

    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect("age_known", "age IS NOT NULL")
    @dlt.expect_or_drop("id_ok", "id IS NOT NULL")
    @dlt.expect_or_drop("age_ok", "age >= 0")
    def people():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.schemaHints", "id BIGINT, age BIGINT").load(spark.conf.get("landing")))
"""


def records() -> list[dict[str, Any]]:
    values = [(1, 30), (2, None), (3, -5), (None, 40), (None, -1)]
    return [{k: v for k, v in zip(("id", "age"), row, strict=True) if v is not None} for row in values]


def held(project: Any, name: str, *columns: str) -> list[Any]:
    """Rows that are held, with the rules they broke."""
    table = project.table(f"{name}_quarantine")
    rows = table.to_pylist()
    return sorted(((*(r[c] for c in columns), tuple(r["_broken_rules"])) for r in rows if r["_released_by"] is None), key=repr)


def test_the_worked_example_keeps_each_dropped_row_with_all_the_rules_it_broke(project):
    p = project(WORKED)
    p.arrive("a.json", *records())
    p.run()
    assert p.rows("people", "id", "age") == [(1, 30)]
    assert held(p, "people", "id", "age") == [
        (2, None, ("age_known", "age_ok")),
        (3, -5, ("age_ok",)),
        (None, -1, ("id_ok", "age_ok")),
        (None, 40, ("id_ok",)),
    ]
    assert p.quality() == {"age_known": (4, 1), "id_ok": (3, 2), "age_ok": (2, 3)}
    (batch,) = [e for e in p.events if e.body.get("data_quality")]
    assert batch.body["data_quality"]["dropped_records"] == batch.body["data_quality"]["quarantined_records"] == 4
    table = p.table("people_quarantine")
    assert table.column_names == [*p.table("people").column_names, *OWN]
    row = table.to_pylist()[0]
    assert (row["_update_id"], row["_flow_name"]) == (p.result.update_id, "main.default.people")
    assert row["_source_file"].endswith("/landing/a.json")
    assert row["_quarantined_at"] is not None
    stored = p.storage.registry().datasets["main.default.people_quarantine"]
    assert (stored.kind, stored.quarantine_of, stored.active) == ("streaming_table", "main.default.people", True)
    assert stored.owner == p.storage.registry().datasets["main.default.people"].owner
    p.arrive("b.json", {"id": 7, "age": 1}, {"id": 8, "age": -1})
    p.arrive("c.json", {"id": 9, "age": 1})
    p.run()
    assert p.rows("people", "id") == [1, 7, 9]
    assert len(held(p, "people")) == 5
    before = p.versions()
    p.run()
    assert p.versions() == before
    assert not [e for e in p.events if "no longer" in e.message]


def test_nothing_is_written_to_either_table_when_a_fail_rule_is_violated(project):
    p = project(WORKED.replace('@dlt.expect("age_known"', '@dlt.expect_or_fail("small", "id < 100")\n    @dlt.expect("age_known"'))
    p.arrive("a.json", *records())
    p.run(expect="FAILED")
    assert p.errors() == {"people": "EXPECTATION_VIOLATION"}
    assert not (p.path("people") / "_delta_log").exists()
    assert not (p.path("people_quarantine") / "_delta_log").exists()


@pytest.mark.long
def test_sql_tables_and_materialized_views_have_a_quarantine_that_is_replaced_with_them(project):
    p = project()
    p.write(
        """
        CREATE OR REFRESH STREAMING TABLE bronze
        AS SELECT * FROM STREAM read_files('${landing}', format => 'json', schemaHints => 'id BIGINT, n BIGINT');

        CREATE OR REFRESH STREAMING TABLE kept (CONSTRAINT small EXPECT (n < 10) ON VIOLATION DROP ROW)
        TBLPROPERTIES ('lakelet.quarantine' = 'TRUE')
        AS SELECT id, n FROM STREAM bronze;

        CREATE OR REFRESH MATERIALIZED VIEW sums (CONSTRAINT few EXPECT (total < 20) ON VIOLATION DROP ROW)
        TBLPROPERTIES ('lakelet.quarantine' = 'true')
        AS SELECT id, sum(n) AS total FROM bronze GROUP BY id;
        """,
        "pipeline.sql",
    )
    p.arrive("a.json", {"id": 1, "n": 1}, {"id": 2, "n": 25})
    p.run()
    assert p.rows("kept", "id", "n") == [(1, 1)]
    assert held(p, "kept", "id", "n") == [(2, 25, ("small",))]
    assert p.rows("sums", "id", "total") == [(1, 1)]
    assert held(p, "sums", "id", "total") == [(2, 25, ("few",))]
    first = p.versions()
    p.run()
    assert p.versions() == first
    code = (p.folder / "pipeline.sql").read_text()
    p.write(code.replace("'lakelet.quarantine' = 'true'", "'lakelet.quarantine' = 'false'"), "pipeline.sql").run()
    assert p.versions()["sums_quarantine"] == first["sums_quarantine"]
    p.write(code, "pipeline.sql").run()
    assert held(p, "sums", "id", "total") == [(2, 25, ("few",))]
    p.arrive("b.json", {"id": 1, "n": 30}, {"id": 2, "n": -10}, {"id": 3, "n": None})
    p.run()
    assert p.rows("sums", "id", "total") == [(2, 15)]
    assert held(p, "sums", "id", "total") == [(1, 31, ("few",)), (3, None, ("few",))]
    assert held(p, "kept", "id", "n") == [(1, 30, ("small",)), (2, 25, ("small",)), (3, None, ("small",))]
    assert p.rows("kept", "id", "n") == [(1, 1), (2, -10)]


def test_a_batch_without_a_dropped_row_does_not_touch_the_quarantine(project):
    p = project(WORKED)
    p.arrive("a.json", {"id": 1, "age": 1})
    p.run()
    assert (p.version("people_quarantine"), p.rows("people_quarantine")) == (0, [])
    p.arrive("b.json", {"id": 2, "age": 1})
    p.run()
    assert (p.version("people_quarantine"), p.rows("people", "id")) == (0, [1, 2])


SPECIAL = {
    "not null": 'schema="id BIGINT NOT NULL, age BIGINT, _rescued_data STRING"',
    "partitioned": 'partition_cols=["age"]',
    "clustered": 'cluster_by=["age"]',
}


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize("how", SPECIAL)
def test_tables_that_are_written_in_another_way_are_divided_too(how, project):
    text = SPECIAL[how] + ', table_properties={"lakelet.quarantine": "true", "delta.enableChangeDataFeed": "true"}'
    p = project(WORKED.replace('table_properties={"lakelet.quarantine": "true"}', text))
    for file in ("a.json", "b.json"):
        p.arrive(file, *records())
        p.run()
    assert p.rows("people", "id", "age") == [(1, 30)] * 2
    assert held(p, "people", "id", "age") == [
        *[(2, None, ("age_known", "age_ok"))] * 2,
        *[(3, -5, ("age_ok",))] * 2,
        *[(None, -1, ("id_ok", "age_ok"))] * 2,
        *[(None, 40, ("id_ok",))] * 2,
    ]


@pytest.mark.slow
def test_columns_that_come_later_and_odd_names_come_into_the_quarantine_too(project):
    p = project(WORKED)
    p.arrive("a.json", *records())
    p.run()
    p.arrive("b.json", {"id": None, "age": 5, "a name; with more": "x"}, {"id": 5, "age": 5, "a name; with more": "y"})
    p.run()
    assert held(p, "people", "age", "a name; with more")[2] == (40, None, ("id_ok",))
    assert (5, "x", ("id_ok",)) in held(p, "people", "age", "a name; with more")
    assert p.table("people_quarantine").column_names == [*p.table("people").column_names, *OWN]
    assert p.rows("people", "id", "a name; with more") == [(1, None), (5, "y")]


WIDER = """
    import dlt

    @dlt.table({schema}table_properties={{"lakelet.quarantine": "true", "delta.enableTypeWidening": "true"}})
    @dlt.expect_or_drop("even", "n % 2 = 0")
    def numbers():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, n BIGINT")
        return files.load(spark.conf.get("landing")).selectExpr("id", "cast(n AS {type}) AS n")
"""


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["", 'schema="id BIGINT NOT NULL, n {type}", '])
def test_types_that_become_wider_do_so_in_the_quarantine_and_its_rows_can_be_replayed(schema, project):
    p = project(WIDER.format(schema=schema.format(type="INT"), type="INT"))
    p.arrive("a.json", {"id": 1, "n": 2}, {"id": 2, "n": 3})
    p.run()
    wide = WIDER.format(schema=schema.format(type="BIGINT"), type="BIGINT")
    p.write(wide)
    p.arrive("b.json", {"id": 3, "n": 2**40}, {"id": 4, "n": 2**40 + 1})
    p.run()
    assert (by_spark(p, "numbers"), by_spark(p, "numbers_quarantine")) == ([(1, 2), (3, 2**40)], [(2, 3), (4, 2**40 + 1)])
    p.write(wide.replace("n % 2 = 0", "n > 0"))
    p.pipeline.replay("numbers")
    assert by_spark(p, "numbers") == [(1, 2), (2, 3), (3, 2**40), (4, 2**40 + 1)]


def by_spark(project: Any, name: str) -> list[tuple[int, int]]:
    """Rows of a table with wider types, which delta-rs does not read."""
    found = project.spark.read.format("delta").load(str(project.path(name))).select("id", "n").collect()
    return sorted((row["id"], row["n"]) for row in found)


@pytest.mark.slow
def test_a_full_refresh_empties_the_quarantine_too_also_when_nothing_is_dropped_after_it(project):
    p = project(WORKED)
    p.arrive("a.json", *records())
    p.run()
    p.run(full_refresh=["people"])
    assert len(held(p, "people")) == 4
    (p.landing / "a.json").unlink()
    p.arrive("b.json", {"id": 5, "age": 5})
    p.run(full_refresh=["people"])
    assert p.rows("people", "id") == [5]
    assert p.rows("people_quarantine") == []


MAPS = """
    import dlt

    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect_or_drop("small", "n < 10")
    def rows():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
        return reader.schema("n BIGINT, t TIMESTAMP, of MAP<STRING, BIGINT>").load(spark.conf.get("landing"))
"""


@pytest.mark.slow
def test_rows_that_a_flow_reads_again_are_not_held_twice_and_those_that_do_not_come_again_stay(project):
    p = project(MAPS)
    p.arrive("a.json", {"n": 11, "of": {"a": 1}}, {"n": 11, "of": {"a": 1}}, {"n": 12, "t": "2026-01-01T00:00:00.000001Z"}, {"n": 1})
    p.arrive("b.json", {"n": 20}, {"n": 2})
    p.arrive("c.json", {"n": 30})
    p.run()
    assert held(p, "rows", "n") == [(n, ("small",)) for n in (11, 11, 12, 20, 30)]
    (p.landing / "b.json").unlink()
    p.arrive("d.json", {"n": 11, "of": {"a": 2}}, {"n": 12, "t": "2026-01-01T00:00:00.000002Z"})
    p.write(MAPS.replace("n < 10", "n < 10 OR n = 30"))
    p.run(reset_checkpoint=["rows"])
    assert p.rows("rows", "n") == [1, 1, 2, 30]
    assert held(p, "rows", "n") == [(n, ("small",)) for n in (11, 11, 11, 12, 12, 20)]
    before = p.version("rows_quarantine")
    p.arrive("e.json", {"n": 3})
    p.run()
    assert p.version("rows_quarantine") == before


@pytest.mark.slow
def test_several_append_and_once_flows_share_the_quarantine_of_their_table(project):
    p = project("""
        import dlt

        dlt.create_streaming_table("all", expect_all_or_drop={"small": "n < 10"}, table_properties={"lakelet.quarantine": "true"})

        @dlt.append_flow(target="all", name="old", once=True)
        def old():
            return spark.createDataFrame([(1, 1), (2, 20)], "id BIGINT, n BIGINT")

        for kind in ("a", "b"):
            @dlt.append_flow(target="all", name=f"from_{kind}")
            def rows(kind=kind):
                return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, n BIGINT")
                        .load(spark.conf.get("landing") + "/" + kind))
    """)
    p.arrive("1.json", {"id": 3, "n": 3}, {"id": 4, "n": 40}, folder="a")
    p.arrive("1.json", {"id": 5, "n": 5}, {"id": 6, "n": None}, folder="b")
    p.run()
    assert p.rows("all", "id") == [1, 3, 5]
    rows = sorted((r["id"], r["_flow_name"]) for r in p.table("all_quarantine").to_pylist())
    assert rows == [(2, "main.default.old"), (4, "main.default.from_a"), (6, "main.default.from_b")]
    p.run(full_refresh=["all"])
    assert p.rows("all", "id") == [1, 3, 5]
    assert sorted(r["id"] for r in p.table("all_quarantine").to_pylist()) == [2, 4, 6]


@pytest.mark.long
def test_a_quarantine_that_is_switched_off_keeps_its_rows_and_goes_on_when_it_is_on_again(project):
    p = project(WORKED)
    p.arrive("a.json", *records())
    p.run()
    p.write(WORKED.replace('"true"', '"false"'))
    p.arrive("b.json", *records())
    p.run()
    assert len(held(p, "people")) == 4
    assert not p.storage.registry().datasets["main.default.people_quarantine"].active
    assert not [e for e in p.events if (e.body.get("data_quality") or {}).get("quarantined_records")]
    p.parameters["pipelines.dropInactiveTables"] = "true"
    p.run()
    assert len(held(p, "people")) == 4
    p.write(WORKED)
    p.arrive("c.json", *records())
    p.run()
    assert len(held(p, "people")) == 8


@pytest.mark.slow
def test_a_complete_mode_table_and_its_quarantine_are_replaced_by_each_batch(project):
    p = project("""
        import dlt
        from pyspark.sql import functions as F

        @dlt.table(table_properties={"lakelet.quarantine": "true"})
        @dlt.expect_or_drop("few", "total < 10")
        def totals():
            rows = (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, n BIGINT")
                    .load(spark.conf.get("landing")))
            return rows.groupBy("id").agg(F.sum("n").alias("total"))
    """)
    p.arrive("a.json", {"id": 1, "n": 1}, {"id": 2, "n": 20})
    p.run()
    assert (p.rows("totals"), held(p, "totals", "id", "total")) == ([(1, 1)], [(2, 20, ("few",))])
    p.arrive("b.json", {"id": 1, "n": 10}, {"id": 2, "n": -15})
    p.run()
    assert (p.rows("totals"), held(p, "totals", "id", "total")) == ([(2, 5)], [(1, 11, ("few",))])


REFUSED = {
    "PROPERTY_INVALID": WORKED.replace('"true"', '"yes"'),
    "PROPERTY_UNKNOWN": WORKED.replace('lakelet.quarantine"', 'lakelet.quarantin"'),
    "QUARANTINE_COLUMN": WORKED.replace('get("landing")))', 'get("landing")).selectExpr("*", "1 AS _Flow_Name"))'),
    "QUARANTINE_REFUSED": WORKED + "\n    @dlt.table\n    def People_Quarantine():\n        return spark.range(1)\n",
    "QUARANTINE_READ": WORKED + '\n    @dlt.table\n    def again():\n        return spark.read.table("people_quarantine")\n',
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_is_refused_by_name_before_anything_is_written(code, project):
    p = project(REFUSED[code])
    p.arrive("a.json", *records())
    assert codes(p.refused()) == [code]


def test_the_target_of_change_flows_is_refused_and_a_table_without_drop_rules_is_told_about(project):
    p = project("""
        import dlt

        @dlt.table(table_properties={"lakelet.quarantine": "true"})
        @dlt.expect("known", "id IS NOT NULL")
        def feed():
            return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, n BIGINT")
                    .load(spark.conf.get("landing")))

        dlt.create_streaming_table("now", expect_all_or_drop={"small": "n < 10"}, table_properties={"lakelet.quarantine": "true"})
        dlt.apply_changes(target="now", source="feed", keys=["id"], sequence_by="n")
    """)
    assert codes(p.refused()) == ["QUARANTINE_REFUSED"]
    p.write("".join((p.folder / "pipeline.py").read_text().partition("dlt.create_streaming_table")[:1]))
    notices = [notice.text for notice in p.pipeline.check().notices]
    assert notices == ["lakelet.quarantine has no effect on main.default.feed: it has no rule that drops rows"]


@pytest.mark.slow
def test_a_stored_table_with_the_name_is_refused_and_data_that_brings_a_column_of_that_name_fails_its_branch(project):
    p = project("import dlt\n\n@dlt.table\ndef people_quarantine():\n    return spark.range(1)\n")
    p.run()
    p.write(WORKED)
    assert codes(p.refused()) == ["QUARANTINE_REFUSED"]
    p.write(WORKED.replace("def people", "def others"))
    p.arrive("a.json", *records())
    p.run()
    p.arrive("b.json", {"id": 5, "age": 5, "_released_by": "x"})
    p.run(expect="FAILED")
    assert p.errors() == {"others": "QUARANTINE_COLUMN"}
    assert p.rows("others", "id") == [1]


KEPT_BY_SPARK = {
    "a plain table": "",
    "NOT NULL": 'schema="id BIGINT NOT NULL, luck DOUBLE", ',
    "a length of text": 'schema="id VARCHAR(5), luck DOUBLE", ',
    "column mapping": "'delta.columnMapping.mode': 'name', ",
    "a CHECK": "'delta.constraints.all': 'luck < 2', ",
}


@pytest.mark.parametrize("how", KEPT_BY_SPARK)
def test_a_row_is_in_one_of_both_tables_though_the_query_gives_other_rows_each_time(how, project):
    schema, properties = (KEPT_BY_SPARK[how], "") if "schema" in KEPT_BY_SPARK[how] else ("", KEPT_BY_SPARK[how])
    kind = "string" if "VARCHAR" in schema else "bigint"
    p = project(f"""
        import dlt
        from pyspark.sql import functions as F

        @dlt.table({schema}table_properties={{{properties}"lakelet.quarantine": "true"}})
        @dlt.expect_or_drop("lucky", "luck < 0.5")
        def drawn():
            return spark.range(1000).withColumn("luck", F.rand()).withColumn("id", F.col("id").cast("{kind}"))
    """)
    p.run()
    kept, left = [int(n) for n in p.rows("drawn", "id")], [int(r[0]) for r in held(p, "drawn", "id")]
    assert sorted([*kept, *left]) == list(range(1000))
    assert not [row for row in p.table("drawn").to_pylist() if row["luck"] >= 0.5]
    details = DeltaTable(str(p.path("drawn_quarantine"))).metadata().description
    assert re.search("Rows of main.default.drawn that broke a drop rule", details)
