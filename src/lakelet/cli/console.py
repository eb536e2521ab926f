"""Shows an update while it runs: live on a terminal, plain lines elsewhere, or events as JSON lines; and the phases of any command.

Each display is a listener of events, and shows nothing that is not in them. On a terminal running datasets are at the bottom; those that
have ended scroll up as lines.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any, Protocol

from lakelet.base.errors import LakeletError
from lakelet.base.phases import Phase, reported_to
from lakelet.base.text import bytes_text, counted, cut, listed, printable, seconds_text, shortener
from lakelet.cli.lines import Line
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.fold import LiveUpdate, UpdateFold
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState
from lakelet.storage.eventlog.summaries import DatasetSummary, FlowSummary, UpdateSummary, seconds_between

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WAITING = "Starting Spark and analysing the pipeline"
"""Phase before the first event of a local update."""
_QUIET_SECONDS = 1.0
_UPDATE_QUIET_SECONDS = 2.0
_LOOK_SECONDS = 0.25
_SHOWN_DATASETS = 3
_PROGRESS = "LAKELET_PROGRESS"
"""Variable of the environment: `off` leaves out what is written only because time passes, where there is no terminal."""
_BAR = 20
_FACTS = 50
"""Width of the state, the rows and the time of a dataset, in characters."""
_STYLES = {"good": "green", "warning": "yellow", "bad": "bold red", "quiet": "dim"}
_SHOWN_UPDATE_STATES = frozenset({UpdateState.RESETTING, UpdateState.RUNNING, UpdateState.STOPPING})
_ENDED_STYLES = {FlowState.COMPLETED: "", FlowState.FAILED: "bad", FlowState.SKIPPED: "warning", FlowState.STOPPED: "warning"}
"""The states in which a dataset gets a line; idle and excluded ones only count in the summary."""


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
    """Writes one line per dataset that ended and per warning; idle and excluded datasets only count in the summary.

    Phases before the first event have lines, too. After two seconds without a line there is one about the running datasets.
    """

    def __init__(self, stream: IO[str], *, waiting: str = WAITING) -> None:
        self.update = LiveUpdate()
        self._stream = stream
        self._phases = PhaseLog(stream, waiting)
        self._silence: _Silence | None = None
        self._fed = 0.0

    def __call__(self, event: Event) -> None:
        if self._silence is None:
            self._phases.close()
            self._silence = _Silence(self._write_running, _UPDATE_QUIET_SECONDS)
        with self._silence.lock:
            self.update.feed(event.as_json())
            self._fed = time.monotonic()
            line = line_of(self.update.fold, event)
            if line is not None:
                self._write(line.text)
                self._silence.restart()

    def close(self) -> None:
        self._phases.close()
        if self._silence is not None:
            self._silence.close()

    def _write_running(self) -> None:
        """Write a line about the datasets at work, or the state of an update in which there are none."""
        update = self.update.value()
        working = [name for name, dataset in update.all_datasets.items() if dataset.state.is_at_work]
        if working or not update.state.has_ended:
            text = f"{FlowState.RUNNING:<9}  {listed(working, _SHOWN_DATASETS)}" if working else f"update {update.id[:6]} {update.state}"
            with suppress(OSError, ValueError):  # nobody reads it, or it is closed
                self._write(text, time.monotonic() - self._fed)

    def _write(self, text: str, since: float = 0.0) -> None:
        self._stream.write(f"{self.update.fold.seconds + since:7.1f}s  {printable(text)}\n")
        self._stream.flush()


def watcher(*, as_json: bool, stdout: IO[str], stderr: IO[str], waiting: str = WAITING) -> tuple[Watcher, LiveUpdate, list[Watcher]]:
    """Return the listener to close, the update for the summary, and all listeners of one run.

    `waiting`: the phase before the first event.
    """
    if as_json:
        counting = _Counting(phase_display(stderr, waiting))
        return counting, counting.update, [counting, JsonLines(stdout)]  # a phase is gone when the first event is written
    shown = LiveTable(stderr, waiting=waiting) if stderr.isatty() else PlainLines(stderr, waiting=waiting)
    return shown, shown.update, [shown]


class _Counting:
    """Counts events and shows nothing of them; phases before the first one are shown."""

    def __init__(self, phases: PhaseLine | PhaseLog) -> None:
        self.update = LiveUpdate()
        self._phases = phases

    def __call__(self, event: Event) -> None:
        self._phases.close()
        self.update.feed(event.as_json())

    def close(self) -> None:
        self._phases.close()


def line_of(update: UpdateFold, event: Event, short: Callable[[str], str] = str) -> Line | None:
    """Return the line about an event that `update` has taken; None for most events. States of the update are headings."""
    if event.event_type is EventType.UPDATE_PROGRESS and event.level is not Level.WARN:
        return Line(f"update {update.id[:6]} {update.state}", "heading") if update.state in _SHOWN_UPDATE_STATES else None
    if event.event_type is EventType.FLOW_PROGRESS and event.body.get("status") in _ENDED_STYLES:
        status = FlowState(event.body["status"])
        if status is not FlowState.FAILED or event.level is not Level.WARN:
            return Line(_flow_text(update.flow_run(event.as_json()), event, short), _ENDED_STYLES[status])
    failed = event.event_type in (EventType.TABLE_CHECK, EventType.NOTICE) and event.level is Level.ERROR
    if event.event_type is EventType.NOTICE and update.is_repeated(event.message):
        return None  # said already: several datasets may have one line of code
    if event.level is Level.WARN or failed:
        return Line(event.message, "bad" if failed else "warning")
    return Line(event.message) if event.event_type is EventType.SCHEMA_CHANGE else None


def _flow_text(run: FlowSummary, event: Event, short: Callable[[str], str]) -> str:
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


class LiveTable:
    """Draws the running datasets and a bar of how many have ended; lines of those that have ended stay above it."""

    def __init__(
        self, stream: IO[str], *, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc), waiting: str = WAITING
    ) -> None:
        self.update = LiveUpdate()
        self._phase = Phase(waiting)
        self._now, self._lock, self._opened = now, threading.Lock(), now()
        self._console, self._live = _live_display(stream, self.render)
        self._phases = reported_to(self._on_phase)
        self._phases.__enter__()
        self._live.start()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.update.feed(event.as_json())
            short, room = shortener(self.update.fold.datasets()), self._longest_name()
            line = line_of(self.update.fold, event, lambda name: cut(short(name), room))
        if line is not None and line.style != "heading":
            from rich.text import Text

            self._console.print(Text(printable(line.text), style=_STYLES.get(line.style, "")), soft_wrap=True)

    def close(self) -> None:
        """Remove the display; the lines above it stay."""
        self._live.stop()
        self._phases.__exit__(None, None, None)

    def render(self) -> RenderableType:
        """Return the current display."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            now, update = self._now(), self.update.value()
        if update.started_at is None:
            return _phase_line(self._phase, (now - self._opened).total_seconds())
        moment = int(now.timestamp() * 1000)
        short, room = shortener(update.all_datasets), self._longest_name()
        working = [(name, dataset) for name, dataset in update.all_datasets.items() if dataset.state.is_at_work]
        shown = working[: max(3, self._console.height - 6)]
        rows = [_working_dataset(dataset, cut(short(name), room), moment) for name, dataset in shown]
        left = len(working) - len(rows)
        footer = _footer(update, moment)
        table = Table(box=None, pad_edge=False, show_header=False)
        for position in range(4):
            table.add_column(justify="right" if position > 1 else "left", no_wrap=True, overflow="ellipsis")
        for row in rows:
            table.add_row(*row)
        more = [Text(f"and {left:,} more", style="dim")] if left else []
        return Group(table, *more, footer) if rows else footer

    def _longest_name(self) -> int:
        """Return the longest name of a dataset that leaves room for what is shown beside it."""
        return max(12, self._console.width - _FACTS)

    def _on_phase(self, phase: Phase) -> None:
        with self._lock:
            self._phase = phase


def _footer(update: UpdateSummary, now: int) -> RenderableType:
    counts, datasets = update.states, len(update.all_datasets)
    done = sum(number for state, number in counts.items() if state.has_ended)
    states = ", ".join(f"{number:,} {state.lower()}" for state, number in counts.most_common() if state is not FlowState.QUEUED)
    elapsed = seconds_text(seconds_between(update.started_at, now) or 0)
    text = "  ".join([elapsed, counted(update.total("rows"), "row"), states]).rstrip()
    return _with_bar(f"{update.state} {done:,}/{datasets:,}", done, datasets, text)


def _working_dataset(dataset: DatasetSummary, name: str, now: int) -> tuple[Any, ...]:
    from rich.text import Text

    seconds = dataset.seconds_at(now)
    backlogs = [run.backlog for run in dataset.runs if run.backlog is not None and run.backlog.files and run.backlog.bytes is not None]
    files, size = sum(one.files or 0 for one in backlogs), sum(one.bytes or 0 for one in backlogs)
    return (
        Text(name),
        Text(dataset.state, style="cyan"),
        counted(dataset.total("rows"), "row") + (f" of {counted(files, 'file')}, {bytes_text(size)}" if backlogs else ""),
        seconds_text(seconds) if seconds is not None else "",
    )


def _with_bar(before: str, done: int, total: int, after: str) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = ProgressBar(total=max(total, 1), completed=done, width=_BAR, complete_style="cyan", finished_style="green")
    line = Table.grid(padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(no_wrap=True, width=_BAR)
    line.add_column(no_wrap=True, overflow="ellipsis")
    line.add_row(Text(before, style="bold"), bar, Text(after, style="dim"))
    return line


def _phase_line(phase: Phase, seconds: float) -> RenderableType:
    from rich.text import Text

    if phase.total is None:
        return Text(f"{phase}  {seconds_text(seconds)}", style="dim")
    return _with_bar(str(phase), phase.done, phase.total, seconds_text(seconds))


def _live_display(stream: IO[str], render: Callable[[], RenderableType], *, above: bool = True) -> tuple[Console, Any]:
    """`above`: see `PhaseLine`."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    # Output of the pipeline's code goes above the display if stdout is a terminal, and else to stdout as it is.
    live = Live(
        console=console,
        get_renderable=render,
        refresh_per_second=4,
        transient=True,
        redirect_stdout=above and sys.stdout.isatty(),
        redirect_stderr=above,
        screen=False,
    )
    return console, live


_showing: ContextVar[bool] = ContextVar("lakelet_phases", default=False)


@contextmanager
def shown_phases(stream: IO[str], waiting: str = "Starting") -> Iterator[None]:
    """Show the phases of the block: after one second as one line of a terminal, which is removed at the end; elsewhere as lines.

    In a block that shows phases already, this one's are shown there.

    Args:
        stream: stderr.
        waiting: the phase until one is reported.
    """
    if _showing.get():
        yield
        return
    line, token = phase_display(stream, waiting), _showing.set(True)
    try:
        yield
    finally:
        _showing.reset(token)
        line.close()


def phase_display(stream: IO[str], waiting: str, *, above: bool = True) -> PhaseLine | PhaseLog:
    """Return what shows phases on `stream` until it is closed. `above`: see `PhaseLine`."""
    return PhaseLine(stream, waiting, above=above) if stream.isatty() else PhaseLog(stream, waiting)


class _Silence:
    """Calls a function in another thread after so many seconds without a line, and again after twice as long each time; not if `off`.

    Args:
        end: function that writes a line. It has the lock.
        seconds: how long a silence may be at first.
    """

    def __init__(self, end: Callable[[], None], seconds: float) -> None:
        self.lock = threading.RLock()
        self._end, self._seconds = end, seconds
        self._pause, self._since = seconds, time.monotonic()
        self._closed = threading.Event()
        self.is_kept = os.environ.get(_PROGRESS, "").lower() == "off"
        if not self.is_kept:
            threading.Thread(target=self._end_silences, name="lakelet-phases", daemon=True).start()

    def restart(self, *, written: bool = True) -> None:
        """Begin again because a line was `written`, or because the next one is about something else."""
        self._pause = self._seconds
        if written:
            self._since = time.monotonic()

    def close(self) -> bool:
        """Make no further calls. Return False where it was closed already."""
        with self.lock:
            was_open = not self._closed.is_set()
            self._closed.set()
        return was_open

    def _end_silences(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            with self.lock:
                if time.monotonic() - self._since > self._pause and not self._closed.is_set():
                    self._end()
                    self._pause, self._since = 2 * self._pause, time.monotonic()


class PhaseLog:
    """Writes a line for each phase that takes time, where there is no terminal, and further ones while it goes on.

    Nothing is written in the first second, but for a download: that has a line at once.

    Args:
        stream: a file or a pipe.
        waiting: the phase until one is reported.
    """

    def __init__(self, stream: IO[str], waiting: str) -> None:
        self._stream, self._opened = stream, time.monotonic()
        self._phase, self._shown = Phase(waiting), ""
        self._silence = _Silence(self._write, _QUIET_SECONDS)
        self._phases = reported_to(self._on_phase)
        self._phases.__enter__()

    def close(self) -> None:
        """Write no further lines."""
        if self._silence.close():
            self._phases.__exit__(None, None, None)

    def _on_phase(self, phase: Phase) -> None:
        with self._silence.lock:
            is_new, self._phase = phase.text != self._phase.text, phase
            if is_new:
                self._silence.restart(written=phase.in_bytes)
                if phase.in_bytes and not self._silence.is_kept:
                    self._write()

    def _write(self) -> None:
        again = f"  {seconds_text(time.monotonic() - self._opened)}" if self._phase.text == self._shown else ""
        self._shown = self._phase.text
        with suppress(OSError, ValueError):  # nobody reads it, or it is closed
            self._stream.write(f"{printable(str(self._phase))}{again}\n")
            self._stream.flush()


class PhaseLine:
    """The current phase, drawn on a terminal from one second after the line was made until it is closed.

    Args:
        stream: the terminal.
        waiting: the phase until one is reported.
        above: whether what is written to stdout and stderr meanwhile goes above the line.
    """

    def __init__(self, stream: IO[str], waiting: str, *, above: bool = True) -> None:
        self._stream, self._above = stream, above
        self._opened, self._phase, self._closed = time.monotonic(), Phase(waiting), False
        self._lock = threading.Lock()
        self._live: Any = None
        self._phases = reported_to(self._on_phase)
        self._phases.__enter__()
        self._timer = threading.Timer(_QUIET_SECONDS, self._show_after_pause)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """Remove the line; it is not drawn again."""
        self._timer.cancel()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._phases.__exit__(None, None, None)
            if self._live is not None:
                self._live.stop()

    def _on_phase(self, phase: Phase) -> None:
        self._phase = phase

    def _show_after_pause(self) -> None:
        with self._lock:
            if self._closed:
                return
            _, self._live = _live_display(
                self._stream, lambda: _phase_line(self._phase, time.monotonic() - self._opened), above=self._above
            )
            self._live.start()
