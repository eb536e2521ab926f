"""Which files were moved or deleted after they were read (`cloudFiles.cleanSource`, AL-25): files beside those of the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelet.autoloader.state.ledger import Ledger
from lakelet.autoloader.state.ledger_files import pieces, to_bytes

ARCHIVED = pa.schema([("path", pa.string()), ("mode", pa.string()), ("archived", pa.int64()), ("location", pa.string())])
"""mode: MOVE, DELETE, or NULL for a file that another process removed. archived: microseconds since 1970."""
_FILE = re.compile(r"archived-(\d{10})\.arrow")
_MERGE_AT = 32


class Archive:
    """What was done with files that a ledger knows."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def entries(self) -> Iterator[Any]:
        """Record batches of ARCHIVED; after a crash a path may appear twice with the same facts."""
        for number in self._numbers():
            content = self._ledger.files.read(self._path(number))
            yield from pieces(content, self._ledger.folder, ARCHIVED, self._ledger.moves)

    def add(self, rows: Sequence[tuple[str, str | None, int, str | None]]) -> None:
        """Record (path, mode, time, location) of some files."""
        if not rows:
            return
        numbers = self._numbers()
        number = max(numbers, default=-1) + 1
        added = pa.table([pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), ARCHIVED, strict=True)], schema=ARCHIVED)
        merge = len(numbers) >= _MERGE_AT
        content = to_bytes([*self.entries(), added] if merge else [added], ARCHIVED, len(self._ledger.moves))
        self._ledger.files.write(self._path(number), content)
        for old in numbers if merge else ():
            self._ledger.files.remove(self._path(old))

    def _numbers(self) -> list[int]:
        found = (_FILE.fullmatch(name) for name in self._ledger.files.names(self._ledger.folder))
        return [int(match[1]) for match in found if match]

    def _path(self, number: int) -> str:
        return f"{self._ledger.folder}/archived-{number:010d}.arrow"
