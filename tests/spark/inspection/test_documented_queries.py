"""Queries of the event log in the forms of the public documentation, as people copy them, in `lakelet sql` (EL-2)."""

from __future__ import annotations

import json
import re

import pytest

from lakelet.base.errors import LakeletError
from lakelet.inspection import inspector
from lakelet.inspection.statements import run_statement
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage
from tests.event_samples import at, two_updates
from tests.paths import ROOT

pytestmark = pytest.mark.spark

ONE_TABLE = """
import dlt

@dlt.table
def numbers():
    return spark.range(3)
"""
ONE_MORE = """
@dlt.table
def total():
    return spark.read.table("numbers").groupBy().sum("id")
"""

RAW = "CREATE VIEW event_log_raw AS SELECT * FROM event_log('8a2b-44');\n"
RAW_OF_TABLE = "CREATE OR REPLACE TEMP VIEW event_log_raw AS SELECT * FROM event_log(TABLE(main.shop.orders));\n"
FIRST = "CREATE OR REPLACE TEMP VIEW latest_update AS SELECT 'u1' AS id;\n"

QUERIES = {
    "latest update": (
        "SELECT origin.update_id AS id FROM event_log_raw WHERE event_type = 'create_update' ORDER BY timestamp DESC LIMIT 1;",
        [("u2",)],
    ),
    "latest update of a script": (
        RAW
        + """CREATE OR REPLACE TEMP VIEW latest_update AS
SELECT origin.update_id AS id FROM event_log_raw WHERE event_type = 'create_update' ORDER BY timestamp DESC LIMIT 1;
SELECT id FROM latest_update;""",
        [("u2",)],
    ),
    "quality": (
        FIRST
        + """SELECT
  row_expectations.dataset as dataset,
  row_expectations.name as expectation,
  SUM(row_expectations.passed_records) as passing_records,
  SUM(row_expectations.failed_records) as failing_records
FROM
  (
    SELECT
      explode(
        from_json(
          details :flow_progress :data_quality :expectations,
          "array<struct<name: string, dataset: string, passed_records: int, failed_records: int>>"
        )
      ) row_expectations
    FROM
      event_log_raw,
      latest_update
    WHERE
      event_type = 'flow_progress'
      AND origin.update_id = latest_update.id
  )
GROUP BY
  row_expectations.dataset,
  row_expectations.name""",
        [("main.shop.orders", "id_ok", 15, 3)],
    ),
    "quality with a path of dots and a schema by example": (
        """WITH expectations AS (
  SELECT explode(from_json(details:flow_progress.data_quality.expectations,
    schema_of_json('[{"name":"a","dataset":"b","passed_records":1,"failed_records":1}]'))) AS e
  FROM event_log(TABLE(main.shop.orders)) WHERE event_type = 'flow_progress')
SELECT e.name, e.dataset, sum(e.passed_records), sum(e.failed_records) FROM expectations GROUP BY ALL""",
        [("id_ok", "main.shop.orders", 15, 3)],
    ),
    "lineage": (
        FIRST
        + """SELECT
  details:flow_definition.output_dataset as output_dataset,
  details:flow_definition.input_datasets as input_dataset
FROM
  event_log_raw,
  latest_update
WHERE
  event_type = 'flow_definition'
  AND
  origin.update_id = latest_update.id
ORDER BY 1""",
        [("main.shop.customers", '["main.shop.orders","main.shop.x"]'), ("main.shop.orders", None)],
    ),
    "lineage of what has a definition": (
        RAW_OF_TABLE
        + """SELECT details:flow_definition.output_dataset, details:flow_definition.flow_type, details:flow_definition.schema
FROM event_log_raw WHERE details:flow_definition IS NOT NULL ORDER BY 1 DESC LIMIT 1""",
        [("main.shop.orders", "APPEND", '[{"name":"id","data_type":"BIGINT"}]')],
    ),
    "flow metrics": (
        """WITH latest AS (SELECT 'u1' AS id),
metrics AS (
  SELECT origin.flow_name AS flow_name, timestamp,
    details:flow_progress.status::string AS status,
    details:flow_progress.metrics.num_output_rows::bigint AS output_rows,
    details:`flow_progress`.`metrics`.`num_upserted_rows`::bigint AS upserted_rows,
    details:flow_progress.data_quality.dropped_records::bigint AS dropped
  FROM event_log_raw, latest
  WHERE event_type = 'flow_progress' AND origin.update_id = latest.id
    AND origin.flow_name != 'pipelines.flowTimeMetrics.missingFlowName')
SELECT flow_name,
  MIN(CASE WHEN status IN ('STARTING', 'RUNNING') THEN timestamp END) AS started,
  MAX_BY(status, timestamp) FILTER (WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED')) AS final_status,
  COALESCE(SUM(output_rows), 0) AS output_rows, COALESCE(SUM(upserted_rows), 0) AS upserted_rows, MAX(dropped) AS dropped
FROM metrics GROUP BY flow_name ORDER BY flow_name""",
        [
            ("customers", at(14), "COMPLETED", 0, 4, None),
            ("export", at(18), "COMPLETED", 7, 0, None),
            ("orders", at(12), "COMPLETED", 15, 0, 2),
        ],
    ),
    "durations of updates": (
        """SELECT c.origin.update_id, timestampdiff(SECOND, c.timestamp, e.timestamp) AS seconds, e.details:update_progress.state
FROM event_log_raw c JOIN event_log_raw e ON c.origin.update_id = e.origin.update_id
WHERE c.event_type = 'create_update' AND e.event_type = 'update_progress'
  AND e.details:update_progress.state IN ('COMPLETED', 'FAILED', 'CANCELED') ORDER BY 1""",
        [("u1", 24, "COMPLETED"), ("u2", 8, "FAILED")],
    ),
    "backlog": (
        FIRST
        + """SELECT
  timestamp,
  Double(details :flow_progress.metrics.backlog_bytes) as backlog
FROM
  event_log_raw,
  latest_update
WHERE
  event_type ='flow_progress'
  AND
  origin.update_id = latest_update.id
  AND details:flow_progress.metrics.backlog_bytes IS NOT NULL
ORDER BY timestamp""",
        [(at(12), 300.0), (at(14), 300.0), (at(20), 0.0)],
    ),
    "Auto Loader": (
        FIRST
        + """SELECT
  timestamp,
  details:operation_progress.status,
  details:operation_progress.type,
  details:operation_progress:auto_loader_details
FROM event_log_raw, latest_update
WHERE event_type like 'operation_progress'
  AND origin.update_id = latest_update.id
  AND details:operation_progress.type in ('AUTO_LOADER_LISTING', 'AUTO_LOADER_BACKFILL')""",
        [(at(3), "COMPLETED", "AUTO_LOADER_LISTING", '{"source_path":"/landing","num_files_listed":7,"num_files_new":3}')],
    ),
    "audit": (
        "SELECT timestamp, details:user_action:action, details:user_action:user_name FROM event_log_raw WHERE event_type = 'user_action'",
        [(at(1), "START", "me@example.com")],
    ),
    "runtime": (
        "SELECT details:runtime_details:runtime_version:dbr_version FROM event_log('8a2b') WHERE event_type = 'runtime_details'",
        [("lakelet-1",)],
    ),
    "runtime of before": (
        "SELECT details:create_update:runtime_version:dbr_version FROM event_log_raw WHERE event_type = 'create_update' ORDER BY 1",
        [(None,), ("lakelet-1",)],
    ),
    "utilisation": (
        FIRST
        + """SELECT timestamp,
  Double(details :cluster_resources.avg_num_queued_tasks) as queue_size,
  Double(details :cluster_resources.avg_task_slot_utilization) as utilization
FROM event_log_raw, latest_update WHERE event_type = 'cluster_resources' AND origin.update_id = latest_update.id""",
        [],
    ),
    "refresh technique": (
        """SELECT t.maintenance_type FROM (
  SELECT explode(from_json(details:planning_information.technique_information,
    'array<struct<maintenance_type: string, is_chosen: boolean>>')) AS t
  FROM event_log_raw WHERE event_type = 'planning_information') WHERE t.is_chosen""",
        [("MAINTENANCE_TYPE_COMPLETE_RECOMPUTE",)],
    ),
    "errors": (
        "SELECT origin.flow_name, error.exceptions[0].class_name FROM event_log_raw WHERE level = 'ERROR' OR error IS NOT NULL",
        [("orders", "FLOW_FAILED")],
    ),
    "a column called like a word of SQL, in capitals and brackets": (
        """SELECT DETAILS:['flow_definition']['schema'][0].name AS first FROM event_log_raw
WHERE event_type = 'flow_definition' AND details:flow_definition.output_dataset::string = 'main.shop.orders'""",
        [("id",)],
    ),
}


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    root = tmp_path_factory.mktemp("events")
    append(Storage(root).events, two_updates())
    return root


@pytest.mark.parametrize("name", QUERIES)
def test_a_documented_query_runs_unchanged(spark, storage, name):
    """As `lakelet sql` answers it; by Spark also where DuckDB does."""
    query, rows = QUERIES[name]
    notes = []
    assert _found(run_statement(storage, query, note=notes.append)) == json.loads(json.dumps(rows))
    if not notes:
        assert _found(inspector.run_sql(storage, query, spark=spark)) == json.loads(json.dumps(rows))


def test_the_query_of_the_reference_page_gives_what_the_last_update_defined(project):
    """On the log of two real updates, the second of which has one table more."""
    page = (ROOT / "docs" / "reference" / "event-log.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    p = project(ONE_TABLE).run().write(ONE_TABLE + ONE_MORE).run()
    defined = [event.body for event in p.events if event.event_type == "flow_definition"]
    found = list(run_statement(p.storage.root, query).rows)
    assert sorted(row["output_dataset"] for row in found) == ["main.default.numbers", "main.default.total"]
    read = {row["output_dataset"]: json.loads(row["input_datasets"] or "null") for row in found}
    assert read == {body["output_dataset"]: body["input_datasets"] for body in defined}
    assert read["main.default.total"] == ["main.default.numbers"]


def _found(answer):
    return json.loads(json.dumps([tuple(row.values()) for row in answer.rows]))


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("SELECT details:flow_progress FROM event_log_rw", "holds no table event_log_rw"),
        ("SELECT details:flow_progress.metrics.:x FROM event_log_raw", "does not analyse"),
        ("SELECT detail:flow_progress FROM event_log_raw", "there is no column detail in"),
        ("SELECT :a FROM event_log_raw", "does not analyse"),
        ("CREATE TABLE x AS SELECT 1; SELECT * FROM event_log_raw", "does not analyse"),
        ("CREATE TABLE x AS SELECT 1", "only queries"),
        ("CREATE TEMP VIEW x AS SELECT 1", "only queries"),
    ],
)
def test_what_is_wrong_in_a_query_is_said_in_plain_words(spark, storage, query, part):
    with pytest.raises(LakeletError, match=part) as error:
        inspector.run_sql(storage, query, spark=spark)
    assert "INTERNAL" not in str(error.value)
