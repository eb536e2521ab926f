"""Calls the pipeline's event hooks, in a thread of their own: an update neither waits for them nor fails because of them."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.raised import innermost_location
from lakelet.base.redaction import redacted
from lakelet.language.model import Hook
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.states import EventType, HookState, Level, Maturity
from lakelet.storage.eventlog.writer import event_row

PATIENCE = 30.0
"""Seconds that the end of an update waits for hooks that are behind."""


def hook_event(event: Event) -> dict[str, Any]:
    """The event as a hook sees it: the columns of the event log as plain JSON values, `details` parsed (RE-17)."""
    seen: dict[str, Any] = json.loads(json.dumps({**event_row(event), "details": dict(event.details)}, default=str))
    seen["timestamp"] = event.timestamp.isoformat().replace("+00:00", "Z")
    return seen


class HookRunner:
    """A listener that hands stable events to every hook, one call at a time, in the order of the events.

    Args:
        hooks: in the order of their declaration.
        emit: writes a `hook_progress` event, called as `emit(type, message, body, level=, error=)`.
        around: gives the context in which a hook is called.
        patience: how long `close` waits, in seconds.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        emit: Callable[..., None],
        *,
        around: Callable[[Hook], AbstractContextManager[None]] = lambda hook: nullcontext(),
        patience: float = PATIENCE,
    ) -> None:
        self._hooks, self._emit, self._around, self._patience = tuple(hooks), emit, around, patience
        self._failures = [0] * len(self._hooks)
        self._disabled: set[int] = set()
        self._queue: queue.Queue[Event | None] = queue.Queue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        """Take an event; returns at once. Events about hooks, and those whose shape may still change, are not for hooks."""
        if not self._hooks or event.event_type is EventType.HOOK_PROGRESS or event.maturity is not Maturity.STABLE:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="lakelet-hooks", daemon=True)
            self._thread.start()
        self._queue.put(event)

    def close(self) -> None:
        """Wait until all events were delivered, but not longer than the patience allows; the rest is not delivered."""
        if self._thread is None:
            return
        self._queue.put(None)
        self._thread.join(self._patience)
        if self._thread.is_alive():
            self._closing.set()
            left = max(0, self._queue.qsize() - 1)  # without the end mark
            text = f"Event hooks were still at work {self._patience:g} s after the update; {left} event(s) were not delivered."
            self._emit(
                EventType.HOOK_PROGRESS, text, {"name": None, "status": HookState.STOPPED, "events_not_delivered": left}, level=Level.WARN
            )

    def _deliver(self) -> None:
        while (event := self._queue.get()) is not None:
            for number, hook in enumerate(self._hooks):
                if self._closing.is_set():
                    return
                if number not in self._disabled:
                    self._call(number, hook, event)

    def _call(self, number: int, hook: Hook, event: Event) -> None:
        try:
            with self._around(hook):
                hook.function(hook_event(event))
        except BaseException as problem:  # also SystemExit: it would end the thread of all hooks
            self._failures[number] += 1
            self._report_failure(number, hook, problem)
        else:
            self._failures[number] = 0

    def _report_failure(self, number: int, hook: Hook, problem: BaseException) -> None:
        """A failed call as an event. A row of failures warns once: a hook that is wrong fails on every event."""
        if self._closing.is_set():  # the log is closed
            return
        count, allowed = self._failures[number], hook.max_failures
        first = (redacted(str(problem)).strip().splitlines() or [""])[0]
        where = innermost_location(problem) or hook.where
        what = f"the event hook '{hook.name}' raised {type(problem).__name__}: {first}"
        error = LakeletError("HOOK_FAILED", what, where=where, todo="Hooks do not change what the update does.")
        error.__cause__ = problem
        level = Level.WARN if count == 1 else Level.INFO
        body = {"name": hook.name, "status": HookState.FAILED, "consecutive_failures": count}
        self._emit(EventType.HOOK_PROGRESS, f"{where}: {what}", body, level=level, error=error)
        if allowed is not None and count > allowed:
            self._disabled.add(number)
            text = f"{hook.where}: the event hook '{hook.name}' is disabled for the rest of this update: it failed {count} times in a row"
            self._emit(
                EventType.HOOK_PROGRESS,
                text,
                {"name": hook.name, "status": HookState.DISABLED, "consecutive_failures": count},
                level=Level.WARN,
            )
