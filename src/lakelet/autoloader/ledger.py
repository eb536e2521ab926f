"""Which files were planned in which batch: survives a crash between plan and commit (spec 5.1).

A batch is one Arrow file, written atomically before Spark hears of its offset. Spark logs the offset; a batch number above the offset that
Spark starts from was never logged and may be planned anew. Paths live in Arrow arrays, never as one Python object each; older batches
are compacted into one file now and then. `commit()` of the source is not needed for any of this.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.discovery import LISTING
from lakelet.autoloader.files import files_for
from lakelet.errors import LakeletError
from lakelet.failpoints import reached

FORMAT = 1
_FORMAT_KEY = b"lakelet.ledger.format"
_SCHEMA = pa.schema([pa.field("batch", pa.int64()), *LISTING]).with_metadata({_FORMAT_KEY: str(FORMAT).encode()})
_BATCH_FILE = re.compile(r"(\d{10})\.arrow")
_COMPACT_FILE = re.compile(r"compact-(\d{10})\.arrow")
_COMPACT_EVERY = 32
SKIPPED = -1  # the batch number of files that were there before the first start and are not to be read


@dataclass(frozen=True)
class Limits:
    """How much one batch takes: files is a hard cap, bytes a soft one (the file that crosses it is included; spec 5.2)."""

    files: int | None = None
    bytes: int | None = None


class Ledger:
    """The planned batches of one source under `<state>/ledger`."""

    def __init__(self, state: str) -> None:
        self._files, root = files_for(state)
        self._folder = root.rstrip("/") + "/ledger"

    def exists(self) -> bool:
        return bool(self._files.names(self._folder))

    def skip_existing(self, listing: Any) -> None:
        """Record files as seen before the first batch (`includeExistingFiles=false`); only the first call of a source counts."""
        self._files.create(self._compact_path(0), _to_bytes(_numbered(listing, SKIPPED)))

    def seen(self, up_to: int) -> Any:
        """Paths of all files planned in batches up to and including `up_to`, and of the skipped ones."""
        parts = [part.filter(pc.less_equal(part["batch"], up_to))["path"] for part in self._tables(up_to)]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())

    def unseen(self, listing: Any, up_to: int) -> Any:
        """Rows of a listing that no batch up to `up_to` holds."""
        seen = self.seen(up_to)
        return listing.filter(pc.invert(pc.is_in(listing["path"], value_set=seen))) if len(seen) else listing

    def plan(self, batch: int, rows: Any) -> None:
        """Write the file list of a batch, over one of the same number that Spark never logged."""
        self._files.write(self._batch_path(batch), _to_bytes(_numbered(rows, batch)))
        reached("ledger.planned")
        if batch % _COMPACT_EVERY == _COMPACT_EVERY - 1:
            self._compact(up_to=batch - 1)

    def planned(self, after: int, up_to: int) -> Any:
        """The files of batches `after`+1 … `up_to`, in plan order. Raises CF_STATE_DAMAGED when one is missing."""
        parts = []
        for batch in range(after + 1, up_to + 1):
            try:
                parts.append(_from_bytes(self._files.read(self._batch_path(batch)), self._folder))
            except FileNotFoundError:
                parts.append(self._from_compacted(batch))
        return pa.concat_tables(parts) if parts else _SCHEMA.empty_table()

    def _from_compacted(self, batch: int) -> Any:
        for table in self._tables(batch):
            rows = table.filter(pc.equal(table["batch"], batch))
            if len(rows):
                return rows
        raise LakeletError(
            "CF_STATE_DAMAGED", f"batch {batch} of the ledger {self._folder} is missing", todo="Do a full refresh of the dataset."
        )

    def _tables(self, up_to: int) -> list[Any]:
        """Compacted files and the batch files they do not cover. What lies above `up_to` is left out by the callers' filters."""
        names = self._files.names(self._folder)
        compacted = sorted((int(m[1]) for m in map(_COMPACT_FILE.fullmatch, names) if m), reverse=True)
        covered = compacted[0] - 1 if compacted else -1
        batches = [int(m[1]) for m in map(_BATCH_FILE.fullmatch, names) if m]
        tables = [self._load(self._compact_path(compacted[0]))] if compacted else []
        return tables + [self._load(self._batch_path(b)) for b in sorted(batches) if covered < b <= up_to]

    def _load(self, path: str) -> Any:
        try:
            return _from_bytes(self._files.read(path), self._folder)
        except FileNotFoundError:
            return _SCHEMA.empty_table()  # compacted by another process between listing and reading; its rows are in the newer file

    def _compact(self, up_to: int) -> None:
        """Merge everything up to `up_to` into one file, then remove the parts. Dying in between leaves both, which say the same."""
        tables = self._tables(up_to)
        merged = pa.concat_tables(tables)
        self._files.write(self._compact_path(up_to + 1), _to_bytes(merged.filter(pc.less_equal(merged["batch"], up_to))))
        for name in self._files.names(self._folder):
            batch, compact = _BATCH_FILE.fullmatch(name), _COMPACT_FILE.fullmatch(name)
            if (batch and int(batch[1]) <= up_to) or (compact and int(compact[1]) <= up_to):
                self._files.remove(f"{self._folder}/{name}")

    def restart(self) -> None:
        """Forget the batches of an abandoned checkpoint: Spark starts from the beginning, so none of them counts (D16)."""
        tables = self._tables(-1)
        skipped = pa.concat_tables(tables) if tables else _SCHEMA.empty_table()
        skipped = skipped.filter(pc.equal(skipped["batch"], SKIPPED))
        for name in self._files.names(self._folder):
            if _BATCH_FILE.fullmatch(name) or (_COMPACT_FILE.fullmatch(name) and name != _name(self._compact_path(0))):
                self._files.remove(f"{self._folder}/{name}")
        if len(skipped):
            self._files.write(self._compact_path(0), _to_bytes(skipped))

    def _batch_path(self, batch: int) -> str:
        return f"{self._folder}/{batch:010d}.arrow"

    def _compact_path(self, batches: int) -> str:
        return f"{self._folder}/compact-{batches:010d}.arrow"


def take(rows: Any, limits: Limits) -> Any:
    """The first rows of a listing that fit into one batch; at least one."""
    count = len(rows) if limits.files is None else min(limits.files, len(rows))
    if limits.bytes is not None and count:
        sums = pc.cumulative_sum(rows["size"].slice(0, count))
        below = pc.sum(pc.less(sums, limits.bytes)).as_py() or 0
        count = min(count, below + 1)
    return rows.slice(0, count)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _numbered(rows: Any, batch: int) -> Any:
    number = pa.repeat(pa.scalar(batch, pa.int64()), len(rows))
    return pa.table([number, *(rows[f.name] for f in LISTING)], schema=_SCHEMA)


def _to_bytes(table: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_table(table.cast(_SCHEMA))
    return sink.getvalue()


def _from_bytes(content: bytes, folder: str) -> Any:
    try:
        with pa.ipc.open_file(pa.BufferReader(content)) as reader:
            found = int((reader.schema.metadata or {}).get(_FORMAT_KEY, b"0"))
            table = reader.read_all() if found == FORMAT else None
    except (pa.ArrowInvalid, OSError) as error:
        raise LakeletError("CF_STATE_DAMAGED", f"a file of the ledger {folder} cannot be read", why=str(error)) from None
    if table is None:
        code = "FORMAT_NEWER" if found > FORMAT else "CF_STATE_DAMAGED"
        raise LakeletError(code, f"the ledger {folder} has format {found}, this Lakelet reads {FORMAT}", todo="Update Lakelet.")
    return table
