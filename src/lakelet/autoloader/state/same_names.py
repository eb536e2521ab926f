"""How many of the files that a source knows lie in another folder under the same relative path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.state.ledger import Ledger

_ALL = 1 << 62


@dataclass(frozen=True)
class SameNames:
    """known: files of the folder that the ledger knows. there: how many of their relative paths a new file has. sized: with their size."""

    known: int
    there: int
    sized: int


def same_names(ledger: Ledger, listing: Any, old: str, new: str) -> SameNames:
    """Compare the files that a ledger knows below `old` with those of a listing below `new` that it does not know."""
    known = pa.concat_tables([_below(pa.Table.from_batches([piece]), old) for piece in ledger.entries(_ALL)] or [_NOTHING])
    found = _below(ledger.unseen(listing, _ALL), new)
    there = found.filter(pc.is_in(found["path"], value_set=known["path"].combine_chunks()))
    sizes = dict(zip(known["path"].to_pylist(), known["size"].to_pylist(), strict=True)) if len(there) else {}
    sized = sum(sizes[path] == size for path, size in zip(there["path"].to_pylist(), there["size"].to_pylist(), strict=True))
    return SameNames(pc.count_distinct(known["path"]).as_py(), len(there), sized)


_NOTHING = pa.table({"path": pa.array([], pa.string()), "size": pa.array([], pa.int64())})


def _below(rows: Any, folder: str) -> Any:
    """Relative path and size of the rows below a folder."""
    prefix = folder.rstrip("/") + "/"
    rows = rows.filter(pc.starts_with(rows["path"], prefix))
    return pa.table({"path": pc.replace_substring(rows["path"], prefix, "", max_replacements=1), "size": rows["size"]})


__all__ = ["SameNames", "same_names"]
