"""What a source reads, noted in its state at each start, and the moves of its files since its ledger began.

A file of the ledger holds paths as they were when it was written, and how many moves were known then; whoever reads it applies the later
ones. So one small file, written as a whole, is all that changes when a folder is moved.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import files_for
from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.files.moves import Folder, Move

FORMAT = 2
"""1: path and pattern for names. 2: an object with the folder, its surroundings, and moves."""
_NOTE = "reads"


@dataclass(frozen=True)
class SourceReads:
    """What a source reads, and read before.

    Attributes:
        path: folder or pattern, inside its store.
        pattern: pattern for the names of files, empty for all.
        folder: the folder before the first wildcard of `path`, with its surroundings.
        moves: moves of the files, oldest first.
        earlier: folders that the source read before, of which nobody has said that their files were moved.
    """

    path: str
    pattern: str
    folder: Folder
    moves: tuple[Move, ...] = ()
    earlier: tuple[Folder, ...] = ()

    @property
    def what(self) -> tuple[str, str, str]:
        """Store, path and pattern for names: two sources that have the same read the same."""
        return self.folder.store, self.path, self.pattern

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)})


def noted(state: str) -> SourceReads | None:
    """Return what was noted in the state of a source; None before its first start. Raises CF_STATE_DAMAGED, FORMAT_UNKNOWN."""
    files, root = files_for(state)
    file = f"{root.rstrip('/')}/{_NOTE}"
    try:
        content = files.read(file)
    except FileNotFoundError:
        return None
    try:
        facts: Any = json.loads(content)
        found = facts["format"]
        if found == FORMAT:
            moves = tuple((old, new) for old, new in facts["moves"])
            earlier = tuple(Folder(**one) for one in facts["earlier"])
            return SourceReads(facts["path"], facts["pattern"], Folder(**facts["folder"]), moves, earlier)
    except (ValueError, KeyError, TypeError) as error:
        raise LakeletError("CF_STATE_DAMAGED", f"{file} cannot be read", why=str(error), todo="Do a full refresh of the dataset.") from None
    raise unknown_format(file, found, FORMAT)


def note(state: str, reads: SourceReads) -> None:
    """Write the note as a whole."""
    files, root = files_for(state)
    files.write(f"{root.rstrip('/')}/{_NOTE}", reads.to_json().encode())
    reached("source.noted")


def moved_paths(paths: Any, moves: Sequence[Move]) -> Any:
    """Return an Arrow array of paths after some moves, in their order."""
    for old, new in moves:
        before, after = (folder.rstrip("/") + "/" for folder in (old, new))
        below = pc.starts_with(paths, before)
        if pc.any(below).as_py():
            paths = pc.if_else(below, pc.replace_substring(paths, before, after, max_replacements=1), paths)
    return paths


__all__ = ["FORMAT", "SourceReads", "moved_paths", "note", "noted"]
