"""The page of one storage: reads what is new in its event log and tables, and gives the documents as of now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.base.phases import report
from lakelet.dashboard import kept_updates
from lakelet.dashboard.documents import Site
from lakelet.dashboard.event_rows import UPDATES, EventRows, log_id
from lakelet.dashboard.site_files import refuse_foreign, write_folder
from lakelet.dashboard.source_text import SourceTexts
from lakelet.dashboard.tables import StoredTables, TableFacts
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.fold import HistoryBuilder, Row, reduce_events
from lakelet.storage.eventlog.summaries import FlowRun, History, UpdateRun
from lakelet.storage.root import Storage

KEPT = "report.json"
"""In the storage, beside the event log: the updates that a report has read."""
SAMPLE_ROWS = 20
"""Rows of each table on the page, unless it is said otherwise."""


class Page:
    """Content of the page of a storage, read once or repeatedly.

    Args:
        storage: the storage root; it need not hold anything yet.
        root: project folder, below which the source files lie.
        sample_rows: how many rows of each table are shown; 0 shows none.
        live: whether the page asks for what is new.
        clock: seconds since 1970.
        known: updates that have ended and need not be read again.
    """

    def __init__(
        self,
        storage: AnyPath,
        root: Path,
        *,
        sample_rows: int = SAMPLE_ROWS,
        live: bool = False,
        clock: Callable[[], float] = time.time,
        known: Mapping[str, UpdateRun] | None = None,
    ) -> None:
        self._events, self._builder = EventRows(storage, known=list(known or ())), HistoryBuilder(known, limit=UPDATES if known else None)
        self._tables, self._root = StoredTables(storage, sample_rows=sample_rows), root
        self._live, self._clock = live, clock
        self._facts: dict[str, TableFacts] = {}
        self._seen: dict[str, list[FlowRun]] = {}

    def changed(self) -> bool:
        """Read what is new; returns whether anything is. Raises EVENT_LOG_FAILED for a damaged log."""
        return self._builder.feed(self._events.read())

    def site(self) -> Site:
        """The documents of what was read so far. Tables are looked at again if events about them came in."""
        history = self._builder.history()
        runs = _newest_runs(history)
        stale = [name for name in history.definitions if name not in self._facts or runs.get(name) != self._seen.get(name)]
        self._facts = {**self._facts, **self._tables.facts(stale)}
        self._seen = runs
        return Site(history, self._facts, SourceTexts(self._root), int(self._clock() * 1000), self._live)


def write_report(storage: AnyPath, root: Path, folder: Path, *, sample_rows: int = SAMPLE_ROWS) -> Site:
    """Write the page of a storage into a folder and return what it shows.

    Raises USAGE if the folder holds something else than a report, EVENT_LOG_FAILED for a damaged log, OSError where it cannot be written.
    """
    refuse_foreign(folder)
    log, kept = log_id(storage), Storage(storage).root / "system" / KEPT
    page = Page(storage, root, sample_rows=sample_rows, known=kept_updates.load(kept, log) if log else None)
    report("Reading tables and the event log")
    page.changed()
    site = page.site()
    report("Writing the page")
    write_folder(site, folder)
    if log:
        with suppress(LakeletError, OSError):  # a storage that is only read: the next report reads everything again
            kept_updates.save(kept, log, site.history)
    return site


def write_report_of(rows: Iterable[Row], root: Path, folder: Path, *, clock: Callable[[], float] = time.time) -> Site:
    """Write the page of an event log that lies elsewhere into a folder and return what it shows: updates and rules, no rows of tables.

    `rows`: events as `lakelet events --json` prints them. Raises USAGE if the folder holds something else than a report, OSError where
    it cannot be written.
    """
    refuse_foreign(folder)
    site = Site(reduce_events(rows), {}, SourceTexts(root), int(clock() * 1000), live=False)
    write_folder(site, folder)
    return site


def _newest_runs(history: History) -> dict[str, list[FlowRun]]:
    """By dataset: its runs in the newest update."""
    found: dict[str, list[FlowRun]] = {}
    for run in history.updates[-1].runs if history.updates else ():
        found.setdefault(run.dataset, []).append(run)
    return found
