"""Files in another charset than UTF-8, as UTF-8 (FF-1, option `encoding`).

A byte that its charset does not have becomes the lone surrogate U+DC00 + byte. That has no UTF-8 form, so the record that holds it is
recognised as broken later, and nothing of it is lost. `readable` gives its text, and its bytes in the file.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
_HANDLER = "lakelet-keep-bytes"
_FIRST_LOST = 0xDC00
_LOST = re.compile("([\udc00-\udcff])")
_BOMS = ((b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_ZEROS: dict[tuple[bool, ...], str] = {
    (True, False, True, False): "utf-16-le",
    (False, True, False, True): "utf-16-be",
    (True, False, False, False): "utf-32-le",
    (False, False, False, True): "utf-32-be",
}
_NAMES = {"utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE", "utf-32-le": "UTF-32LE", "utf-32-be": "UTF-32BE", "cp1252": "windows-1252"}
_WIDE = {"utf-16": "utf-16-be", "utf-32": "utf-32-be"}  # as in Java: without a byte-order mark big-endian


def _keep_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(_FIRST_LOST + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_HANDLER, _keep_bytes)


def charset(name: str) -> str:
    """The codec of a charset name of Java. Raises ValueError saying what it must be."""
    try:
        info = codecs.lookup(name.strip())
    except LookupError:
        raise ValueError("must be the name of a charset such as UTF-16LE or ISO-8859-1") from None
    if not info._is_text_encoding:
        raise ValueError("must be the name of a charset such as UTF-16LE or ISO-8859-1")
    return info.name


def is_utf8(codec: str) -> bool:
    """Whether a codec of `charset` needs no conversion."""
    return codec == "utf-8"


def shown_codec(codec: str) -> str:
    """The name of a codec as the option `encoding` takes it, in Java's spelling."""
    return _NAMES.get(codec, codec.upper())


def wide_codec(head: bytes) -> str | None:
    """The codec of a text in UTF-16 or UTF-32 by its first four bytes; None for any other text.

    As in Spark's JSON parser: a byte-order mark says it, or the zeros of two characters of ASCII.
    """
    marked = next((found for bom, found in _BOMS if head.startswith(bom)), None)
    return marked if marked is not None else _ZEROS.get(tuple(byte != 0 for byte in head[:4]))


def text_chunks(stream: BinaryIO, codec: str | None) -> Iterator[str]:
    """The text of a stream, piece by piece, without a byte-order mark. `codec` None: UTF-8, UTF-16 or UTF-32, as its first bytes show."""
    head = stream.read(CHUNK_BYTES)
    yield from _decoded_chunks(head, stream, codec or wide_codec(head) or "utf-8")


def longer_text(kept: str, chunks: Iterator[str]) -> tuple[str, int, bool]:
    """A text with about as much again of what follows it: the longer text, how many characters came, and whether that was all."""
    parts, taken, ended = [kept], 0, False
    while not ended and taken <= len(kept):
        chunk = next(chunks, None)
        if chunk is None:
            ended = True
        else:
            parts.append(chunk)
            taken += len(chunk)
    return "".join(parts), taken, ended


def _decoded_chunks(head: bytes, stream: BinaryIO, codec: str) -> Iterator[str]:
    if codec in _WIDE:
        codec = next((found for bom, found in _BOMS if head.startswith(bom) and found.startswith(codec)), _WIDE[codec])
    decoder = codecs.getincrementaldecoder(codec)(_HANDLER)
    first = True
    while head:
        text = decoder.decode(head)
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        if text:
            yield text
        head = stream.read(CHUNK_BYTES)
    rest = decoder.decode(b"", True)
    if rest:
        yield rest


def readable(data: bytes, codec: str) -> tuple[str, bytes | None]:
    """The text of what `utf8_chunks` returned, with a replacement character for each byte that was none, and then its bytes in the file."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        pass
    if is_utf8(codec):
        return data.decode("utf-8", errors="replace"), data
    text, codec = data.decode("utf-8", "surrogatepass"), _WIDE.get(codec, codec)
    return _LOST.sub("\ufffd", text), with_lost_bytes(text, codec)


def with_lost_bytes(text: str, codec: str = "utf-8") -> bytes:
    """The bytes of what `text_chunks` returned; bytes that were no characters are as in the file."""
    if not _LOST.search(text):
        return text.encode(codec)
    parts = (bytes([ord(part) - _FIRST_LOST]) if _LOST.fullmatch(part) else part.encode(codec) for part in _LOST.split(text))
    return b"".join(parts)


def utf8_chunks(stream: BinaryIO, codec: str | None) -> Iterator[bytes]:
    """The same as UTF-8; what was not a character is not valid UTF-8 either. Bytes of a file in UTF-8 are passed on as they are."""
    head = stream.read(CHUNK_BYTES)
    codec = codec or wide_codec(head) or "utf-8"
    if not is_utf8(codec):
        yield from (text.encode("utf-8", "surrogatepass") for text in _decoded_chunks(head, stream, codec))
        return
    head = head.removeprefix(codecs.BOM_UTF8) or stream.read(CHUNK_BYTES)
    while head:
        yield head
        head = stream.read(CHUNK_BYTES)
