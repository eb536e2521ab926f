"""The event log as a table: its columns, the events of an update, and the documented queries (docs/semantics/event-log.md)."""

from __future__ import annotations

import pytest

PIPELINE = """
    import dlt

    @dlt.table(comment="raw")
    @dlt.expect_or_drop("positive", "id > 0")
    def bronze():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))

    @dlt.table
    def gold():
        return dlt.read("bronze").groupBy().count()
"""


def test_the_table_has_the_hosted_columns_and_every_state_of_the_update(project):
    p = project(PIPELINE)
    p.arrive("a.json", {"id": 1}, {"id": 0})
    p.run()
    log = p.spark.read.format("delta").load(str(p.storage.events))
    types = {f.name: f.dataType.simpleString() for f in log.schema.fields}
    assert types["id"] == "string"
    assert types["timestamp"] == "timestamp"
    assert types["details"] == "string"
    assert types["sequence"] == "struct<control_plane_seq_no:bigint,data_plane_id:struct<instance:string,seq_no:bigint>>"
    assert types["error"].startswith("struct<fatal:boolean,exceptions:array<struct<class_name:string,message:string,stack:array<")
    assert "update_id:string" in types["origin"]
    assert "org_id:bigint" in types["origin"]
    assert list(types) == [
        "id",
        "sequence",
        "origin",
        "timestamp",
        "message",
        "level",
        "maturity_level",
        "error",
        "details",
        "event_type",
    ]
    rows = sorted(p.logged(), key=lambda r: r["sequence"]["data_plane_id"]["seq_no"])
    states = [r["details"]["update_progress"]["state"] for r in rows if r["event_type"] == "update_progress"]
    assert states == ["QUEUED", "CREATED", "INITIALIZING", "SETTING_UP_TABLES", "RUNNING", "COMPLETED"]
    assert {r["event_type"] for r in rows} >= {
        "user_action",
        "create_update",
        "runtime_details",
        "dataset_definition",
        "flow_definition",
        "flow_progress",
        "update_progress",
        "operation_progress",
    }
    assert all(list(r["details"]) == [r["event_type"]] for r in rows)
    of_gold = [r["message"] for r in rows if r["event_type"] == "flow_progress" and r["origin"]["flow_name"] == "main.default.gold"]
    assert of_gold[0] == "Flow 'main.default.gold' is QUEUED."
    assert [e.id for e in p.events] == [r["id"] for r in rows]


@pytest.mark.long
def test_the_documented_queries_run_on_plain_spark(project):
    p = project(PIPELINE)
    p.arrive("a.json", {"id": 1}, {"id": 0})
    p.run()
    p.arrive("b.json", {"id": 2})
    p.run()
    p.spark.read.format("delta").load(str(p.storage.events)).createOrReplaceTempView("event_log_raw")
    latest = p.spark.sql(
        "SELECT origin.update_id AS id FROM event_log_raw WHERE event_type = 'create_update' ORDER BY timestamp DESC LIMIT 1"
    ).first()
    assert latest.id == p.result.update_id
    quality = p.spark.sql("""
        SELECT e.dataset, e.name, SUM(e.passed_records) AS passed, SUM(e.failed_records) AS failed
        FROM (SELECT explode(from_json(get_json_object(details, '$.flow_progress.data_quality.expectations'),
                     'array<struct<name: string, dataset: string, passed_records: int, failed_records: int>>')) AS e
              FROM event_log_raw WHERE event_type = 'flow_progress') GROUP BY ALL""").collect()
    assert [tuple(r) for r in quality] == [("main.default.bronze", "positive", 2, 1)]
    lineage = p.spark.sql("""
        SELECT DISTINCT get_json_object(details, '$.flow_definition.output_dataset') AS output,
               get_json_object(details, '$.flow_definition.input_datasets') AS inputs
        FROM event_log_raw WHERE event_type = 'flow_definition' ORDER BY output""").collect()
    assert [tuple(r) for r in lineage] == [("main.default.bronze", None), ("main.default.gold", '["main.default.bronze"]')]
    written = p.spark.sql("""
        SELECT origin.flow_name AS flow, SUM(CAST(get_json_object(details, '$.flow_progress.metrics.num_output_rows') AS BIGINT)) AS rows
        FROM event_log_raw WHERE event_type = 'flow_progress' GROUP BY 1 ORDER BY 1""").collect()
    assert [tuple(r) for r in written] == [("main.default.bronze", 2), ("main.default.gold", 2)]
    p.spark.catalog.dropTempView("event_log_raw")


@pytest.mark.long
def test_flow_ids_stay_over_updates_and_change_with_a_full_refresh(project):
    p = project(PIPELINE)
    p.arrive("a.json", {"id": 1})
    p.run()
    first = {e.origin.flow_id for e in p.events if e.origin.dataset_name == "main.default.bronze" and e.event_type == "flow_progress"}
    p.run()
    second = {e.origin.flow_id for e in p.events if e.origin.dataset_name == "main.default.bronze" and e.event_type == "flow_progress"}
    p.run(full_refresh=("bronze",))
    third = {e.origin.flow_id for e in p.events if e.origin.dataset_name == "main.default.bronze" and e.event_type == "flow_progress"}
    assert len(first) == len(third) == 1
    assert first == second
    assert first != third
