"""Runs work over a graph with a few threads. No Spark, no events: decides only what may start when. Layer 5."""

from __future__ import annotations

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


Work = Callable[[str], "bool | Again"]


def execute(
    order: Sequence[str],
    inputs: Mapping[str, Sequence[str]],
    work: Work,
    *,
    skipped: Callable[[str, tuple[str, ...]], None],
    workers: int,
    stopping: Callable[[], None] = lambda: None,
) -> dict[str, Outcome]:
    """Call `work(item)` for every item after its inputs; independent items run at the same time.

    Args:
        order: all items, inputs first; items that may start are started in this order.
        inputs: items each one waits for; others are ignored.
        work: returns whether the item succeeded, or when to try again. Must not raise, except KeyboardInterrupt and the like.
        skipped: called instead of `work` for items below a failed one, with the failed ones.
        workers: how many at once.
        stopping: called when this thread is interrupted, before what is at work is waited for; nothing else is started then.

    Returns:
        The outcome of every item.
    """
    outcomes: dict[str, Outcome] = {}
    waiting = list(order)
    running: dict[Future[bool | Again], str] = {}
    paused: dict[str, float] = {}
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="lakelet-flow") as pool:

        def start(item: str) -> None:
            running[pool.submit(work, item)] = item

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
        except BaseException:
            stopping()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


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
