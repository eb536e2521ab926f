"""The executor: what may start when, and what a failure stops (no Spark)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelet.update.executor import ItemOutcome, execute, flow_threads

DIAMOND = {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


def run(
    inputs: Mapping[str, Sequence[str]], work: Callable[[str], bool], *, workers: int = 4
) -> tuple[dict[str, ItemOutcome], dict[str, tuple[str, ...]]]:
    skipped: dict[str, tuple[str, ...]] = {}
    with flow_threads(workers) as pool:
        outcomes = execute(list(inputs), inputs, work, skipped=skipped.__setitem__, pool=pool)
    return outcomes, skipped


def test_a_diamond_runs_inputs_first_and_every_item_once() -> None:
    done: list[str] = []

    def work(item: str) -> bool:
        assert all(name in done for name in DIAMOND[item])
        done.append(item)
        return True

    outcomes, skipped = run(DIAMOND, work)
    assert sorted(done) == sorted(DIAMOND)
    assert outcomes == {item: ItemOutcome(True) for item in DIAMOND}
    assert skipped == {}


def test_independent_items_run_at_the_same_time() -> None:
    together = threading.Barrier(2)

    def work(item: str) -> bool:
        if item in ("left", "right"):
            together.wait(timeout=10)
        return True

    assert all(outcome.ok for outcome in run(DIAMOND, work)[0].values())


def test_one_worker_keeps_the_order_given() -> None:
    done: list[str] = []
    inputs: dict[str, list[str]] = {name: [] for name in "dacb"}
    run(inputs, lambda item: done.append(item) is None, workers=1)
    assert done == list("dacb")


def test_a_failure_skips_what_is_below_and_nothing_else() -> None:
    inputs = {"a": [], "b": ["a"], "c": ["b"], "x": [], "y": ["x"]}
    done: list[str] = []

    def work(item: str) -> bool:
        done.append(item)
        return item != "a"

    outcomes, skipped = run(inputs, work)
    assert sorted(done) == ["a", "x", "y"]
    assert skipped == {"b": ("a",), "c": ("a",)}
    assert {item: outcome.ok for item, outcome in outcomes.items()} == {"a": False, "b": False, "c": False, "x": True, "y": True}


def test_what_was_skipped_names_every_root_that_failed_once() -> None:
    inputs = {"a": [], "b": [], "c": ["a"], "d": ["a", "b"], "e": ["c", "d"]}
    skipped = run(inputs, lambda item: item not in ("a", "b"))[1]
    assert skipped["c"] == ("a",)
    assert sorted(skipped["d"]) == ["a", "b"]
    assert sorted(skipped["e"]) == ["a", "b"]


def test_inputs_that_take_no_part_are_not_waited_for() -> None:
    outcomes, _ = run({"b": ["not selected"]}, lambda _: True)
    assert outcomes == {"b": ItemOutcome(True)}


def test_nothing_to_do_ends_at_once() -> None:
    assert run({}, lambda _: True) == ({}, {})


def test_an_interrupt_ends_everything_and_starts_nothing_more() -> None:
    started: list[str] = []
    release = threading.Event()

    def work(item: str) -> bool:
        started.append(item)
        if item == "interrupted":
            raise KeyboardInterrupt
        return release.wait(10)

    inputs = {"interrupted": [], "long": [], "below": ["long"], "waiting": []}
    threading.Timer(0.3, release.set).start()
    with pytest.raises(KeyboardInterrupt):
        run(inputs, work, workers=2)
    assert "below" not in started


def test_a_wide_graph_needs_no_more_threads_than_workers() -> None:
    active, most, lock = 0, 0, threading.Lock()

    def work(_: str) -> bool:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        with lock:
            active -= 1
        return True

    outcomes, _ = run({str(i): [] for i in range(300)}, work, workers=3)
    assert len(outcomes) == 300
    assert most <= 3


def test_an_interrupt_while_an_item_is_handed_over_still_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def work(item: str) -> bool:
        time.sleep(0.2)
        ended.append(item)
        return True

    def submit(self: ThreadPoolExecutor, function: Callable[[str], bool], item: str) -> None:
        begun = threading.Event()

        def begin() -> None:
            begun.set()
            function(item)

        threading.Thread(target=begin).start()
        begun.wait()
        time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    with pytest.raises(KeyboardInterrupt):
        run({"a": []}, work)
    assert ended == ["a"]


def test_an_interrupt_between_two_jobs_of_an_item_cancels_the_next_ones_too() -> None:
    """As a flow works: jobs one after the other, and a cancellation reaches only the one that is running."""
    cancelled = threading.Event()
    jobs: list[int] = []

    def work(item: str) -> bool:
        for number in range(200):
            jobs.append(number)
            cancelled.clear()
            if cancelled.wait(0.5):
                return False
        return True

    def skipped(item: str, roots: tuple[str, ...]) -> None:
        raise AssertionError

    timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        execute(["a"], {"a": []}, work, skipped=skipped, pool=flow_threads(1), cancel_running=cancelled.set)
    assert time.monotonic() - began < 10
    assert len(jobs) < 20
