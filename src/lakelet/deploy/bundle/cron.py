"""The shape of schedules: Quartz cron expressions and time zones."""

from __future__ import annotations

import re
from functools import lru_cache

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    ("seconds", 0, 59, ()),
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 1, 7, _DAYS),
    ("year", 1970, 2099, ()),
)
_SPECIAL = {
    "day of month": re.compile(r"L(-\d{1,2})?W?|\d{1,2}W"),
    "day of week": re.compile(r"L|[1-7]L|[1-7]#[1-5]|(SUN|MON|TUE|WED|THU|FRI|SAT)(L|#[1-5])"),
}


def wrong_cron(text: str) -> str | None:
    """Return the error of a Quartz cron expression, None for a valid one."""
    parts = text.upper().split()
    if len(parts) not in (6, 7):
        more = ": Quartz begins with the seconds" if len(parts) == 5 else ""
        return f"has {len(parts)} fields and not 6 or 7 (seconds, minutes, hours, day of month, month, day of week, year){more}"
    for part, (name, low, high, names) in zip(parts, _FIELDS, strict=False):
        if not _fits(part, name, low, high, names):
            return f"has {part!r} as {name}, which goes from {low} to {high}"
    if (parts[3] == "?") == (parts[5] == "?"):
        return "needs '?' as day of month or as day of week, and not as both"
    return None


def _fits(part: str, name: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    if part == "?":
        return name in _SPECIAL
    return all(_fits_one(one, name, low, high, names) for one in part.split(","))


def _fits_one(part: str, name: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    if name in _SPECIAL and _SPECIAL[name].fullmatch(part):
        return True
    head, slash, step = part.partition("/")
    if slash and not (step.isdigit() and int(step) >= 1):
        return False
    if head == "*":
        return True
    ends = head.split("-")
    return len(ends) <= 2 and all(_number(end, low, high, names) for end in ends)


def _number(text: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    return text in names or (text.isdigit() and low <= int(text) <= high)


@lru_cache(maxsize=1)
def _time_zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


def wrong_time_zone(text: str) -> str | None:
    """Return the error of a time zone's name, None for a valid one."""
    zones = _time_zones()
    if not zones or text in zones or re.fullmatch(r"(UTC|GMT)?[+-]\d{1,2}(:\d{2})?", text) or re.fullmatch(r"[A-Z]{3}", text):
        return None
    return "is not a time zone; for example: Europe/Berlin, UTC"
