"""Continuous updates: rounds of triggered work within one update, until somebody stops it (RE-15, decision 18)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from lakelet.config.properties import trigger_interval

STREAM_SECONDS, DELTA_SECONDS, OTHER_SECONDS = 5.0, 60.0, 600.0
"""How often a flow looks for something new unless it is set: a stream; a view of Delta tables only; another view."""


def pace(settings: Iterable[Mapping[str, str]], *, streaming: bool, external: bool) -> float:
    """Seconds from one look at a flow's inputs to the next.

    `settings`: where `pipelines.trigger.interval` may stand, the first one wins. `external`: the flow reads something else than the
    pipeline's own tables. A setting of 0 means without a pause.
    """
    given = trigger_interval(settings)
    if given is not None:
        return given
    return STREAM_SECONDS if streaming else OTHER_SECONDS if external else DELTA_SECONDS


class Rounds:
    """Which flows are due. `paces`: seconds between two looks, by flow, in the order in which flows of one round may start."""

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
