"""The rows that the quarantine of a dataset holds. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.files.paths import AnyPath
from lakelet.inspection.inspector import Note, TableRows, find_dataset, read_rows
from lakelet.storage.root import Storage, StoredDataset


@dataclass(frozen=True)
class HeldRows:
    """Content of a quarantine. `broken`: rule → held rows that break it, most first; a row may break several.

    `name`: of the dataset; `table`: of the quarantine. `rows`: the held ones. `released`: how many have gone back.
    """

    name: str
    table: str
    held: int
    released: int
    broken: tuple[tuple[str, int], ...]
    rows: TableRows


def read_quarantine(storage: AnyPath, name: str, *, limit: int | None = None, note: Note = lambda text: None) -> HeldRows:
    """The rows that are held of a dataset, `name` being its own name or that of its quarantine.

    Raises UNKNOWN_TABLE for a dataset that is not stored or has no quarantine.
    """
    dataset, quarantine = _both(storage, name)
    counted, held, released = Counter[str](), 0, 0
    for row in read_rows(storage, quarantine.name, note=note).rows:
        if row["_released_by"] is not None:
            released += 1
            continue
        held += 1
        counted.update(row["_broken_rules"] or ())
    found = read_rows(storage, quarantine.name, note=note)
    columns = tuple(name for name in found.columns if name != "_released_by")
    shown = TableRows(columns, islice(_held(found.rows), limit), total=held)
    broken = tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
    return HeldRows(dataset, quarantine.name, held, released, broken, shown)


def _held(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row.pop("_released_by") is None:
            yield row


def _both(storage: AnyPath, name: str) -> tuple[str, StoredDataset]:
    """Full name of a dataset, and its quarantine."""
    registry = Storage(storage).registry()
    found = find_dataset(registry, name)
    if found.quarantine_of is not None:
        return found.quarantine_of, found
    quarantine = next((d for d in registry.datasets.values() if (d.quarantine_of or "").lower() == found.name.lower()), None)
    if quarantine is None:
        todo = 'Keep its dropped rows from now on: table_properties={"lakelet.quarantine": "true"}'
        raise LakeletError("UNKNOWN_TABLE", f"{found.name} has no quarantine", todo=todo)
    return found.name, quarantine


__all__ = ["HeldRows", "read_quarantine"]
