"""Runs work over a graph with a few threads. No Spark, no events: decides only what may start when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How one item ended. `failed_because`: the items above it that failed, when it was skipped for that reason."""

    ok: bool
    failed_because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Again:
    """What the work of an item returns that is to be tried again after a pause; no worker waits for it meanwhile."""

    seconds: float


HURRY_SECONDS = 0.25

Work = Callable[[str], "bool | Again"]


def execute(
    order: Sequence[str],
    inputs: Mapping[str, Sequence[str]],
    work: Work,
    *,
    skipped: Callable[[str, tuple[str, ...]], None],
    workers: int,
    stopping: Callable[[BaseException], None] = lambda stop: None,
    hurry: Callable[[], None] = lambda: None,
) -> dict[str, Outcome]:
    """Call `work(item)` for every item after its inputs; independent items run at the same time.

    Args:
        order: all items, inputs first; items that may start are started in this order.
        inputs: items each one waits for; others are ignored.
        work: returns whether the item succeeded, or when to try again. Must not raise, except KeyboardInterrupt and the like.
        skipped: called instead of `work` for items below a failed one, with the failed ones.
        workers: how many at once.
        stopping: called with what interrupts this thread, before the items at work are waited for; no other one is started.
        hurry: called again and again meanwhile: an item may be between two of its jobs when the first ones are cancelled.

    Returns:
        The outcome of every item.
    """
    outcomes: dict[str, Outcome] = {}
    waiting = list(order)
    running: dict[Future[bool | Again], str] = {}
    paused: dict[str, float] = {}
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="lakelet-flow") as pool:
        at_work = _AtWork(work)

        def start(item: str) -> None:
            running[pool.submit(at_work.do, item)] = item

        try:
            while waiting or running or paused:
                for item in [item for item, moment in paused.items() if moment <= time.monotonic()]:
                    del paused[item]
                    start(item)
                waiting = _start_what_may(waiting, inputs, outcomes, {*running.values(), *paused}, start, skipped)
                pause = max(0.0, min(paused.values()) - time.monotonic()) if paused else None
                if not running:
                    time.sleep(pause or 0.0)
                    continue
                done, _ = wait(running, timeout=pause, return_when=FIRST_COMPLETED)
                for future in done:
                    item, result = running.pop(future), future.result()
                    if isinstance(result, Again):
                        paused[item] = time.monotonic() + result.seconds
                    else:
                        outcomes[item] = Outcome(result)
        except BaseException as stop:
            stopping(stop)
            pool.shutdown(wait=False, cancel_futures=True)
            at_work.close(hurry)
            raise
    return outcomes


class _AtWork:
    """Knows how many items are at work. An interrupt may come in the middle of handing one over, when the pool does not know of it yet."""

    def __init__(self, work: Work) -> None:
        self._work, self._number, self._closed = work, 0, False
        self._changed = threading.Condition()

    def do(self, item: str) -> bool | Again:
        with self._changed:
            if self._closed:
                return False
            self._number += 1
        try:
            return self._work(item)
        finally:
            with self._changed:
                self._number -= 1
                self._changed.notify_all()

    def close(self, hurry: Callable[[], None]) -> None:
        """Let nothing begin any more, and wait for what is at work."""
        with self._changed:
            self._closed = True
        while not self._ended():
            hurry()

    def _ended(self) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._number == 0, timeout=HURRY_SECONDS)


def _start_what_may(
    waiting: list[str],
    inputs: Mapping[str, Sequence[str]],
    outcomes: dict[str, Outcome],
    ahead: Set[str],
    start: Callable[[str], None],
    skipped: Callable[[str, tuple[str, ...]], None],
) -> list[str]:
    """Start or skip every waiting item whose inputs have ended; return the rest. `ahead`: items at work, or to be tried again."""
    rest: list[str] = []
    known = {*waiting, *ahead, *outcomes}
    for item in waiting:
        above = [name for name in inputs[item] if name in known]
        if any(name not in outcomes for name in above):
            rest.append(item)
            continue
        failed = tuple(dict.fromkeys(root for name in above if not outcomes[name].ok for root in outcomes[name].failed_because or (name,)))
        if failed:
            outcomes[item] = Outcome(False, failed)
            skipped(item, failed)
        else:
            start(item)
    return rest
