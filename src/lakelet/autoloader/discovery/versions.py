"""Which version of each file a batch reads: one, whole, and the one that the ledger names (docs/semantics/sources.md).

The planner looks at a batch's files before they are read, and the readers look again afterwards. A file that changed in between fails the
batch with CF_FILE_CHANGED; the next start reads the new version.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.autoloader.discovery.files import Files, LocalFiles
from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from lakelet.autoloader.spec import FilePart

CODE = "CF_FILE_CHANGED"
_REMOTE_LOOKS = 16  # at the same time
_REMOTE_PIECE = 1 << 20  # bytes that a reader asks a store for at once; a file that is no larger comes from one answer
_SECOND = 1_000_000


class FileChanged(LakeletError):
    """A file changed while its batch was read. Another start reads it as it is then."""


def is_change(failure: str) -> bool:
    """Whether the text of a failure says that a file changed while it was read."""
    return f"[{CODE}]" in failure


def file_changed(files: Files, part: FilePart, *, may_grow: bool) -> FileChanged | None:
    """The failure of a query that read this part, or None if the file is what the part says; a file that is gone has not changed.

    `may_grow`: the query is computed again by each update, so that what was added to a file meanwhile is not lost.
    """
    if not part.checked or not (isinstance(files, LocalFiles) or part.size > _REMOTE_PIECE):
        return None
    found = files.status(part.path)
    if found is None or _same(files, found, (part.size, part.modified)) or (may_grow and found[0] > part.size):
        return None
    return FileChanged(
        CODE,
        f"{files.uri(part.path)} changed while it was read",
        why=f"it had {part.size} bytes, and has {found[0]}",
        todo="Nothing of this batch was written; the next update reads the file as it is then. "
        "Write files elsewhere and move them into the folder when they are complete.",
    )


def look_again(files: Files, entries: Any, *, without_missing: bool) -> tuple[Any, frozenset[str]]:
    """Entries of a batch with the sizes and times that the files have now, and the paths of those that changed.

    A file that is gone keeps its entry, unless `without_missing` takes it out.
    """
    paths, known = entries["path"].to_pylist(), zip(entries["size"].to_pylist(), entries["modified"].to_pylist(), strict=True)
    rows: list[int] = []
    versions: list[tuple[int, int]] = []
    changed: set[str] = set()
    for at, (path, before, now) in enumerate(zip(paths, known, _statuses(files, paths), strict=True)):
        if now is None and without_missing:
            continue
        same = now is None or _same(files, now, before)
        rows.append(at)
        versions.append(before if same or now is None else now)
        if not same:
            changed.add(path)
    found = entries.take(pa.array(rows, pa.int64()))
    for name, values in (("size", [size for size, _ in versions]), ("modified", [modified for _, modified in versions])):
        column = found.schema.names.index(name)
        found = found.set_column(column, found.schema.field(column), pa.array(values, pa.int64()))
    return found, frozenset(changed)


def _statuses(files: Files, paths: Sequence[str]) -> list[tuple[int, int] | None]:
    if isinstance(files, LocalFiles) or len(paths) < 2:
        return [files.status(path) for path in paths]
    with ThreadPoolExecutor(_REMOTE_LOOKS) as threads:
        return list(threads.map(files.status, paths))


def _same(files: Files, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether size and modification time are the same; stores give whole seconds in one answer and fractions in another."""
    if isinstance(files, LocalFiles):
        return one == other
    return one[0] == other[0] and one[1] // _SECOND == other[1] // _SECOND
