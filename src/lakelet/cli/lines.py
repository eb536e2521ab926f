"""Lines of text and data on the terminal: their styles, and how they are written."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.base.redaction import redacted
from lakelet.base.text import counted, printable, width_of

_COLOURS = {"good": "32", "warning": "33", "bad": "31", "heading": "1", "quiet": "2"}


@dataclass(frozen=True)
class Line:
    """One line of text and its style on a terminal: plain (""), `good`, `warning`, `bad`, `heading` or `quiet`."""

    text: str
    style: str = ""


def coloured(stream: IO[str]) -> bool:
    """Return whether text for a stream is coloured: on a terminal unless NO_COLOR is set, elsewhere only if FORCE_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced not in ("", "0") or (stream.isatty() and os.environ.get("TERM") != "dumb")


def columns_of(stream: IO[str]) -> int | None:
    """Return the width of the terminal that a stream writes to; None where it is no terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def write_lines(lines: Sequence[Line], stream: IO[str]) -> None:
    """Write lines of text, coloured where `coloured` says so."""
    colour = coloured(stream)
    for line in lines:
        text = printable(line.text)
        code = _COLOURS.get(line.style) if colour else None
        stream.write((f"\x1b[{code}m{text}\x1b[0m" if code and text else text) + "\n")
    stream.flush()


def write_note(text: str) -> None:
    """Write one line of prose to stderr; a terminal breaks it between words."""
    write_lines([Line(part, "quiet") for part in _between_words(printable(text), columns_of(sys.stderr))], sys.stderr)


def _between_words(text: str, width: int | None) -> list[str]:
    """The lines of a text that is longer than a terminal is wide, each with the text's indent. None: no terminal."""
    if width is None or width_of(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def write_data(text: str) -> None:
    """Write one line of data to stdout, at once, without secrets."""
    sys.stdout.write(redacted(text) + "\n")
    sys.stdout.flush()


def error_lines(error: LakeletError, stream: IO[str]) -> list[Line]:
    """Return the lines of an error for a stream: warnings first, as `validate` has them without errors, then the errors, with their number
    at the end. Errors are separated by blank lines.
    """
    width = columns_of(stream)
    several, notices = (error.errors, error.notices) if isinstance(error, DefinitionErrors) else ([error], ())
    lines = [Line(""), *(Line(printable(notice), "warning") for notice in notices)] if notices else []
    for one in several:
        parts = ((line, part) for line in one.lines(width) for part in _between_words(printable(line), width))
        lines += [Line(""), *(Line(part, "" if line.startswith(" ") else "bad") for line, part in parts)]
    if len(several) > 1:
        lines += [Line(""), Line(counted(len(several), "error"), "bad")]
    return lines[1:]
