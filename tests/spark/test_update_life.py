"""The life of an update: hooks, retries, what is refreshed, how it ends (dlt-semantics 1.9, 5)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from lakelet.base.errors import LakeletError
from lakelet.plan.selection import Request
from lakelet.update.stopping import Terminated, stoppable

BRONZE = """
    import dlt

    @dlt.table
    def bronze():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))
"""


def states(project):
    """States that the last update passed through."""
    return [e.body["state"] for e in project.events if e.event_type == "update_progress"]


# ------------------------------------------------------------------------------------------------------------- hooks


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


def test_a_hook_with_a_wrong_number_of_arguments_refuses_the_update(project):
    p = project(BRONZE + "    @dlt.on_event_hook\n    def hook(event, more): ...\n")
    assert [e.code for e in p.refused()] == ["ARGUMENT_INVALID"]


# ----------------------------------------------------------------------------------------------------------- retries

FAST = {"spark.sql.pipelines.execution.watchdog.minRetryTime": "1s"}

FRAGILE = """
    import dlt, os
    from pyspark.sql import functions as F

    @F.udf("bigint")
    def careful(number):
        marks = os.environ.get("UNUSED") or "{marks}"
        failed = len([f for f in os.listdir(marks) if f.startswith("failed")])
        if number == 3 and failed < {failures}:
            open(os.path.join(marks, f"failed{{failed}}"), "w").close()
            raise RuntimeError("the line was cut")
        return number

    @dlt.table({options})
    def numbers():
        stream = (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
                  .schema("id bigint").load(spark.conf.get("landing")))
        return stream.select(careful("id").alias("id"))

    @dlt.table
    def total():
        return dlt.read("numbers").agg(F.sum("id").alias("total"))

    @dlt.table
    def apart():
        return spark.range(3)
"""


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


def test_when_the_attempts_are_used_up_the_flow_fails_and_what_is_below_is_skipped(project):
    options = 'spark_conf={"pipelines.maxFlowRetryAttempts": "1"}'
    p = fragile(project, failures=9, options=options, **{"pipelines.maxFlowRetryAttempts": "7"})
    p.run(expect="FAILED")
    assert p.statuses() == {"numbers": "FAILED", "total": "SKIPPED", "apart": "COMPLETED"}
    assert told(p, "numbers", status="FAILED") == ["WARN", "ERROR"]
    assert p.rows("numbers") == [1, 2]


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


@pytest.mark.long
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


# -------------------------------------------------------------------------------------- continuous, and being stopped


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


@pytest.mark.long
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
    assert p.rows("apart") == [0]


def test_a_continuous_update_takes_no_selection(project):
    p = project(BRONZE)
    p.continuous = True
    with pytest.raises(LakeletError, match="--triggered") as caught:
        p.run(select=("bronze",))
    assert caught.value.code == "USAGE"
    assert not p.storage.root.exists()


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
    assert isinstance(ended, Terminated)
    assert p.rows("first") == [0, 1]
    assert p.statuses() == {"first": "COMPLETED", "second": "STOPPED"}
    causes = {e.body["cancellation_cause"] for e in p.events if e.event_type == "update_progress" and "cancellation_cause" in e.body}
    assert causes == {"WORKFLOW_CANCELLATION"}
    p.run()
    assert p.rows("second") == [0, 1]


# -------------------------------------------------------------------------- refreshing what failed, clearing checkpoints

BRANCHES = """
    import dlt

    @dlt.table
    def good():
        return spark.range(1)

    @dlt.table
    def bad():
        return spark.range({number}).where("assert_true(id < 2) is null")

    @dlt.table
    def below():
        return dlt.read("bad")

    @dlt.table
    def left_out():
        return dlt.read("bad")
"""


def test_refreshing_what_failed_leaves_the_rest_alone(project):
    p = project(BRANCHES.format(number=3))
    p.run(expect="FAILED", select=("good", "bad", "below"))
    assert p.statuses() == {"good": "COMPLETED", "bad": "FAILED", "below": "SKIPPED", "left_out": "EXCLUDED"}
    p.write(BRANCHES.format(number=2))
    p.run(refresh_failed=True)
    assert p.statuses() == {"good": "EXCLUDED", "bad": "COMPLETED", "below": "COMPLETED", "left_out": "EXCLUDED"}
    assert p.rows("below") == [0, 1]
    p.run(refresh_failed=True)
    assert set(p.statuses().values()) == {"EXCLUDED"}


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
    with pytest.raises(Terminated), stoppable():
        p.pipeline.run(Request(), listeners=[listen])
    assert time.monotonic() - began < 110
    assert p.statuses() == {"numbers": "STOPPED"}
    p.parameters["slow"] = "false"
    p.run()
    assert p.rows("numbers") == [0, 1]


def test_what_was_stopped_counts_as_not_finished(project):
    p = project(BRANCHES.format(number=2))
    stopped_when(p, lambda events: any(e.event_type == "flow_progress" and e.body["status"] == "QUEUED" for e in events))
    assert p.statuses()["below"] == "STOPPED"
    p.run(refresh_failed=True)
    assert p.rows("below") == [0, 1]


def test_a_cleared_checkpoint_reads_everything_again_and_keeps_the_rows(project):
    p = project(
        BRONZE
        + """
    @dlt.table
    def silver():
        return spark.readStream.table("bronze").select("id")
"""
    )
    p.arrive("a.json", {"id": 1})
    p.arrive("b.json", {"id": 2, "extra": "x"})
    p.run()
    ids = {e.origin.flow_id for e in p.events if e.origin.flow_name == "main.default.bronze"}
    p.arrive("c.json", {"id": 3})
    p.run(reset_checkpoint=("bronze",))
    assert "RESETTING" in states(p)
    assert p.rows("bronze", "id") == [1, 1, 2, 2, 3]
    assert p.rows("silver") == [1, 1, 2, 2, 3]
    assert len({e.origin.flow_id for e in p.events if e.origin.flow_name == "main.default.bronze"} - ids) == 1
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    p.run(select=("silver",), reset_checkpoint=("silver",))
    assert p.statuses()["bronze"] == "EXCLUDED"
    assert p.rows("silver") == sorted([1, 1, 2, 2, 3] * 2)
    p.run(full_refresh=("bronze", "silver"))
    assert p.rows("bronze", "id") == [1, 2, 3]
    assert p.rows("silver") == [1, 2, 3]


# -------------------------------------------------------------------------------------------------- pipelines.* settings


def test_settings_without_effect_are_told_with_their_place_in_python_and_sql(project):
    p = project(
        """
        import dlt

        @dlt.table(table_properties={"pipelines.autoOptimize.managed": "true", "quality": "gold"}, spark_conf={"pipelines.tiger": "1"})
        def numbers():
            return spark.range(2)
        """
    )
    p.write(
        """
        CREATE OR REFRESH MATERIALIZED VIEW copied TBLPROPERTIES ("pipelines.reset.alowed" = "false") AS SELECT * FROM numbers;
        """,
        "more.sql",
    )
    p.run()
    notices = [e.message for e in p.events if e.event_type == "notice"]
    assert len(notices) == 3
    assert any("pipeline.py, line 4: pipelines.autoOptimize.managed has no effect here" in n for n in notices)
    assert any("pipelines.tiger has no effect here: no such setting is known" in n for n in notices)
    assert any("more.sql, line 2" in n and "did you mean pipelines.reset.allowed?" in n for n in notices)
    assert p.rows("copied") == [0, 1]
    p.write("import dlt\n@dlt.table(table_properties={'pipelines.reset.allowed': 'perhaps'})\ndef numbers(): return spark.range(2)")
    (error,) = p.refused()
    assert error.code == "PROPERTY_INVALID"


def test_a_protected_table_is_told_of_resets_that_leave_it_out(project):
    p = project(
        BRONZE
        + """
    @dlt.table(table_properties={"PIPELINES.reset.allowed": "false"})
    def kept():
        return spark.readStream.table("bronze").select("id")
"""
    )
    p.arrive("a.json", {"id": 1})
    p.run()
    with pytest.raises(LakeletError, match=r"kept, whose property pipelines\.reset\.allowed is false"):
        p.run(full_refresh=("kept",))
    p.run(full_refresh_all=True)
    warned = [e.message for e in p.events if e.level == "WARN"]
    assert any("main.default.kept: it was not reset, because pipelines.reset.allowed is false" in w for w in warned)
    assert any("keeps its rows and reads main.default.bronze again from the start: pipelines.reset.allowed is false" in w for w in warned)
    assert p.rows("bronze", "id") == [1]
    assert p.rows("kept") == [1, 1]


def test_the_configuration_says_for_all_change_tables_how_long_tombstones_are_kept(project):
    source = """
    import dlt

    dlt.create_streaming_table("{name}", table_properties={properties})
    dlt.apply_changes("{name}", "bronze", ["id"], "at", apply_as_deletes="gone")
    """
    p = project(
        BRONZE,
        a=source.format(name="a", properties={}),
        b=source.format(name="b", properties={"pipelines.cdc.tombstoneGCThresholdInSeconds": "99"}),
    )
    p.parameters["pipelines.cdc.tombstoneGCThresholdInSeconds"] = "7"
    p.arrive("a.json", {"id": 1, "at": 1, "gone": False})
    p.run()
    kept = [p.spark.sql(f"SHOW TBLPROPERTIES delta.`{p.path(name)}`").collect() for name in ("a", "b")]
    assert [dict(rows)["pipelines.cdc.tombstoneGCThresholdInSeconds"] for rows in kept] == ["7", "99"]


def test_a_checkpoint_that_was_cleared_before_the_process_died_is_cleared_once(project, monkeypatch):
    p = project(BRONZE)
    p.arrive("a.json", {"id": 1})
    p.run()

    def dies(point):
        if point == "reset.recorded":
            raise MemoryError(point)

    with monkeypatch.context() as patched:
        patched.setattr("lakelet.update.update.reached", dies)
        with pytest.raises(MemoryError):
            p.run(reset_checkpoint=("bronze",))
    p.run()
    assert p.rows("bronze", "id") == [1, 1]
    p.run()
    assert p.statuses() == {"bronze": "IDLE"}
