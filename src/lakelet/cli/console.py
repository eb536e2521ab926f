"""Shows an update while it runs: a live table on a terminal, plain lines elsewhere, or events as JSON lines.

Each is a listener of events; the truth is in the events, nothing is computed here that they do not say.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any, Protocol

from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.base.text import counted, printable, seconds_text, shortener
from lakelet.cli.summary import Line, cells, summary
from lakelet.cli.tally import Tally
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLOURS = {"good": "32", "warning": "33", "bad": "31", "heading": "1", "quiet": "2"}
_STATE_STYLES = {
    FlowState.FAILED: "bold red",
    FlowState.RUNNING: "cyan",
    FlowState.STARTING: "cyan",
    FlowState.COMPLETED: "green",
    FlowState.SKIPPED: "yellow",
    FlowState.STOPPED: "yellow",
}
_TOLD_UPDATE_STATES = frozenset({UpdateState.RESETTING, UpdateState.RUNNING, UpdateState.STOPPING})
_TOLD = frozenset({FlowState.COMPLETED, FlowState.FAILED, FlowState.SKIPPED, FlowState.STOPPED})
WAITING = "Starting Spark and analysing the pipeline"
"""What happens before the first event of a local update."""


class Watcher(Protocol):
    """What `lakelet run` hands to the update as a listener."""

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
        self.tally = Tally()
        self._stream = stream

    def __call__(self, event: Event) -> None:
        self.tally.feed(event)
        text = self._text(event)
        if text:
            self._stream.write(f"{self.tally.seconds:7.1f}s  {printable(text)}\n")
            self._stream.flush()

    def _text(self, event: Event) -> str | None:
        if event.event_type is EventType.UPDATE_PROGRESS:
            told = self.tally.state in _TOLD_UPDATE_STATES
            return event.message if event.level is Level.WARN else f"update {self.tally.update_id[:6]} {self.tally.state}" if told else None
        if event.event_type is not EventType.FLOW_PROGRESS:
            failed = event.event_type is EventType.TABLE_CHECK and event.level is Level.ERROR
            return event.message if event.level is Level.WARN or event.event_type is EventType.SCHEMA_CHANGE or failed else None
        status = FlowState(event.body["status"])
        if status not in _TOLD or (status is FlowState.FAILED and event.level is Level.WARN):
            return event.message if event.level is Level.WARN else None
        return self._flow_text(event)

    def _flow_text(self, event: Event) -> str:
        dataset = self.tally.datasets[event.origin.target_name or event.origin.flow_name or "?"]
        facts = [counted(dataset.rows, "row")] if dataset.began else []
        facts += [f"{dataset.dropped:,} dropped"] if dataset.dropped else []
        facts += [f"{dataset.quarantined:,} quarantined"] if dataset.quarantined else []
        facts += [counted(dataset.failed, "violation")] if dataset.failed else []
        seconds = dataset.seconds(event.timestamp)
        facts += [seconds_text(seconds)] if seconds is not None else []
        if isinstance(event.error, LakeletError):
            facts = [event.error.lines()[0]]
        elif event.body["status"] == FlowState.SKIPPED:
            facts = [event.message]
        flow = event.origin.flow_name
        of = f" (flow {flow})" if flow and flow != dataset.name else ""
        return f"{event.body['status']:<9}  {dataset.name}{of}" + (f"  {', '.join(facts)}" if facts else "")

    def close(self) -> None:
        pass


class LiveTable:
    """Draws a table of the datasets at work and lately done; whatever waits or is idle is one line of counts."""

    def __init__(
        self, stream: IO[str], *, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc), waiting: str = WAITING
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self.tally = Tally()
        self._waiting = waiting
        self._now, self._lock, self._opened = now, threading.Lock(), now()
        self._console = Console(file=stream)
        self._live = Live(console=self._console, get_renderable=self.render, refresh_per_second=4, transient=True)
        self._live.start()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.tally.feed(event)
        if event.event_type is EventType.SCHEMA_CHANGE or (event.event_type is EventType.UPDATE_PROGRESS and event.level is Level.WARN):
            self._console.print(printable(event.message), highlight=False, markup=False)

    def close(self) -> None:
        self._live.stop()

    def render(self) -> RenderableType:
        """The picture of this moment."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            shown, now = self._shown(max(5, self._console.height - 6)), self._now()
            short = shortener(self.tally.datasets)
            rows = [(dataset.state, cells(dataset, short, now)) for dataset in shown]
            footer = self._footer(now)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for position, title in enumerate(("dataset", "state", "rows", "dropped", "violations", "time")):
            table.add_column(title, justify="right" if position > 1 else "left", no_wrap=True)
        for state, (name, *others) in rows:
            table.add_row(Text(name), Text(others[0], style=_STATE_STYLES.get(state, "")), *others[1:])
        return Group(table, Text(footer, style="dim")) if rows else Text(footer, style="dim")

    def _shown(self, limit: int) -> list[Any]:
        datasets = [d for d in self.tally.datasets.values() if d.state.is_at_work or d.state in _TOLD]
        newest = datetime.min.replace(tzinfo=timezone.utc)
        first = sorted(
            datasets,
            key=lambda d: (not d.state.is_at_work, d.state is not FlowState.FAILED, -((d.ended or newest).timestamp() if d.ended else 0)),
        )
        kept = {d.name for d in first[:limit]}
        return [d for d in datasets if d.name in kept]

    def _footer(self, now: datetime) -> str:
        if self.tally.began is None:
            return f"{self._waiting}  {seconds_text((now - self._opened).total_seconds())}"
        counts = self.tally.counts()
        told = [f"{number:,} {state.lower()}" for state, number in counts.most_common()]
        elapsed = (now - self.tally.began).total_seconds()
        return "  ".join([self.tally.state, seconds_text(elapsed), counted(self.tally.rows, "row"), ", ".join(told)]).rstrip()


def watcher(*, as_json: bool, stdout: IO[str], stderr: IO[str], waiting: str = WAITING) -> tuple[Watcher, Tally, list[Watcher]]:
    """The listeners for one run: what to close, the tally to summarise from, and the list to hand to the update.

    `waiting`: what happens before the first event.
    """
    if as_json:
        counting = _Counting()
        return counting, counting.tally, [JsonLines(stdout), counting]
    shown = LiveTable(stderr, waiting=waiting) if stderr.isatty() else PlainLines(stderr)
    return shown, shown.tally, [shown]


class _Counting:
    """Only adds up."""

    def __init__(self) -> None:
        self.tally = Tally()

    def __call__(self, event: Event) -> None:
        self.tally.feed(event)

    def close(self) -> None:
        pass


def write_lines(lines: Sequence[Line], stream: IO[str]) -> None:
    """Write lines of prose, coloured when the stream is a terminal."""
    colour = stream.isatty()
    for line in lines:
        text = printable(line.text)
        code = _COLOURS.get(line.style) if colour else None
        stream.write((f"\x1b[{code}m{text}\x1b[0m" if code and text else text) + "\n")
    stream.flush()


def error_lines(error: LakeletError) -> list[Line]:
    """An error in full; several ones with a blank line between them, and their number at the end."""
    several = error.errors if isinstance(error, DefinitionErrors) else [error]
    lines: list[Line] = []
    for one in several:
        lines += [Line(""), *(Line(line, "" if line.startswith(" ") else "bad") for line in one.lines())]
    if len(several) > 1:
        lines += [Line(""), Line(counted(len(several), "error"), "bad")]
    return lines[1:]


__all__ = ["JsonLines", "LiveTable", "PlainLines", "Watcher", "error_lines", "summary", "watcher", "write_lines"]
