"""What analysis refuses before anything runs: changed state, missing connectors, cells that were left out (docs/semantics/language.md)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors
from tests.spark.conftest import by_code, codes

FEED = """
    import dlt
    dlt.view(lambda: spark.readStream.schema("id BIGINT, name STRING, at BIGINT").json(spark.conf.get("landing")), name="feed")
    dlt.create_streaming_table("current")
    dlt.apply_changes(target="current", source="feed", keys=["id"], sequence_by="at", stored_as_scd_type=1)
    dlt.table(lambda: spark.range(1), name="other")
"""


@pytest.mark.long
def test_other_keys_or_another_type_of_a_stored_change_table_are_refused_before_it_is_written(project):
    p = project(FEED)
    p.arrive("1.json", {"id": 1, "name": "a", "at": 1})
    p.run()

    for old, new in (('keys=["id"]', 'keys=["name"]'), ("scd_type=1", "scd_type=2"), ('sequence_by="at"', "sequence_by=\"'x'\"")):
        p.write(FEED.replace(old, new))
        p.run(expect="FAILED")
        assert p.errors() == {"current": "CDC_STATE_CHANGED"}
        assert p.statuses() == {"current": "FAILED", "other": "IDLE"}
        with pytest.raises(DefinitionErrors, match="CDC_STATE_CHANGED"):
            p.pipeline.check()

    p.run(full_refresh=("current",))
    assert p.rows("current", "id", "name", "at") == [(1, "a", 1)]


@pytest.mark.long
def test_all_events_of_a_full_refresh_carry_the_new_flow_id(project):
    p = project(FEED)
    p.arrive("1.json", {"id": 1, "name": "a", "at": 1})
    p.run()
    before = {e.origin.flow_id for e in p.events if e.origin.flow_name == "main.default.current"}

    p.run(full_refresh=("current",))

    after = {e.origin.flow_id for e in p.events if e.origin.flow_name == "main.default.current"}
    assert len(before) == len(after) == 1
    assert before.isdisjoint(after)


CONNECTORS = """
    import dlt
    dlt.table(lambda: spark.readStream.format("kinesis").option("streamName", "s").load(), name="kinesis")
    dlt.table(lambda: spark.readStream.format("eventhubs").load(), name="eventhubs")
    dlt.table(lambda: spark.readStream.format("pubsub").load(), name="pubsub")
    dlt.table(lambda: spark.read.format("jdbc").options(url="jdbc:mysql://h/d", dbtable="t").load(), name="jdbc")
    MYSQL = {"url": "jdbc:mysql://h/d", "dbtable": "t", "driver": "com.mysql.jdbc.Driver"}
    dlt.table(lambda: spark.read.format("jdbc").options(**MYSQL).load(), name="driver")
    dlt.table(lambda: spark.sql("SELECT * FROM STREAM read_kinesis(streamName => 's')"), name="called")
    dlt.table(lambda: spark.readStream.table("kinesis"), name="reader")
"""


@pytest.mark.long
def test_a_missing_connector_is_one_coded_error_of_analysis(project):
    errors = project(CONNECTORS).refused()

    assert codes(errors) == ["SOURCE_FORMAT_MISSING"] * 6
    assert {str(e.dataset).rsplit(".", 1)[-1] for e in errors} == {"kinesis", "eventhubs", "pubsub", "jdbc", "driver", "called"}
    assert any("kinesis" in e.what for e in errors)


def test_a_source_of_a_package_that_the_project_does_not_name_says_what_to_write_and_where_it_is_read(project):
    p = project("""
        import dlt

        @dlt.table
        def messages():
            return spark.readStream.format("Kafka").option("subscribe", "t").load()
    """)

    (error,) = p.refused()

    assert (error.code, error.where.line) == ("PACKAGE_MISSING", 6)
    assert 'packages = ["kafka"] below [tool.lakelet]' in error.todo


def test_a_connector_that_is_missing_while_a_file_is_loaded_is_the_same_error(project):
    p = project("""
        import dlt

        limits = spark.read.format("jdbc").option("driver", "com.example.Driver").option("url", "jdbc:x:y").option("dbtable", "t").load()
        dlt.table(lambda: spark.range(1), name="t")
    """)

    (error,) = p.refused()

    assert (error.code, "com.example.Driver" in error.what, error.where.line) == ("SOURCE_FORMAT_MISSING", True, 4)


NOTEBOOK = """\
# Databricks notebook source
# MAGIC %sh
# MAGIC cp /dbfs/rules.json /tmp/rules.json

# COMMAND ----------

# MAGIC %sql
# MAGIC CREATE TABLE lookup AS SELECT 1 AS id

# COMMAND ----------

import dlt

@dlt.table
def joined():
    return spark.table("lookup")

# COMMAND ----------

{last}

# COMMAND ----------

# MAGIC %scala
# MAGIC val after = 1
"""


def test_an_error_below_cells_that_were_left_out_names_them_and_their_magic(project):
    p = project()

    for last, code in (("RULES = open('/tmp/lakelet-no-such-rules.json').read()", "SOURCE_FAILED"), ("", "UNKNOWN_DATASET")):
        p.write(NOTEBOOK.format(last=last), "n.py")
        why = (by_code(p.refused())[code].why or "").splitlines()
        assert [line.split(" at ")[0] for line in why if "was left out" in line] == ["%sh", "%sql"], code
        assert any(line.startswith("%sh at ") and line.split(" was ")[0].endswith("line 2") for line in why)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT source KEYS (id) STORED AS SCD TYPE 1",
        "CREATE FLOW f AS AUTO CDC FROM SNAPSHOT INTO t FROM source KEYS (id)",
    ],
)
def test_changes_from_snapshots_are_refused_by_name_in_sql(project, statement):
    p = project()
    p.write(f"CREATE STREAMING TABLE t; {statement}", "p.sql")

    error = by_code(p.refused())["NOT_SUPPORTED_YET"]

    assert "FROM SNAPSHOT" in error.what
    assert "create_auto_cdc_from_snapshot_flow" in error.todo


def test_what_databricks_refuses_and_spark_runs_gets_a_notice(project):
    p = project("import dlt\ndlt.table(dlt.expect('known', 'id IN (SELECT 1)')(lambda: spark.range(1)), name='t')")
    p.write("CREATE MATERIALIZED VIEW wide AS SELECT * FROM (SELECT 'a' AS k, 1 AS v) PIVOT (sum(v) FOR k IN ('a'))", "p.sql")

    notices = [n.text for n in p.pipeline.check().notices]

    assert "PIVOT runs here only: Databricks refuses it in pipelines" in notices
    assert "the rule 'known' holds a subquery, which Databricks refuses in expectations" in notices
