"""Event hooks: what may be one, what they get, and that they cannot disturb an update (RE-17 to RE-19)."""

from __future__ import annotations

import json
import threading

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace
from lakelet.language.api import DLT, DP
from lakelet.language.model import Hook
from lakelet.language.registry import Registry, recording
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import Level
from lakelet.storage.eventlog.writer import EventWriter
from lakelet.update.hook_runner import HookRunner

HERE = Location("hooks.py", 3)


class Run:
    """An update's events on their way to hooks; `told` is every event that was written."""

    def __init__(self, tmp_path, *hooks, patience=10.0):
        self.told = []
        self.writer = EventWriter(tmp_path / "events", listeners=[self.told.append])
        self.runner = HookRunner(hooks, self.emit, patience=patience)
        self.writer.add_listener(self.runner)

    def emit(self, event_type, message, body, *, level="INFO", error=None):
        origin = Origin("p", "shop", "u-1", dataset_name="main.shop.orders", flow_name="main.shop.orders")
        self.writer.emit(Event(event_type, message, origin, {event_type: dict(body)}, level=level, error=error))

    def progress(self, *statuses):
        for status in statuses:
            self.emit("flow_progress", f"Flow 'orders' is {status}.", {"status": status})
        return self

    def close(self):
        self.runner.close()
        return [(e.body["name"], e.body["status"], e.level) for e in self.told if e.event_type == "hook_progress"]


def declared(decorate):
    registry = Registry(Namespace())
    with recording(registry):
        decorate()
    return registry.definitions(complete=False).hooks


@pytest.mark.parametrize("names", [DLT, DP])
def test_the_decorator_works_with_and_without_parentheses_in_both_modules(names):
    decorator = names["on_event_hook"]

    def declare():
        @decorator
        def plain(event): ...

        @decorator()
        def empty(event): ...

        @decorator(max_allowable_consecutive_failures=3)
        def limited(event): ...

        assert callable(limited)

    hooks = declared(declare)
    assert [(h.name, h.max_failures) for h in hooks] == [("plain", None), ("empty", None), ("limited", 3)]
    assert hooks[0].where.file.endswith("test_hooks.py")


async def awaited(event): ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda: None, "exactly one argument"),
        (lambda event, other: None, "exactly one argument"),
        (lambda event, other=1: None, "has 2"),
        (lambda *, event: None, "exactly one argument"),
        (awaited, "async"),
        ("text", "decorates a function"),
    ],
)
def test_what_cannot_be_called_with_one_event_is_refused(function, text):
    with pytest.raises(LakeletError, match=text) as caught:
        declared(lambda: DP["on_event_hook"](function))
    assert caught.value.code == "ARGUMENT_INVALID"
    assert caught.value.where is not None


@pytest.mark.parametrize("limit", [-1, "3", True, 1.5])
def test_a_limit_that_is_no_number_is_refused(limit):
    with pytest.raises(LakeletError, match="max_allowable_consecutive_failures"):
        declared(lambda: DP["on_event_hook"](max_allowable_consecutive_failures=limit)(lambda event: None))


def test_every_hook_gets_every_stable_event_in_order_with_parsed_details(tmp_path):
    first, second = [], []
    run = Run(tmp_path, Hook("a", first.append, HERE), Hook("b", second.append, HERE))
    run.progress("QUEUED", "RUNNING")
    run.emit("notice", "ours, its shape may change", {"text": "x"}, level=Level.WARN)
    run.emit(
        "update_progress", "Update u is FAILED.", {"state": "FAILED"}, level=Level.ERROR, error=LakeletError("FLOW_FAILED", "it broke")
    )
    assert run.close() == []
    assert first == second
    assert [e["details"] for e in first] == [
        {"flow_progress": {"status": "QUEUED"}},
        {"flow_progress": {"status": "RUNNING"}},
        {"update_progress": {"state": "FAILED"}},
    ]
    event = first[2]
    columns = "id sequence origin timestamp message level maturity_level error details event_type"
    assert sorted(event) == sorted(columns.split())
    assert event["origin"]["update_id"] == "u-1"
    assert event["origin"]["dataset_name"] == "main.shop.orders"
    assert event["sequence"]["data_plane_id"] == {"instance": "u-1", "seq_no": 4}
    assert event["error"]["exceptions"][0]["class_name"] == "FLOW_FAILED"
    assert first[0]["error"] is None
    assert event["maturity_level"] == "STABLE"
    assert json.loads(json.dumps(event)) == event


def test_a_hook_that_changes_its_event_does_not_change_that_of_the_next_hook(tmp_path):
    seen = []
    run = Run(tmp_path, Hook("clears", dict.clear, HERE), Hook("keeps", seen.append, HERE))
    run.progress("RUNNING").close()
    assert seen[0]["details"] == {"flow_progress": {"status": "RUNNING"}}
    assert run.told[0].details == {"flow_progress": {"status": "RUNNING"}}


def test_a_hook_is_disabled_when_it_fails_more_often_in_a_row_than_allowed(tmp_path):
    calls = []

    def breaks(event):
        calls.append(event["details"]["flow_progress"]["status"])
        raise ValueError("no such address")

    run = Run(tmp_path, Hook("breaks", breaks, HERE, max_failures=3))
    told = run.progress("1", "2", "3", "4", "5", "6").close()
    assert calls == ["1", "2", "3", "4"]
    assert told == [
        ("breaks", "FAILED", "WARN"),
        ("breaks", "FAILED", "INFO"),
        ("breaks", "FAILED", "INFO"),
        ("breaks", "FAILED", "INFO"),
        ("breaks", "DISABLED", "WARN"),
    ]
    warning = next(e for e in run.told if e.event_type == "hook_progress")
    assert "test_hooks.py, line" in warning.message
    assert "ValueError: no such address" in warning.message
    assert warning.error.code == "HOOK_FAILED"


def test_only_failures_in_a_row_count(tmp_path):
    calls = []

    def breaks_sometimes(event):
        calls.append(1)
        if event["details"]["flow_progress"]["status"] != "good":
            raise SystemExit(1)

    run = Run(tmp_path, Hook("sometimes", breaks_sometimes, HERE, max_failures=1))
    told = run.progress("bad", "good", "bad", "good", "bad", "bad", "never").close()
    assert len(calls) == 6
    assert told[-1] == ("sometimes", "DISABLED", "WARN")


def test_without_a_limit_a_hook_may_fail_for_ever_and_others_go_on(tmp_path):
    good = []
    run = Run(tmp_path, Hook("bad", lambda event: 1 / 0, HERE), Hook("good", good.append, HERE))
    told = run.progress(*map(str, range(20))).close()
    assert len(good) == 20
    assert [t for t in told if t[1] == "DISABLED"] == []


def test_hooks_run_beside_the_update_one_call_at_a_time(tmp_path):
    at_work, most, threads, waited = [], [], set(), []
    told = threading.Event()

    def slow(event):
        at_work.append(1)
        most.append(len(at_work))
        threads.add(threading.get_ident())
        waited.append(told.wait(10))
        at_work.pop()

    run = Run(tmp_path, Hook("slow", slow, HERE), Hook("slow too", slow, HERE))
    run.progress("1", "2", "3")
    told.set()
    run.close()
    assert waited == [True] * 6, "no event waits for a hook"
    assert max(most) == 1
    assert threading.get_ident() not in threads
    assert len(threads) == 1


def test_the_end_waits_for_hooks_a_bounded_time_and_says_what_was_not_delivered(tmp_path):
    release, ended = threading.Event(), threading.Event()

    def hangs(event):
        release.wait()
        ended.set()

    run = Run(tmp_path, Hook("hangs", hangs, HERE), patience=0.2)
    run.progress("1", "2", "3")
    told = run.close()
    assert not ended.is_set()
    assert told == [(None, "STOPPED", "WARN")]
    assert run.told[-1].body["events_not_delivered"] == 2
    release.set()


def test_a_hook_that_fails_after_the_end_has_nobody_to_tell(tmp_path):
    begun, release = threading.Event(), threading.Event()
    threads = []

    def late(event):
        threads.append(threading.current_thread())
        begun.set()
        release.wait()
        raise ValueError("too late")

    run = Run(tmp_path, Hook("late", late, HERE), patience=0.1)
    run.progress("1")
    begun.wait()
    run.close()
    told = len(run.told)
    release.set()
    threads[0].join()
    assert len(run.told) == told
