"""The page of one storage: reads what is new in its event log and tables, and gives the present documents, or writes them as files."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.base.phases import report
from lakelet.dashboard.documents import Document, Site, SourceTexts
from lakelet.dashboard.earlier_documents import EarlierDocuments, note_documents
from lakelet.dashboard.tables import StoredTables, TableFacts
from lakelet.dashboard.update_history import UPDATES, EndedUpdates, EventRows, load_ended_updates, log_id, save_ended_updates
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.fold import HistoryBuilder, Row, reduce_events
from lakelet.storage.eventlog.summaries import FlowSummary, History
from lakelet.storage.root import Storage

MARKER = "lakelet-report.txt"
"""In a folder that a report may replace."""
_ABOUT = "This folder is a report written by `lakelet report`. Open index.html. The next report replaces the folder as a whole.\n"


def assets() -> dict[str, bytes]:
    """The built files of the page by name."""
    folder = files("lakelet.dashboard") / "static"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def script(name: str, document: Document) -> bytes:
    """A document as a script: `lakelet("<name>", {…});`. What could end a script element or a line of one is escaped."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=_refuse_unknown_value)
    for character, escape in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(character, escape)
    return f"lakelet({json.dumps(name)},{text});\n".encode("utf-8", "backslashreplace")


def _refuse_unknown_value(value: Any) -> Any:
    raise TypeError(f"a document holds {type(value).__name__}")


def documents(site: Site) -> Iterator[tuple[str, Callable[[], Document]]]:
    """Every document of the site: its name, and what makes it. `data/<name>.js` is its file."""
    yield "overview", site.overview
    yield "quality", site.quality
    yield "search", site.search
    if site.diff is not None:
        yield "change", site.change
    for number in range(len(site.views)):
        yield f"dataset-{number}", partial(site.dataset, number)
    for number in range(site.pages):
        yield f"updates-{number}", partial(site.page, number)
    for number in range(len(site.history.updates)):
        yield f"update-{number}", partial(site.update, number)


def write_folder(site: Site, folder: Path) -> None:
    """Write the page into `folder`, in place of an earlier one. A process that dies leaves the old page or the new one.

    Raises USAGE if the folder holds something else than a report.
    """
    refuse_foreign(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_old_files(folder)
    new, old = (folder.with_name(f".{folder.name}.{word}-{os.getpid()}") for word in ("new", "old"))
    try:
        (new / "data").mkdir(parents=True)
        (new / MARKER).write_text(_ABOUT, encoding="utf-8")
        for name, content in assets().items():
            (new / name).write_bytes(content)
        earlier = EarlierDocuments(folder, site)
        for name, document in documents(site):
            file = new / "data" / f"{name}.js"
            if not earlier.take_over(name, file):
                file.write_bytes(script(name, document()))
        note_documents(new, site)
        reached("report.written")
        if not folder.exists():
            new.rename(folder)
        elif not exchange(new, folder):
            folder.rename(old)
            new.rename(folder)
        reached("report.replaced")
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _remove_old_files(folder: Path) -> None:
    """Remove what processes that died have left beside the folder; an old page that has no new one goes back to its place."""
    for left in folder.parent.glob(f".{folder.name}.*-*"):
        word, _, process = left.name.removeprefix(f".{folder.name}.").partition("-")
        if word not in ("new", "old") or not process.isdigit() or _is_alive(int(process)):
            continue
        if word == "old" and not folder.exists():
            left.rename(folder)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def refuse_foreign(folder: Path) -> None:
    """Raise USAGE for a file, and for a folder with other files than a report's: the report would replace them."""
    if folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir())):
        return
    if folder.exists() or folder.is_symlink():
        what = f"{folder} is not a report: it would be replaced as a whole"
        raise LakeletError("USAGE", what, todo="Name a new or empty folder: lakelet report --out report")


# --- two folders change places ------------------------------------------------------------------------------------------------------------


_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS is 2, too


def exchange(one: Path, other: Path) -> bool:
    """Let two paths of one file system change places, both of which exist; False where the system or the file system cannot."""
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        library, system = ctypes.CDLL(None, use_errno=True), platform.system()
        if system == "Linux":
            return bool(library.renameat2(_HERE, first, _HERE, second, _EXCHANGE) == 0)
        return system == "Darwin" and bool(library.renamex_np(first, second, _EXCHANGE) == 0)
    except (AttributeError, OSError, TypeError):  # a C library without the call
        return False


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
        diff: the result of `lakelet diff --json` that is shown.
    """

    def __init__(
        self,
        storage: AnyPath,
        root: Path,
        *,
        sample_rows: int = SAMPLE_ROWS,
        live: bool = False,
        clock: Callable[[], float] = time.time,
        known: EndedUpdates | None = None,
        diff: Mapping[str, Any] | None = None,
    ) -> None:
        ended = EndedUpdates() if known is None else known
        self._events = EventRows(storage, known=ended.updates, position=ended.position)
        self._builder = HistoryBuilder(ended.updates, limit=UPDATES if ended.updates else None)
        self._tables, self._root = StoredTables(storage, sample_rows=sample_rows), root
        self._live, self._clock, self._diff = live, clock, diff
        self._facts: dict[str, TableFacts] = {}
        self._seen: dict[str, list[FlowSummary]] = {}

    def changed(self) -> bool:
        """Read what is new; returns whether anything is. Raises EVENT_LOG_FAILED for a damaged log."""
        return self._builder.feed(self._events.read())

    def position(self, history: History) -> int | None:
        """The version of the event log up to which only ended updates of a history have events; None if that is not known."""
        return self._events.position([update.id for update in history.updates if not update.state.has_ended])

    def site(self) -> Site:
        """The documents of what was read so far. Tables are read again if events about them came in."""
        history = self._builder.history()
        runs = _newest_runs(history)
        stale = [name for name in history.definitions if name not in self._facts or runs.get(name) != self._seen.get(name)]
        self._facts = {**self._facts, **self._tables.facts(stale)}
        self._seen = runs
        return Site(history, self._facts, SourceTexts(self._root), int(self._clock() * 1000), self._live, self._diff)


def write_report(
    storage: AnyPath, root: Path, folder: Path, *, sample_rows: int = SAMPLE_ROWS, diff: Mapping[str, Any] | None = None
) -> Site:
    """Write the page of a storage, with a result of `lakelet diff` if one is given, into a folder and return what it shows.

    Raises USAGE if the folder holds something else than a report, EVENT_LOG_FAILED for a damaged log, OSError where it cannot be written.
    """
    refuse_foreign(folder)
    log, kept = log_id(storage), Storage(storage).root / "system" / KEPT
    known = load_ended_updates(kept, log) if log else EndedUpdates()
    page = Page(storage, root, sample_rows=sample_rows, known=known, diff=diff)
    report("Reading tables and the event log")
    page.changed()
    site = page.site()
    report("Writing the page")
    write_folder(site, folder)
    if log:
        with suppress(LakeletError, OSError):  # a storage that is only read: the next report reads everything again
            save_ended_updates(kept, log, site.history, known, page.position(site.history))
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


def _newest_runs(history: History) -> dict[str, list[FlowSummary]]:
    """By dataset: its runs in the newest update."""
    found: dict[str, list[FlowSummary]] = {}
    for run in history.updates[-1].runs if history.updates else ():
        found.setdefault(run.dataset, []).append(run)
    return found
