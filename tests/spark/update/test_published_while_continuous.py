"""Publishing in a continuous update: after its first round, and when it is time again (PB-6)."""

from __future__ import annotations

import pytest

from lakelet.update import update
from tests.spark.update.test_continuous_updates import stopped_when
from tests.unity import unity_server

pytestmark = [pytest.mark.spark, pytest.mark.long]

PIPELINE = """
    import dlt

    @dlt.table(spark_conf={"pipelines.trigger.interval": "1 second"})
    def orders():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))
"""


def actions(events):
    return [table["action"] for event in events if event.body.get("catalog") == "uc" for table in event.body["tables"]]


def test_a_table_is_published_while_the_update_runs_and_again_with_a_new_column(project, monkeypatch):
    monkeypatch.setattr(update, "TABLES_EVERY_SECONDS", 0.0)
    p = project(PIPELINE)
    p.arrive("a.json", {"id": 1})
    with unity_server() as unity:
        p.publish, p.continuous = {"uc": unity.address}, True

        def done(events):
            found = actions(events)
            if found == ["created"] and not (p.landing / "b.json").exists():
                p.arrive("b.json", {"id": 2, "note": "new"})
            return found == ["created", "updated"]

        stopped_when(p, done)
        columns = [column["name"] for column in unity.tables["main.default.orders"]["columns"]]
    assert columns == ["id", "_rescued_data", "note"]
