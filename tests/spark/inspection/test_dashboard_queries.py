"""The queries of the AI/BI dashboard in `resources/` on an event log of Lakelet's own: only the name of the published log is replaced."""

from __future__ import annotations

import json

import pytest

from lakelet.inspection import inspector
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage
from tests.event_samples import START, two_updates
from tests.paths import ROOT

pytestmark = pytest.mark.spark

DASHBOARD = json.loads((ROOT / "resources" / "quality.dashboard.lvdash.json").read_text(encoding="utf-8"))
PUBLISHED = "system_a_event_log"
DATASETS = {dataset["name"]: "".join(dataset["queryLines"]).replace(PUBLISHED, "event_log") for dataset in DASHBOARD["datasets"]}
ROWS = {"updates": 2, "flows": 4, "rules": 2, "health": 2, "schema_changes": 2, "checks": 2, "faults": 3}
"""How many rows the queries have; the others have none."""
NOT_RUN = {"dataset": "main.shop.orders", "table_version": 3, "name": "fresh", "severity": "warning", "success": None, "message": "not run"}


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    root = tmp_path_factory.mktemp("events")
    events = two_updates()
    left = Event("table_check", "was not run", events[0].origin, {"table_check": NOT_RUN}, timestamp=START, sequence=len(events))
    append(Storage(root).events, [*events, left])
    return root


@pytest.mark.in_ci("rules", "health")
@pytest.mark.long
@pytest.mark.parametrize("name", DATASETS)
def test_a_query_of_the_dashboard_and_the_fields_of_its_widgets(spark, storage, name):
    rows = list(inspector.run_sql(storage, DATASETS[name], spark=spark).rows)
    assert len(rows) == ROWS.get(name, 0)
    if name == "checks":
        assert {row["check_name"]: row["result"] for row in rows} == {"unique id": "failed", "fresh": "not run"}
    for page in DASHBOARD["pages"]:
        for query in (query["query"] for item in page["layout"] for query in item["widget"]["queries"]):
            fields = [f for f in query["fields"] if "associative_filter" not in f["expression"]]
            if query["datasetName"] == name:
                listed = ", ".join(f"{field['expression']} AS `{field['name']}`" for field in fields)
                grouped = "" if query["disaggregated"] else " GROUP BY ALL"
                shown = inspector.run_sql(storage, f"SELECT {listed} FROM ({DATASETS[name]}){grouped}", spark=spark).rows
                assert bool(list(shown)) == bool(rows)
