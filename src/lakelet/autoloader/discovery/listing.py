"""Finding files: one complete listing as an Arrow table, in the order in which files are planned (AL-7, AL-8); and which version of each a
batch reads (docs/semantics/sources.md).

A listing of a million files is a few Arrow arrays: names become Python objects some thousand at a time, and only while they are filtered.
The planner checks the versions of a batch's files before they are read, and the readers check them afterwards. A file that changed in
between fails the batch with CF_FILE_CHANGED; the next start reads the new version.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import Files, LocalFiles, Scan, files_for, unreadable
from lakelet.autoloader.discovery.path_patterns import PathPattern, fixed_folder, is_pattern, name_pattern
from lakelet.base.errors import LakeletError
from lakelet.base.text import counted

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import FilePart, ReaderSpec


_FOLDERS = 3
LISTING = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modified", pa.int64())])
HIDDEN = "^[._]"
"""The default of `ignoredPathSegmentRegex`. Under it folders named like `_key=value` are visible, as they are to Spark."""


@dataclass(frozen=True)
class Filters:
    """Which files below the source folder count."""

    name_glob: str | None = None
    hidden_segments: str = HIDDEN
    modified_after: int | None = None
    modified_before: int | None = None
    strict_glob: bool = False


@dataclass(frozen=True)
class FolderListing:
    """Files that pass the filters, and the seconds that the listing took. `found`: in no order."""

    found: Any
    seconds: float

    @cached_property
    def table(self) -> Any:
        """The files in the order in which they are planned."""
        return in_plan_order(self.found)


def in_plan_order(files: Any, *, newest_first: bool = False) -> Any:
    """Files by modification time, then path; `newest_first`: the other way round."""
    order = "descending" if newest_first else "ascending"
    return files.sort_by([("modified", order), ("path", order)])


def filters_of(spec: ReaderSpec) -> Filters:
    """The filters that the options of a source ask for."""
    return Filters(spec.name_glob, spec.hidden_segments, spec.modified_after, spec.modified_before, spec.strict_glob)


def files_of(spec: ReaderSpec, *, file_allowed: bool = False) -> FolderListing:
    """List a source; see `list_files`."""
    return list_files(spec.path, filters_of(spec), file_allowed=file_allowed)


def list_files(root: str, filters: Filters, *, file_allowed: bool = False) -> FolderListing:
    """List a source folder, pattern or (`file_allowed`, for batch reads) single file. A missing folder has no files.

    Raises CF_PATH_IS_NOT_A_DIRECTORY, CF_USE_DELTA_FORMAT, and FAILED_READ_FILE for a folder that may not be read.
    """
    started = time.perf_counter()
    files, path = source_folder(root, file_allowed=file_allowed)
    single = files.status(path) if file_allowed and files.is_file(path) else None
    if single is not None:
        parts = [pa.table([[path], [single[0]], [single[1]]], schema=LISTING)]
    else:
        parts = [_table_of_files(files, folder, part) for folder, part in _Walk(files, path, filters).parts()]
    table = pa.concat_tables([LISTING.empty_table(), *parts])
    return FolderListing(_in_time(table, filters), time.perf_counter() - started)


def files_elsewhere(root: str, filters: Filters) -> str | None:
    """Which folders below the fixed part of a pattern hold files, for the error of one that matches none; None for any other path."""
    if not is_pattern(root):
        return None
    base = fixed_folder(root)
    try:
        found = Counter(path.as_py().rpartition("/")[0] for path in list_files(base, filters).table["path"])
    except LakeletError:  # the folder is no folder of files
        return None
    shown = [f"{folder}/ ({counted(number, 'file')})" for folder, number in found.most_common(_FOLDERS)]
    return f"no file matches the pattern; files lie in {', '.join(shown)}" if shown else f"no file lies below {base}"


def source_folder(root: str, *, file_allowed: bool = False) -> tuple[Files, str]:
    """The file system and folder (or pattern) of a source. Raises when the path is empty, a single file or a Delta table."""
    if not root:
        raise LakeletError("CF_SOURCE_DIRECTORY_PATH_REQUIRED", "load() was called without a path", todo="Give it the folder to read.")
    files, path = files_for(root)
    if files.is_file(path) and not file_allowed:
        raise LakeletError(
            "CF_PATH_IS_NOT_A_DIRECTORY", f"{root} is a file, and a stream needs a folder", todo=f"Load {os.path.dirname(path)} instead."
        )
    if files.is_folder(f"{path.rstrip('/')}/_delta_log"):
        raise LakeletError("CF_USE_DELTA_FORMAT", f"{root} is a Delta table", todo='Read it with spark.readStream.format("delta").')
    return files, path


class _Walk:
    """Goes through the folders of a source and takes the names that count."""

    def __init__(self, files: Files, path: str, filters: Filters) -> None:
        self._files = files
        pattern = is_pattern(path) and not files.is_folder(path)
        self._root = fixed_folder(path) if pattern else path
        self._pattern = PathPattern(path, strict=filters.strict_glob) if pattern else None
        self._hidden = re.compile(filters.hidden_segments)
        self._default = filters.hidden_segments == HIDDEN
        self._name = name_pattern(filters.name_glob) if filters.name_glob else None

    def parts(self) -> Iterator[tuple[str, Scan]]:
        """Folders with those of their files that count, large ones in several parts."""
        folders = [self._root]
        while folders:
            folder = folders.pop()
            below: list[str] = []
            try:
                for part in self._files.scan(folder):
                    taken = self._files_that_count(folder, part)
                    if taken.names:
                        yield folder, taken
                    below += self._folders_to_enter(folder, part)
            except OSError as error:
                raise unreadable(self._files.uri(folder), error) from error
            folders += sorted(below, reverse=True)

    def _files_that_count(self, folder: str, part: Scan) -> Scan:
        hidden, name, pattern = self._hidden.search, self._name, self._pattern
        kept = [at for at, found in enumerate(part.names) if not hidden(found)]
        if name is not None:
            kept = [at for at in kept if name.fullmatch(part.names[at])]
        if pattern is not None:
            kept = [at for at in kept if pattern.takes(_path_of(folder, part.names[at]))]
        if len(kept) == len(part.names):
            return part
        return Scan([part.names[at] for at in kept], [part.sizes[at] for at in kept], [part.modified[at] for at in kept])

    def _folders_to_enter(self, folder: str, part: Scan) -> list[str]:
        visible = [name for name in part.folders if not self._hidden.search(name) or (self._default and name[0] == "_" and "=" in name)]
        paths = [_path_of(folder, name) for name in visible if name not in part.links or not self._is_circular(folder, name)]
        return [path for path in paths if self._pattern is None or self._pattern.may_hold(path)]

    def _is_circular(self, folder: str, name: str) -> bool:
        """Whether a link leads to a folder that it stands in."""
        target = self._files.real(_path_of(folder, name))
        above = folder
        while True:
            if self._files.real(above) == target:
                return True
            if above in ("/", ""):
                return False
            above = os.path.dirname(above)


def _path_of(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def _table_of_files(files: Files, folder: str, part: Scan) -> Any:
    try:
        names = pa.array(part.names, pa.string())
    except UnicodeEncodeError:
        bad = next(name for name in part.names if not _is_encodable(name))
        raise LakeletError(
            "FAILED_READ_FILE",
            f"{files.uri(folder)} has a file whose name is not UTF-8: {bad!r}",
            todo="Rename the file, or leave it out with pathGlobFilter.",
        ) from None
    paths = pc.binary_join_element_wise(_path_of(folder, ""), names, "")
    return pa.table([paths, pa.array(part.sizes, pa.int64()), pa.array(part.modified, pa.int64())], schema=LISTING)


def _is_encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_time(table: Any, filters: Filters) -> Any:
    if filters.modified_after is not None:
        table = table.filter(pc.greater(table["modified"], filters.modified_after))
    if filters.modified_before is not None:
        table = table.filter(pc.less(table["modified"], filters.modified_before))
    return table


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

    `may_grow`: the query is computed again by each update, so that what was added to a file meanwhile is read then.
    """
    if not part.checked or not (isinstance(files, LocalFiles) or part.size > _REMOTE_PIECE):
        return None
    found = files.status(part.path)
    if found is None or _same_version(files, found, (part.size, part.modified)) or (may_grow and found[0] > part.size):
        return None
    return FileChanged(
        CODE,
        f"{files.uri(part.path)} changed while it was read",
        why=f"it had {part.size} bytes, and has {found[0]}",
        todo="Nothing of this batch was written; the next update reads the file as it is then. "
        "Write files elsewhere and move them into the folder when they are complete.",
    )


def checked_again(files: Files, entries: Any, *, without_missing: bool) -> tuple[Any, frozenset[str]]:
    """Entries of a batch with the sizes and times that the files have now, and the paths of those that changed.

    A file that is gone keeps its entry, unless `without_missing` takes it out.
    """
    paths, known = entries["path"].to_pylist(), zip(entries["size"].to_pylist(), entries["modified"].to_pylist(), strict=True)
    rows: list[int] = []
    versions: list[tuple[int, int]] = []
    changed: set[str] = set()
    for at, (path, before, now) in enumerate(zip(paths, known, _statuses_of(files, paths), strict=True)):
        if now is None and without_missing:
            continue
        same = now is None or _same_version(files, now, before)
        rows.append(at)
        versions.append(before if same or now is None else now)
        if not same:
            changed.add(path)
    found = entries.take(pa.array(rows, pa.int64()))
    for name, values in (("size", [size for size, _ in versions]), ("modified", [modified for _, modified in versions])):
        column = found.schema.names.index(name)
        found = found.set_column(column, found.schema.field(column), pa.array(values, pa.int64()))
    return found, frozenset(changed)


def _statuses_of(files: Files, paths: Sequence[str]) -> list[tuple[int, int] | None]:
    if isinstance(files, LocalFiles) or len(paths) < 2:
        return [files.status(path) for path in paths]
    with ThreadPoolExecutor(_REMOTE_LOOKS) as threads:
        return list(threads.map(files.status, paths))


def _same_version(files: Files, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether size and modification time are the same; stores give whole seconds in one answer and fractions in another."""
    if isinstance(files, LocalFiles):
        return one == other
    return one[0] == other[0] and one[1] // _SECOND == other[1] // _SECOND
