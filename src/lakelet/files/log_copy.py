"""Copies of Delta logs whose files stay where they are: a table with the same id, versions and rows, in another folder. No Spark.

In: the log of a table, and a version. Out: a log in another folder that ends with that version and names the files by absolute paths, as
Delta's shallow clones do. Unlike in a clone, id and version numbers are those of the table: checkpoints of streams, change feeds and what
views remember of their inputs mean the copy too. What is committed to the copy later can be committed to the table itself (`own_paths`).
Paths are written as Spark writes them, so that the later removal of a file names it as the copy did.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.files.paths import LOG, AnyPath, names_in
from lakelet.files.table_files import absolute_marks, folder_prefix, is_absolute, relative_marks

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\.\d{10}\.\d{10})?\.parquet")
_FILE = re.compile(r'\{"(?:add|remove|cdc)":\{"path":"')


def copy_log(table: AnyPath, target: Path, version: int) -> None:
    """Write the log of `table` up to `version` into the folder `target`, which has none.

    Raises LOG_NOT_COPIED for a log whose checkpoints are of Delta's second kind, or that does not go back to the version.
    """
    prefix, names = folder_prefix(table), names_in(table / LOG)
    commits = sorted(name for name in names if (found := _COMMIT.fullmatch(name)) and int(found[1]) <= version)
    first = _first_version(table, names, version)
    log = target / LOG
    log.mkdir(parents=True)
    if first:
        for name in names:
            found = _CHECKPOINT.fullmatch(name)
            if found and int(found[1]) == first:
                _copy_checkpoint(table / LOG / name, log / name, prefix)
    for name in commits:
        _copy_text(table / LOG / name, log / name, lambda text: "\n".join(_with_prefix(line, prefix) for line in text.split("\n")))
        checksum = name.replace(".json", ".crc")
        if checksum in names:
            _copy_text(table / LOG / checksum, log / checksum, _without_files)


def _first_version(table: AnyPath, names: list[str], version: int) -> int:
    """The version of the checkpoint that the copy begins with; 0 where all commits are there."""
    commits = _versions(names, _COMMIT)
    if commits.issuperset(range(version + 1)):
        return 0
    checkpoints = (one for one in _versions(names, _CHECKPOINT) if one <= version)
    first = max((one for one in checkpoints if commits.issuperset(range(one + 1, version + 1))), default=None)
    if first is None:
        what = f"version {version} of {table} cannot be read by an environment: its log does not go back to a checkpoint that can be copied"
        raise LakeletError("LOG_NOT_COPIED", what, todo="Run the update without --env, or begin another environment.")
    return first


def _versions(names: Iterable[str], pattern: re.Pattern[str]) -> frozenset[int]:
    """The versions in the names of a log's files that have a form."""
    return frozenset(int(found[1]) for found in map(pattern.fullmatch, names) if found)


def own_paths(text: str, table: AnyPath) -> str:
    """The text of a commit to a copy as one to `table`: its files by relative paths."""
    prefix = folder_prefix(table)
    return "\n".join(_without_prefix(line, prefix) for line in text.split("\n"))


def _with_prefix(line: str, prefix: str) -> str:
    """The line of a log with an absolute path."""
    found = _FILE.match(line)
    if found is None and not line.startswith(('{"add"', '{"remove"', '{"cdc"')):
        return line
    if found is None or '"deletionVector":{' in line:
        return _changed(line, lambda path: path if is_absolute(path) else prefix + path, lambda marks: absolute_marks(marks, prefix))
    return line if is_absolute(line[found.end() :]) else line[: found.end()] + prefix + line[found.end() :]


def _without_prefix(line: str, prefix: str) -> str:
    """The line of a log with a path that is relative to the folder of the prefix, where it lies below it."""
    return _changed(line, lambda path: path.removeprefix(prefix), lambda marks: relative_marks(marks, prefix))


def _changed(line: str, path: Callable[[str], str], marks: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> str:
    """The line with another path and deletion vector, if it is about a file."""
    action = json.loads(line) if line.strip() else {}
    for kind in ("add", "remove", "cdc"):
        if kind in action:
            body = action[kind]
            body["path"] = path(body["path"])
            if body.get("deletionVector"):
                body["deletionVector"] = marks(body["deletionVector"])
            return json.dumps(action, ensure_ascii=False, separators=(",", ":"))
    return line


def _copy_text(file: AnyPath, target: Path, change: Callable[[str], str]) -> None:
    """Write the changed text of a file, which keeps the time of its writing: versions are found by it."""
    target.write_text(change(file.read_text()), encoding="utf-8")
    if isinstance(file, Path):
        found = file.stat()
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _without_files(text: str) -> str:
    """A checksum without the list of all files, whose paths would be relative ones."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    found.pop("allFiles", None)
    return json.dumps(found)


def _copy_checkpoint(file: AnyPath, target: Path, prefix: str) -> None:
    """Write a checkpoint of Parquet with absolute paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(file if isinstance(file, Path) else io.BytesIO(file.read_bytes()))
    for kind in ("add", "remove"):
        at = table.schema.get_field_index(kind)
        if at >= 0:
            rows = [row and _moved_row(row, prefix) for row in table.column(kind).to_pylist()]
            table = table.set_column(at, table.schema.field(at), pa.array(rows, table.schema.field(at).type))
    pq.write_table(table, target)


def _moved_row(row: dict[str, Any], prefix: str) -> dict[str, Any]:
    """A file of a checkpoint with an absolute path."""
    marks = row.get("deletionVector")
    moved = {**row, "path": row["path"] if is_absolute(row["path"]) else prefix + row["path"]}
    return {**moved, "deletionVector": absolute_marks(marks, prefix)} if marks else moved


__all__ = ["copy_log", "own_paths"]
