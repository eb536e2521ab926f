"""An event log that cannot be written ends its update as FAILED, with a code (docs/semantics/storage.md, ST-17)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.pipeline import Request
from tests.disks import Disk

PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect("positive", "id > 0")
    def raw():
        return spark.readStream.schema("id INT").json(spark.conf.get("landing"))
"""


def replace_by_a_file(folder):
    """Move a folder aside, and put a file in its place."""
    folder.rename(folder.with_name("aside"))
    folder.write_text("not a folder")


def repair(folder):
    folder.unlink()
    folder.with_name("aside").rename(folder)


def last(p):
    event = p.events[-1]
    return event.event_type, event.body["state"], getattr(event.error, "code", None)


def damage(events):
    newest = max((events / "_delta_log").glob("*.json"))
    newest.write_text("")
    return newest


@pytest.mark.parametrize("damaged", ["a file in its place", "an empty commit"])
def test_a_log_that_cannot_be_started_fails_the_update_before_anything_runs(project, damaged):
    p = project(PIPELINE)
    p.arrive("a.json", {"id": 1})
    p.run()
    events = p.storage.events
    p.arrive("b.json", {"id": 2})
    if damaged == "a file in its place":
        replace_by_a_file(events)
    else:
        commit = damage(events)
    p.events = []
    with pytest.raises(LakeletError) as caught:
        p.pipeline.run(Request(), listeners=[p.events.append])
    assert (caught.value.code, caught.value.exit_code) == ("EVENT_LOG_FAILED", ExitCode.ENVIRONMENT)
    assert last(p) == ("update_progress", "FAILED", "EVENT_LOG_FAILED")
    assert p.rows("raw") == [1]
    if damaged == "a file in its place":
        repair(events)
    else:
        commit.unlink()
    p.run()
    assert p.rows("raw") == [1, 2]


def test_a_log_that_is_lost_on_the_way_fails_the_update_at_its_end_and_counts_are_written_by_the_next_one(project, monkeypatch):
    p = project(PIPELINE)
    p.arrive("a.json", {"id": 1})
    p.run()
    events = p.storage.events
    p.arrive("b.json", {"id": 2}, {"id": -3})
    with monkeypatch.context() as patched:
        Disk.at("batch.files_written", lambda: replace_by_a_file(events), patched)
        p.run(expect="FAILED")
    (problem,) = p.result.errors
    assert (problem.code, problem.exit_code) == ("EVENT_LOG_FAILED", ExitCode.ENVIRONMENT)
    assert last(p) == ("update_progress", "FAILED", "EVENT_LOG_FAILED")
    assert p.rows("raw") == [-3, 1, 2]
    repair(events)
    p.run()
    assert p.rows("raw") == [-3, 1, 2]
    told = [r["details"]["flow_progress"] for r in p.logged(event_type="flow_progress")]
    counted = [e for facts in told for e in facts.get("data_quality", {}).get("expectations", [])]
    assert (sum(e["passed_records"] for e in counted), sum(e["failed_records"] for e in counted)) == (2, 1)
