"""What events say of definitions: where they are declared, and what their columns are made of (EL-11, EL-12)."""

from __future__ import annotations

import json

import pytest

from lakelet.base.names import TableName
from lakelet.dashboard.page import Page
from lakelet.files.delta_log import TableLog
from lakelet.inspection import inspector
from lakelet.storage.root import INTERNAL
from tests.spark.rules.test_rules_of_a_project import LOADER

PYTHON = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def orders():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))

    @dlt.view
    def priced():
        return dlt.read_stream("orders").withColumn("total", F.expr("price * pieces"))

    @dlt.table
    def clean():
        return dlt.read_stream("priced").select("id", F.round("total", 2).alias("total"), F.current_timestamp().alias("seen"))

    dlt.create_streaming_table("newest")
    dlt.apply_changes(target="newest", source="orders", keys=["id"], sequence_by="n", stored_as_scd_type=2)
"""
SQL = """
-- totals
CREATE OR REFRESH MATERIALIZED VIEW totals AS
WITH all AS (SELECT * FROM clean)
SELECT count(*) AS orders, max(a.total) AS most, (SELECT min(id) FROM newest) AS first FROM all a
"""


@pytest.mark.long
def test_definitions_name_their_source_and_columns_their_inputs(project):
    p = project(PYTHON)
    p.write(SQL, "sql/totals.sql")
    p.arrive("a.json", {"id": 1, "price": 2.5, "pieces": 2, "n": 1})
    p.run()
    places = {e.origin.dataset_name: e.body["source_code"] for e in p.events if e.event_type == "dataset_definition"}
    assert places == {
        "main.default.orders": {"file": "pipeline.py", "line": 5},
        "main.default.clean": {"file": "pipeline.py", "line": 14},
        "main.default.newest": {"file": "pipeline.py", "line": 18},
        "main.default.totals": {"file": "sql/totals.sql", "line": 3},
    }
    flows = {e.origin.flow_name: e.body["source_code"] for e in p.events if e.event_type == "flow_definition"}
    assert flows["main.default.newest"] == {"file": "pipeline.py", "line": 19}
    assert flows["main.default.totals"] == places["main.default.totals"]
    lineage = {
        (e.body["output_dataset"].rsplit(".")[-1], c["name"]): {f"{i['dataset']}.{i['column']}" for i in c["inputs"]}
        for e in p.events
        if e.event_type == "column_lineage"
        for c in e.body["columns"]
    }
    orders, clean, newest = "main.default.orders", "main.default.clean", "main.default.newest"
    assert {column: inputs for column, inputs in lineage.items() if inputs} == {
        ("clean", "id"): {f"{orders}.id"},
        ("clean", "total"): {f"{orders}.price", f"{orders}.pieces"},
        **{("newest", name): {f"{orders}.{name}"} for name in ("id", "price", "pieces", "n", "_rescued_data")},
        ("totals", "most"): {f"{clean}.total"},
        ("totals", "first"): {f"{newest}.id"},
    }
    assert {column for column, inputs in lineage.items() if not inputs} >= {
        ("orders", "id"),
        ("clean", "seen"),
        ("newest", "__START_AT"),
        ("totals", "orders"),
    }
    assert {e.maturity for e in p.events if e.event_type == "column_lineage"} == {"EVOLVING"}


def written_bytes(path):
    """The size of the files that all commits of a table have added."""
    log = TableLog(path)
    return sum(action["add"]["size"] for version in range(log.version() + 1) for action in log.actions(version) if "add" in action)


@pytest.mark.slow
def test_an_update_tells_of_backlog_progress_technique_and_what_was_selected(project):
    p = project(PYTHON)
    p.write(SQL, "sql/totals.sql")
    p.arrive("a.json", {"id": 1, "price": 2.5, "pieces": 2, "n": 1})
    p.run()

    def of(kind, flow):
        return [e for e in p.events if e.event_type == kind and e.origin.flow_name == f"main.default.{flow}"]

    states = [(str(e.body["status"]), e.body.get("metrics", {}).get("backlog_files")) for e in of("flow_progress", "orders")]
    assert states == [("QUEUED", None), ("STARTING", None), ("RUNNING", 1), ("RUNNING", None), ("COMPLETED", 0)]
    (progress,) = of("stream_progress", "orders")
    report = json.loads(progress.body["progress_json"])
    assert (progress.level, progress.origin.batch_id, report["batchId"]) == ("METRICS", 0, 0)
    assert "numInputRows" not in report
    assert "durationMs" in report
    (technique,) = of("planning_information", "totals")
    assert [t["maintenance_type"] for t in technique.body["technique_information"] if t["is_chosen"]] == [
        "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE"
    ]
    (created,) = [e.body for e in p.events if e.event_type == "create_update"]
    assert (created["refresh_selection"], created["full_refresh_selection"]) == ([], [])
    assert [created[name] for name in ("full_refresh", "validate_only", "explore_only")] == [False] * 3
    assert created["effective_publishing_mode"] == "DEFAULT_PUBLISHING_MODE"
    paths = {name: p.path(name) for name in ("orders", "clean", "totals")} | {"newest": p.path("newest") / INTERNAL}
    told = {
        name: [size for e in of("flow_progress", name) if (size := e.body.get("metrics", {}).get("num_output_bytes"))] for name in paths
    }
    assert told == {name: [written_bytes(path)] for name, path in paths.items()}

    p.run(select=("Totals",))
    (created,) = [e.body for e in p.events if e.event_type == "create_update"]
    assert created["refresh_selection"] == ["main.default.totals"]
    (technique,) = of("planning_information", "totals")
    assert technique.message == (
        "Flow 'main.default.totals' has been planned to be executed as NO_OP because its query and its inputs are unchanged."
    )
    assert [str(e.body["status"]) for e in of("flow_progress", "clean")] == ["EXCLUDED"]
    assert not [e for e in p.events if e.event_type in ("stream_progress", "operation_progress")]

    p.run()
    assert [(str(e.body["status"]), e.body.get("metrics", {}).get("backlog_files")) for e in of("flow_progress", "orders")][-1] == (
        "IDLE",
        0,
    )

    p.run(full_refresh_all=True)
    (created,) = [e.body for e in p.events if e.event_type == "create_update"]
    assert created["full_refresh"] is True
    p.run(full_refresh=("totals",))
    (created,) = [e.body for e in p.events if e.event_type == "create_update"]
    assert (created["full_refresh"], created["full_refresh_selection"]) == (False, ["main.default.totals"])


def test_the_event_log_has_the_name_that_the_pipeline_gives_it(project):
    p = project(PYTHON)
    p.event_log = TableName("ops", "logs", "orders_events")
    p.arrive("a.json", {"id": 1, "price": 2.5, "pieces": 2, "n": 1})
    p.run()
    rows = inspector.run_sql(
        p.storage.root, "SELECT count(*) AS n FROM ops.logs.orders_events WHERE event_type = 'create_update'", spark=p.spark
    )
    assert list(rows.rows) == [{"n": 1}]
    assert "orders_events" not in {table.name for table in inspector.list_tables(p.storage.root)}


RULES_OF_VIEWS = """
    import dlt

    @dlt.view
    @dlt.expect("low", "id < 5")
    def first():
        return spark.range(10)

    @dlt.view
    @dlt.expect_or_drop("even", "id % 2 = 0")
    def second():
        return dlt.read("first")

    @dlt.table
    @dlt.expect("high", "id > 5")
    def numbers():
        return dlt.read("second")

    @dlt.table
    def plain():
        return dlt.read("numbers")
"""


def test_the_flows_that_read_a_view_say_what_its_rules_demand(project):
    p = project(RULES_OF_VIEWS)
    p.run()
    flows = {e.origin.flow_name: e.body.get("view_expectations") for e in p.events if e.event_type == "flow_definition"}
    assert flows == {
        "main.default.numbers": [
            {"dataset": "main.default.second", "name": "even", "constraint": "id % 2 = 0", "action": "drop"},
            {"dataset": "main.default.first", "name": "low", "constraint": "id < 5", "action": "warn"},
        ],
        "main.default.plain": None,
    }
    rows = inspector.run_sql(p.storage.root, "SELECT * FROM expectation_metrics ORDER BY dataset", spark=p.spark).rows
    assert [(r["dataset"], r["expectation"], r["constraint"], r["action"], r["passed_records"]) for r in rows] == [
        ("main.default.first", "low", "id < 5", "warn", 5),
        ("main.default.numbers", "high", "id > 5", "warn", 2),
        ("main.default.second", "even", "id % 2 = 0", "drop", 5),
    ]
    page = Page(p.storage.root, p.folder)
    assert page.changed()
    found = {row["rule"]: (row["constraint"], row["action"]) for row in page.site().quality()["rows"]}
    assert found["even"] == ("id % 2 = 0", "drop")


WHOSE = """
    import dlt
    from whose_rules import rules

    @dlt.table(comment="What was bought.", schema="id BIGINT COMMENT 'Of the shop.', price DOUBLE",
               table_properties={"lakelet.owner": "shop@example.com", "owner": "nobody", "lakelet.tags": "daily, money"})
    @dlt.expect_all(rules("orders", "warn"))
    def orders():
        return spark.sql("SELECT id, 1.5D AS price FROM range(3)")
"""
SQL_OWNER = """
CREATE MATERIALIZED VIEW totals TBLPROPERTIES ('lakelet.owner' = 'finance@example.com') AS SELECT count(*) AS orders FROM orders
"""
RULES = """
datasets:
  orders:
    warn:
      has_id: {constraint: id IS NOT NULL, owner: ids@example.com, tags: [keys], description: It is found by it.}
      priced: price > 0
    checks:
      one_each: {fresh: {column: id, within: 1 day}, owner: ids@example.com, tags: [keys]}
      again: {fresh: {column: id, within: 2 days}, severity: info}
"""


@pytest.mark.long
def test_definitions_say_whose_they_are_and_what_they_mean(project):
    p = project(WHOSE)
    p.helper(LOADER, "whose_rules.py")
    p.write(SQL_OWNER, "sql/totals.sql")
    (p.folder / "expectations").mkdir(exist_ok=True)
    (p.folder / "expectations" / "orders.yml").write_text(RULES)
    p.run()
    told = {e.origin.dataset_name: e.body for e in p.events if e.event_type == "dataset_definition"}
    orders, totals = told["main.default.orders"], told["main.default.totals"]
    assert [orders[key] for key in ("comment", "owner", "tags")] == ["What was bought.", "shop@example.com", ["daily", "money"]]
    assert (totals["owner"], "tags" in totals, "comment" in totals) == ("finance@example.com", False, False)
    about = {"description": "It is found by it.", "owner": "ids@example.com", "tags": ["keys"]}
    assert orders["expectations"] == [
        {"name": "has_id", "constraint": "id IS NOT NULL", "action": "warn", **about},
        {"name": "priced", "constraint": "price > 0", "action": "warn", "owner": "shop@example.com"},
    ]
    flows = {e.origin.flow_name: e.body["schema"] for e in p.events if e.event_type == "flow_definition"}
    assert flows["main.default.orders"] == [
        {"name": "id", "data_type": "BIGINT", "comment": "Of the shop."},
        {"name": "price", "data_type": "DOUBLE"},
    ]
    checks = {e.body["name"]: (e.body["owner"], e.body.get("tags")) for e in p.events if e.event_type == "table_check"}
    assert checks == {"one_each": ("ids@example.com", ["keys"]), "again": ("shop@example.com", None)}
    page = Page(p.storage.root, p.folder)
    page.changed()
    (item,) = [d for d in page.site().overview()["datasets"] if d["name"] == "main.default.orders"]
    assert (item["owner"], item["tags"], item["about"]) == ("shop@example.com", ["daily", "money"], "What was bought.")
