"""Helpers for the tests of formats: files in a folder, read as a source reads them, without Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.part_reader import FilesPartition, PartReader
from lakelet.autoloader.source_spec import FilePart

INFER = {"cloudFiles.inferColumnTypes": "true"}


class Folder:
    """A source folder; files are as old as their turn."""

    def __init__(self, root: Path, format: str) -> None:
        self.root, self.format, self._clock = root, format, 1_700_000_000

    def put(self, name: str, content: str | bytes) -> Folder:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._clock -= 1  # the first file is the newest, and so the first of a sample
        os.utime(path, (self._clock, self._clock))
        return self

    def open(self, options: dict[str, str] | None = None, schema: Any = None, confs: dict[str, str] | None = None) -> AutoLoaderSource:
        spec = SourceSpec(str(self.root), {"cloudFiles.format": self.format, **(options or {})}, schema)
        return AutoLoaderSource.open(spec, state=None, confs=confs)

    def types(self, options: dict[str, str] | None = None) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in self.open(options).schema().fields}

    def rows(
        self,
        options: dict[str, str] | None = None,
        schema: Any = None,
        *,
        of: AutoLoaderSource | None = None,
        only: str | None = None,
        parts: int = 1,
        confs: dict[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of the files (of the file `only`), read with the columns of the source `of` in `parts` byte ranges."""
        source = of or self.open(options, schema, confs)
        spec = source.reader_spec(internal=True)
        files = sorted(path for path in self.root.rglob("*") if path.is_file() and only in (None, path.name))
        ranges: list[FilePart] = []
        for path in files:
            size = path.stat().st_size
            step = -(-size // parts) or 1
            whole = FilePart(str(path), size, 0, checked=False)
            cut = [FilePart(str(path), size, 0, at, min(step, size - at), checked=False) for at in range(0, size, step)]
            ranges += [whole] if parts == 1 else cut
        rows: list[dict[str, Any]] = []
        for batch in PartReader(spec, FilesPartition(ranges, -1, 0)).batches():
            rows += batch.to_pylist()
        for row in rows:
            row["line"] = row.pop("__lakelet_line")
            del row["__lakelet_metadata"]
        return rows


def rescued(row: dict[str, Any], column: str = "_rescued_data") -> Any:
    """The rescued column as an object without the path."""
    if row[column] is None:
        return None
    found = json.loads(row[column])
    found.pop("_file_path", None)
    return found


def picked(rows: list[dict[str, Any]], *names: str) -> list[Any]:
    """These values of the rows, sorted; a bare value for one name."""
    values = [tuple(row[name] for name in names) if len(names) > 1 else row[names[0]] for row in rows]
    return sorted(values, key=repr)
