"""Text files as UTF-8 blocks of whole lines, whatever their encoding and line separator are (FF-1, FF-2)."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.discovery.unreadable import unreadable
from lakelet.autoloader.formats.charsets import is_utf8, utf8_chunks
from lakelet.autoloader.formats.lines import open_stream, read_blocks, splittable
from lakelet.autoloader.formats.options import Option

_UTF8 = "utf-8"


def encoding(name: str) -> Option:
    """An encoding; the value is the name that Python gives it."""

    def read(value: str) -> str:
        try:
            return codecs.lookup(value.strip()).name
        except LookupError:
            raise ValueError("must be an encoding such as UTF-8, UTF-16LE or ISO-8859-1") from None

    return Option(name, read, _UTF8)


def line_separator() -> Option:
    """`lineSep`: one or two characters; None where LF, CRLF and CR all end a line."""

    def read(value: str) -> str:
        found = {"\\n": "\n", "\\r": "\r", "\\r\\n": "\r\n", "\\t": "\t"}.get(value, value)
        if not 1 <= len(found) <= 2:
            raise ValueError("must be one or two characters")
        return found

    return Option("lineSep", read)


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
            yield from _aligned(utf8_chunks(stream, encoding), (separator or "\n").encode())
    except OSError as error:
        raise unreadable(files.uri(path), error) from error


def _aligned(chunks: Iterator[bytes], separator: bytes) -> Iterator[bytes]:
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
