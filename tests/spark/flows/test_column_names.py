"""Column names that Delta takes only with column mapping: a table of inferred columns gets it by itself when the first one arrives."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from lakelet.inspection.inspector import list_tables, read_arrow, read_rows, run_sql

PIPELINE = """
import dlt

def landed(folder):
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing") + "/" + folder)

@dlt.table(partition_cols=["kind"]{declared})
def bronze():
    return landed("odd")

@dlt.table
def silver():
    return dlt.read_stream("bronze").where("kind = 'x'")

@dlt.table
def gold():
    return dlt.read("silver")

@dlt.table
def counted():
    return dlt.read("bronze").groupBy("kind").count()

@dlt.table
def elsewhere():
    return landed("plain")
"""
FEED = """
@dlt.table
def changed():
    return spark.readStream.option("readChangeFeed", "true").table("bronze").drop("_commit_timestamp")

dlt.create_streaming_table("merged")

@dlt.append_flow(target="merged")
def from_plain():
    return landed("plain")

@dlt.append_flow(target="merged")
def from_bronze():
    return dlt.read_stream("bronze")
"""
ODD = "Sent UpdateServer"


def shown(p, name, *columns):
    """Rows as `lakelet show` prints them."""
    rows = read_rows(p.storage.root, name, limit=100).rows
    return sorted((tuple(row[c] for c in columns) for row in rows), key=repr)


@pytest.mark.long
def test_the_first_odd_name_switches_column_mapping_on_and_every_reader_goes_on(project):
    p = project(PIPELINE.replace("{declared}", "") + FEED)
    p.arrive("1.json", {"id": 1, "kind": "x"}, {"id": 2, "kind": "y"}, folder="odd")
    p.arrive("1.json", {"id": 10}, folder="plain")
    p.run()
    assert not any("column mapping" in e.message for e in p.events)
    p.arrive("2.json", {"id": 3, "kind": "x", ODD: "u", "data": {"in ner": 1}}, folder="odd")
    p.run()
    warned = [e for e in p.events if e.level == "WARN" and "column mapping" in e.message]
    assert [e.origin.dataset_name for e in warned] == ["main.default.bronze"]
    assert ODD in warned[0].message
    assert '{"delta.columnMapping.mode": "name"}' in warned[0].message
    p.arrive("3.json", {"id": 4, "kind": "x", ODD: "v", "third;": 1}, folder="odd")
    p.arrive("2.json", {"id": 11}, folder="plain")
    p.run()
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}

    for table in ("bronze", "changed"):
        assert shown(p, table, "id", ODD, "third;") == [(1, None, None), (2, None, None), (3, "u", None), (4, "v", 1)]
    for table in ("silver", "gold"):
        assert shown(p, table, "id", ODD, "third;") == [(1, None, None), (3, "u", None), (4, "v", 1)]
    assert shown(p, "merged", "id", ODD) == [(1, None), (10, None), (11, None), (2, None), (3, "u"), (4, "v")]
    assert shown(p, "elsewhere", "id") == [(10,), (11,)]
    assert shown(p, "counted", "kind", "count") == [("x", 3), ("y", 1)]
    assert {row["data"]["in ner"] for row in read_rows(p.storage.root, "silver").rows if row["data"]} == {1}

    rows = run_sql(p.storage.root, f"SELECT `{ODD}`, count(*) n FROM bronze GROUP BY 1", spark=p.spark).rows
    assert {row[ODD]: row["n"] for row in rows} == {None: 2, "u": 1, "v": 1}
    assert sorted(read_arrow(p.storage.root, "bronze").read_all()[ODD].to_pylist(), key=repr) == ["u", "v", None, None]
    infos = {info.name.rsplit(".", 1)[-1]: info for info in list_tables(p.storage.root)}
    assert infos["bronze"].rows == 4
    assert ODD in [c["name"] for c in infos["bronze"].columns]
    needed = [n.text for n in p.pipeline.check().notices if "Databricks needs" in n.text]
    assert len(needed) == 1
    assert "main.default.gold" in needed[0]
    assert "counted" not in needed[0]


@pytest.mark.slow
def test_a_declared_mode_decides_and_can_be_declared_for_a_table_that_is_there(project):
    p = project(PIPELINE.replace("{declared}", ', table_properties={"delta.columnMapping.mode": "none"}'))
    p.arrive("1.json", {"id": 1, "kind": "x"}, folder="odd")
    p.arrive("1.json", {"id": 10}, folder="plain")
    p.run()
    p.arrive("2.json", {"id": 2, "kind": "x", ODD: "u"}, folder="odd")
    for number in (11, 12):
        p.arrive(f"{number}.json", {"id": number}, folder="plain")
        p.run(expect="FAILED")
        assert p.errors()["bronze"] == "SCHEMA_OUTGROWN"
        assert "delta.columnMapping.mode" in str(p.result.errors[0])
        assert p.rows("bronze", "id") == [1]
    assert p.rows("elsewhere", "id") == [10, 11, 12]

    p.write(PIPELINE.replace("{declared}", ', table_properties={"delta.columnMapping.mode": "name"}')).run()
    assert shown(p, "bronze", "id", ODD) == shown(p, "gold", "id", ODD) == [(1, None), (2, "u")]
    p.run(full_refresh=["bronze", "silver"])
    assert shown(p, "bronze", "id", ODD) == shown(p, "gold", "id", ODD) == [(1, None), (2, "u")]


@pytest.mark.slow
def test_a_full_refresh_may_bring_the_first_odd_name(project):
    p = project(PIPELINE.replace("{declared}", ""))
    p.arrive("1.json", {"id": 1, "kind": "x"}, folder="odd")
    p.arrive("1.json", {"id": 10}, folder="plain")
    p.run()
    p.arrive("1.json", {"id": 1, "kind": "x", ODD: "u"}, folder="odd")
    p.run(full_refresh_all=True)
    assert shown(p, "bronze", "id", ODD) == shown(p, "gold", "id", ODD) == [(1, "u")]


@pytest.mark.slow
def test_a_table_with_odd_names_may_keep_a_change_feed(project):
    code = """
    import dlt
    from pyspark.sql import functions as F

    FED = {"delta.enableChangeDataFeed": "true"}

    @dlt.table(table_properties=FED)
    def landed():
        return spark.readStream.schema("id int").json(spark.conf.get("landing")).select(F.col("id").alias("the id"))

    @dlt.table(table_properties=FED)
    def view():
        return dlt.read("landed").select((F.col("the id") * 10).alias("ten times"), F.array("the id").alias("id, alone"){more})

    @dlt.table
    def changes():
        return spark.readStream.option("readChangeFeed", "true").table("view").select(F.col("ten times").alias("n"), "_change_type")
    """
    p = project(code.replace("{more}", ""))
    p.arrive("a.json", {"id": 1})
    p.run()
    assert p.rows("landed") == [1]
    p.arrive("b.json", {"id": 2})
    p.run()
    assert p.rows("view") == [(10, [1]), (20, [2])]
    assert (20, "insert") in p.rows("changes")
    p.arrive("c.json", {"id": 3})
    p.write(code.replace("{more}", ', F.col("the id").alias("and more")')).run()
    p.arrive("d.json", {"id": 4})
    p.run()
    assert p.rows("view") == [(10, [1], 1), (20, [2], 2), (30, [3], 3), (40, [4], 4)]
    assert (40, "insert") in p.rows("changes")


@pytest.mark.slow
def test_a_new_table_is_made_with_column_mapping(project):
    p = project(PIPELINE.replace("{declared}", ""))
    p.arrive("1.json", {"id": 1, "kind": "x", ODD: "u"}, folder="odd")
    p.arrive("1.json", {"id": 10}, folder="plain")
    p.run()
    assert shown(p, "bronze", "id", ODD) == shown(p, "gold", "id", ODD) == [(1, "u")]


DESCRIBED = """
import dlt

def landed():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, name STRING")
    return reader.load(spark.conf.get("landing")){more}

@dlt.table(comment="{comment}")
def appended():
    return landed()

@dlt.view
def events():
    return landed()

dlt.create_streaming_table("merged", comment="{comment}")
dlt.apply_changes("merged", "events", ["id"], "id")
"""


@pytest.mark.slow
def test_a_new_comment_leaves_column_mapping_to_the_first_rows_that_need_it(project):
    p = project(DESCRIBED.format(comment="before", more=""))
    p.arrive("1.json", {"id": 1, "name": "a"})
    p.run()
    p.write(DESCRIBED.format(comment="after", more=f".selectExpr('*', 'name AS `{ODD}`')"))
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    assert {DeltaTable(str(p.path(name))).metadata().description for name in ("appended", "merged")} == {"after"}
    assert not any("column mapping" in e.message for e in p.events)
    p.arrive("2.json", {"id": 2, "name": "b"})
    p.run()
    noticed = {e.origin.dataset_name for e in p.events if "column mapping" in e.message}
    assert noticed == {"main.default.appended", "main.default.merged"}
    for table in ("appended", "merged"):
        assert shown(p, table, "id", ODD) == [(1, None), (2, "b")]


def test_a_clustered_table_keeps_the_names_that_its_columns_have_in_files(project):
    p = project("""
        import dlt

        @dlt.table(cluster_by=["a kind"])
        def clustered():
            return spark.readStream.schema("id INT, kind STRING").json(spark.conf.get("landing")).withColumnRenamed("kind", "a kind")
    """)
    for number in (1, 2):
        p.arrive(f"{number}.json", {"id": number, "kind": "x"})
        p.run()

    assert p.rows("clustered") == [(1, "x"), (2, "x")]
    detail = p.spark.sql(f"DESCRIBE DETAIL delta.`{p.path('clustered')}`").first()
    assert detail.clusteringColumns == ["`a kind`"]
