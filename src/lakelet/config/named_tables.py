"""Folders and files that are given a table's name: `--table NAME=PATH`. No Spark."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace, TableName, split_name
from lakelet.config.path_map import argument, resolved_target
from lakelet.files.remote import RemoteStore, open_store
from lakelet.files.stores import scheme_of

_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")
_HEAD = 1 << 16


@dataclass(frozen=True)
class NamedTable:
    """A path with a table's name: `given` is the name as typed, `path` is absolute or a URI.

    `catalog`: the catalog that knows the table, in words, where `--table` does not name it; `format`: what that one says of the files.
    """

    name: TableName
    given: str
    path: str
    catalog: str = ""
    format: str = ""


@dataclass(frozen=True)
class TableFormat:
    """Spark's name of the format of a named table's files, and the options that read them."""

    format: str
    options: Mapping[str, str]


def named_tables(
    pairs: Iterable[tuple[str, str]], namespace: Namespace, base: Path, *, code: str = "USAGE", where: Location | None = None
) -> dict[str, NamedTable]:
    """(name, path) pairs as tables by key. Raises `code` for what is not a table name, and for one name with two paths."""
    found: dict[str, NamedTable] = {}
    for given, target in pairs:
        try:
            name = namespace.resolve(given)
        except ValueError as problem:
            todo = "For example: --table catalog.schema.orders=data/orders"
            raise LakeletError(code, f"--table {given}={target}: {problem}", where=where, todo=todo) from None
        table = NamedTable(name, given, resolved_target(target, base))
        first = found.setdefault(name.key, table)
        if first.path != table.path:
            what = f"the table {given} is given twice: {first.path} and {table.path}"
            raise LakeletError(code, what, where=where, todo="Name one path for it.")
    return found


def table_flag(name: str) -> str:
    """The flag that gives a table's name a path, as it is typed in a shell."""
    try:
        parts = split_name(name)
    except ValueError:
        parts = (name,)
    return f"--table {argument('.'.join(f'`{p}`' if '.' in p else p for p in parts))}=PATH"


def table_format(table: NamedTable, where: Location | None = None) -> TableFormat:
    """Return the format of the files at a named table's path.

    Raises TABLE_PLACE_MISSING, or TABLE_PLACE_UNREADABLE if no file there has a known extension.
    """
    path = table.path
    if scheme_of(path) is not None:
        return TableFormat(table.format, {}) if table.format else _remote_format(table, where)
    if not os.path.exists(path):
        raise LakeletError(
            "TABLE_PLACE_MISSING",
            f"the table {table.given} lies at {path}, which does not exist",
            where=where,
            why=f"{table.catalog} says so." if table.catalog else None,
            todo=f"Put its files there, or name another path: {table_flag(table.given)}",
        )
    if table.format:
        return TableFormat(table.format, {})
    if os.path.isdir(os.path.join(path, "_delta_log")):
        return TableFormat("delta", {})
    first = next(_files(path), None)
    return _by_name(table, first or "", lambda: _head(first), where)


def files_fingerprint(table: NamedTable) -> int | None:
    """Return a number that changes whenever the files of a named table change; None where that is not known.

    It depends on name, size and time: of the log files of a Delta table, of all data files elsewhere.
    """
    path = table.path
    if scheme_of(path) is not None or not os.path.exists(path):
        return None
    log = os.path.join(path, "_delta_log")
    files = sorted(os.path.join(log, name) for name in os.listdir(log)) if os.path.isdir(log) else list(_files(path))
    try:
        facts = [(file, stat.st_size, stat.st_mtime_ns) for file in files for stat in (os.stat(file),)]
    except FileNotFoundError:  # another process changes the folder
        return None
    return int.from_bytes(hashlib.sha256(repr(facts).encode()).digest()[:7], "big")


def _by_name(table: NamedTable, file: str, head: object, where: Location | None) -> TableFormat:
    format = _format(file)
    if format is None:
        what = f"it holds {os.path.basename(file)}" if file else "it holds no file"
        raise LakeletError(
            "TABLE_PLACE_UNREADABLE",
            f"the table {table.given} lies at {table.path}, which is neither Delta nor Parquet, CSV, JSON or ORC",
            where=where,
            why=what,
            todo=f"Name a folder or file that is: {table_flag(table.given)}",
        )
    if format == "csv":
        separator = {"sep": "\t"} if ".tsv" in os.path.basename(file) else {}
        return TableFormat(format, {"header": "true", "inferSchema": "true", **separator})
    if format == "json" and callable(head) and not _is_lines(head()):
        return TableFormat(format, {"multiLine": "true"})
    return TableFormat(format, {})


def _remote_format(table: NamedTable, where: Location | None) -> TableFormat:
    store, path = open_store(table.path, RemoteStore)
    if store.is_folder(f"{path}/_delta_log"):
        return TableFormat("delta", {})
    files = [path] if store.is_file(path) else [i.path for i in store.listed(path, recursive=True) if i.is_file and _format(i.path)]
    return _by_name(table, next(iter(sorted(files)), ""), None, where)


def _files(path: str) -> Iterator[str]:
    """The file itself, or the data files below a folder in order; hidden ones (`_…`, `.…`) are left out. Known formats come first."""
    if os.path.isfile(path):
        yield path
        return
    unknown = []
    for folder, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith(("_", ".")))
        for name in sorted(names):
            if name.startswith(("_", ".")):
                continue
            path = os.path.join(folder, name)
            if _format(path):
                yield path
            else:
                unknown.append(path)
    yield from unknown


def _format(file: str) -> str | None:
    stem, extension = os.path.splitext(file.lower())
    if extension in _COMPRESSED:
        extension = os.path.splitext(stem)[1]
    return _FORMATS.get(extension)


def _head(file: str | None) -> bytes:
    if file is None or file.lower().endswith(_COMPRESSED):
        return b""
    with open(file, "rb") as stream:
        return stream.read(_HEAD)


def _is_lines(head: bytes) -> bool:
    """Whether a JSON file has one record per line; else it is an array or a record over several lines."""
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff \t\r\n")
    if text.startswith("["):
        return False
    line, newline, _ = text.partition("\n")
    if not newline:
        return True
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
