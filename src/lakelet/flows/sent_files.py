"""Sends micro-batches as files into a folder outside the pipeline, each batch once (SK-12, decision 42).

A batch is written to a staging folder below the target folder, whose name readers leave out. A note in the flow's checkpoint then names its
files: that is the commit. After it the files are moved into the target folder, one by one, however often the process dies. A batch without
a note is written again, one with a note never.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from lakelet.base.errors import unknown_format
from lakelet.base.failpoints import reached
from lakelet.files.durable import sync_folder, write_atomically
from lakelet.files.paths import AnyPath, moved, names_in, remove_tree

FORMAT = 1
"""Version of the note."""

Write = Callable[[AnyPath], int | None]
"""Function that writes the batch into a folder that does not exist yet and returns the number of rows, None if unknown."""


@dataclass(frozen=True)
class Outbox:
    """Target folder of a flow. `note`: file in the flow's checkpoint; `sender`: text that no other flow into the folder has."""

    folder: AnyPath
    note: AnyPath
    sender: str


@dataclass(frozen=True)
class _Note:
    """Files of the last committed batch, in the order in which they are moved. `id`: that of the batch's query."""

    id: str
    batch: int
    staging: str
    files: tuple[str, ...]
    rows: int | None


def send(outbox: Outbox, batch: int, write: Write, *, id: str) -> int | None:
    """Put a batch into the folder unless it is there; return the number of its rows, None if it was there or they were not counted."""
    note = _read(outbox.note)
    if note is None or (note.id, note.batch) != (id, batch):
        note = _commit(outbox, batch, write, id)
    staging = outbox.folder / note.staging
    if not names_in(staging):
        remove_tree(staging)  # the process died when its files were removed and the folder was not
        return None
    for name in note.files:
        moved(staging / name, outbox.folder / name)
        reached("sink.file_moved")
    if isinstance(outbox.folder, Path):
        sync_folder(outbox.folder)
    remove_tree(staging)
    return note.rows


def _commit(outbox: Outbox, batch: int, write: Write, id: str) -> _Note:
    """Write the batch to the staging folder, then the note about it. A batch without rows has no files."""
    name = f"_lakelet-{hashlib.sha256(outbox.sender.encode()).hexdigest()[:16]}"
    staging = outbox.folder / name
    remove_tree(staging)
    rows = write(staging)
    reached("sink.staged")
    visible = [file for file in names_in(staging) if not file.startswith(".")]
    files = sorted(visible, key=lambda file: (file.startswith("_"), file)) if rows != 0 else []  # _SUCCESS comes last
    note = _Note(id, batch, name, tuple(files), rows)
    write_atomically(outbox.note, json.dumps({"format": FORMAT, **asdict(note)}))
    reached("sink.noted")
    return note


def _read(file: AnyPath) -> _Note | None:
    """Return the note of the last committed batch; None before the first. Raises FORMAT_UNKNOWN."""
    try:
        facts = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    if facts["format"] != FORMAT:
        raise unknown_format(file, facts["format"], FORMAT)
    return _Note(facts["id"], facts["batch"], facts["staging"], tuple(facts["files"]), facts["rows"])
