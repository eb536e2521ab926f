"""What a flow does about its file sources besides reading them: it follows folders that were moved, and cleans what it has read.

In: a task, before its query starts or after it has ended. A source is known by what it reads, though its state goes by its number in the
query (SO-7, SO-11). Where a folder lies is noted (docs/decisions/0064-moved-files.md). Spark keeps the absolute paths of the files that a
query has read in `<checkpoint>/sources/<number>`. They are rewritten before the query starts. All new contents are stored in one file
first, so that a process that dies meanwhile leaves what the next one completes.

After a flow has read all its files, `cloudFiles.cleanSource` does its work (AL-25). Trouble there is a warning. It never fails a flow,
whose rows are in the table by then.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame

from lakelet.analysis.file_sources import folder_of, given_moves, moved_or_other, reads_of
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.autoloader.state.source_moves import SameNames, found_at, kept_roots, note, noted
from lakelet.base.errors import unknown_format
from lakelet.base.failpoints import reached
from lakelet.files.durable import write_atomically
from lakelet.files.moves import Folder, Move, is_below, replaced
from lakelet.files.paths import AnyPath, any_path, names_in
from lakelet.files.stores import scheme_of
from lakelet.flows.checkpoints import read_checkpoint
from lakelet.flows.context import FlowTask
from lakelet.flows.failures import other_sources
from lakelet.jvm.frames import analyzed
from lakelet.jvm.hadoop import uri_path
from lakelet.jvm.scala import items, value_of
from lakelet.storage.eventlog.states import EventType, Level

FORMAT = 1
"""Version of both files."""
_NOTE, _JOURNAL = "lakelet-files.json", "lakelet-files-moved.json"
_HEADER = "v1"

Folders = tuple[Folder | None, ...]
"""By number of the source; None for one that reads no files."""
Encode = Callable[[str], str]
"""Writes an absolute path as Spark does in the log."""


@dataclass(frozen=True)
class _Entry:
    """A file in a source's log. `line`: as Spark wrote it."""

    line: str
    uri: str

    @property
    def path(self) -> str:
        """The path inside its store."""
        scheme, colon, rest = self.uri.partition(":")
        return unquote(rest.lstrip("/") if scheme != "file" and colon else "/" + rest.lstrip("/"))


def follow_file_sources(task: FlowTask, frame: DataFrame) -> None:
    """Bring the logs of Spark's file sources up to date with where their folders lie now. Raises SOURCE_MOVED."""
    if task.flow.stream.is_known:
        return
    checkpoint = task.checkpoint()
    _complete(checkpoint)
    now = _folders(task, frame)
    if not any(now):
        return
    before = _noted(checkpoint) or ()
    folders, changed = list(now), dict[str, str]()
    encoded: Encode = functools.partial(uri_path, frame.sparkSession)
    for number, (old, new) in enumerate(zip(before, now, strict=True) if len(before) == len(now) else ()):
        if old is not None and new is not None and old != new:
            folders[number], texts = _followed(task, _Log(checkpoint / "sources" / str(number)), old, new, encoded)
            changed.update(texts)
    _store(checkpoint, before, tuple(folders), changed)


def _followed(task: FlowTask, log: _Log, old: Folder, new: Folder, encoded: Encode) -> tuple[Folder, dict[str, str]]:
    """The folder to note for a source, and the new texts of its log.

    Raises SOURCE_MOVED for any other folder: Spark cannot go on there with the files that it has read.
    """
    found = found_at(old, new, lambda: log.same_names(old, new), given_moves())
    if found.elsewhere and (same := log.same_names(old, new)).known:
        raise moved_or_other(task.declared, old, new, same)
    if found.move is None:
        return kept_roots(old, new), {}
    report_move(task, *found.move)
    return new, dict(log.moved(found.move, new, encoded))


def _folders(task: FlowTask, frame: DataFrame) -> Folders:
    """The folder of each streaming source of a query, numbered as Spark numbers them."""
    found: list[tuple[Any, Folder | None]] = []
    for leaf in items(analyzed(frame).collectLeaves()):
        if leaf.isStreaming() and not any(leaf.equals(other) for other, _ in found):
            path = _path_of(leaf)
            found.append((leaf, None if path is None else folder_of(path, task.environment.storage)))
    return tuple(folder for _, folder in found)


def _path_of(leaf: Any) -> str | None:
    """The path that a file source reads; None for any other leaf."""
    if leaf.nodeName() != "StreamingRelation" or not str(leaf.sourceName()).startswith("FileSource"):
        return None
    found = value_of(leaf.dataSource().options().get("path"))
    return None if found is None else str(found)


def _noted(checkpoint: AnyPath) -> Folders | None:
    """The folders of the sources, by their numbers, as of the last start; None before the first one. Raises FORMAT_UNKNOWN."""
    try:
        facts = json.loads((checkpoint / _NOTE).read_text())
    except FileNotFoundError:
        return None
    if facts["format"] != FORMAT:
        raise unknown_format(checkpoint / _NOTE, facts["format"], FORMAT)
    return tuple(None if one is None else Folder(**one) for one in facts["folders"])


def _store(checkpoint: AnyPath, before: Folders, now: Folders, changed: Mapping[str, str]) -> None:
    """Write the note; before it, if logs change, their new contents."""
    text = json.dumps({"format": FORMAT, "folders": [None if one is None else asdict(one) for one in now]})
    if changed:
        write_atomically(checkpoint / _JOURNAL, json.dumps({"format": FORMAT, "files": changed, "note": text}))
        reached("source.journaled")
        _complete(checkpoint)
    elif before != now:
        write_atomically(checkpoint / _NOTE, text)


def _complete(checkpoint: AnyPath) -> None:
    """If new contents of logs are stored, replace the old ones by them."""
    journal = checkpoint / _JOURNAL
    try:
        facts = json.loads(journal.read_text())
    except FileNotFoundError:
        return
    if facts["format"] != FORMAT:
        raise unknown_format(journal, facts["format"], FORMAT)
    for name, text in facts["files"].items():
        file = checkpoint / "sources" / name if isinstance(checkpoint, Path) else any_path(f"{checkpoint}/sources/{name}")
        write_atomically(file, text)
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
        reached("source.log_moved")
    write_atomically(checkpoint / _NOTE, facts["note"])
    journal.unlink(missing_ok=True)


class _Log:
    """The files that one source has read."""

    def __init__(self, folder: AnyPath) -> None:
        self._folder = folder

    def _files(self) -> Iterator[tuple[str, Sequence[_Entry]]]:
        """Yield each file of the log with its entries."""
        for name in sorted(names_in(self._folder)):
            if not name.removesuffix(".compact").isdigit():
                continue
            header, *lines = (self._folder / name).read_text().splitlines()
            if header == _HEADER:
                yield name, [_Entry(line, str(json.loads(line)["path"])) for line in lines if line]

    def same_names(self, old: Folder, new: Folder) -> SameNames:
        """Compare what was read below a folder with what lies below another one; the log has no sizes, so those count as the same."""
        paths = (entry.path for _, entries in self._files() for entry in entries if is_below(entry.path, old.path))
        known = {path[len(old.path.rstrip("/")) + 1 :] for path in paths}
        there = sum(any_path(f"{new.shown.rstrip('/')}/{path}").exists() for path in known)
        return SameNames(len(known), there, there)

    def moved(self, move: Move, new: Folder, encoded: Encode) -> Iterator[tuple[str, str]]:
        """Yield the name and the new text of each file that a move changes. `new`: the folder that the source reads now."""
        head = f"{scheme_of(new.shown)}:/" if new.store else "file://"
        for name, entries in self._files():
            lines = [_moved(entry, move, lambda path: head + encoded("/" + path.lstrip("/"))) for entry in entries]
            if lines != [entry.line for entry in entries]:
                yield f"{self._folder.name}/{name}", "\n".join((_HEADER, *lines))


def _moved(entry: _Entry, move: Move, uri: Encode) -> str:
    path = replaced(entry.path, [move])
    return entry.line if path == entry.path else json.dumps({**json.loads(entry.line), "path": uri(path)}, separators=(",", ":"))


def check_sources(task: FlowTask) -> None:
    """Note what each file source of a flow reads, and which of its files were moved.

    Raises STREAM_SOURCES_CHANGED where one reads what another one has read so far, and SOURCE_MOVED where it reads another folder with
    files of the same names. A source that reads something else altogether goes on: its files are new ones.
    """
    environment, flow = task.environment, task.declared
    specs = task.flow.sources
    states = [str(environment.storage.source_state(flow.target, task.name, number)) for number in range(len(specs))]
    known = [noted(state) for state in states]
    others = {reads.what: reads for reads in known if reads is not None}
    for spec, before in zip(specs, known, strict=True):
        now = reads_of(spec, environment.storage)
        if before is not None and now.what != before.what and now.what in others:
            raise other_sources(task, f"the source that reads {now.path} stands where {before.path} was read; rows would come twice")
    for number, (state, spec, before) in enumerate(zip(states, specs, known, strict=True)):
        found = environment.sources.followed(flow, number, spec)
        if found.now != before:
            note(state, found.now)
        if found.moved is not None and before is not None and found.now.moves != before.moves:
            report_move(task, *found.moved)


def report_move(task: FlowTask, old: str, new: str) -> None:
    """Emit a notice about files that a flow knows and that lie elsewhere now."""
    task.environment.sources.moves.add((old, new))
    text = f"the files that it has read in {old} lie in {new} now; they are not read again"
    task.environment.reporter.notice(
        f"Flow '{task.name}': {text}.", text=text, dataset=str(task.dataset.name), flow=task.name, level=Level.INFO
    )


def clean_sources(task: FlowTask) -> None:
    """Let every file source of a drained flow move or delete what it has read long enough ago.

    Not in an environment: the main storage has yet to read those files.
    """
    sources, stream = task.flow.sources, task.flow.stream
    if not sources or task.environment.storage.base is not None:
        return
    checkpoint = read_checkpoint(task.checkpoint())
    if checkpoint.unfinished or len(stream.files) != len(checkpoint.offsets):
        return
    for number, offset in zip(stream.files, checkpoint.offsets, strict=True):
        if number is None:
            continue
        spec = sources[number]
        try:
            done = task.environment.sources.open(task.declared, number, spec, dry=False).clean(offset)
        except Exception as problem:  # the rows are committed: cleaning is tried again in the next update
            _emit(task, spec, f"could not clean {spec.path}: {problem}", {"failed": 1, "problems": [str(problem)]}, Level.WARN)
            continue
        if done is None or not (done.files or done.changed or done.failed):
            continue
        body = {"mode": done.mode, "files": done.files, "changed": done.changed, "failed": done.failed, "problems": done.problems}
        parts = [f"{'moved' if done.mode == 'MOVE' else 'deleted'} {done.files} file(s) of {spec.path}"]
        parts += [f"{done.changed} file(s) changed since they were read and stay"] if done.changed else []
        parts += [f"{done.failed} file(s) could not be cleaned, the first: {done.problems[0]}"] if done.failed else []
        _emit(task, spec, "; ".join(parts), body, Level.WARN if done.changed or done.failed else Level.INFO)


def _emit(task: FlowTask, spec: SourceSpec, text: str, body: dict[str, Any], level: Level) -> None:
    details = {"flow_name": task.name, "source": spec.path, **body}
    task.environment.reporter.emit(
        EventType.CLEAN_SOURCE, f"Flow '{task.name}' {text}.", details, dataset=str(task.dataset.name), flow=task.name, level=level
    )


__all__ = ["check_sources", "clean_sources", "follow_file_sources", "report_move"]
