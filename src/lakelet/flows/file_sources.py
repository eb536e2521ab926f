"""The file sources of a flow are known by what they read, though their state goes by their number in the query (SO-7)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.discovery.globs import fixed_folder
from lakelet.autoloader.spec import SourceSpec
from lakelet.autoloader.state.ledger import Ledger
from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowRun
from lakelet.flows.remedies import other_sources

_NOTE = "reads"  # in the state of a source: what it read at its last start
_PATTERNS = frozenset({"pathglobfilter", "filenamepattern"})


def check_sources(run: FlowRun) -> None:
    """Note what each file source of a flow reads. Raises STREAM_SOURCES_CHANGED where one reads what another one has read so far.

    A source that reads something else altogether goes on: its files are new ones.
    """
    specs = run.environment.sources.of(run.name)
    states = [run.environment.storage.source_state(run.flow.flow.target, run.name, number) for number in range(len(specs))]
    now = [_reads(spec) for spec in specs]
    noted = [_note(state) for state in states]
    before = [note or _by_files(state, found, now) for state, note, found in zip(states, noted, now, strict=True)]
    for found, known in zip(now, before, strict=True):
        if known is not None and found != known and found in before:
            raise other_sources(run, f"the source that reads {found[0]} stands where {known[0]} was read; rows would come twice")
    for state, found, note in zip(states, now, noted, strict=True):
        if found != note:
            write_atomically(state / _NOTE, json.dumps(found))


def _reads(spec: SourceSpec) -> tuple[str, str]:
    """Return the folder or pattern that a source reads, and its pattern for names."""
    _, path = files_for(spec.path)
    return path, next((value for key, value in sorted(spec.options.items()) if key.lower() in _PATTERNS), "")


def _note(state: AnyPath) -> tuple[str, str] | None:
    with suppress(FileNotFoundError, ValueError):
        path, pattern = json.loads((state / _NOTE).read_text())
        return path, pattern
    return None


def _by_files(state: AnyPath, own: tuple[str, str], sources: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Which of the sources read the first file that a state without a note knows (an older Lakelet wrote it); its own if it can be."""
    first = next(_files(state), None)
    if first is None:
        return None
    return next((source for source in (own, *sources) if first.startswith(fixed_folder(source[0]).rstrip("/") + "/")), None)


def _files(state: AnyPath) -> Iterator[str]:
    if (state / "ledger").is_dir():
        for piece in Ledger(str(state)).entries(1 << 62):
            if len(piece):
                yield pc.min(piece["path"]).as_py()


__all__ = ["check_sources"]
