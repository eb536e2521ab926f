"""Compressed files, known by their extension, as streams of plain bytes (AL-20).

`.snappy` and `.lz4` are what Hadoop writes: blocks of `length of the plain bytes, (length of a chunk, chunk)…`, as 4-byte numbers.
The `.lz4` files of the lz4 program, which carry a mark at their start, are read too.
"""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa

from lakelet.autoloader.discovery.files import unreadable
from lakelet.base.errors import LakeletError

_PIECE = 1 << 20
_LARGEST_CHUNK = 1 << 30
_LZ4_FRAME = b"\x04\x22\x4d\x18"
_DAMAGED = (OSError, EOFError, zlib.error, ValueError, pa.ArrowException)


class DamagedFile(ValueError):
    """The bytes are not what the extension says."""


def extension(path: str) -> str:
    """The extension of a compressed file in lower case, `.zip` among them; empty when the file is taken as it is."""
    ending = "." + path.lower().rpartition(".")[2]
    return ending if ending in _READERS or ending == ".zip" else ""


def decompressed(stream: BinaryIO, ending: str, uri: str) -> BinaryIO:
    """The plain bytes of a compressed stream. Reading raises FAILED_READ_FILE when they are damaged; .zip is refused."""
    if ending == ".zip":
        stream.close()
        raise LakeletError(
            "CF_SOURCE_UNSUPPORTED",
            f"{uri}: zip archives are not read",
            todo="Unpack it, or compress the file itself (.gz, .bz2, .zst), or leave it out with pathGlobFilter.",
        )
    empty = not stream.read(1)
    stream.seek(0)
    if empty:
        return stream
    return cast("BinaryIO", io.BufferedReader(_Plain(_READERS[ending](stream), stream, uri), _PIECE))


class _Plain(io.RawIOBase):
    """Pieces of bytes as a stream that names the file when something is wrong with it."""

    def __init__(self, pieces: Iterator[Any], below: BinaryIO, uri: str) -> None:
        self._pieces, self._below, self._uri = pieces, below, uri
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            while not self._left:
                piece = next(self._pieces, None)
                if piece is None:
                    return 0
                self._left = memoryview(piece).cast("B")
        except _DAMAGED as error:
            raise unreadable(self._uri, error) from error
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def close(self) -> None:
        self._below.close()
        super().close()


def _read_by(opened: Callable[[BinaryIO], Any]) -> Callable[[BinaryIO], Iterator[Any]]:
    def pieces(stream: BinaryIO) -> Iterator[Any]:
        plain = opened(stream)
        while piece := plain.read(_PIECE):
            yield piece

    return pieces


def _by_arrow(codec: str) -> Callable[[BinaryIO], Iterator[Any]]:
    return _read_by(lambda stream: pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), codec))


def _deflated_bytes(stream: BinaryIO) -> Iterator[bytes]:
    inside = zlib.decompressobj()
    while chunk := stream.read(_PIECE):
        yield inside.decompress(chunk)
    yield inside.flush()
    if not inside.eof:
        raise DamagedFile("the end of the file is missing")


def _lz4_bytes(stream: BinaryIO) -> Iterator[Any]:
    start = stream.read(len(_LZ4_FRAME))
    stream.seek(0)
    return _by_arrow("lz4")(stream) if start == _LZ4_FRAME else _hadoop_blocks(stream, "lz4_raw", _lz4_length)


def _snappy_bytes(stream: BinaryIO) -> Iterator[Any]:
    return _hadoop_blocks(stream, "snappy", _snappy_length)


def _hadoop_blocks(stream: BinaryIO, codec: str, length_of: Callable[[bytes], int]) -> Iterator[Any]:
    decoder = pa.Codec(codec)
    while (head := stream.read(4)) != b"":
        left = _block_number(head)
        while left > 0:
            chunk = _exact_bytes(stream, _block_number(stream.read(4)))
            length = length_of(chunk)
            if not 0 < length <= left:
                raise DamagedFile("the lengths in a block contradict each other")
            yield decoder.decompress(chunk, decompressed_size=length)
            left -= length


def _block_number(head: bytes) -> int:
    value = int.from_bytes(head, "big")
    if len(head) < 4 or value > _LARGEST_CHUNK:
        raise DamagedFile("the file does not consist of blocks as Hadoop writes them")
    return value


def _exact_bytes(stream: BinaryIO, count: int) -> bytes:
    chunk = stream.read(count)
    if len(chunk) < count:
        raise DamagedFile("the end of the file is missing")
    return chunk


def _snappy_length(chunk: bytes) -> int:
    """The length of the plain bytes, which stands at the start of a snappy chunk, seven bits per byte."""
    value = 0
    for at, byte in enumerate(chunk[:5]):
        value |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return value
    raise DamagedFile("a snappy chunk does not start with its length")


def _lz4_length(chunk: bytes) -> int:
    """The length of the plain bytes of an lz4 chunk: the sum over its sequences of literals and copies."""
    total, at = 0, 0
    try:
        while at < len(chunk):
            token = chunk[at]
            literals, at = _lz4_count(chunk, at + 1, token >> 4)
            total, at = total + literals, at + literals
            if at < len(chunk):
                copied, at = _lz4_count(chunk, at + 2, token & 15)
                total += copied + 4
    except IndexError:
        raise DamagedFile("an lz4 chunk ends too early") from None
    return total


def _lz4_count(chunk: bytes, at: int, start: int) -> tuple[int, int]:
    count, more = start, start == 15
    while more:
        count, more, at = count + chunk[at], chunk[at] == 255, at + 1
    return count, at


_READERS: dict[str, Callable[[BinaryIO], Iterator[Any]]] = {
    ".gz": _read_by(lambda stream: gzip.GzipFile(fileobj=stream)),
    ".bz2": _read_by(lambda stream: bz2.BZ2File(stream)),
    ".deflate": _deflated_bytes,
    ".snappy": _snappy_bytes,
    ".zst": _by_arrow("zstd"),
    ".lz4": _lz4_bytes,
}
