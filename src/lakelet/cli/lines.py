"""Lines of text about an update: their styles, how they are written, and the line of one event."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from lakelet.base.errors import LakeletError
from lakelet.base.text import counted, printable, seconds_text
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.fold import UpdateFold
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState
from lakelet.storage.eventlog.summaries import FlowRun

_COLOURS = {"good": "32", "warning": "33", "bad": "31", "heading": "1", "quiet": "2"}
_SHOWN_UPDATE_STATES = frozenset({UpdateState.RESETTING, UpdateState.RUNNING, UpdateState.STOPPING})
_ENDED_STYLES = {FlowState.COMPLETED: "", FlowState.FAILED: "bad", FlowState.SKIPPED: "warning", FlowState.STOPPED: "warning"}
"""The states in which a dataset gets a line; idle and excluded ones only count in the summary."""


@dataclass(frozen=True)
class Line:
    """One line of text and its style on a terminal: plain (""), `good`, `warning`, `bad`, `heading` or `quiet`."""

    text: str
    style: str = ""


def line_of(update: UpdateFold, event: Event, short: Callable[[str], str] = str) -> Line | None:
    """Return the line about an event that `update` has taken; None for most events. States of the update are headings."""
    if event.event_type is EventType.UPDATE_PROGRESS and event.level is not Level.WARN:
        return Line(f"update {update.id[:6]} {update.state}", "heading") if update.state in _SHOWN_UPDATE_STATES else None
    if event.event_type is EventType.FLOW_PROGRESS and event.body.get("status") in _ENDED_STYLES:
        status = FlowState(event.body["status"])
        if status is not FlowState.FAILED or event.level is not Level.WARN:
            return Line(_flow_text(update.flow_run(event.as_json()), event, short), _ENDED_STYLES[status])
    failed = event.event_type is EventType.TABLE_CHECK and event.level is Level.ERROR
    if event.event_type is EventType.NOTICE and update.is_repeated(event.message):
        return None  # said already: several datasets may have one line of code
    if event.level is Level.WARN or failed:
        return Line(event.message, "bad" if failed else "warning")
    return Line(event.message) if event.event_type is EventType.SCHEMA_CHANGE else None


def _flow_text(run: FlowRun, event: Event, short: Callable[[str], str]) -> str:
    facts = [counted(run.rows, "row")] if run.started_at is not None and run.rows_known else []
    facts += [f"{run.dropped:,} dropped"] if run.dropped else []
    facts += [f"{run.quarantined:,} quarantined"] if run.quarantined else []
    facts += [counted(run.violations, "violation")] if run.violations else []
    facts += [seconds_text(run.seconds)] if run.seconds is not None else []
    if isinstance(event.error, LakeletError):
        facts = [event.error.lines()[0]]
    elif event.body["status"] == FlowState.SKIPPED:
        facts = [event.message]
    of = f" (flow {short(run.flow)})" if run.flow != run.dataset else ""
    return f"{event.body['status']:<9}  {short(run.dataset)}{of}" + (f"  {', '.join(facts)}" if facts else "")


def coloured(stream: IO[str]) -> bool:
    """Return whether text for a stream is coloured: on a terminal unless NO_COLOR is set, elsewhere only if FORCE_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced not in ("", "0") or (stream.isatty() and os.environ.get("TERM") != "dumb")


def columns_of(stream: IO[str]) -> int | None:
    """Return the width of the terminal that a stream writes to; None where it is no terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def write_lines(lines: Sequence[Line], stream: IO[str]) -> None:
    """Write lines of text, coloured where `coloured` says so."""
    colour = coloured(stream)
    for line in lines:
        text = printable(line.text)
        code = _COLOURS.get(line.style) if colour else None
        stream.write((f"\x1b[{code}m{text}\x1b[0m" if code and text else text) + "\n")
    stream.flush()


__all__ = ["Line", "coloured", "columns_of", "line_of", "write_lines"]
