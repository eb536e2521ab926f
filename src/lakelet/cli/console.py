"""Shows an update while it runs: live on a terminal, plain lines elsewhere, or events as JSON lines.

Each is a listener of events, and shows nothing that is not in them.
"""

from __future__ import annotations

import json
from typing import IO, Protocol

from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.base.text import counted, printable
from lakelet.cli.lines import Line, columns_of, line_of, write_lines
from lakelet.cli.live import WAITING, LiveTable, shown_phases
from lakelet.cli.summary import summary
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.fold import LiveUpdate


class Watcher(Protocol):
    """Listener that `lakelet run` passes to the update."""

    def __call__(self, event: Event) -> None: ...

    def close(self) -> None:
        """Stop drawing; called once, also after an error."""


class JsonLines:
    """Writes each event as one JSON line, at once."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        self._stream.write(json.dumps(event.as_json(), default=str, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._stream.flush()

    def close(self) -> None:
        pass


class PlainLines:
    """Writes one line per dataset that ended and per warning; idle and excluded datasets only count in the summary."""

    def __init__(self, stream: IO[str]) -> None:
        self.update = LiveUpdate()
        self._stream = stream

    def __call__(self, event: Event) -> None:
        self.update.feed(event.as_json())
        line = line_of(self.update.fold, event)
        if line is not None:
            self._stream.write(f"{self.update.fold.seconds:7.1f}s  {printable(line.text)}\n")
            self._stream.flush()

    def close(self) -> None:
        pass


def watcher(*, as_json: bool, stdout: IO[str], stderr: IO[str], waiting: str = WAITING) -> tuple[Watcher, LiveUpdate, list[Watcher]]:
    """Return the listener to close, the update for the summary, and all listeners of one run.

    `waiting`: the phase before the first event.
    """
    if as_json:
        counting = _Counting()
        return counting, counting.update, [JsonLines(stdout), counting]
    shown = LiveTable(stderr, waiting=waiting) if stderr.isatty() else PlainLines(stderr)
    return shown, shown.update, [shown]


class _Counting:
    """Counts events and shows nothing."""

    def __init__(self) -> None:
        self.update = LiveUpdate()

    def __call__(self, event: Event) -> None:
        self.update.feed(event.as_json())

    def close(self) -> None:
        pass


def error_lines(error: LakeletError, stream: IO[str]) -> list[Line]:
    """Return the lines of an error for a stream: warnings first, as `validate` has them without errors, then the errors, with their number
    at the end. Errors are separated by blank lines.
    """
    width = columns_of(stream)
    several, notices = (error.errors, error.notices) if isinstance(error, DefinitionErrors) else ([error], ())
    lines = [Line(""), *(Line(printable(notice), "warning") for notice in notices)] if notices else []
    for one in several:
        lines += [Line(""), *(Line(line, "" if line.startswith(" ") else "bad") for line in one.lines(width))]
    if len(several) > 1:
        lines += [Line(""), Line(counted(len(several), "error"), "bad")]
    return lines[1:]


__all__ = ["JsonLines", "LiveTable", "PlainLines", "Watcher", "error_lines", "shown_phases", "summary", "watcher", "write_lines"]
