"""Flows that run once: a batch is appended one time, and again after a full refresh only (DS-9)."""

from __future__ import annotations

import pytest

from lakelet.storage.delta.transaction import Transaction
from tests.spark.conftest import codes

MIXED = """
    import dlt

    dlt.create_streaming_table("orders", expect_all_or_drop={"priced": "price > 0"}, expect_all={"known": "who IS NOT NULL"})

    @dlt.append_flow(target="orders", comment="what comes in")
    def live():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))

    @dlt.append_flow(target="orders", name="old", once=True)
    def back_fill():
        return spark.createDataFrame([("ann", 1), ("bob", -1), (None, 3)], "who STRING, price BIGINT")
"""


@pytest.mark.long
def test_a_batch_is_appended_once_beside_a_stream_also_when_its_code_changes_and_again_on_full_refresh(project):
    p = project(MIXED)
    p.arrive("a.json", {"who": "cy", "price": 5})
    p.run()
    assert p.rows("orders", "who", "price") == [("ann", 1), ("cy", 5), (None, 3)]
    assert p.quality() == {"priced": (3, 1), "known": (3, 1)}
    assert [e.body["once"] for e in p.events if e.event_type == "flow_definition"] == [False, True]
    assert {e.body["flow_type"] for e in p.events if e.event_type == "flow_definition"} == {"APPEND"}

    p.write(MIXED.replace('("ann", 1)', '("dan", 9)'))
    p.arrive("b.json", {"who": "eve", "price": 6})
    p.run()
    assert p.statuses() == {"live": "COMPLETED", "old": "IDLE"}
    assert p.rows("orders", "who") == ["ann", "cy", "eve", None]
    assert [s.reason for s in p.result.steps if s.flow.endswith("old")] == ["it runs once, and has run"]

    before = p.versions()
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    assert p.versions() == before

    p.run(full_refresh=("orders",))
    assert p.rows("orders", "who") == ["cy", "dan", "eve", None]
    assert p.statuses() == {"live": "COMPLETED", "old": "COMPLETED"}
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}


@pytest.mark.slow
@pytest.mark.adaptive_too
def test_a_flow_without_rows_has_run_and_one_with_another_name_runs_again(project):
    source = """
    from pyspark import pipelines as dp

    dp.create_streaming_table("t", schema="id BIGINT")

    @dp.append_flow(target="t", once=True)
    def first():
        return spark.range(int(spark.conf.get("rows")))
"""
    p = project(source)
    p.parameters["rows"] = "0"
    p.run()
    assert p.rows("t") == []
    p.parameters["rows"] = "2"
    p.run()
    assert (p.rows("t"), p.statuses()) == ([], {"first": "IDLE"})
    p.write(source.replace("def first", "def second"))
    p.run()
    assert p.rows("t") == [0, 1]


@pytest.mark.slow
def test_it_reads_tables_of_the_pipeline_when_they_are_ready_and_the_log_knows_it_too(project):
    p = project(
        """
    import dlt

    @dlt.table
    def numbers():
        return spark.range(3)

    @dlt.view
    @dlt.expect_or_drop("small", "id < 2")
    def few():
        return dlt.read("numbers")

    dlt.create_streaming_table("t")

    @dlt.append_flow(target="t", once=True)
    def copy():
        return dlt.read("few")
"""
    )
    p.run()
    assert p.rows("t") == [0, 1]
    assert p.quality("few") == {"small": (2, 1)}
    (note,) = p.storage.root.rglob("once.json")
    note.unlink()  # as if the process had died right after the commit
    p.run()
    assert (p.rows("t"), p.statuses()) == ([0, 1], {"numbers": "IDLE", "copy": "COMPLETED"})
    p.run()
    assert p.statuses() == {"numbers": "IDLE", "copy": "IDLE"}


@pytest.mark.slow
def test_what_a_flow_read_that_has_run_may_be_gone_until_a_full_refresh(project, tmp_path):
    (tmp_path / "old.json").write_text('{"n": 1}')
    p = project(
        f"""
    import dlt

    dlt.create_streaming_table("t")
    dlt.create_streaming_table("lonely", schema="n BIGINT")

    @dlt.append_flow(target="t")
    def live():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
        return reader.load(spark.conf.get("landing"))

    for target in ("t", "lonely"):
        @dlt.append_flow(target=target, name=f"old_{{target}}", once=True)
        def old():
            return spark.read.json("{tmp_path}/old.json")
"""
    )
    p.arrive("a.json", {"n": 2})
    p.run()
    (tmp_path / "old.json").unlink()
    p.arrive("b.json", {"n": 3})
    p.run()
    assert (p.rows("t", "n"), p.rows("lonely", "n")) == ([1, 2, 3], [1])
    assert p.statuses() == {"live": "COMPLETED", "old_t": "IDLE", "old_lonely": "IDLE"}
    assert sum("could not run it again" in e.message for e in p.events if e.event_type == "notice") == 2
    p.run(full_refresh=("lonely",), expect="FAILED")
    assert (p.errors(), p.rows("t", "n")) == ({"lonely": "FLOW_FAILED"}, [1, 2, 3])


@pytest.mark.slow
def test_change_flows_know_what_they_applied_when_delta_has_cleaned_its_log_up(project, tmp_path):
    (tmp_path / "old.json").write_text('{"id": 1, "seq": 0, "v": "old"}')
    p = project(
        f"""
    import dlt

    @dlt.view
    def seed():
        return spark.read.json("{tmp_path}/old.json")

    dlt.create_streaming_table("current")
    dlt.create_auto_cdc_flow(target="current", source="seed", keys=["id"], sequence_by="seq", once=True)

    def next_copy(last):
        versions = int(spark.conf.get("versions"))
        number = 1 if last is None else last + 1
        return (spark.range(number).withColumnRenamed("id", "k"), number) if number <= versions else None

    dlt.create_streaming_table("history")
    dlt.create_auto_cdc_from_snapshot_flow(target="history", source=next_copy, keys=["k"], stored_as_scd_type=2)
"""
    )
    p.parameters["versions"] = "2"
    p.run()
    for name in ("current", "history"):
        internal = p.path(name) / "_changes"
        newest = Transaction(p.spark, internal).commit([], user_metadata={})
        log = p.spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(p.spark._jsparkSession, str(internal))
        none = p.spark._jvm.scala.Option.empty()
        log.checkpoint(log.update(False, none, none), none)
        for file in (internal / "_delta_log").glob("0*.json"):
            if int(file.stem) < newest:
                file.unlink()
    (tmp_path / "old.json").unlink()
    p.parameters["versions"] = "3"
    p.run()
    assert p.statuses() == {"current": "IDLE", "history": "COMPLETED"}
    assert p.rows("current") == [(1, 0, "old")]
    assert p.rows("history", "k", "__START_AT", "__END_AT") == [(0, 1, None), (1, 2, None), (2, 3, None)]


@pytest.mark.long
def test_a_row_that_breaks_a_fail_rule_stops_the_flow_which_runs_when_the_data_is_right(project):
    source = """
    import dlt

    dlt.create_streaming_table("t", expect_all_or_fail={"small": "id < 2"})

    @dlt.append_flow(target="t", once=True)
    def all():
        return spark.range(int(spark.conf.get("rows")))
"""
    p = project(source)
    p.parameters["rows"] = "3"
    p.run(expect="FAILED")
    assert p.errors() == {"t": "EXPECTATION_VIOLATION"}
    p.parameters["rows"] = "2"
    p.run()
    assert p.rows("t") == [0, 1]


def test_a_stream_in_a_flow_that_runs_once_is_refused_before_anything_runs(project):
    p = project(
        """
    import dlt

    @dlt.table
    def source():
        return spark.range(1)

    dlt.create_streaming_table("t")

    @dlt.append_flow(target="t", once=True)
    def live():
        return spark.readStream.table("source")

    @dlt.table
    def other():
        return spark.range(1)

    @dlt.append_flow(target="other", once=True)
    def elsewhere():
        return spark.range(1)
"""
    )
    errors = p.refused()
    assert codes(errors) == ["QUERY_KIND", "UNKNOWN_TARGET"]
    stream = next(e for e in errors if e.code == "QUERY_KIND")
    assert "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW" in str(stream)
    assert (stream.where.file.endswith("pipeline.py"), stream.where.line) == (True, 10)


@pytest.mark.slow
def test_both_forms_of_sql(project):
    p = project()
    p.write(
        """
CREATE STREAMING TABLE a FLOW INSERT ONCE BY NAME SELECT 'x' AS name, 1 AS n;
CREATE STREAMING TABLE b (n INT, name STRING, CONSTRAINT low EXPECT (n < 3) ON VIOLATION DROP ROW);
CREATE FLOW seed AS INSERT INTO ONCE b BY NAME SELECT 'y' AS name, 2 AS n UNION ALL SELECT 'z', 3;
CREATE FLOW more AS INSERT INTO b BY NAME SELECT * FROM STREAM(a);
""",
        "pipeline.sql",
    )
    p.run()
    p.run()
    assert (p.rows("a"), p.rows("b")) == ([("x", 1)], [(1, "x"), (2, "y")])
    assert set(p.statuses().values()) == {"IDLE"}
    p.write("CREATE STREAMING TABLE a;\nCREATE FLOW f AS INSERT ONCE INTO a BY NAME SELECT * FROM STREAM c\n;", "pipeline.sql")
    (error,) = p.write("CREATE MATERIALIZED VIEW c AS SELECT 1 AS n;", "other.sql").refused()
    assert (error.code, error.where.line, "ONCE" in error.what) == ("QUERY_KIND", 2, True)
