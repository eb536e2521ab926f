"""Which files were planned in which batch: survives a crash between plan and commit (AL-15).

A batch is one Arrow file, written atomically before Spark gets its offset, which is the number of the batch. Spark logs the offset; a batch
number above the offset that Spark starts from was never logged and may be planned again. Older batches are compacted into one file at
times. The files are read piece by piece and never as one Python object per path, so that a million entries cost little memory. `commit()`
of the source is not needed. `Archive` notes in the same folder which files were moved or deleted after they were read (AL-25, AL-28).
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.discovery.listing import LISTING
from lakelet.autoloader.state.source_moves import SameNames, moved_paths, noted
from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.files.moves import Move

OFFSET_FORMAT = 1

NO_OFFSET = "is not an offset of Auto Loader"
"""Part of the text of an error for a checkpoint whose source was another one before."""


def offset_of(batch: int) -> dict[str, int]:
    """The offset that Spark logs after planning `batch`; -1 means nothing was planned."""
    return {"v": OFFSET_FORMAT, "batch": batch}


def batch_of(offset: dict[str, Any] | str | None) -> int:
    """The batch number in an offset. Raises FORMAT_UNKNOWN or CF_STATE_DAMAGED."""
    if offset is None:
        return -1
    try:
        fields = json.loads(offset) if isinstance(offset, str) else offset
        version, batch = int(fields["v"]), int(fields["batch"])
    except (ValueError, KeyError, TypeError):
        raise LakeletError("CF_STATE_DAMAGED", f"{offset!r} {NO_OFFSET}", todo="Do a full refresh.") from None
    if version != OFFSET_FORMAT:
        raise unknown_format("an offset", version, OFFSET_FORMAT)
    return batch


def is_offset(line: str) -> bool:
    """Whether a line of Spark's offset log is an offset of Auto Loader."""
    try:
        fields = json.loads(line)
    except ValueError:
        return False
    return isinstance(fields, dict) and set(fields) == {"v", "batch"}


FORMAT = 3
_FORMAT_KEY = b"lakelet.ledger.format"
_MOVES_KEY = b"lakelet.ledger.moves"
_PIECE_ROWS = 1 << 16
ENTRIES = pa.schema(
    [
        ("batch", pa.int64()),
        *LISTING,
        ("discovered", pa.int64()),  # times in microseconds since 1970: when a listing found the file,
        ("planned", pa.int64()),  # when its batch was planned,
        ("committed", pa.int64()),  # a time at which that batch is known to have been committed
    ]
)


def to_bytes(parts: Iterable[Any], schema: Any = ENTRIES, moves: int = 0) -> bytes:
    """Tables or record batches as one file. `moves`: how many moves of the source's files are known."""
    marked = schema.with_metadata({_FORMAT_KEY: str(FORMAT).encode(), _MOVES_KEY: str(moves).encode()})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, marked, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for part in parts:
            table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
            writer.write_table(table.cast(marked), max_chunksize=_PIECE_ROWS)
    return sink.getvalue()


def record_batches(content: bytes, folder: str, schema: Any = ENTRIES, moves: Sequence[Move] = ()) -> Iterator[Any]:
    """The record batches of a file, with paths as they are after all moves.

    Raises CF_STATE_DAMAGED, FORMAT_UNKNOWN.
    """
    try:
        with pa.ipc.open_file(pa.BufferReader(content)) as reader:
            metadata = reader.schema.metadata or {}
            found, made = int(metadata.get(_FORMAT_KEY, b"0")), int(metadata.get(_MOVES_KEY, b"0"))
            if found != FORMAT:
                raise unknown_format(f"the ledger {folder}", found, FORMAT)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                yield _with_moves(pa.RecordBatch.from_arrays([batch.column(f.name) for f in schema], schema=schema), moves[made:])
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise LakeletError("CF_STATE_DAMAGED", f"a file of the ledger {folder} cannot be read", why=str(error)) from None


def _with_moves(piece: Any, moves: Sequence[Move]) -> Any:
    at = piece.schema.names.index("path")
    return piece.set_column(at, piece.schema.field(at), moved_paths(piece["path"], moves)) if moves else piece


_BATCH_FILE = re.compile(r"(\d{10})\.arrow")
_COMPACT_FILE = re.compile(r"compact-(\d{10})\.arrow")
_MARK_FILE = re.compile(r"committed-(\d{10})")
_ARCHIVE_FILE = re.compile(r"archived-\d{10}\.arrow")
_COMPACT_EVERY = 32
_COMPARED_ROWS = 1 << 19
_EVERY_BATCH = 1 << 62
SKIPPED = -1  # the batch number of files that were there before the first start and are not to be read


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass(frozen=True)
class Limits:
    """How much one batch takes: files is a hard cap, bytes a soft one (the file that crosses it is included; AL-18)."""

    files: int | None = None
    bytes: int | None = None


class Ledger:
    """The planned batches of one source under `<state>/ledger`."""

    def __init__(self, state: str, clock: Callable[[], int] = now, *, moves: Sequence[Move] | None = None) -> None:
        """`moves`: of the source's files; None for those that its state notes."""
        self.files, root = files_for(state)
        self._state, self._moves = state, moves
        self.folder = root.rstrip("/") + "/ledger"
        self._clock = clock

    @property
    def moves(self) -> Sequence[Move]:
        """The moves of the source's files since the ledger began, oldest first."""
        if self._moves is None:
            found = noted(self._state)
            self._moves = () if found is None else found.moves
        return self._moves

    def exists(self) -> bool:
        """Whether anything was ever recorded."""
        return any(_BATCH_FILE.fullmatch(name) or _COMPACT_FILE.fullmatch(name) for name in self.files.names(self.folder))

    def skip_existing(self, listing: Any) -> None:
        """Record files as seen before the first batch (`includeExistingFiles=false`); only the first call of a source counts."""
        self.files.create(self._compact_path(0), self._content_of([self._entries_of(listing, SKIPPED, None)]))

    def unseen(self, listing: Any, up_to: int, *, by_time: bool = False) -> Any:
        """Rows of a listing that no batch up to `up_to` holds; `by_time`: a file whose modification time changed counts as another one."""
        waiting = listing.append_column("identity", _path_and_time(listing)) if by_time else listing
        values = (_path_and_time(piece) if by_time else piece["path"] for piece in self.entries(up_to))
        return rows_without(waiting, "identity" if by_time else "path", values).select(listing.column_names)

    def plan(self, batch: int, rows: Any, *, discovered: int | None = None) -> None:
        """Write the file list of a batch, over one of the same number that Spark never logged. `discovered`: time of the listing."""
        self.files.write(self._batch_path(batch), self._content_of([self._entries_of(rows, batch, discovered)]))
        reached("ledger.planned")
        if batch % _COMPACT_EVERY == _COMPACT_EVERY - 1:
            self._compact_batches(up_to=batch - 1)

    def replan(self, batch: int, rows: Any) -> None:
        """Replace the entries of a batch that was never committed: `rows`."""
        self.files.write(self._batch_path(batch), self._content_of([rows]))
        reached("ledger.replanned")

    def planned(self, after: int, up_to: int) -> Any:
        """The entries of batches `after`+1 … `up_to`, in plan order. Raises CF_STATE_DAMAGED when one is missing."""
        parts: list[Any] = []
        compacted = self._compacted_batches()
        for batch in range(after + 1, up_to + 1):
            try:
                parts += record_batches(self.files.read(self._batch_path(batch)), self.folder, moves=self.moves)
            except FileNotFoundError:
                if batch >= compacted:
                    what = f"batch {batch} of the ledger {self.folder} is missing"
                    raise LakeletError("CF_STATE_DAMAGED", what, todo="Do a full refresh of the dataset.") from None
                parts += [piece.filter(pc.equal(piece["batch"], batch)) for piece in self._pieces_of(self._compact_path(compacted))]
        return pa.Table.from_batches(parts, ENTRIES)

    def entries(self, up_to: int) -> Iterator[Any]:
        """Record batches with all entries of batches up to and including `up_to`, and of the skipped files."""
        names = self.files.names(self.folder)
        compacted = self._compacted_batches(names)
        batches = sorted(int(m[1]) for m in map(_BATCH_FILE.fullmatch, names) if m)
        paths = [self._compact_path(compacted)] if compacted >= 0 else []
        for path in paths + [self._batch_path(b) for b in batches if compacted <= b <= up_to]:
            for piece in self._pieces_of(path):
                yield piece if (pc.max(piece["batch"]).as_py() or 0) <= up_to else piece.filter(pc.less_equal(piece["batch"], up_to))

    def mark_committed(self, batch: int) -> None:
        """Remember that everything up to `batch` is committed by now; the first mark of a batch counts."""
        if batch >= 0 and batch > max(self._commit_marks(), default=-1):
            self.files.create(f"{self.folder}/committed-{batch:010d}", str(self._clock()).encode())

    def commits(self, up_to: int) -> dict[int, int]:
        """Batch → the earliest time (microseconds since 1970) at which it is known to have been committed, for the batches up to `up_to`.

        That is when a run ended after it, or when the next batch was planned. Batches of which neither is known are left out.
        """
        planned: dict[int, int | None] = {}
        found: dict[int, int] = {}
        for piece in self.entries(up_to + 1):
            table = pa.Table.from_batches([piece]).group_by("batch").aggregate([("planned", "min"), ("committed", "min")])
            for batch, timestamp, known in zip(*(table[n].to_pylist() for n in ("batch", "planned_min", "committed_min")), strict=True):
                planned[batch] = timestamp
                found.update({batch: known} if known is not None else {})
        marks = sorted(self._commit_marks().items())
        for batch in planned:
            times = [planned.get(batch + 1), *(timestamp for mark, timestamp in marks if mark >= batch)]
            known = [timestamp for timestamp in times if timestamp is not None]
            if known:
                found.setdefault(batch, min(known))
        return {batch: timestamp for batch, timestamp in found.items() if 0 <= batch <= up_to}

    def restart(self) -> None:
        """Forget the batches of an abandoned checkpoint: Spark starts from the beginning, so none of them counts (AL-14)."""
        skipped = [piece.filter(pc.equal(piece["batch"], SKIPPED)) for piece in self.entries(SKIPPED)]
        for name in self.files.names(self.folder):
            ours = any(kind.fullmatch(name) for kind in (_BATCH_FILE, _COMPACT_FILE, _MARK_FILE, _ARCHIVE_FILE))
            if ours and f"{self.folder}/{name}" != self._compact_path(0):
                self.files.remove(f"{self.folder}/{name}")
        if sum(map(len, skipped)):
            self.files.write(self._compact_path(0), self._content_of(skipped))

    def _compact_batches(self, up_to: int) -> None:
        """Merge everything up to `up_to` into one file, then remove the parts. A crash in between leaves both, with the same entries."""
        commits = self.commits(up_to)
        merged = self._content_of(_with_commits(piece, commits) for piece in self.entries(up_to))
        self.files.write(self._compact_path(up_to + 1), merged)
        for name in self.files.names(self.folder):
            batch, compact, mark = _BATCH_FILE.fullmatch(name), _COMPACT_FILE.fullmatch(name), _MARK_FILE.fullmatch(name)
            covered = (batch or mark) and int((batch or mark)[1]) <= up_to  # type: ignore[index]
            if covered or (compact and int(compact[1]) <= up_to):
                self.files.remove(f"{self.folder}/{name}")

    def _entries_of(self, listing: Any, batch: int, discovered: int | None) -> Any:
        timestamp = self._clock()
        values = {"batch": batch, "discovered": timestamp if discovered is None else discovered, "planned": timestamp}
        columns = [
            listing[f.name]
            if f.name in listing.column_names
            else pa.nulls(len(listing), f.type)
            if f.name not in values
            else pa.repeat(pa.scalar(values[f.name], f.type), len(listing))
            for f in ENTRIES
        ]
        return pa.table(columns, schema=ENTRIES)

    def _pieces_of(self, path: str) -> Iterator[Any]:
        try:
            content = self.files.read(path)
        except FileNotFoundError:
            return  # compacted by another process between listing and reading; its rows are in the newer file
        yield from record_batches(content, self.folder, moves=self.moves)

    def _content_of(self, parts: Iterable[Any]) -> bytes:
        return to_bytes(parts, moves=len(self.moves))

    def _compacted_batches(self, names: list[str] | None = None) -> int:
        """How many batches the newest compacted file covers; -1 when there is none."""
        found = self.files.names(self.folder) if names is None else names
        return max((int(m[1]) for m in map(_COMPACT_FILE.fullmatch, found) if m), default=-1)

    def _commit_marks(self) -> dict[int, int]:
        found = [m for m in map(_MARK_FILE.fullmatch, self.files.names(self.folder)) if m]
        return {int(m[1]): int(self.files.read(f"{self.folder}/{m[0]}")) for m in found}

    def _batch_path(self, batch: int) -> str:
        return f"{self.folder}/{batch:010d}.arrow"

    def _compact_path(self, batches: int) -> str:
        return f"{self.folder}/compact-{batches:010d}.arrow"


def _with_commits(piece: Any, commits: dict[int, int]) -> Any:
    times = pa.array([commits.get(batch) for batch in piece["batch"].to_pylist()], pa.int64())
    at = piece.schema.names.index("committed")
    return piece.set_column(at, piece.schema.field(at), pc.coalesce(piece["committed"], times))


def _path_and_time(rows: Any) -> Any:
    return pc.binary_join_element_wise(rows["path"], rows["modified"].cast(pa.string()), "\n")


def rows_without(rows: Any, column: str, values: Iterator[Any]) -> Any:
    """The rows whose `column` is none of the values, which come in arrays."""
    for some in _in_portions(values):
        if not len(rows):
            break
        known = pc.is_in(rows[column], value_set=some)
        if pc.any(known).as_py():
            rows = rows.filter(pc.invert(known))
    return rows


def _in_portions(arrays: Iterator[Any]) -> Iterator[Any]:
    """Arrays put together until they are worth a look-up table of their own."""
    held: list[Any] = []
    for array in arrays:
        held.append(array)
        if sum(map(len, held)) >= _COMPARED_ROWS:
            yield pa.chunked_array(held)
            held = []
    if held:
        yield pa.chunked_array(held)


def first_that_fit(rows: Any, limits: Limits) -> Any:
    """The first rows of a listing that fit into one batch; at least one."""
    count = len(rows) if limits.files is None else min(limits.files, len(rows))
    if limits.bytes is not None and count:
        sums = pc.cumulative_sum(rows["size"].slice(0, count))
        below = pc.sum(pc.less(sums, limits.bytes)).as_py() or 0
        count = min(count, below + 1)
    return rows.slice(0, count)


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
        for number in self._file_numbers():
            content = self._ledger.files.read(self._file_path(number))
            yield from record_batches(content, self._ledger.folder, ARCHIVED, self._ledger.moves)

    def add(self, rows: Sequence[tuple[str, str | None, int, str | None]]) -> None:
        """Record (path, mode, time, location) of some files."""
        if not rows:
            return
        numbers = self._file_numbers()
        number = max(numbers, default=-1) + 1
        added = pa.table([pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), ARCHIVED, strict=True)], schema=ARCHIVED)
        merge = len(numbers) >= _MERGE_AT
        content = to_bytes([*self.entries(), added] if merge else [added], ARCHIVED, len(self._ledger.moves))
        self._ledger.files.write(self._file_path(number), content)
        for old in numbers if merge else ():
            self._ledger.files.remove(self._file_path(old))

    def _file_numbers(self) -> list[int]:
        found = (_FILE.fullmatch(name) for name in self._ledger.files.names(self._ledger.folder))
        return [int(match[1]) for match in found if match]

    def _file_path(self, number: int) -> str:
        return f"{self._ledger.folder}/archived-{number:010d}.arrow"


def same_names(ledger: Ledger, listing: Any, old: str, new: str) -> SameNames:
    """Compare the files that a ledger knows below `old` with those of a listing below `new` that it does not know."""
    known = pa.concat_tables(
        [_relative_rows(pa.Table.from_batches([piece]), old) for piece in ledger.entries(_EVERY_BATCH)]
        or [LISTING.empty_table().select(["path", "size"])]
    )
    found = _relative_rows(ledger.unseen(listing, _EVERY_BATCH), new)
    there = found.filter(pc.is_in(found["path"], value_set=known["path"].combine_chunks()))
    sizes = dict(zip(known["path"].to_pylist(), known["size"].to_pylist(), strict=True)) if len(there) else {}
    sized = sum(sizes[path] == size for path, size in zip(there["path"].to_pylist(), there["size"].to_pylist(), strict=True))
    return SameNames(pc.count_distinct(known["path"]).as_py(), len(there), sized)


def _relative_rows(rows: Any, folder: str) -> Any:
    """Relative path and size of the rows below a folder."""
    prefix = folder.rstrip("/") + "/"
    rows = rows.filter(pc.starts_with(rows["path"], prefix))
    return pa.table({"path": pc.replace_substring(rows["path"], prefix, "", max_replacements=1), "size": rows["size"]})
