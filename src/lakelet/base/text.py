"""Plain text: aligned columns, counts and short names, words of enumerations, moments in ISO 8601. Values in, texts out; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ud800-\\udfff]")
"""Control characters, and those that turn the direction of a line, hide, or cannot be encoded."""


def aligned(rows: Sequence[Sequence[str]], *, header: Sequence[str] = (), right: Iterable[int] = (), indent: str = "") -> list[str]:
    """The rows as lines with columns two spaces apart; columns listed in `right` are flush right."""
    table = [list(header), *map(list, rows)] if header else [list(row) for row in rows]
    if not table:
        return []
    widths = [max(width_of(row[i]) for row in table) for i in range(len(table[0]))]
    flush = set(right)
    return [
        (indent + "  ".join(_padded(c, w, i in flush) for i, (c, w) in enumerate(zip(row, widths, strict=True)))).rstrip() for row in table
    ]


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def width_of(text: str) -> int:
    """The number of columns that a terminal takes for a text: two for East Asian wide characters, none for combining ones."""
    return len(text) if text.isascii() else sum(map(_width_of_character, text))


@cache
def _width_of_character(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def first_columns(text: str, width: int) -> str:
    """The longest beginning of a text that takes at most `width` columns of a terminal."""
    taken = 0
    for at, character in enumerate(text):
        taken += _width_of_character(character)
        if taken > width:
            return text[:at]
    return text


def _last_columns(text: str, width: int) -> str:
    """The longest end of a text that takes at most `width` columns; it does not begin with a combining character."""
    end = first_columns(text[::-1], width)[::-1]
    return next((end[at:] for at, character in enumerate(end) if _width_of_character(character)), "")


def printable(text: str) -> str:
    """The text with control characters written as escapes: data must not steer a terminal. Line ends and tabs become blanks."""
    return _CONTROL.sub(lambda found: _escape(found[0]), " ".join(text.split("\n")).replace("\t", " "))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 row`, `1,234 rows`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def seconds_text(seconds: float) -> str:
    """`3.2 s` below a minute, `4 min 05 s` above."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


def bytes_text(number: int) -> str:
    """`812 B`, `1.2 MB`; a thousand of a unit is one of the next."""
    size, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{number} B" if unit == "B" else f"{size:.1f} {unit}"


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns of a terminal; what is too long loses its middle."""
    if width_of(text) <= width:
        return text
    begin = (width - 1) // 2
    return first_columns(text, begin) + "…" + _last_columns(text, width - 1 - begin)


def shortener(names: Iterable[str]) -> Callable[[str], str]:
    """A function that cuts what all `names` have in common: the schema, else the catalog. Other names pass unchanged."""
    parts = [name.split(".") for name in names]
    full = [p for p in parts if len(p) == 3]
    prefix = ""
    if full and len({p[0] for p in full}) == 1:
        prefix = full[0][0] + "."
        if len({p[1] for p in full}) == 1:
            prefix += full[0][1] + "."
    return lambda name: name[len(prefix) :] if prefix and name.startswith(prefix) else name


def listed(items: Sequence[str], limit: int) -> str:
    """The first `limit` items joined by commas, and how many more there are."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more:,} more" if more > 0 else "")


def option_text(value: object) -> str:
    """Return an option's value as Spark writes it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def kafka_option(key: str, value: object) -> object:
    """Return the value of an option with the names of classes that Kafka's own client has. On Databricks they begin with `kafkashaded.`."""
    return value.replace("kafkashaded.", "") if isinstance(value, str) and key.lower().startswith("kafka.") else value


_FRACTION = re.compile(r"\.([0-9]{1,6})[0-9]*")


def moment_of(text: str) -> datetime:
    """Return the moment, with a zone if the text has one: `Z`, or an offset. Raises ValueError.

    The second may have any number of digits, of which six count. Python 3.10 reads none, three or six of them, and no `Z`.
    """
    return datetime.fromisoformat(_FRACTION.sub(lambda found: "." + found[1].ljust(6, "0"), text.replace("Z", "+00:00"), count=1))


class TextEnum(str, Enum):
    """A set of words that are stored and shown: a member equals its text, and is written as it by `json`, `str` and `format`.

    `TextEnum(text)` gives the member. Raises ValueError for a text that is none of them.
    """

    @classmethod
    def read(cls, text: str) -> Self | str:
        """The member of a stored text; the text itself where a newer Lakelet has written a member that is not known here."""
        try:
            return cls(text)
        except ValueError:
            return text

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, format_spec: str) -> str:
        return format(self.value, format_spec)
