"""Java date-time patterns (`dateFormat`, `timestampFormat`, `timestampNTZFormat`) as Python parsers (FF-3).

Follows Spark's reading of a pattern: names in English and compared without case, fields that the pattern leaves out are those of
1970-01-01 00:00, `S…` takes one digit up to as many as it has letters, no other form of the text is tried. Letters that Spark refuses in
parsing (week dates, day names, quarters) are refused here too; of zone names (`z`) UTC, GMT and those of the United States are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from lakelet.autoloader.types.timestamps import days_of, offset_seconds, within
from lakelet.base.errors import LakeletError

Parse = Callable[[str], "int | None"]
DATE, TIMESTAMP, TIMESTAMP_NTZ = "date", "timestamp", "timestamp_ntz"

_DAY = 86_400_000_000
_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)
_NUMBERS = {"d": "day", "H": "hour", "k": "clock", "h": "half", "K": "half0", "m": "minute", "s": "second"}
_US_ZONES = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "UTC": 0, "GMT": 0, "UT": 0, "Z": 0}
_OFFSETS = {
    "X": (r"Z|[+-]\d{2}(?:\d{2})?", r"Z|[+-]\d{4}", r"Z|[+-]\d{2}:\d{2}", r"Z|[+-]\d{4}(?:\d{2})?", r"Z|[+-]\d{2}:\d{2}(?::\d{2})?"),
    "x": (r"[+-]\d{2}(?:\d{2})?", r"[+-]\d{4}", r"[+-]\d{2}:\d{2}", r"[+-]\d{4}(?:\d{2})?", r"[+-]\d{2}:\d{2}(?::\d{2})?"),
    "Z": (r"[+-]\d{4}", r"[+-]\d{4}", r"[+-]\d{4}", r"GMT(?:[+-]\d{2}:\d{2})?", r"Z|[+-]\d{2}:\d{2}(?::\d{2})?"),
    "O": (r"GMT(?:[+-]\d{1,2}(?::\d{2})?)?", "", "", r"GMT(?:[+-]\d{2}:\d{2})?"),
    "V": ("", r"[A-Za-z][A-Za-z0-9_+/:-]*|[+-]\d{2}:\d{2}"),
}


def compile_pattern(pattern: str, zone: str, kind: str = TIMESTAMP) -> Parse:
    """The parser of a pattern.

    Args:
        zone: time zone of texts without one.
        kind: TIMESTAMP gives microseconds since 1970-01-01 UTC, DATE days, TIMESTAMP_NTZ local microseconds (a text with a zone does not
            fit).

    Returns:
        A function from a text to its value; None where the text does not fit.

    Raises:
        LakeletError: CF_INVALID_OPTION_VALUE, the pattern has a letter that cannot be honoured.
    """
    try:
        regex = pattern_regex(pattern)
    except ValueError as problem:
        what = f"the date-time pattern {pattern!r} {problem}"
        raise LakeletError("CF_INVALID_OPTION_VALUE", what, todo="Read the column as STRING and parse it in the query.") from None

    def parse(text: str) -> int | None:
        match = regex.fullmatch(text)
        return None if match is None else _value(match.groupdict(), zone, kind)

    return parse


def pattern_regex(pattern: str) -> re.Pattern[str]:
    """The texts that a pattern matches, one named group per field. Raises ValueError saying what is wrong with the pattern."""
    parts: list[str] = []
    seen: dict[str, int] = {}
    open_ = 0
    variable = False
    for letters, literal in _tokens(pattern):
        if literal == "[":
            open_ += 1
            parts.append("(?:")
        elif literal == "]":
            open_ -= 1
            parts.append(")?")
            if open_ < 0:
                raise ValueError("closes an optional part that it did not open")
        elif literal is not None:
            parts.append(re.escape(literal))
            variable = False
        else:
            assert letters is not None
            name, regex, free = _field(letters)
            if variable and free:
                raise ValueError(f"has {letters} right after a number without a fixed width")
            variable = free
            seen[name] = seen.get(name, 0) + 1
            parts.append(f"(?P<{name}_{seen[name]}>{regex})")
    if open_:
        raise ValueError("does not close an optional part")
    if not seen:
        raise ValueError("has no field of a date or time")
    return re.compile("".join(parts), re.IGNORECASE | re.ASCII)


def _tokens(pattern: str) -> Iterator[tuple[str | None, str | None]]:
    """(run of one letter, None) or (None, literal text); brackets are literals of one character."""
    for match in _TOKEN.finditer(pattern):
        quoted, _, other = match.groups()
        if quoted is not None:
            yield None, quoted.replace("''", "'") or "'"
        elif other is None:
            yield match[0], None
        elif other in "{}#'":
            raise ValueError(f"has {other}, which is reserved")
        else:
            yield None, other


def _field(letters: str) -> tuple[str, str, bool]:
    """(name, regular expression, whether it is a number without a fixed width) of a run of one letter."""
    letter, width = letters[0], len(letters)
    if letter in "yu" and width <= 6 and not (letter == "u" and width < 4):
        years = {1: r"-?\d{1,6}", 2: r"\d{2}", 3: r"-?\d{3,6}", 4: r"\d{4}|-\d{4,6}|\+\d{5,6}"}
        return ("year2" if width == 2 else "year"), years.get(width, rf"-?\d{{{width}}}"), width in (1, 3)
    if letter in "ML" and width <= 4:
        names = [name if width == 4 else name[:3] for name in _MONTHS]
        return ("month", _number(width), width == 1) if width <= 2 else ("month_name", "|".join(names), False)
    if letter in _NUMBERS and width <= 2:
        return _NUMBERS[letter], _number(width), width == 1
    if letter == "D" and width <= 3:
        return "day_of_year", (r"\d{1,3}", r"\d{2,3}", r"\d{3}")[width - 1], width < 3
    if letter == "S" and width <= 9:
        return "fraction", rf"\d{{1,{width}}}", False
    if letter == "a" and width == 1:
        return "noon", "AM|PM", False
    if letter == "G" and width <= 3:
        return "era", "AD|BC", False
    if letter == "z" and width <= 3:
        return "zone", "|".join(sorted(_US_ZONES, key=len, reverse=True)), False
    forms = _OFFSETS.get(letter, ())
    if width > len(forms) or not forms[width - 1]:
        raise ValueError(f"has {letters}, which is not read here")
    return "zone", forms[width - 1], False


def _number(width: int) -> str:
    return r"\d{2}" if width == 2 else r"\d{1,19}"


def _value(groups: Mapping[str, str | None], zone: str, kind: str) -> int | None:
    found: dict[str, str] = {}
    for name, text in groups.items():
        if text is not None and found.setdefault(name.rpartition("_")[0], text) != text:
            return None  # one field twice, with two values
    days = _date(found)
    if days is None:
        return None
    if kind == DATE:
        return within(32, days)
    micros = _time(found)
    if micros is None:
        return None
    local = days * _DAY + micros
    if kind == TIMESTAMP_NTZ:
        return None if "zone" in found else within(64, local)
    offset = _offset(found["zone"], local) if "zone" in found else offset_seconds(zone, local)
    return None if offset is None else within(64, local - offset * 1_000_000)


def _date(found: Mapping[str, str]) -> int | None:
    year = 2000 + int(found["year2"]) if "year2" in found else int(found.get("year", "1970"))
    if found.get("era", "").upper() == "BC":
        year = 1 - year
    if "day_of_year" in found:
        first, last = days_of(year, 1, 1), days_of(year, 12, 31)
        day = int(found["day_of_year"])
        return first + day - 1 if first is not None and last is not None and 1 <= day <= last - first + 1 else None
    name = found.get("month_name", "")[:3].lower()
    month = [m[:3] for m in _MONTHS].index(name) + 1 if name else int(found.get("month", "1"))
    return days_of(year, month, int(found.get("day", "1")))


def _time(found: Mapping[str, str]) -> int | None:
    late = 12 if found.get("noon", "").upper() == "PM" else 0
    if "half" in found or "half0" in found:
        lowest = 1 if "half" in found else 0
        half = int(found["half"] if "half" in found else found["half0"])
        if not lowest <= half <= lowest + 11:
            return None
        hour = half % 12 + late
    elif "clock" in found:
        hour = int(found["clock"]) % 24 if 1 <= int(found["clock"]) <= 24 else 24
    else:
        hour = int(found.get("hour", "0"))
    minute, second = int(found.get("minute", "0")), int(found.get("second", "0"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(found.get("fraction", "0")[:6].ljust(6, "0"))


def _offset(text: str, local: int) -> int | None:
    hours = _US_ZONES.get(text.upper())
    return hours * 3600 if hours is not None else offset_seconds(text, local)
