"""Text to TIMESTAMP, TIMESTAMP_NTZ and DATE by the rules of Spark's default formats, one value or a whole column at a time.

Options `timestampFormat` and `timeZone` (FF-3). A value is microseconds (or days) since 1970-01-01, or None where the text does not parse.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

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
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")


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
    """Days since 1970-01-01; like Spark, whatever follows a `T` or a blank is not looked at."""
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
            return pc.cast(texts, TIMESTAMP), None
        except pa.ArrowInvalid:
            pass
    elif is_utc(zone) and _count_matching(texts, _WITHOUT_ZONE) == present:
        try:
            return pc.cast(pc.cast(texts, TIMESTAMP_NTZ), TIMESTAMP), None
        except pa.ArrowInvalid:
            pass
    cached = lru_cache(maxsize=65536)(lambda text: timestamp_micros(text, zone))
    return parsed_column(texts, cached, pa.int64(), TIMESTAMP)


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
