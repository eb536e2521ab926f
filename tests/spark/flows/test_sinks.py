"""Sinks: rows that leave the pipeline, by Delta, by Spark's writers, and by a function of the user's (docs/semantics/sinks.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelet.inspection.inspector import list_tables, read_rows, run_sql
from tests.spark.conftest import codes

SOURCE = """
    import dlt
    from pyspark import pipelines as dp

    @dlt.table
    def source():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))
"""


def delta_rows(spark: Any, path: Path, *columns: str) -> list[Any]:
    rows = spark.read.format("delta").load(str(path)).select(*columns).collect()
    return sorted(tuple(row) if len(columns) > 1 else row[0] for row in rows)


def sink_events(p: Any, kind: str) -> list[Any]:
    return [e for e in p.events if e.event_type == kind and e.origin.sink_name]


@pytest.mark.long
def test_a_delta_sink_gets_new_rows_only_and_keeps_them_when_it_is_refreshed_in_full(project, tmp_path):
    out = tmp_path / "out"
    p = project(
        SOURCE
        + f"""
    dlt.create_sink(name="outside", format="delta", options={{"path": "{out}"}})

    @dlt.append_flow(name="send", target="outside", comment="to the neighbours")
    def any_name():
        return spark.readStream.table("source").select("n").where("n > 0")
"""
    )
    p.arrive("a.json", {"n": 1}, {"n": -1})
    p.run()
    assert delta_rows(p.spark, out, "n") == [1]
    p.arrive("b.json", {"n": 2})
    p.run()
    assert delta_rows(p.spark, out, "n") == [1, 2]
    p.run()
    assert p.statuses() == {"source": "IDLE", "send": "IDLE"}

    p.run(full_refresh=("outside",))
    assert delta_rows(p.spark, out, "n") == [1, 1, 2, 2]
    p.run(select=("outside",))
    assert p.statuses() == {"source": "EXCLUDED", "send": "IDLE"}

    (info,) = [t for t in list_tables(p.storage.root) if t.kind == "sink"]
    assert (info.name, info.path, info.rows, info.columns) == ("main.default.outside", out.as_uri(), 4, ({"name": "n", "type": "bigint"},))


@pytest.mark.slow
def test_events_name_the_sink_its_format_and_options_without_secrets(project, tmp_path):
    p = project(
        SOURCE
        + f"""
    dp.create_sink("outside", "delta", {{"path": "{tmp_path}/out", "mergeSchema": True, "fs.s3a.secret.key": "s3cr3t"}})

    @dp.append_flow(target="outside")
    def send():
        return spark.readStream.table("source")
"""
    )
    p.arrive("a.json", {"n": 1})
    p.run()
    (definition,) = sink_events(p, "sink_definition")
    assert definition.origin.sink_name == "main.default.outside"
    assert definition.body == {
        "format": "delta",
        "options": {"path": f"{tmp_path}/out", "mergeSchema": "true", "fs.s3a.secret.key": "[REDACTED]"},
    }
    (flow,) = sink_events(p, "flow_definition")
    assert (flow.body["output_sink"], flow.body["flow_type"]) == ("main.default.outside", "APPEND")
    assert (flow.body["input_datasets"], "output_dataset" in flow.body) == (["main.default.source"], False)
    counted = [e.body for e in sink_events(p, "flow_progress") if "num_output_rows" in e.body.get("metrics", {})]
    assert counted == [{"status": "RUNNING", "metrics": {"num_output_rows": 1}}]
    logged = [r["origin"] for r in p.logged(event_type="sink_definition")]
    assert [(o["sink_name"], o["dataset_name"]) for o in logged] == [("main.default.outside", None)]
    assert "s3cr3t" not in "".join(json.dumps(r["details"]) for r in p.logged())
    p.arrive("b.json", {"n": 2, "more": "x"})
    p.run()
    assert delta_rows(p.spark, tmp_path / "out", "n") == [1, 2]
    assert "more" in p.spark.read.format("delta").load(f"{tmp_path}/out").columns


@pytest.mark.slow
def test_a_table_name_is_a_table_below_the_storage_that_others_read(project):
    p = project(
        SOURCE
        + """
    dlt.create_sink("to_mart", "delta", {"tableName": "mart.sales.orders"})

    @dlt.append_flow(target="to_mart")
    def send():
        return dlt.read_stream("source").select("n")

    @dlt.append_flow(target="to_mart", once=True)
    def before():
        return spark.createDataFrame([(0,)], "n BIGINT")
"""
    )
    p.arrive("a.json", {"n": 1})
    p.run()
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    root = p.storage.root
    assert sorted(row["n"] for row in read_rows(root, "mart.sales.orders").rows) == [0, 1]
    assert [row["n"] for row in read_rows(root, "to_mart", limit=5).rows].count(1) == 1
    assert list(run_sql(root, "SELECT sum(n) AS s FROM mart.sales.orders", spark=p.spark).rows) == [{"s": 1}]
    total = "spark.read.table('mart.sales.orders').selectExpr('sum(n) AS n')"
    p.write(f"import dlt\n@dlt.table\ndef total():\n    return {total}\n", "total.py")
    p.run()
    assert p.rows("total") == [1]
    p.run(full_refresh_all=True)
    assert sorted(row["n"] for row in read_rows(root, "to_mart").rows) == [0, 0, 1, 1]


@pytest.mark.slow
def test_any_format_of_spark_is_written_with_its_options(project, tmp_path):
    p = project(
        SOURCE
        + f"""
    dlt.create_sink("lines", "json", {{"path": "{tmp_path}/lines", "compression": "gzip", "ignoreNullFields": False}})
    dlt.create_sink("nothing", "noop")
    dlt.create_sink("screen", "console", {{"numRows": 3}})

    for target in ("lines", "nothing", "screen"):
        @dlt.append_flow(target=target, name=f"to_{{target}}")
        def send():
            return spark.readStream.table("source")

    @dlt.append_flow(target="lines", once=True)
    def old():
        return spark.createDataFrame([(0, None)], "n BIGINT, who STRING")
"""
    )
    p.arrive("a.json", {"n": 1, "who": "ann"})
    p.run()
    counted = {
        str(e.origin.sink_name): e.body["metrics"]
        for e in sink_events(p, "flow_progress")
        if "num_output_rows" in e.body.get("metrics", {})
    }
    assert counted == {f"main.default.{name}": {"num_output_rows": 1} for name in ("lines", "nothing", "screen")}
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    p.arrive("b.json", {"n": 2, "who": "bob"})
    p.run(full_refresh=("lines",))
    lines = p.spark.read.json(f"{tmp_path}/lines").select("n", "who").collect()
    assert sorted(map(tuple, lines), key=str) == [(0, None), (0, None), (1, "ann"), (1, "ann"), (2, "bob")]
    assert len(list((tmp_path / "lines").glob("*.json.gz"))) >= 4
    assert [t.path for t in list_tables(p.storage.root) if t.kind == "sink"] == ["", "", ""]


def test_a_format_that_spark_does_not_have_fails_its_flow_alone(project):
    p = project(
        SOURCE
        + """
    dlt.create_sink("bus", "no_such_format")

    @dlt.append_flow(target="bus")
    def send():
        return spark.readStream.table("source").selectExpr("to_json(struct(*)) AS value")

    @dlt.append_flow(target="bus", once=True)
    def old():
        return spark.createDataFrame([("x",)], "value STRING")
"""
    )
    p.arrive("a.json", {"n": 1})
    p.run(expect="FAILED")
    assert p.rows("source", "n") == [1]
    assert [e.code for e in p.result.errors] == ["SINK_FORMAT_MISSING", "SINK_FORMAT_MISSING"]
    assert p.result.errors[0].where.line == 10


def test_a_sink_for_a_package_that_the_session_does_not_have_is_refused_before_anything_runs(project):
    p = project(
        SOURCE
        + """
    dlt.create_sink("bus", "kafka", {"kafka.bootstrap.servers": "host:9092", "topic": "t", "databricks.serviceCredential": "cred"})

    @dlt.append_flow(target="bus")
    def send():
        return spark.readStream.table("source").selectExpr("to_json(struct(*)) AS value")
"""
    )
    p.arrive("a.json", {"n": 1})
    (error,) = p.refused()
    assert (error.code, error.where.line, str(error.dataset)) == ("PACKAGE_MISSING", 10, "main.default.bus")
    assert 'packages = ["kafka"]' in error.todo


@pytest.mark.long
def test_a_function_of_the_user_is_a_sink_and_learns_of_a_new_start_by_batch_0(project, tmp_path):
    p = project(
        SOURCE
        + f"""
    out = "{tmp_path}/merged"

    @dp.foreach_batch_sink(name="merging")
    def merge(df, batch_id):
        if batch_id == 0:
            df.write.format("delta").mode("overwrite").save(out)
            return
        df.createOrReplaceTempView("updates")
        df.sparkSession.sql(f"MERGE INTO delta.`{{out}}` t USING updates u ON t.n = u.n "
                            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
        known = spark.sql("SELECT count(*) AS c FROM source JOIN updates USING (n)").first().c
        assert (known, df.count()) == (3, spark.table("updates").count())
        assert spark.conf.get("mine") == "yes"

    @dp.append_flow(target="merging", spark_conf={{"mine": "yes"}})
    def send():
        return spark.readStream.table("source")
"""
    )
    p.arrive("a.json", {"n": 1, "v": "a"}, {"n": 2, "v": "b"})
    p.run()
    p.arrive("b.json", {"n": 2, "v": "B"}, {"n": 3, "v": "c"})
    p.run()
    assert delta_rows(p.spark, tmp_path / "merged", "n", "v") == [(1, "a"), (2, "B"), (3, "c")]
    p.run()
    assert p.statuses() == {"source": "IDLE", "send": "IDLE"}
    p.run(full_refresh=("merging",))
    assert delta_rows(p.spark, tmp_path / "merged", "n") == [1, 2, 2, 3]
    assert not p.spark.catalog.tableExists("updates")


@pytest.mark.slow
def test_a_function_writes_tables_by_name_which_lie_below_the_storage(project):
    p = project(
        SOURCE
        + """
    from delta.tables import DeltaTable

    @dp.foreach_batch_sink
    def mart(df, batch_id):
        df.createOrReplaceTempView("updates")
        session = df.sparkSession
        session.sql("CREATE TABLE IF NOT EXISTS lake.gold.latest (n BIGINT, v STRING) USING DELTA")
        session.sql("MERGE INTO lake.gold.latest AS t USING updates AS u ON t.n = u.n "
                    "WHEN MATCHED THEN UPDATE SET v = u.v WHEN NOT MATCHED THEN INSERT (n, v) VALUES (u.n, u.v)")
        df.select("n").write.mode("append").saveAsTable("lake.gold.seen")
        session.sql("INSERT INTO lake.gold.seen SELECT -n FROM lake.gold.latest WHERE n = 1")
        DeltaTable.forName(session, "lake.gold.latest").delete("v = 'gone'")
        assert session.catalog.tableExists("lake.gold.latest")
        assert spark.read.table("lake.gold.latest").count() >= 1
        if spark.conf.get("steal", "no") == "yes":
            df.write.mode("append").saveAsTable("source")

    @dp.append_flow(target="mart")
    def send():
        return spark.readStream.table("source").select("n", "v")
"""
    )
    p.arrive("a.json", {"n": 1, "v": "a"}, {"n": 2, "v": "gone"})
    p.run()
    p.arrive("b.json", {"n": 1, "v": "b"})
    p.run()
    root = p.storage.root
    assert list(run_sql(root, "SELECT n, v FROM lake.gold.latest", spark=p.spark).rows) == [{"n": 1, "v": "b"}]
    seen = run_sql(root, "SELECT n FROM lake.gold.seen ORDER BY n", spark=p.spark).rows
    assert [row["n"] for row in seen] == [-1, -1, 1, 1, 2]
    p.write("import dlt\n@dlt.table\ndef copy():\n    return spark.read.table('lake.gold.latest')\n", "copy.py").run()
    assert p.rows("copy") == [(1, "b")]

    p.parameters["steal"] = "yes"
    p.arrive("c.json", {"n": 3, "v": "c"})
    p.run(expect="FAILED")
    assert [(e.code, e.dataset) for e in p.result.errors] == [("TARGET_KIND", "main.default.mart")]


def test_broken_lines_on_the_way_to_a_sink_are_told(project):
    p = project(
        """
    import dlt

    dlt.create_sink("nothing", "noop")

    @dlt.append_flow(target="nothing")
    def send():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))
"""
    )
    p.arrive("a.json", {"n": 1}, '{"n": 2')
    p.run()
    (told,) = [e for e in p.events if e.event_type == "source_records"]
    assert (told.origin.sink_name, told.body["corrupt"], told.body["first_line"]) == ("main.default.nothing", 1, 2)


@pytest.mark.long
def test_a_function_that_fails_is_told_with_its_line_and_gets_the_batch_again(project, tmp_path):
    source = (
        SOURCE
        + """
    @dlt.foreach_batch_sink
    def letters(df, batch_id):
        if any(row.v == "bad" for row in df.collect()):
            raise ValueError("no such letter")
        with open(OUT, "a") as file:
            file.write(f"{batch_id}:{df.count()};")

    @dlt.append_flow(target="letters")
    def send():
        return spark.readStream.table("source")
"""
    )
    p = project(source.replace("OUT", repr(str(tmp_path / "log"))))
    p.arrive("a.json", {"v": "a"})
    p.run()
    p.arrive("b.json", {"v": "bad"})
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.dataset, error.why) == ("SINK_HANDLER_FAILED", "main.default.letters", "no such letter")
    assert (Path(error.where.file).name, error.where.line) == ("pipeline.py", 13)
    p.write(source.replace("OUT", repr(str(tmp_path / "log"))).replace('"bad"', '"worse"'))
    p.run()
    assert (tmp_path / "log").read_text() == "0:1;1:1;"


def test_a_broken_fail_rule_of_a_view_that_a_function_is_sent_is_told_as_that(project, tmp_path):
    p = project(
        SOURCE
        + f"""
    @dp.temporary_view
    @dp.expect_or_fail("known", "v <> 'bad'")
    def checked():
        return spark.readStream.table("source")

    @dp.foreach_batch_sink
    def letters(df, batch_id):
        df.write.format("json").mode("append").save("{tmp_path}/letters")

    @dp.append_flow(target="letters")
    def send():
        return spark.readStream.table("checked")
"""
    )
    p.arrive("a.json", {"v": "a"}, {"v": "bad"})

    p.run(expect="FAILED")

    [error] = p.result.errors
    assert error.code == "EXPECTATION_VIOLATION"
    assert "a row breaks the fail rule 'known' of the view main.default." in error.what
    assert "at org.apache" not in str(error)


@pytest.mark.slow
def test_an_update_flow_tells_the_groups_that_changed(project, tmp_path):
    p = project(
        SOURCE
        + f"""
    @dp.foreach_batch_sink
    def counts(df, batch_id):
        with open("{tmp_path}/log", "a") as file:
            file.write(f"{{batch_id}}:{{sorted(map(tuple, df.collect()))}};")

    @dp.update_flow(target="counts", name="count_up")
    def groups():
        return spark.readStream.table("source").groupBy("v").count()
"""
    )
    p.arrive("a.json", {"v": "a"}, {"v": "b"})
    p.run()
    p.arrive("b.json", {"v": "b"})
    p.run()
    assert (tmp_path / "log").read_text() == "0:[('a', 1), ('b', 1)];1:[('b', 2)];"
    assert [e.body["flow_type"] for e in sink_events(p, "flow_definition")] == ["UPDATE"]


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True])
def test_rules_of_views_hold_on_the_way_to_a_sink_and_are_not_counted(project, tmp_path, once):
    read = "dlt.read" if once else "dlt.read_stream"
    p = project(
        SOURCE
        + f"""
    @dlt.view
    @dlt.expect_or_drop("positive", "n > 0")
    @dlt.expect_or_fail("small", "n < 100")
    @dlt.expect("odd", "n % 2 = 1")
    def good():
        return {read}("source")

    dlt.create_sink("outside", "delta", {{"path": "{tmp_path}/out"}})

    @dlt.append_flow(target="outside", once={once})
    def send():
        return {read}("good")
"""
    )
    p.arrive("a.json", {"n": 2}, {"n": -200})
    p.run() if not once else p.run(select=("source",))
    if not once:
        assert delta_rows(p.spark, tmp_path / "out", "n") == [2]
        assert p.quality() == {}
    p.arrive("b.json", {"n": 3}, {"n": 1000})
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, "'small'" in error.what, "1000" in str(error)) == ("EXPECTATION_VIOLATION", True, True)
    if not once:
        assert delta_rows(p.spark, tmp_path / "out", "n") == [2]


def test_wrong_sinks_and_flows_into_them_are_refused_before_anything_runs(project):
    p = project(
        SOURCE
        + """
    dlt.create_sink("d", "delta", {"path": "/tmp/never-written"})
    dlt.create_sink("own", "delta", {"tableName": "source"})
    dlt.create_sink("hosted", "delta", {"path": "/Volumes/main/raw/out"})
    dlt.create_sink("files", "csv", {"path": "/Volumes/main/raw/files"})
    dlt.create_streaming_table("t")

    @dlt.append_flow(target="files")
    def unmapped_files():
        return spark.readStream.table("source")

    @dlt.append_flow(target="d")
    def a_batch():
        return spark.read.table("source")

    @dlt.append_flow(target="d")
    def an_aggregate():
        return spark.readStream.table("source").groupBy("n").count()

    @dlt.append_flow(target="own")
    def into_a_dataset():
        return spark.readStream.table("source")

    @dlt.append_flow(target="hosted")
    def unmapped():
        return spark.readStream.table("source")

    @dlt.table
    def reading_a_sink():
        return spark.readStream.table("d")

    @dlt.append_flow(target="t", once=True)
    def some():
        return spark.range(1)
"""
    )
    p.arrive("a.json", {"n": 1})
    errors = {(e.code, str(e.dataset).rsplit(".")[-1]) for e in p.refused()}
    assert errors == {
        ("QUERY_KIND", "d"), ("STREAM_QUERY_REFUSED", "d"), ("TARGET_KIND", "own"), ("PATH_NOT_MAPPED", "hosted"),
        ("PATH_NOT_MAPPED", "files"), ("UNKNOWN_DATASET", "reading_a_sink"),
    }  # fmt: skip


def test_flows_that_the_target_cannot_take_are_refused_when_files_have_been_read(project):
    p = project(
        """
    import dlt
    from pyspark import pipelines as dp

    @dlt.view
    def numbers():
        return spark.readStream.format("rate").load()

    dlt.create_streaming_table("t")
    dlt.create_sink("d", "delta", {"path": "/tmp/never-written"})
    dlt.apply_changes("d", "numbers", ["value"], "timestamp")

    @dp.update_flow(target="d")
    def a():
        return spark.readStream.table("numbers")

    @dp.update_flow(target="t")
    def b():
        return spark.readStream.table("numbers")

    @dp.append_flow(target="dd")
    def c():
        return spark.readStream.table("numbers")
"""
    )
    errors = p.refused()
    assert codes(errors) == ["TARGET_KIND", "TARGET_KIND", "TARGET_KIND", "UNKNOWN_TARGET"]
    assert "main.default.d" in next(e for e in errors if e.code == "UNKNOWN_TARGET").nearest


ODD_COLUMNS = """
    dlt.create_sink("outside", "delta", {{"path": "{out}/delta"}})
    for format in ("parquet", "json", "csv", "orc"):
        dlt.create_sink(format, format, {{"path": "{out}/" + format, **({{"header": "true"}} if format == "csv" else {{}})}})

        @dp.append_flow(name="to_" + format, target=format)
        def send():
            return spark.readStream.table("source")

    @dp.append_flow(target="outside"{conf})
    def send_on():
        return spark.readStream.table("source")
"""
BY_CONF = ', spark_conf={"spark.databricks.delta.properties.defaults.columnMapping.mode": "name"}'


@pytest.mark.slow
def test_odd_names_of_columns_are_written_to_files_and_refused_by_name_for_a_delta_sink_without_column_mapping(project, tmp_path):
    p = project(SOURCE + ODD_COLUMNS.format(out=tmp_path, conf=""))
    p.arrive("a.json", {"n": 1, "the name, odd": 2})
    p.run(expect="FAILED")
    assert p.errors() == {"outside": "SINK_COLUMNS_REFUSED"}
    (problem,) = p.result.errors
    assert "main.default.outside" in problem.what
    assert "'the name, odd'" in problem.what
    for format in ("parquet", "json", "csv", "orc"):
        rows = p.spark.read.format(format).option("header", "true").load(str(tmp_path / format)).collect()
        assert [int(row["the name, odd"]) for row in rows] == [2]
    p.write(SOURCE + ODD_COLUMNS.format(out=tmp_path, conf=BY_CONF))
    p.arrive("b.json", {"n": 3, "the name, odd": 4})
    p.run()
    assert delta_rows(p.spark, tmp_path / "delta", "n", "`the name, odd`") == [(1, 2), (3, 4)]
