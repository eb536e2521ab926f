"""Text files as blocks of whole lines: of a file or a byte range of it, compressed or not, in any encoding and with any line separator.

Bytes of a file go in; UTF-8 blocks that end with a line go out (FF-1, FF-2, AL-21).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from lakelet.autoloader.discovery.files import Files, unreadable
from lakelet.autoloader.formats.charsets import is_utf8, utf8_chunks
from lakelet.autoloader.formats.compressed import decompressed, extension

BLOCK_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"


def splittable(path: str) -> bool:
    """Whether parts of the file can be read on their own."""
    return not extension(path)


def read_blocks(files: Files, path: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
    """The lines that begin inside [start, start + length), as blocks of whole lines. Raises FAILED_READ_FILE."""
    try:
        with open_stream(files, path) as stream:
            yield from _whole_lines(stream, start, length)
    except OSError as error:
        raise unreadable(files.uri(path), error) from error


def has_lone_cr(block: bytes) -> bool:
    """Whether a carriage return without a line feed ends a line."""
    return b"\r" in block and block.count(b"\r") > block.count(b"\r\n")


def head_of(files: Files, path: str) -> bytes:
    """The first bytes of a file. Raises FAILED_READ_FILE."""
    try:
        with open_stream(files, path) as stream:
            return stream.read(4)
    except OSError as error:
        raise unreadable(files.uri(path), error) from error


def count_lines(files: Files, path: str, end: int) -> int:
    """How many line ends lie before byte `end`."""
    count, left = 0, end
    with files.open(path) as stream:
        while left > 0 and (chunk := stream.read(min(left, BLOCK_BYTES))):
            count += chunk.count(b"\n")
            left -= len(chunk)
    return count


def open_stream(files: Files, path: str) -> BinaryIO:
    """The bytes of a file, decompressed when its extension says so. Raises FAILED_READ_FILE, also later while it is read."""
    try:
        stream = files.open(path)
    except OSError as error:
        raise unreadable(files.uri(path), error) from error
    ending = extension(path)
    return decompressed(stream, ending, files.uri(path)) if ending else stream


def _whole_lines(stream: BinaryIO, start: int, length: int | None) -> Iterator[bytes]:
    left = length
    rest = b""
    if start > 0:
        stream.seek(start - 1)
        skipped = stream.readline()  # the line that covers byte start-1 belongs to the range before
        left = None if left is None else left - (len(skipped) - 1)
    first = start == 0
    while left is None or left > 0:
        want = BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)
        chunk = stream.read(want)
        if not chunk:
            break
        left = None if left is None else left - len(chunk)
        if left is not None and left <= 0 and not chunk.endswith(b"\n"):
            chunk += stream.readline()
        if first:
            chunk, first = chunk.removeprefix(_BOM), False
        cut = chunk.rfind(b"\n") + 1
        if cut == 0:
            rest += chunk
            continue
        yield rest + chunk[:cut] if rest else (chunk if cut == len(chunk) else chunk[:cut])
        rest = chunk[cut:]
    if rest:
        yield rest


def can_split(path: str, encoding: str, separator: str | None) -> bool:
    """Whether byte ranges of a file can be read on their own: its lines must be seen in its bytes."""
    return splittable(path) and is_utf8(encoding) and separator in (None, "\n")


def text_blocks(
    files: Files, path: str, encoding: str, separator: str | None, start: int = 0, length: int | None = None
) -> Iterator[bytes]:
    """Blocks of whole lines in UTF-8, each ended by `separator` (None: by LF), without a byte order mark.

    `start` and `length` only where `can_split`. A byte that the encoding does not have comes as in `charsets`. Raises FAILED_READ_FILE.
    """
    if is_utf8(encoding) and separator in (None, "\n"):
        yield from read_blocks(files, path, start, length)
        return
    try:
        with open_stream(files, path) as stream:
            yield from _aligned_chunks(utf8_chunks(stream, encoding), (separator or "\n").encode())
    except OSError as error:
        raise unreadable(files.uri(path), error) from error


def _aligned_chunks(chunks: Iterator[bytes], separator: bytes) -> Iterator[bytes]:
    held: list[bytes] = []
    for chunk in chunks:
        held.append(chunk)
        if separator in chunk or len(separator) > 1:  # two characters may lie across two chunks
            whole = b"".join(held)
            end = whole.rfind(separator) + len(separator) if separator in whole else 0
            if end:
                yield whole[:end]
            held = [whole[end:]]
    rest = b"".join(held)
    if rest:
        yield rest
