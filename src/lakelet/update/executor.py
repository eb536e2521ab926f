"""Runs work over a graph with a few threads, and says in a continuous update which flows are due. No Spark, no events.

In: items with their inputs, and a function that does one. Out: the outcome of each. A continuous update makes rounds of triggered work
within one update, until somebody stops it (RE-15, decision 18): `Rounds`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from lakelet.config.properties import trigger_interval


@dataclass(frozen=True)
class ItemOutcome:
    """How one item ended. `failed_because`: the items above it that failed, when it was skipped for that reason."""

    ok: bool
    failed_because: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetryAfter:
    """Result of an item that is tried again after a pause; no worker waits during the pause."""

    seconds: float


CANCEL_EVERY_SECONDS = 0.25

Work = Callable[[str], "bool | RetryAfter"]


def flow_threads(workers: int) -> ThreadPoolExecutor:
    """Threads for `workers` items at once.

    Each has its own connection to Java, which caches the methods that were called; so the rounds of a continuous update share the threads.
    """
    return ThreadPoolExecutor(max_workers=workers, thread_name_prefix="lakelet-flow")


def execute(
    order: Sequence[str],
    inputs: Mapping[str, Sequence[str]],
    work: Work,
    *,
    skipped: Callable[[str, tuple[str, ...]], None],
    pool: ThreadPoolExecutor,
    stopping: Callable[[BaseException], None] = lambda stop: None,
    cancel_running: Callable[[], None] = lambda: None,
) -> dict[str, ItemOutcome]:
    """Call `work(item)` for every item after its inputs; independent items run at the same time.

    Args:
        order: all items, inputs first; items that may start are started in this order.
        inputs: items each one waits for; others are ignored.
        work: returns whether the item succeeded, or when to try again. Must not raise, except KeyboardInterrupt and the like.
        skipped: called instead of `work` for items below a failed one, with the failed ones.
        pool: runs the items; it is shut down where this thread is interrupted, and else left as it is.
        stopping: called with what interrupts this thread, before the items at work are waited for; no other one is started.
        cancel_running: called again and again meanwhile: an item may be between two of its jobs when the first ones are cancelled.

    Returns:
        The outcome of every item.
    """
    at_work = _AtWork(work)
    schedule = _Schedule(order, inputs, lambda item: pool.submit(at_work.do, item), skipped)
    try:
        while schedule.goes_on():
            schedule.start_what_may()
            schedule.wait()
    except BaseException as stop:
        stopping(stop)
        pool.shutdown(wait=False, cancel_futures=True)
        at_work.close(cancel_running)
        raise
    return schedule.outcomes


class _Schedule:
    """Which items are pending, at work, or paused before another attempt, and how the others ended. For one thread."""

    def __init__(
        self,
        order: Sequence[str],
        inputs: Mapping[str, Sequence[str]],
        submit: Callable[[str], Future[bool | RetryAfter]],
        skipped: Callable[[str, tuple[str, ...]], None],
    ) -> None:
        self._inputs, self._submit, self._skipped = inputs, submit, skipped
        self._known = frozenset(order)
        self._pending = list(order)
        self._running: dict[Future[bool | RetryAfter], str] = {}
        self._paused: dict[str, float] = {}
        self.outcomes: dict[str, ItemOutcome] = {}

    def goes_on(self) -> bool:
        return bool(self._pending or self._running or self._paused)

    def start_what_may(self) -> None:
        """Start the items whose pause is over; start or skip every pending one whose inputs have ended."""
        for item in [item for item, moment in self._paused.items() if moment <= time.monotonic()]:
            del self._paused[item]
            self._start(item)
        self._pending = [item for item in self._pending if not self._has_left(item)]

    def wait(self) -> None:
        """Wait until an item at work ends, or a pause is over, and keep the outcomes."""
        pause = max(0.0, min(self._paused.values()) - time.monotonic()) if self._paused else None
        if not self._running:
            time.sleep(pause or 0.0)
            return
        done, _ = wait(self._running, timeout=pause, return_when=FIRST_COMPLETED)
        for future in done:
            item, result = self._running.pop(future), future.result()
            if isinstance(result, RetryAfter):
                self._paused[item] = time.monotonic() + result.seconds
            else:
                self.outcomes[item] = ItemOutcome(result)

    def _has_left(self, item: str) -> bool:
        """Start or skip an item unless one of its inputs has not ended; whether that was done."""
        above = [name for name in self._inputs[item] if name in self._known]
        if any(name not in self.outcomes for name in above):
            return False
        roots = (root for name in above if not self.outcomes[name].ok for root in self.outcomes[name].failed_because or (name,))
        failed = tuple(dict.fromkeys(roots))
        if failed:
            self.outcomes[item] = ItemOutcome(False, failed)
            self._skipped(item, failed)
        else:
            self._start(item)
        return True

    def _start(self, item: str) -> None:
        self._running[self._submit(item)] = item


class _AtWork:
    """Knows how many items are at work. An interrupt may come in the middle of handing one over, when the pool does not know of it yet."""

    def __init__(self, work: Work) -> None:
        self._work, self._number, self._closed = work, 0, False
        self._changed = threading.Condition()

    def do(self, item: str) -> bool | RetryAfter:
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

    def close(self, cancel_running: Callable[[], None]) -> None:
        """Let nothing begin any more, and wait for what is at work."""
        with self._changed:
            self._closed = True
        while not self._ended():
            cancel_running()

    def _ended(self) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._number == 0, timeout=CANCEL_EVERY_SECONDS)


STREAM_SECONDS, DELTA_SECONDS, OTHER_SECONDS = 5.0, 60.0, 600.0
"""How often a flow checks for something new unless it is set: a stream; a view of Delta tables only; another view."""


def pace(settings: Iterable[Mapping[str, str]], *, streaming: bool, external: bool) -> float:
    """Seconds from one check of a flow's inputs to the next.

    `settings`: where `pipelines.trigger.interval` may stand, the first one wins. `external`: the flow reads something else than the
    tables that the pipeline writes. A setting of 0 means without a pause.
    """
    given = trigger_interval(settings)
    if given is not None:
        return given
    return STREAM_SECONDS if streaming else OTHER_SECONDS if external else DELTA_SECONDS


class Rounds:
    """Which flows are due. `paces`: seconds between two checks, by flow, in the order in which flows of one round may start."""

    def __init__(self, paces: Mapping[str, float], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._paces, self._clock = dict(paces), clock
        self._next = dict.fromkeys(paces, clock())

    def due(self) -> list[str]:
        """The flows whose time has come; they are due again when their interval has passed from now on."""
        now = self._clock()
        found = [flow for flow, moment in self._next.items() if moment <= now]
        self._next.update({flow: now + self._paces[flow] for flow in found})
        return found

    def postpone(self, flow: str, seconds: float) -> None:
        """Leave a flow that failed alone for a while."""
        self._next[flow] = max(self._next[flow], self._clock() + seconds)

    def pause(self) -> float:
        """Seconds until the next flow is due; a moment at least, so that a pace of 0 does not keep a processor busy."""
        return max(0.1, min(self._next.values()) - self._clock())

    def go_on(self, run: Callable[[list[str]], None], *, ended: Callable[[], bool], sleep: Callable[[float], None] = time.sleep) -> None:
        """Run what is due, round after round, until `ended`; being interrupted is the usual end."""
        while self._next and not ended():
            run(self.due())
            if not ended():
                sleep(self.pause())
