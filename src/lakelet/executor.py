"""Runs work over a graph with a few threads. No Spark, no events: decides only what may start when. Layer 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How one item ended. `failed_because`: the items above it that failed, when it was skipped for that reason."""

    ok: bool
    failed_because: tuple[str, ...] = ()


def execute(
    order: Sequence[str],
    inputs: Mapping[str, Sequence[str]],
    work: Callable[[str], bool],
    *,
    skipped: Callable[[str, tuple[str, ...]], None],
    workers: int,
) -> dict[str, Outcome]:
    """Call `work(item)` for every item after its inputs; independent items run at the same time.

    Args:
        order: all items, inputs first; items that may start are started in this order.
        inputs: items each one waits for; others are ignored.
        work: returns whether the item succeeded. Must not raise, except KeyboardInterrupt and the like, which ends everything.
        skipped: called instead of `work` for items below a failed one, with the failed ones.
        workers: how many at once.

    Returns:
        The outcome of every item.
    """
    outcomes: dict[str, Outcome] = {}
    waiting = list(order)
    running: dict[Future[bool], str] = {}
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="lakelet-flow") as pool:
        try:
            while waiting or running:
                waiting = _start_what_may(waiting, inputs, outcomes, running, lambda item: pool.submit(work, item), skipped)
                if not running:
                    continue
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    outcomes[running.pop(future)] = Outcome(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


def _start_what_may(
    waiting: list[str],
    inputs: Mapping[str, Sequence[str]],
    outcomes: dict[str, Outcome],
    running: dict[Future[bool], str],
    submit: Callable[[str], Future[bool]],
    skipped: Callable[[str, tuple[str, ...]], None],
) -> list[str]:
    """Start or skip every waiting item whose inputs have ended; return the rest."""
    rest: list[str] = []
    known = set(waiting) | set(running.values()) | set(outcomes)
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
            running[submit(item)] = item
    return rest
