"""Checks of whole tables in a continuous update: between two rounds, each version once (TC-10)."""

from __future__ import annotations

import pytest

from lakelet.update import update
from tests.spark.update.test_continuous_updates import stopped_when

pytestmark = [pytest.mark.spark, pytest.mark.long]

PIPELINE = """
    import dlt

    @dlt.table(spark_conf={"pipelines.trigger.interval": "1 second"})
    def orders():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, at TIMESTAMP")
            .load(spark.conf.get("landing")))
"""
CHECKS = "datasets:\n  orders:\n    checks:\n      fresh: {fresh: {column: at, within: 1 day}}\n"


def checks(events):
    return [(e.body["table_version"], e.body["success"]) for e in events if e.event_type == "table_check"]


def test_each_version_that_is_there_when_it_is_time_is_checked_once(project, monkeypatch):
    monkeypatch.setattr(update, "TABLES_EVERY_SECONDS", 0.0)
    p = project(PIPELINE)
    (p.folder / "expectations").mkdir()
    (p.folder / "expectations" / "orders.yml").write_text(CHECKS)
    p.continuous = True
    p.arrive("a.json", {"id": 1, "at": "2020-01-01T00:00:00Z"})

    def done(events):
        found = checks(events)
        if len(found) == 1 and not (p.landing / "b.json").exists():
            p.arrive("b.json", {"id": 2, "at": "2099-01-01T00:00:00Z"})
        return len(found) == 2

    stopped_when(p, done)
    assert [success for _, success in checks(p.events)] == [False, True]
    p.continuous = False
    p.run()
    assert checks(p.events) == []
