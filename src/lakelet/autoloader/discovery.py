"""Finding files: one complete listing as an Arrow table, in the order in which files are planned (spec 5.1, 5.3)."""

from __future__ import annotations

import fnmatch
import os
import re
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelet.autoloader.files import files_for, walk
from lakelet.errors import LakeletError

LISTING = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modified", pa.int64())])
_GLOB = re.compile(r"[*?\[{]")


@dataclass(frozen=True)
class Filters:
    """Which files below the source folder count."""

    name_glob: str | None = None
    hidden_segments: str = "^[._]"
    modified_after: int | None = None
    modified_before: int | None = None


@dataclass(frozen=True)
class Listing:
    """Files that pass the filters, ordered by modification time, then path; and what looking for them took."""

    table: Any
    seconds: float


def list_files(root: str, filters: Filters) -> Listing:
    """List a source folder. A missing folder has no files. Raises for globs and single files."""
    started = time.perf_counter()
    files, path = source_folder(root)
    skip = re.compile(filters.hidden_segments)
    accept = re.compile(_glob_to_regex(filters.name_glob)) if filters.name_glob else None
    parts: list[Any] = []
    for entries in walk(files, path, skip):
        kept = [e for e in entries if _wanted(e.modified, filters) and (accept is None or accept.match(os.path.basename(e.path)))]
        columns = ([e.path for e in kept], [e.size for e in kept], [e.modified for e in kept])
        parts.append(pa.table([pa.array(c, f.type) for c, f in zip(columns, LISTING, strict=True)], schema=LISTING))
    table = pa.concat_tables(parts).combine_chunks() if parts else LISTING.empty_table()
    return Listing(table.sort_by([("modified", "ascending"), ("path", "ascending")]), time.perf_counter() - started)


def source_folder(root: str) -> tuple[Any, str]:
    """The file system and folder of a source. Raises when the path is empty, a pattern or a single file."""
    if not root:
        raise LakeletError("CF_SOURCE_DIRECTORY_PATH_REQUIRED", "load() was called without a path", todo="Give it the folder to read.")
    files, path = files_for(root)
    if files.is_file(path):
        raise LakeletError(
            "CF_PATH_IS_NOT_A_DIRECTORY", f"{root} is a file, and a stream needs a folder", todo=f"Load {os.path.dirname(path)} instead."
        )
    if _GLOB.search(root) and files.folder(path) is None:
        raise LakeletError("NOT_SUPPORTED_YET", f"patterns in source paths are not supported yet: {root}", todo="Use pathGlobFilter.")
    return files, path


def _wanted(modified: int, filters: Filters) -> bool:
    after, before = filters.modified_after, filters.modified_before
    return (after is None or modified > after) and (before is None or modified < before)


def _glob_to_regex(glob: str) -> str:
    """A file-name pattern with `* ? [abc] [^a] {ab,cd}` as a regular expression."""
    return "|".join(f"(?:{fnmatch.translate(item.replace('[^', '[!'))})" for item in _expand(glob))


def _expand(glob: str) -> list[str]:
    match = re.search(r"\{([^{}]*)\}", glob)
    if match is None:
        return [glob]
    return [done for part in match[1].split(",") for done in _expand(glob[: match.start()] + part + glob[match.end() :])]
