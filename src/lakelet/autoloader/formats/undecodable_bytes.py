"""Which bytes of a file are not of its encoding, and which encoding they look like (FF-33). Reads a file again, for one message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.formats.charsets import shown_codec, wide_codec
from lakelet.autoloader.formats.text_blocks import BLOCK_BYTES, open_stream
from lakelet.autoloader.source_spec import NONE, PASSED_OVER, FilePart
from lakelet.autoloader.text_values import is_utf8 as has_utf8

if TYPE_CHECKING:
    from lakelet.autoloader.formats.base import Format
    from lakelet.autoloader.source_spec import ReaderSpec

_LEAST_WIDE = 4
_SHOWN = 200  # characters of a record in a message


def explain_bytes(spec: ReaderSpec, format: Format, uri: str, line: int) -> str | None:
    """Return what is wrong with the first bytes from a 1-based line on that are not of the encoding; None where all are, or no file is."""
    files, path = files_for(uri)
    codec = spec.format_options.get("encoding") or "utf-8"
    try:
        with open_stream(files, path) as stream:
            head = stream.read(_LEAST_WIDE)
        wide = wide_codec(head)
        if wide is not None and not codec.startswith(wide[:6]):
            return _remedy(f"{uri}: it is not {shown_codec(codec)}", shown_codec(wide))
        if codec.startswith(("utf-16", "utf-32")):
            return _remedy(f"{uri}: it is not {shown_codec(codec)}", "UTF-8")
        found = None
        with open_stream(files, path) as stream:
            for number, text in enumerate(_lines_of(stream), 1):
                at = _first_bad(text, codec)
                if at is not None:
                    found = (number, text, at)
                    if number >= line:  # earlier where the number is that of a record, and lines have several
                        break
        if found is None:
            return None
        number, text, at = found
        field = format.field_at(spec, files, path, text[:at].decode(codec))
    except OSError:
        return None
    place = f"{uri}, line {number}" + (f", column {field}" if field else "")
    return _remedy(f"{place}: the byte 0x{text[at]:02X} is not {shown_codec(codec)}", _likely_encoding(text))


def first_broken(spec: ReaderSpec, format: Format, paths: Sequence[str]) -> str | None:
    """Return place, text and fault of the first broken record of some files that hold nothing else; None where none is broken."""
    from pyspark.sql.types import StringType

    reading = replace(spec, rescued_column=None, mode=NONE, explicit=True)
    fields = [(spec.corrupt_column, StringType(), pa.string())]
    for path in paths:
        files, inside = files_for(path)
        for chunk in format.reader(reading, fields, files, frozenset()).chunks(FilePart(inside, 0, 0, checked=False)):
            if chunk.raw:
                at, text = next(iter(chunk.raw.items()))
                line = abs((chunk.marks[at] if chunk.marks else None) or 0) % PASSED_OVER
                fault = explain_bytes(spec, format, files.uri(inside), line) or format.fault_of(text)
                shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
                place = f"{files.uri(inside)}, {format.unit(spec.format_options)} {line}"
                return f"the first one is {place}: {shown!r}" + (f" ({fault})" if fault else "")
    return None


def _remedy(what: str, likely: str) -> str:
    return f'{what}. It looks like {likely}: .option("encoding", "{likely}") on the reader reads it'


def _first_bad(text: bytes, codec: str) -> int | None:
    try:
        text.decode(codec)
    except UnicodeDecodeError as error:
        return error.start
    return None


def _likely_encoding(text: bytes) -> str:
    """The encoding of a line in which bytes stand that are not of the given one: a guess by its bytes above ASCII."""
    if has_utf8(text):
        return "UTF-8"
    if any(0x80 <= byte < 0xA0 for byte in text) and _first_bad(text, "cp1252") is None:
        return "windows-1252"
    return "ISO-8859-1"


def _lines_of(stream: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(BLOCK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    yield rest
