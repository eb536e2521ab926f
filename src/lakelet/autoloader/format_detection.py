"""The format of files whose reader did not name one: `read_files` without `format` (AL-29).

Extensions decide, below a compression's own; of files with other names the first bytes are read. A stream remembers the answer in its
state, so that later files of another kind cannot change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from lakelet.autoloader.discovery.files import Files, files_for
from lakelet.autoloader.discovery.listing import files_of
from lakelet.autoloader.session_settings import TIME_ZONE
from lakelet.autoloader.source_options import parse_options
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError

_COMPRESSED = re.compile(r"\.(gz|gzip|bz2|deflate|snappy|zst|zstd|lz4)$", re.IGNORECASE)
_EXTENSIONS: Mapping[str, str] = {
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "csv": "csv",
    "xml": "xml",
    "txt": "text",
    "text": "text",
    "parquet": "parquet",
    "avro": "avro",
    "orc": "orc",
}
_MAGIC = ((b"PAR1", "parquet"), (b"Obj\x01", "avro"), (b"ORC", "orc"))
_LOOKED_AT = 1000
_OPENED = 20


def with_format(spec: SourceSpec, state: str | None, confs: Mapping[str, str]) -> SourceSpec:
    """`spec` with the option cloudFiles.format, detected from the files unless the option was given.

    Raises CF_UNABLE_TO_DETECT_FILE_FORMAT, and CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE when there is no file.
    """
    if not spec.detect:
        return spec
    found = _remembered_format(state) if state else None
    if found is None:
        found = detect_format(spec, confs)
        if state:
            files, folder = files_for(state)
            files.create(f"{folder.rstrip('/')}/format", found.encode())
    return replace(spec, options={**spec.options, "cloudFiles.format": found}, detect=False)


def detect_format(spec: SourceSpec, confs: Mapping[str, str]) -> str:
    """The one format of the newest files of a source. Raises like `with_format`."""
    any_format = replace(spec, options={**spec.options, "cloudFiles.format": "json"}, detect=False)
    zone = {key: value for key, value in confs.items() if key == TIME_ZONE}  # other settings are about records
    table = files_of(parse_options(any_format, zone).reader, file_allowed=spec.batch).table
    sizes = zip(table["path"].slice(max(0, len(table) - _LOOKED_AT)), table["size"].slice(max(0, len(table) - _LOOKED_AT)), strict=True)
    paths = [path.as_py() for path, size in sizes if size.as_py()]
    if not paths:
        raise LakeletError(
            "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
            f"{spec.path} has no file to find the format out from",
            where=spec.where,
            todo="Put a first file there, or name the format and the schema.",
        )
    files, _ = files_for(spec.path)
    found = _formats_of_files(files, paths)
    if len(found) == 1 and None not in found:
        return next(format for format in found if format)
    seen = ", ".join(f"{format or 'unknown'} ({files.uri(path)})" for format, path in found.items())
    raise LakeletError(
        "CF_UNABLE_TO_DETECT_FILE_FORMAT",
        f"the format of the files of {spec.path} cannot be found out: {seen}",
        where=spec.where,
        todo="Name it: format => 'json'; fileNamePattern leaves files out.",
    )


def _formats_of_files(files: Files, paths: Iterable[str]) -> dict[str | None, str]:
    """Each format with the first file that has it; None: a file of no known format."""
    found: dict[str | None, str] = {}
    opened = 0
    for path in paths:
        format = _EXTENSIONS.get(_COMPRESSED.sub("", path.lower()).rpartition("/")[2].rpartition(".")[2])
        if format is None and opened < _OPENED:
            opened += 1
            format = _format_of_content(files, path)
        found.setdefault(format, path)
    return found


def _format_of_content(files: Files, path: str) -> str | None:
    with files.open(path) as stream:
        head = stream.read(512)
    for magic, format in _MAGIC:
        if head.startswith(magic):
            return format
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "json" if text[:1] in (b"{", b"[") else "xml" if text[:1] == b"<" else None


def _remembered_format(state: str) -> str | None:
    files, folder = files_for(state)
    try:
        return files.read(f"{folder.rstrip('/')}/format").decode().strip()
    except FileNotFoundError:
        return None
