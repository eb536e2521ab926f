"""Java date-time patterns give the moments that Spark reads with them (FF-3)."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest

from lakelet.autoloader.text_values import DATE, TIMESTAMP, TIMESTAMP_NTZ, compile_pattern
from lakelet.base.errors import LakeletError


def shown(pattern: str, text: str, kind: str = TIMESTAMP, zone: str = "UTC") -> str | None:
    value = compile_pattern(pattern, zone, kind)(text)
    if value is None:
        return None
    if kind == DATE:
        return date.fromordinal(value + 719_163).isoformat()
    return datetime.fromtimestamp(value / 1e6, timezone.utc).replace(tzinfo=None).isoformat()


@pytest.mark.parametrize(
    ("pattern", "text", "moment"),
    [
        ("yyyy-MM-dd HH:mm:ss", "2026-03-01 08:09:10", "2026-03-01T08:09:10"),
        ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2026-03-01T08:09:10", "2026-03-01T08:09:10"),
        ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2026-03-01T08:09:10.5+02:00", "2026-03-01T06:09:10.500000"),
        ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2026-03-01T08:09:10.1234", None),
        ("yyyyMMddHHmmss", "20260301080910", "2026-03-01T08:09:10"),
        ("dd/MMM/yyyy:HH:mm:ss Z", "01/Mar/2026:08:09:10 -0100", "2026-03-01T09:09:10"),
        ("MMMM d, y h:mm a", "march 1, 2026 12:05 am", "2026-03-01T00:05:00"),
        ("M/d/yy h:mm a", "3/1/26 1:05 PM", "2026-03-01T13:05:00"),
        ("yyyy-MM-dd kk:mm", "2026-03-01 24:00", "2026-03-01T00:00:00"),
        ("yyyy-DDD", "2024-366", "2024-12-31T00:00:00"),
        ("yyyy-DDD", "2023-366", None),
        ("HH:mm", "08:30", "1970-01-01T08:30:00"),
        ("yyyy", "2026", "2026-01-01T00:00:00"),
        ("yyyy-MM-dd HH:mm VV", "2026-07-01 08:00 Europe/Berlin", "2026-07-01T06:00:00"),
        ("yyyy-MM-dd HH:mm z", "2026-07-01 08:00 PDT", "2026-07-01T15:00:00"),
        ("yyyy-MM-dd HH:mm O", "2026-07-01 08:00 GMT+8", "2026-07-01T00:00:00"),
        ("yyyy 'o''clock' HH", "2026 o'clock 07", "2026-01-01T07:00:00"),
        ("yyyy-MM-dd HH:mm:ss", "2026-02-30 00:00:00", None),
        ("yyyy-MM-dd HH:mm:ss", "2026-3-1 00:00:00", None),
        ("yyyy-MM-dd HH:mm:ss", "2026-03-01 24:00:00", None),
        ("yyyy-MM-dd HH:mm:ss", " 2026-03-01 00:00:00", None),
        ("yyyy-MM-dd hh a", "2026-03-01 13 PM", None),
        ("dd.MM.yyyy yyyy", "01.03.2026 2027", None),
    ],
)
def test_timestamps(pattern: str, text: str, moment: str | None) -> None:
    assert shown(pattern, text) == moment


def test_local_time_is_that_of_the_given_zone_and_kinds_differ() -> None:
    assert shown("yyyy-MM-dd HH:mm", "2026-07-01 08:00", zone="America/New_York") == "2026-07-01T12:00:00"
    assert shown("yyyy-MM-dd HH:mm[X]", "2026-07-01 08:00", TIMESTAMP_NTZ, "America/New_York") == "2026-07-01T08:00:00"
    assert shown("yyyy-MM-dd HH:mm[X]", "2026-07-01 08:00Z", TIMESTAMP_NTZ) is None
    assert shown("dd.MM.yyyy", "01.03.2026", DATE) == "2026-03-01"
    assert shown("dd.MM.yyyy", "31.02.2026", DATE) is None


@pytest.mark.parametrize("pattern", ["YYYY-MM-dd", "EEE yyyy", "yyyy-MM-dd[", "yyyy]", "ww", "qqq", "{yyyy}", "Md", "T", "", "VVV", "HHH"])
def test_letters_that_cannot_be_honoured_are_refused(pattern: str) -> None:
    with pytest.raises(LakeletError) as caught:
        compile_pattern(pattern, "UTC")
    assert caught.value.code == "CF_INVALID_OPTION_VALUE"
    assert repr(pattern) in caught.value.what
