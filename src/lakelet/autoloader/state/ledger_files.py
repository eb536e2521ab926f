"""The Arrow files of a ledger: their columns, versions and how they are read in pieces (AL-15, AL-28)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelet.autoloader.discovery.listing import LISTING
from lakelet.autoloader.state.reads import moved_paths
from lakelet.base.errors import LakeletError, unknown_format
from lakelet.files.moves import Move

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


def pieces(content: bytes, folder: str, schema: Any = ENTRIES, moves: Sequence[Move] = ()) -> Iterator[Any]:
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
                yield _moved(pa.RecordBatch.from_arrays([batch.column(f.name) for f in schema], schema=schema), moves[made:])
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise LakeletError("CF_STATE_DAMAGED", f"a file of the ledger {folder} cannot be read", why=str(error)) from None


def _moved(piece: Any, moves: Sequence[Move]) -> Any:
    at = piece.schema.names.index("path")
    return piece.set_column(at, piece.schema.field(at), moved_paths(piece["path"], moves)) if moves else piece
