"""The queries of the AI/BI dashboard in `resources/`, as they are, on an event log of Lakelet's own."""

from __future__ import annotations

import json

import pytest

from lakelet.inspection import inspector
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage
from tests.event_samples import two_updates
from tests.paths import ROOT

pytestmark = pytest.mark.spark

DASHBOARD = json.loads((ROOT / "resources" / "quality.dashboard.lvdash.json").read_text(encoding="utf-8"))
DATASETS = {dataset["name"]: "".join(dataset["queryLines"]) for dataset in DASHBOARD["datasets"]}
ROWS = {"updates": 2, "flows": 4, "rules": 2, "health": 2, "schema_changes": 2, "checks": 1}


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    root = tmp_path_factory.mktemp("events")
    append(Storage(root).events, two_updates())
    return root


@pytest.mark.long
@pytest.mark.parametrize("name", DATASETS)
def test_a_query_of_the_dashboard_and_the_fields_of_its_widgets(spark, storage, name):
    assert len(list(inspector.run_sql(storage, DATASETS[name], spark=spark).rows)) == ROWS[name]
    for page in DASHBOARD["pages"]:
        for query in (query["query"] for item in page["layout"] for query in item["widget"]["queries"]):
            fields = [f for f in query["fields"] if "associative_filter" not in f["expression"]]
            if query["datasetName"] == name:
                listed = ", ".join(f"{field['expression']} AS `{field['name']}`" for field in fields)
                grouped = "" if query["disaggregated"] else " GROUP BY ALL"
                assert list(inspector.run_sql(storage, f"SELECT {listed} FROM ({DATASETS[name]}){grouped}", spark=spark).rows)
