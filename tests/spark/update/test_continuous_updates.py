"""Continuous updates, and updates that are stopped (RE-15, RE-16)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from lakelet.base.errors import LakeletError
from lakelet.plan.selection import Request
from lakelet.update.stopping import TerminationSignal, stoppable
from tests.spark.update.pipelines import BRANCHES, BRONZE, FAST, FRAGILE, states


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


def stopped_when(project, condition, *, number=signal.SIGINT, **request):
    """Run an update that is stopped by a signal once `condition(events so far)` holds; the exception that it ends with."""
    project.events = []
    sent = []

    def listen(event):
        project.events.append(event)
        if not sent and condition(project.events):
            sent.append(1)
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt) as ended, stoppable():
        project.pipeline.run(Request(**request), listeners=[listen])
    return ended.value


COUNTED = (
    BRONZE.replace("@dlt.table", '@dlt.table(spark_conf={"pipelines.trigger.interval": "1 second"})')
    + """
    @dlt.table(table_properties={"pipelines.trigger.interval": "1 second"})
    def counted():
        return dlt.read("bronze").groupBy().count()
"""
)


@pytest.mark.long
def test_a_continuous_update_follows_new_files_until_it_is_stopped(project):
    p = project(COUNTED)
    p.continuous = True
    p.arrive("a.json", {"id": 1})

    def done(events):
        ended = [e for e in events if e.event_type == "flow_progress" and e.body["status"] == "COMPLETED"]
        if len(ended) == 2 and not (p.landing / "b.json").exists():
            p.arrive("b.json", {"id": 2}, {"id": 3})
        return len(ended) == 4

    stopped_when(p, done)
    assert p.rows("bronze", "id") == [1, 2, 3]
    assert p.rows("counted") == [3]
    batches = [json.loads(e.body["progress_json"]) for e in p.events if e.event_type == "stream_progress" and "bronze" in e.message]
    assert [batch["batchId"] for batch in batches] == [0, 1]
    assert len({batch["runId"] for batch in batches}) == 1, "the query of the first round is that of the second one"
    assert states(p)[-3:] == ["RUNNING", "STOPPING", "CANCELED"]
    assert {
        e.body.get("cancellation_cause")
        for e in p.events
        if e.event_type == "update_progress" and e.body["state"] in ("STOPPING", "CANCELED")
    } == {"USER_ACTION"}
    assert len({e.origin.update_id for e in p.events}) == 1
    assert p.storage.registry().last_update.clean is False
    p.continuous = False
    p.run()
    assert p.rows("counted") == [3]
    assert p.rows("bronze", "id") == [1, 2, 3]


@pytest.mark.slow
def test_what_is_idle_is_told_once_and_a_flow_that_fails_does_not_stop_the_others(project):
    p = fragile(project, failures=2, **{"pipelines.trigger.interval": "1 second"})
    p.continuous = True

    def of(events, flow):
        return [e.body["status"] for e in events if e.event_type == "flow_progress" and f"'main.default.{flow}'" in e.message]

    def all_idle(events):
        done = next((n for n, e in enumerate(events) if of([e], "numbers") == ["COMPLETED"]), len(events))
        return all(of(events[done:], flow)[-1:] == ["IDLE"] for flow in ("numbers", "total"))

    stopped_when(p, all_idle)
    assert p.rows("numbers") == [1, 2, 3, 4]
    assert p.rows("total") == [10]
    assert p.rows("apart") == [0, 1, 2]
    assert told(p, "numbers", status="FAILED") == ["WARN", "WARN"]
    for flow in ("numbers", "total", "apart"):
        told_states = of(p.events, flow)
        assert told_states.count("IDLE") <= told_states.count("COMPLETED")


def test_a_continuous_update_ends_with_a_failure_that_cannot_pass(project):
    p = project(
        """
        import dlt

        @dlt.table
        @dlt.expect_or_fail("small", "id < 2")
        def numbers():
            return spark.range(3)

        @dlt.table
        def apart():
            return spark.range(1)
        """
    )
    p.continuous = True
    p.run(expect="FAILED")
    assert p.errors() == {"numbers": "EXPECTATION_VIOLATION"}
    assert p.quality("numbers") == {"small": (2, 1)}
    assert p.rows("apart") == [0]


def test_a_continuous_update_takes_no_selection(project):
    p = project(BRONZE)
    p.continuous = True
    with pytest.raises(LakeletError, match="--triggered") as caught:
        p.run(select=("bronze",))
    assert caught.value.code == "USAGE"
    assert not p.storage.root.exists()


@pytest.mark.long
def test_sigterm_stops_what_has_not_begun_and_keeps_what_is_finished(project):
    p = project(
        """
        import dlt, time

        @dlt.table
        def first():
            return spark.range(2)

        @dlt.table
        def second():
            return dlt.read("first")
        """
    )
    ended = stopped_when(
        p, lambda events: any(e.event_type == "flow_progress" and e.body["status"] == "COMPLETED" for e in events), number=signal.SIGTERM
    )
    assert isinstance(ended, TerminationSignal)
    assert p.rows("first") == [0, 1]
    assert p.statuses() == {"first": "COMPLETED", "second": "STOPPED"}
    causes = {e.body["cancellation_cause"] for e in p.events if e.event_type == "update_progress" and "cancellation_cause" in e.body}
    assert causes == {"WORKFLOW_CANCELLATION"}
    p.run()
    assert p.rows("second") == [0, 1]


@pytest.mark.long
def test_a_job_at_work_is_cancelled_and_the_flow_is_stopped_not_failed(project):
    p = project(
        """
        import dlt, time
        from pyspark.sql import functions as F

        @F.udf("bigint")
        def slow(number):
            time.sleep(120 if spark_is_slow else 0)
            return number

        spark_is_slow = spark.conf.get("slow") == "true"

        @dlt.table
        def numbers():
            return spark.range(2).select(slow("id").alias("id"))
        """
    )
    p.parameters["slow"] = "true"
    began = time.monotonic()
    timer = threading.Timer(4, lambda: os.kill(os.getpid(), signal.SIGTERM))
    running = []

    def listen(event):
        p.events.append(event)
        if event.event_type == "flow_progress" and event.body["status"] == "RUNNING" and not running:
            running.append(timer.start())

    p.events = []
    with pytest.raises(TerminationSignal), stoppable():
        p.pipeline.run(Request(), listeners=[listen])
    assert time.monotonic() - began < 110
    assert p.statuses() == {"numbers": "STOPPED"}
    p.parameters["slow"] = "false"
    p.run()
    assert p.rows("numbers") == [0, 1]


@pytest.mark.slow
def test_what_was_stopped_counts_as_not_finished(project):
    p = project(BRANCHES.format(number=2))
    stopped_when(p, lambda events: any(e.event_type == "flow_progress" and e.body["status"] == "QUEUED" for e in events))
    assert p.statuses()["below"] == "STOPPED"
    p.run(refresh_failed=True)
    assert p.rows("below") == [0, 1]
