"""The schema log: `<location>/_schemas/0`, `1`, …, one small text file per version (FS-21).

A file holds the line `v1` and one JSON object with `dataSchemaJson` and `partitionSchemaJson` (Spark's struct JSON as
text). People read and edit these files, so white space and further members do not matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.discovery.files import files_for
from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_HEADER = "v1"


@dataclass(frozen=True)
class SchemaLogVersion:
    """One version: its number, the data columns, the partition columns, and how it came about."""

    number: int
    data: StructType
    partitions: StructType
    origin: Mapping[str, Any] = field(default_factory=dict)


class SchemaLog:
    """The versions under one schema location."""

    def __init__(self, location: str) -> None:
        self._files, root = files_for(location)
        self._folder = root.rstrip("/") + "/_schemas"

    def latest(self) -> SchemaLogVersion | None:
        """The current version, None when nothing was ever stored. Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN."""
        numbers = [int(name) for name in self._files.names(self._folder) if name.isdigit()]
        return self._read(max(numbers)) if numbers else None

    def history(self) -> list[SchemaLogVersion]:
        """All versions, oldest first. Raises like `latest`."""
        return [self._read(number) for number in sorted(int(name) for name in self._files.names(self._folder) if name.isdigit())]

    def append(self, number: int, data: StructType, partitions: StructType, origin: dict[str, Any]) -> SchemaLogVersion:
        """Store version `number`; when another process stored it first, that one counts and is returned."""
        content = {"dataSchemaJson": data.json(), "partitionSchemaJson": partitions.json(), "origin": origin}
        reached("schema_log.before")
        self._files.create(self._path(number), f"{_HEADER}\n{json.dumps(content)}\n".encode())
        reached("schema_log.written")
        return self._read(number)

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number}"

    def _read(self, number: int) -> SchemaLogVersion:
        from pyspark.sql.types import StructType

        path = self._path(number)
        header, _, body = self._files.read(path).decode("utf-8", errors="replace").strip().partition("\n")
        if header.strip() != _HEADER:
            if header.strip()[:1] == "v" and header.strip()[1:].isdigit():
                raise unknown_format(f"schema log {path}", header.strip()[1:], int(_HEADER[1:]))
            raise LakeletError("CF_STATE_DAMAGED", f"schema log {path} starts with {header[:20]!r}, not {_HEADER!r}")
        try:
            content = json.loads(body)
            data = StructType.fromJson(json.loads(content["dataSchemaJson"]))
            partitions = StructType.fromJson(json.loads(content.get("partitionSchemaJson") or '{"type":"struct","fields":[]}'))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LakeletError(
                "CF_STATE_DAMAGED", f"schema log {path} cannot be read", why=f"{type(error).__name__}: {error}", todo="Correct the file."
            ) from None
        origin = content.get("origin")
        return SchemaLogVersion(number, data, partitions, origin if isinstance(origin, dict) else {})
