"""Live display on a terminal while a command works: its phase with a bar, or the datasets of an update.

Running datasets are at the bottom; those that have ended scroll up as lines.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any

from lakelet.base.phases import Phase, reported_to
from lakelet.base.text import bytes_text, counted, cut, printable, seconds_text, shortener
from lakelet.cli.lines import line_of
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.fold import LiveUpdate
from lakelet.storage.eventlog.states import FlowState
from lakelet.storage.eventlog.summaries import DatasetRun, UpdateRun, seconds_between

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WAITING = "Starting Spark and analysing the pipeline"
"""Phase before the first event of a local update."""
_QUIET_SECONDS = 1.0
_BAR = 20
_FACTS = 50
"""Width of the state, the rows and the time of a dataset, in characters."""
_STYLES = {"good": "green", "warning": "yellow", "bad": "bold red", "quiet": "dim"}


class LiveTable:
    """Draws the running datasets and a bar of how many have ended; lines of those that have ended stay above it."""

    def __init__(
        self, stream: IO[str], *, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc), waiting: str = WAITING
    ) -> None:
        self.update = LiveUpdate()
        self._phase = Phase(waiting)
        self._now, self._lock, self._opened = now, threading.Lock(), now()
        self._console, self._live = _live(stream, self.render)
        self._phases = reported_to(self._on_phase)
        self._phases.__enter__()
        self._live.start()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.update.feed(event.as_json())
            short, room = shortener(self.update.fold.datasets()), self._room()
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
        short, room = shortener(update.all_datasets), self._room()
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

    def _room(self) -> int:
        """Return the longest name of a dataset that leaves room for what is shown beside it."""
        return max(12, self._console.width - _FACTS)

    def _on_phase(self, phase: Phase) -> None:
        with self._lock:
            self._phase = phase


def _footer(update: UpdateRun, now: int) -> RenderableType:
    counts, datasets = update.states, len(update.all_datasets)
    done = sum(number for state, number in counts.items() if state.has_ended)
    states = ", ".join(f"{number:,} {state.lower()}" for state, number in counts.most_common() if state is not FlowState.QUEUED)
    elapsed = seconds_text(seconds_between(update.started_at, now) or 0)
    text = "  ".join([elapsed, counted(update.total("rows"), "row"), states]).rstrip()
    return _with_bar(f"{update.state} {done:,}/{datasets:,}", done, datasets, text)


def _working_dataset(dataset: DatasetRun, name: str, now: int) -> tuple[Any, ...]:
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


def _live(stream: IO[str], render: Callable[[], RenderableType], *, above: bool = True) -> tuple[Console, Any]:
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
    """Show the phases of the block as one line of a terminal, after one second; remove it at the end.

    Without a terminal nothing is shown. In a block that shows phases already, this one's are shown there.

    Args:
        stream: stderr.
        waiting: the phase until one is reported.
    """
    if not stream.isatty() or _showing.get():
        yield
        return
    line, token = PhaseLine(stream, waiting), _showing.set(True)
    try:
        yield
    finally:
        _showing.reset(token)
        line.close()


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
        self._timer = threading.Timer(_QUIET_SECONDS, self._begin)
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

    def _begin(self) -> None:
        with self._lock:
            if self._closed:
                return
            _, self._live = _live(self._stream, lambda: _phase_line(self._phase, time.monotonic() - self._opened), above=self._above)
            self._live.start()


__all__ = ["WAITING", "LiveTable", "PhaseLine", "shown_phases"]
