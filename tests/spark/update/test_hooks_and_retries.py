"""Event hooks and retries in real updates (RE-12 to RE-19)."""

from __future__ import annotations

import json

import pytest
from deltalake import DeltaTable

from lakelet.base.names import TableName
from tests.spark.update.pipelines import BRONZE, FAST, FRAGILE, states


def test_hooks_of_all_files_get_the_events_of_an_update_and_a_broken_one_changes_nothing(project):
    p = project(BRONZE)
    p.write(
        """
        import json
        from pyspark import pipelines as dp

        @dp.on_event_hook
        def keep(event):
            if event["event_type"] in ("flow_progress", "update_progress"):
                with open(spark.conf.get("landing") + "/../kept.jsonl", "a") as out:
                    out.write(json.dumps(event) + "\\n")
        """,
        "monitoring.py",
    )
    p.write(
        """
        import dlt

        @dlt.on_event_hook(max_allowable_consecutive_failures=2)
        def broken(event):
            raise RuntimeError("no network")
        """,
        "slack.py",
    )
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.run()
    assert p.rows("bronze", "id") == [1, 2]
    kept = [json.loads(line) for line in (p.folder / "kept.jsonl").read_text().splitlines()]
    assert [e["details"]["update_progress"]["state"] for e in kept if e["event_type"] == "update_progress"] == states(p)
    of_flow = [e for e in kept if e["origin"].get("flow_name") == "main.default.bronze"]
    assert of_flow[-1]["details"]["flow_progress"]["status"] == "COMPLETED"
    assert sum(e["details"]["flow_progress"].get("metrics", {}).get("num_output_rows", 0) for e in of_flow) == 2
    logged = p.logged(event_type="hook_progress")
    assert [r["details"]["hook_progress"]["status"] for r in logged] == ["FAILED", "FAILED", "FAILED", "DISABLED"]
    assert "slack.py, line 6" in logged[0]["message"]
    assert logged[0]["level"] == "WARN"


@pytest.mark.long
def test_tables_that_a_hook_writes_by_name_stay_in_the_storage(project):
    p = project(BRONZE)
    p.write(
        """
        from pyspark import pipelines as dp
        from pyspark.sql import SparkSession

        @dp.on_event_hook
        def audit(event):
            if event["event_type"] == "update_progress" and event["details"]["update_progress"]["state"] == "COMPLETED":
                session = SparkSession.builder.getOrCreate()
                session.read.table("bronze").selectExpr("count(*) AS rows").write.mode("append").saveAsTable("main.audit.runs")
        """,
        "monitoring.py",
    )
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.run()
    assert [e["message"] for e in p.logged(event_type="hook_progress")] == []
    path = p.storage.table_path(TableName("main", "audit", "runs"))
    assert sorted(DeltaTable(str(path)).to_pyarrow_table()["rows"].to_pylist()) == [2]

    p.arrive("b.json", {"id": 3})
    p.run()
    assert sorted(DeltaTable(str(path)).to_pyarrow_table()["rows"].to_pylist()) == [2, 3]


def test_a_hook_with_a_wrong_number_of_arguments_refuses_the_update(project):
    p = project(BRONZE + "    @dlt.on_event_hook\n    def hook(event, more): ...\n")
    assert [e.code for e in p.refused()] == ["ARGUMENT_INVALID"]


def fragile(project, *, failures, options="", **parameters):
    """A pipeline whose stream fails `failures` times in its third micro-batch."""
    p = project()
    marks = p.folder / "marks"
    marks.mkdir()
    p.write(FRAGILE.format(marks=marks, failures=failures, options=options))
    p.parameters |= {**FAST, **parameters}
    for number in range(1, 5):
        p.arrive(f"{number}.json", {"id": number})
    return p


def told(project, flow, *, status):
    """Levels of the events that say that a flow has this status."""
    return [e.level for e in project.events if e.event_type == "flow_progress" and e.body["status"] == status and flow in e.message]


@pytest.mark.long
def test_a_flow_that_failed_goes_on_where_it_stopped_and_doubles_nothing(project):
    p = fragile(project, failures=2, **{"pipelines.maxFlowRetryAttempts": "2"})
    p.run()
    assert p.rows("numbers") == [1, 2, 3, 4]
    assert p.rows("total") == [10]
    assert told(p, "numbers", status="FAILED") == ["WARN", "WARN"]
    assert p.result.errors == ()
    again = next(e for e in p.events if e.level == "WARN" and e.event_type == "flow_progress")
    assert "retry 1 of 2 follows in 1 s" in again.message
    assert "the line was cut" in str(again.error)


@pytest.mark.slow
def test_when_the_attempts_are_used_up_the_flow_fails_and_what_is_below_is_skipped(project):
    options = 'spark_conf={"pipelines.maxFlowRetryAttempts": "1"}'
    p = fragile(project, failures=9, options=options, **{"pipelines.maxFlowRetryAttempts": "7"})
    p.run(expect="FAILED")
    assert p.statuses() == {"numbers": "FAILED", "total": "SKIPPED", "apart": "COMPLETED"}
    assert told(p, "numbers", status="FAILED") == ["WARN", "ERROR"]
    assert p.rows("numbers") == [1, 2]


@pytest.mark.slow
def test_by_hand_and_for_broken_rules_there_is_one_attempt(project):
    p = fragile(project, failures=1)
    p.run(expect="FAILED")
    assert told(p, "numbers", status="FAILED") == ["ERROR"]
    p.write(
        """
        import dlt

        @dlt.table
        @dlt.expect_or_fail("small", "id < 2")
        def numbers():
            return spark.range(3)
        """
    )
    p.parameters["pipelines.maxFlowRetryAttempts"] = "5"
    q = p.__class__(p.folder / "rule", p.spark)
    q.files, q.parameters = p.files, p.parameters
    q.run(expect="FAILED")
    assert told(q, "numbers", status="FAILED") == ["ERROR"]
    assert q.errors() == {"numbers": "EXPECTATION_VIOLATION"}
    assert q.quality() == {"small": (2, 1)}


@pytest.mark.slow
def test_an_update_that_failed_is_followed_by_another_one_which_does_not_reset_again(project):
    p = fragile(project, failures=0)
    p.run()
    for mark in range(1, 3):
        p.arrive(f"late{mark}.json", {"id": 10 * mark})
    p.write(FRAGILE.format(marks=p.folder / "marks", failures=1, options=""))
    p.parameters["pipelines.numUpdateRetryAttempts"] = "1"
    p.run(full_refresh=("numbers",))
    causes = [e.body["cause"] for e in p.events if e.event_type == "create_update"]
    assert causes == ["USER_ACTION", "RETRY_ON_FAILURE"]
    assert len({e.origin.update_id for e in p.events}) == 2
    assert [e.body["action"] for e in p.events if e.event_type == "user_action"] == ["START"]
    assert sorted(p.rows("numbers")) == [1, 2, 3, 4, 10, 20]
    assert states(p).count("RESETTING") == 1
    failed = next(e for e in p.events if e.event_type == "update_progress" and e.body["state"] == "FAILED")
    assert failed.level == "WARN"
    assert "retry 1 of 1 follows in 1 s" in failed.message
