"""Texts as values: TIMESTAMP, TIMESTAMP_NTZ and DATE, by Spark's default formats and by Java patterns, and numbers.

One value or a whole column at a time (FF-3). A moment is microseconds (a date: days) since 1970-01-01, or None where the text does not
parse. A pattern is read as Spark reads it. Names are in English and compared without case; fields that the pattern leaves out are those of
1970-01-01 00:00. `S…` takes one digit up to as many as it has letters, and no other form of the text is tried. Letters that Spark refuses
in parsing (week dates, day names, quarters) are refused here too; of zone names (`z`) UTC, GMT and those of the United States are known.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.base.errors import LakeletError

_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(?P<zone>[^\d.].*)?)?)?)?)?)?", re.ASCII
)
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_UTC_NAMES = frozenset({"UTC", "Z", "GMT", "UT", "Etc/UTC", "Etc/GMT", "Zulu", "UCT", "Universal", "+00:00"})
_WITH_ZONE = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})$"
_WITHOUT_ZONE = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?$"
_PLAIN_DATE = r"^\d{4}-\d{2}-\d{2}$"
_UTC_LENGTHS = frozenset({20, 24, 27})  # 2026-03-01T08:00:00Z, with milliseconds, with microseconds
_JAVA_SPACE = "".join(map(chr, range(33)))
_DAY = 86_400_000_000
_FIRST, _LAST = -719_162 * _DAY, 2_932_897 * _DAY - 1  # the moments that `datetime` has: the years 1 to 9999
_CYCLE = 146_097 * _DAY  # 400 years, after which days of the week and leap years are the same
ARROW_TIMESTAMP = pa.timestamp("us", tz="UTC")
ARROW_TIMESTAMP_NTZ = pa.timestamp("us")


def is_utc(zone: str) -> bool:
    """Whether local times of `zone` are UTC."""
    return zone in _UTC_NAMES


def timestamp_micros(text: str, zone: str) -> int | None:
    """Instant in microseconds; a text without zone is local time of `zone`."""
    parts = _local_micros(text)
    if parts is None:
        return None
    micros, suffix = parts
    offset = offset_seconds(suffix.strip() if suffix else zone, micros)
    return None if offset is None else within(64, micros - offset * 1_000_000)


def timestamp_ntz_micros(text: str) -> int | None:
    """Local date and time in microseconds; a text with a zone does not fit."""
    parts = _local_micros(text)
    return None if parts is None or parts[1] else within(64, parts[0])


def date_days(text: str) -> int | None:
    """Days since 1970-01-01; like Spark, whatever follows a `T` or a blank is not read."""
    match = _DATE.fullmatch(text.strip(_JAVA_SPACE))
    days = days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None
    return None if days is None else within(32, days)


def within(bits: int, value: int) -> int | None:
    """The value, or None where a column of so many bits cannot hold it."""
    return value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else None


def _local_micros(text: str) -> tuple[int, str | None] | None:
    match = _TIMESTAMP.fullmatch(text.strip(_JAVA_SPACE))
    if match is None:
        return None
    days = days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match[7] or "0")[:6].ljust(6, "0"))
    return days * _DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction, match["zone"]


@lru_cache(maxsize=4096)
def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for any year."""
    shift = (year - 2000) // 400 if not 1 <= year <= 9999 else 0
    try:
        return datetime.date(year - 400 * shift, month, day).toordinal() - 719_163 + shift * 146_097
    except ValueError:
        return None


def offset_seconds(zone: str, local_micros: int) -> int | None:
    if zone in _UTC_NAMES:
        return 0
    match = _OFFSET.fullmatch(zone)
    if match:
        hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
        if hours > 18 or minutes > 59 or seconds > 59:
            return None
        size = hours * 3600 + minutes * 60 + seconds
        return size if match[1] == "+" else -size
    try:
        local = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=_in_known_years(local_micros))
        delta = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (ValueError, OSError, KeyError):
        return None
    return None if delta is None else int(delta.total_seconds())


def _in_known_years(local_micros: int) -> int:
    """The same day and time of a year from 1 to 9999; before and after these the rules of a zone stay as they are."""
    if local_micros < _FIRST:
        return _FIRST + (local_micros - _FIRST) % _CYCLE
    return local_micros if local_micros <= _LAST else _LAST - (_LAST - local_micros) % _CYCLE


def timestamp_column(texts: Any, zone: str) -> tuple[Any, Any | None]:
    """Parse a string array. Returns (timestamp array, mask of texts that do not parse or None when all do)."""
    present = len(texts) - texts.null_count
    if _is_plain_utc(texts) or _count_matching(texts, _WITH_ZONE) == present:
        try:
            return pc.cast(texts, ARROW_TIMESTAMP), None
        except pa.ArrowInvalid:
            pass
    elif is_utc(zone) and _count_matching(texts, _WITHOUT_ZONE) == present:
        try:
            return pc.cast(pc.cast(texts, ARROW_TIMESTAMP_NTZ), ARROW_TIMESTAMP), None
        except pa.ArrowInvalid:
            pass
    cached = lru_cache(maxsize=65536)(lambda text: timestamp_micros(text, zone))
    return parsed_column(texts, cached, pa.int64(), ARROW_TIMESTAMP)


def date_column(texts: Any) -> tuple[Any, Any | None]:
    """Parse a string array into dates; see `timestamp_column`."""
    if _count_matching(texts, _PLAIN_DATE) == len(texts) - texts.null_count:
        try:
            return pc.cast(texts, pa.date32()), None
        except pa.ArrowInvalid:
            pass
    return parsed_column(texts, date_days, pa.int32(), pa.date32())


def _is_plain_utc(texts: Any) -> bool:
    """Whether all texts end with Z and have one of the lengths for which pyarrow's rules and Spark's are the same."""
    bounds = pc.min_max(pc.binary_length(texts)).as_py()
    return bounds["min"] == bounds["max"] and bounds["min"] in _UTC_LENGTHS and bool(pc.all(pc.ends_with(texts, "Z")).as_py())


def _count_matching(texts: Any, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0


def parsed_column(texts: Any, parse: Callable[[str], int | None], physical: Any, logical: Any) -> tuple[Any, Any | None]:
    """Parse a string array with any parser of one text; see `timestamp_column`."""
    values = [None if text is None else parse(text) for text in texts.to_pylist()]
    result = pa.array(values, physical).cast(logical)
    return result, (pc.and_(pc.is_valid(texts), pc.is_null(result)) if result.null_count != texts.null_count else None)


Parse = Callable[[str], "int | None"]
DATE, TIMESTAMP, TIMESTAMP_NTZ = "date", "timestamp", "timestamp_ntz"

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
        return None if match is None else _value_of_groups(match.groupdict(), zone, kind)

    return parse


def pattern_regex(pattern: str) -> re.Pattern[str]:
    """The texts that a pattern matches, one named group per field. Raises ValueError saying what is wrong with the pattern."""
    parts: list[str] = []
    seen: dict[str, int] = {}
    open_ = 0
    variable = False
    for letters, literal in _pattern_tokens(pattern):
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
            name, regex, free = _field_form(letters)
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


def _pattern_tokens(pattern: str) -> Iterator[tuple[str | None, str | None]]:
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


def _field_form(letters: str) -> tuple[str, str, bool]:
    """(name, regular expression, whether it is a number without a fixed width) of a run of one letter."""
    letter, width = letters[0], len(letters)
    if letter in "yu" and width <= 6 and not (letter == "u" and width < 4):
        years = {1: r"-?\d{1,6}", 2: r"\d{2}", 3: r"-?\d{3,6}", 4: r"\d{4}|-\d{4,6}|\+\d{5,6}"}
        return ("year2" if width == 2 else "year"), years.get(width, rf"-?\d{{{width}}}"), width in (1, 3)
    if letter in "ML" and width <= 4:
        names = [name if width == 4 else name[:3] for name in _MONTHS]
        return ("month", _number_form(width), width == 1) if width <= 2 else ("month_name", "|".join(names), False)
    if letter in _NUMBERS and width <= 2:
        return _NUMBERS[letter], _number_form(width), width == 1
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


def _number_form(width: int) -> str:
    return r"\d{2}" if width == 2 else r"\d{1,19}"


def _value_of_groups(groups: Mapping[str, str | None], zone: str, kind: str) -> int | None:
    found: dict[str, str] = {}
    for name, text in groups.items():
        if text is not None and found.setdefault(name.rpartition("_")[0], text) != text:
            return None  # one field twice, with two values
    days = _days_found(found)
    if days is None:
        return None
    if kind == DATE:
        return within(32, days)
    micros = _micros_found(found)
    if micros is None:
        return None
    local = days * _DAY + micros
    if kind == TIMESTAMP_NTZ:
        return None if "zone" in found else within(64, local)
    offset = _offset_found(found["zone"], local) if "zone" in found else offset_seconds(zone, local)
    return None if offset is None else within(64, local - offset * 1_000_000)


def _days_found(found: Mapping[str, str]) -> int | None:
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


def _micros_found(found: Mapping[str, str]) -> int | None:
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


def _offset_found(text: str, local: int) -> int | None:
    hours = _US_ZONES.get(text.upper())
    return hours * 3600 if hours is not None else offset_seconds(text, local)


_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_EXACT = Context(prec=120)


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are valid UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_float(number: float | None) -> float | None:
    """The number as FLOAT holds it; infinity when it is too large for one, as in Java."""
    if number is None or math.isinf(number) or math.isnan(number):
        return number
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def decimal_of(text: str, precision: int, scale: int, *, rounds: bool = False) -> Decimal | None:
    """The number of a text with exactly this scale; None when the text is not a number or does not fit.

    `rounds`: digits beyond the scale are rounded, half up, as Spark's readers do it; else they do not fit.
    """
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        number = Decimal(text)
        if number and number.adjusted() >= precision - scale:
            return None
        if rounds and number and number.adjusted() < -scale - 1:
            number = Decimal(0)
        fitted = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT) if abs(number.adjusted()) < 60 else number
    except InvalidOperation:
        return None
    if (not rounds and fitted != number) or -int(fitted.as_tuple().exponent) != scale:
        return None
    return fitted if not fitted or fitted.adjusted() < precision - scale else None
