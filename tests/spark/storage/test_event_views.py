"""The flat views of the event log, on events written by hand: every column of every view (EL-13)."""

from __future__ import annotations

import random
import re
import shutil

import pytest

from lakelet.base.errors import LakeletError
from lakelet.inspection import inspector
from lakelet.storage.eventlog.views import NAMES
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from tests.event_samples import Log, at, first_update, second_update, two_updates
from tests.paths import ROOT
from tests.spark.inspection.test_two_engines import assert_same

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    root = tmp_path_factory.mktemp("events")
    append(Storage(root).events, two_updates())
    return root


def asked(spark, storage, sql):
    return [tuple(row.values()) for row in inspector.run_sql(storage, sql, spark=spark).rows]


def test_updates(spark, storage):
    (first, second) = asked(spark, storage, "SELECT * FROM updates ORDER BY started_at")
    assert first == ("u1", "p-1", "shop", "COMPLETED", "USER_ACTION", at(0), at(24), 24.0, None, None, 26, 3, 0, None)
    assert second[:4] == ("u2", "p-1", "shop", "FAILED")
    assert second[4:-1] == ("RETRY_ON_FAILURE", at(25), at(33), 8.0, "main.shop.orders", "main.shop.orders", 0, 0, 1)
    assert "the disk is full" in second[-1]


def test_flow_metrics(spark, storage):
    rows = asked(spark, storage, "SELECT * FROM flow_metrics ORDER BY update_id, flow_name")
    assert rows[:3] == [
        ("u1", "customers", "main.shop.customers", "CHANGE", "COMPLETED", at(14), at(21), 7.0, None, 4, 1, None, 3, 300, None, None, None),
        ("u1", "export", "main.shop.export", None, "COMPLETED", at(18), at(22), 4.0, 7, None, None, None, None, None, None, None, None),
        ("u1", "orders", "main.shop.orders", "APPEND", "COMPLETED", at(12), at(20), 8.0, 15, None, None, 3, 0, 0, None, None, None),
    ]
    excluded, failed = rows[3:]
    assert excluded[1:8] == ("customers", "main.shop.customers", None, "EXCLUDED", None, None, None)
    assert failed[1:8] == ("orders", "main.shop.orders", None, "FAILED", at(30), at(32), 2.0)
    assert failed[15] == "FLOW_FAILED"


def test_violation_samples(spark, storage):
    assert asked(spark, storage, "SELECT * FROM violation_samples ORDER BY row_json") == [
        ("u1", at(16), "orders", "main.shop.orders", "id_ok", '{"id": null, "note": "it\'s \\"ü\\""}', None),
        ("u1", at(15), "orders", "main.shop.orders", "id_ok", '{"id": null}', "/landing/a.json"),
    ]


def test_expectation_metrics(spark, storage):
    assert asked(spark, storage, "SELECT * FROM expectation_metrics ORDER BY update_id") == [
        (
            "u1",
            at(16),
            "orders",
            "main.shop.orders",
            "id_ok",
            "id IS NOT NULL",
            "DROP",
            15,
            3,
            15 / 18,
            "ids@example.com",
            "To find it.",
            "a, b",
        ),
        (
            "u2",
            at(31),
            "orders",
            "main.shop.orders",
            "id_ok",
            "id IS NOT NULL",
            "DROP",
            0,
            0,
            None,
            "ids@example.com",
            "To find it.",
            "a, b",
        ),
    ]


def test_dataset_health(spark, storage):
    customers, orders = asked(spark, storage, "SELECT * FROM dataset_health ORDER BY dataset")
    assert customers == (
        *("main.shop.customers", "STREAMING_TABLE", "u1", "COMPLETED", at(21), at(17)),
        *(4, None, None, None, None, None),
        *(None, None, None),
    )
    assert orders[:6] == ("main.shop.orders", "STREAMING_TABLE", "u2", "FAILED", at(20), at(16))
    assert orders[6:11] == (0, 0, 0, None, None)
    assert "the disk is full" in orders[11]
    assert orders[12:] == ("shop@example.com", "What was bought.", "daily")


def test_lineage_of_tables_and_columns(spark, storage):
    assert asked(spark, storage, "SELECT * FROM lineage ORDER BY output_column NULLS FIRST, input_dataset, input_column") == [
        ("u1", "customers", "main.shop.customers", None, "main.shop.orders", None),
        ("u1", "customers", "main.shop.customers", None, "main.shop.x", None),
        ("u1", "customers", "main.shop.customers", "key", "main.shop.orders", "id"),
        ("u1", "customers", "main.shop.customers", "key", "main.shop.orders", "n"),
    ]


def test_schema_changes_and_table_checks(spark, storage):
    assert asked(spark, storage, "SELECT * FROM schema_changes ORDER BY change") == [
        ("u1", at(19), "main.shop.orders", "orders", "/landing", "added", "note", "string", "/landing/b.json"),
        ("u1", at(19), "main.shop.orders", "orders", "/landing", "widened", "n", "bigint", "/landing/b.json"),
    ]
    assert asked(spark, storage, "SELECT * FROM event_log.table_checks") == [
        (
            "u1",
            at(23),
            "main.shop.orders",
            3,
            "unique id",
            "critical",
            False,
            "2",
            "0",
            "2 values twice",
            "shop@example.com",
            "Once each.",
            "keys",
        ),
    ]


def test_the_reference_page_has_the_columns_of_every_view(spark, storage):
    page = (ROOT / "docs" / "reference" / "event-log.md").read_text(encoding="utf-8")
    told = {
        name: re.findall(r"`(\w+)`", rest.partition(";")[0])
        for name, rest in re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", page, re.MULTILINE)
    }
    for name in NAMES:
        if name != "latest_update":
            assert list(inspector.run_sql(storage, f"SELECT * FROM {name} LIMIT 0", spark=spark).columns) == told[name], name


LEAST = {"latest_update": 1, "violation_samples": 2}
"""Rows of a view where there are fewer than three."""


@pytest.mark.long
def test_duckdb_gives_the_rows_that_spark_gives_for_every_view(spark, tmp_path):
    log = Log()
    first_update(log)
    second_update(log)
    for seed in range(4):
        random_update(log, random.Random(seed))
    chain_that_broke(log)
    append(Storage(tmp_path).events, log.events)
    for name in NAMES:
        assert_same(spark, tmp_path, f"SELECT * FROM event_log.{name}")
        assert inspector.duck_table(tmp_path, f"SELECT * FROM event_log.{name}").num_rows >= LEAST.get(name, 3), name
    query = "SELECT f.flow_name, h.last_status, count(*) AS n FROM flow_metrics f JOIN dataset_health h ON h.dataset = f.dataset"
    assert_same(spark, tmp_path, query + " WHERE f.output_rows IS NOT NULL OR f.started_at >= '2026-03-01' GROUP BY 1, 2")


def chain_that_broke(log):
    """The newest update, by whose definitions the datasets read one another: the first one has failed, and the others were skipped."""
    names = ["orders", "customers", "größen", "o'hara"]
    for name, source in zip(names, ["raw", *names], strict=False):
        log.add("chain", "dataset_definition", {"dataset_type": "STREAMING_TABLE"}, dataset=f"main.shop.{name}")
        body = {"output_dataset": f"main.shop.{name}", "input_datasets": [f"main.shop.{source}"]}
        log.add("chain", "flow_definition", body, dataset=f"main.shop.{name}", flow=name)
    log.flow("chain", "orders", "FAILED", error=LakeletError("FLOW_FAILED", "it stopped"))
    for name in names[1:]:
        log.flow("chain", name, "SKIPPED")


def random_update(log, draw):
    """An update with events in any order and parts that are missing, NULL, empty or of another type than usual."""
    update, flows = f"r{draw.random()}", ["orders", "customers", "größen", "o'hara"]
    if draw.random() < 0.8:
        log.add(
            update, "create_update", {"cause": draw.choice([None, "USER_ACTION"]), "refresh_selection": draw.choice([None, [], ["a", "b"]])}
        )

    def count():
        return draw.choice([None, 0, 1, 7, 2**40])

    for _ in range(60):
        flow = draw.choice(flows)
        dataset = f"main.shop.{flow}"
        rule = {"name": draw.choice(["id_ok", "never"]), "dataset": draw.choice([dataset, "main.shop.orders"])}
        judged = draw.choice([None, [], [{**rule, "passed_records": count(), "failed_records": count()}, {**rule, "failed_records": 3}]])
        match draw.choice(["progress"] * 6 + ["dataset", "flow", "flow", "columns", "schema", "check", "update", "view", "input", "late"]):
            case "progress":
                status = draw.choice(
                    [None, "QUEUED", "STARTING", "RUNNING", "COMPLETED", "IDLE", "FAILED", "SKIPPED", "STOPPED", "EXCLUDED"]
                )
                names = ("num_output_rows", "num_upserted_rows", "num_deleted_rows", "backlog_files", "backlog_bytes", "backlog_records")
                metrics = draw.choice([None, {}, {name: count() for name in draw.sample(names, 3)}])
                quality = draw.choice([None, {"dropped_records": count(), "quarantined_records": count(), "expectations": judged}])
                error = draw.choice([None, LakeletError("FLOW_FAILED", 'it says "no"\n\tand stops')]) if status == "FAILED" else None
                sink = draw.choice([None, None, dataset])
                log.flow(update, flow, status, metrics=metrics, data_quality=quality, error=error, sink=sink)
            case "dataset":
                said = draw.choice(
                    [{}, {"owner": None, "tags": None}, {"owner": "o'hara", "tags": []}, {"owner": "ö", "tags": ["a", None, "b"]}]
                )
                declared = draw.choice([None, [], [{**rule, "constraint": "id = 'ä'", "action": draw.choice([None, "DROP"]), **said}]])
                body = {"dataset_type": draw.choice([None, "STREAMING_TABLE"]), "expectations": declared, **said}
                log.add(update, "dataset_definition", body, dataset=dataset)
            case "flow":
                body = {
                    "output_dataset": draw.choice([None, dataset]),
                    "input_datasets": draw.choice([None, [], ["a", None], ["main.shop.orders"], ["main.shop.customers", dataset]]),
                }
                log.add(update, "flow_definition", {**body, "output_sink": "s", "view_expectations": judged}, dataset=dataset, flow=flow)
            case "columns":
                made = [{"name": "k", "inputs": draw.choice([None, [], [{"dataset": "a", "column": None}]])}]
                log.add(update, "column_lineage", {"output_dataset": dataset, "columns": draw.choice([None, made])}, flow=flow)
            case "schema":
                added = draw.choice([None, [], [{"name": "a b", "type": "struct<x:int>"}, {"name": None}]])
                log.add(update, "schema_change", {"flow_name": flow, "added": added, "widened": draw.choice([None, [{"to": "long"}]])})
            case "check":
                body = {"dataset": dataset, "table_version": count(), "success": draw.choice([None, True, False])}
                log.add(update, "table_check", {**body, "observed": draw.choice([None, 3, "3 of 5", True]), "message": ""}, dataset=dataset)
            case "input":
                places = {"first_file": draw.choice([None, "/in/ä.json"]), "first_line": count(), "unit": draw.choice([None, "record"])}
                places |= {"corrupt_file": draw.choice([None, "/in/b.json"]), "corrupt_line": 3, "reason": draw.choice([None, "o'hara"])}
                found = {kind: count() for kind in draw.sample(["corrupt", "left_out", "rescued", "passed_over", "undecodable"], 3)}
                log.add(update, "source_records", {"flow_name": draw.choice([None, flow]), **found, **places}, dataset=dataset, flow=flow)
            case "late":
                log.add(update, "late_records", {"flow_name": flow, "dropped_by_watermark": count()}, dataset=dataset)
            case "update":
                log.add(update, "update_progress", {"state": draw.choice(["RUNNING", "COMPLETED", "FAILED", "CANCELED"])})
            case "view":
                log.add(update, "flow_progress", {"status": "RUNNING"}, flow="pipelines.flowTimeMetrics.missingFlowName")


def test_a_table_of_the_storage_goes_before_a_view_of_its_name(spark, storage, tmp_path):
    events = Storage(tmp_path).events
    shutil.copytree(str(Storage(storage).events), str(events))
    spark.range(3).write.format("delta").save(f"{tmp_path}/tables/main/default/updates")
    table = StoredDataset("main.default.updates", "materialized_view", "tables/main/default/updates")
    Storage(tmp_path).save(StorageRegistry(datasets={table.name: table}))
    assert asked(spark, tmp_path, "SELECT count(*) FROM updates") == [(3,)]
    assert asked(spark, tmp_path, "SELECT count(*) FROM event_log.updates") == [(2,)]
    assert len(asked(spark, tmp_path, "SELECT * FROM dataset_health")) == 2
