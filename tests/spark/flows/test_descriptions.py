"""Comments, properties and clustering of stored tables follow their definition, also where no row is new (TP-1 to TP-5)."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

PIPELINE = """
import dlt

def landed():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, name STRING").load(
        spark.conf.get("landing"))

@dlt.table({described})
def bronze():
    return landed()

dlt.create_streaming_table("fed", {described})

@dlt.append_flow(target="fed")
def one():
    return dlt.read_stream("bronze")

dlt.create_streaming_table("changed", {described})
dlt.apply_changes("changed", "bronze", ["id"], "id")

@dlt.table({described})
def view():
    return spark.read.table("bronze").select("id", "name")
"""
TABLES = ("bronze", "fed", "changed", "view")
FIRST = """comment="all of them", table_properties={"quality": "bronze", "delta.appendOnly": "false", "team": "a"},
    schema="id BIGINT COMMENT 'the key', name STRING COMMENT 'as told'" """
SECOND = """comment="every one", table_properties={"quality": "silver", "delta.feature.timestampNtz": "supported"},
    schema="id BIGINT COMMENT 'the only key', name STRING" """
NOTHING = ""


def described(p, name):
    """Comment, properties that people set, and comments of the columns."""
    metadata = DeltaTable(str(p.path(name))).metadata()
    own = {k: v for k, v in metadata.configuration.items() if not k.startswith("lakelet.") and k != "delta.enableExpiredLogCleanup"}
    fields = p.spark.read.format("delta").load(str(p.path(name))).schema.fields
    return metadata.description, own, {f.name: f.metadata["comment"] for f in fields if f.metadata.get("comment")}


@pytest.mark.long
def test_what_is_changed_or_removed_while_nothing_is_new_is_applied_in_one_commit_and_no_commit_follows(project):
    p = project(PIPELINE.format(described=FIRST))
    p.arrive("1.json", {"id": 1, "name": "a"})
    p.run()
    p.run()
    before = p.versions()
    for name in TABLES:
        told = {"quality": "bronze", "delta.appendOnly": "false", "team": "a"}
        assert described(p, name) == ("all of them", told, {"id": "the key", "name": "as told"})

    p.write(PIPELINE.format(described=SECOND)).run()
    assert set(p.statuses().values()) == {"IDLE"}
    assert {name: p.versions()[name] - before[name] for name in TABLES} == dict.fromkeys(TABLES, 1)
    for name in TABLES:
        assert described(p, name) == ("every one", {"quality": "silver"}, {"id": "the only key"})
        assert "timestampNtz" in p.spark.sql(f"DESCRIBE DETAIL delta.`{p.path(name)}`").first().tableFeatures
    now = p.versions()
    assert p.run().versions() == now

    p.write(PIPELINE.format(described="schema='id BIGINT, name STRING'")).run()
    assert [described(p, name) for name in TABLES] == [(None, {}, {})] * 4
    assert {name: p.versions()[name] - now[name] for name in TABLES} == dict.fromkeys(TABLES, 1)
    now = p.versions()
    assert p.run().versions() == now

    p.arrive("2.json", {"id": 2, "name": "b"})
    p.run()
    for name in TABLES:
        assert p.rows(name) == [(1, "a"), (2, "b")]


@pytest.mark.slow
def test_what_was_set_by_hand_stays_until_it_is_declared(project):
    p = project(PIPELINE.format(described='table_properties={"quality": "bronze", "team": "a"}'))
    p.arrive("1.json", {"id": 1, "name": "a"})
    p.run()
    for name in TABLES:
        table = f"delta.`{p.path(name)}`"
        p.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('steward' = 'me', 'team' = 'b', 'delta.checkpointInterval' = '20')")
        if name != "view":
            p.spark.sql(f"COMMENT ON TABLE {table} IS 'by hand'")
    p.write(PIPELINE.format(described=""))
    for number in (2, 3):
        p.run()
        p.arrive(f"{number}.json", {"id": number, "name": "b"})
        p.run()
        for name in TABLES:
            assert p.rows(name, "id") == [1, *range(2, number + 1)]
            comment, properties, _ = described(p, name)
            assert properties == {"steward": "me", "team": "b", "delta.checkpointInterval": "20"}, name
            assert comment == (None if name == "view" else "by hand")
    p.write(PIPELINE.format(described='comment="declared", table_properties={"steward": "us"}')).run()
    p.write(PIPELINE.format(described="")).run()
    for name in TABLES:
        assert described(p, name)[:2] == (None, {"team": "b", "delta.checkpointInterval": "20"})


@pytest.mark.slow
@pytest.mark.long
def test_clustering_is_declared_changed_and_taken_back_without_new_rows(project):
    def clustering():
        return [list(p.spark.sql(f"DESCRIBE DETAIL delta.`{p.path(name)}`").first().clusteringColumns) for name in ("bronze", "view")]

    p = project(PIPELINE.format(described=""))
    p.arrive("1.json", {"id": 1, "name": "a"})
    p.run()
    assert clustering() == [[], []]
    for columns in (["id"], ["name", "id"], []):
        p.write(PIPELINE.format(described=f"cluster_by={columns}")).run()
        assert clustering() == [columns, columns]
        now = p.versions()
        assert p.run().versions() == now
    p.write(PIPELINE.format(described="cluster_by=['id']"))
    p.arrive("2.json", {"id": 2, "name": "b"})
    p.run()
    assert clustering() == [["id"], ["id"]]
    p.write(PIPELINE.format(described="")).run(full_refresh_all=True)
    assert clustering() == [[], []]
    assert p.rows("bronze", "id") == p.rows("view", "id") == [1, 2]


@pytest.mark.slow
def test_other_partition_columns_are_refused_also_without_new_rows(project):
    p = project(PIPELINE.format(described=""))
    p.arrive("1.json", {"id": 1, "name": "a"})
    p.run()
    p.write(PIPELINE.format(described="partition_cols=['name']")).run(expect="FAILED")
    assert set(p.errors()) == {"bronze", "fed", "changed"} - {"fed", "changed"}
    assert "partitioned by" in str(p.result.errors[0])
