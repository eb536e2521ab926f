"""Moments are read the same way by all versions of Python."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from lakelet.base.text import moment_of


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("", 0), (".5", 500_000), (".25", 250_000), (".123", 123_000), (".1234", 123_400), (".123456", 123_456), (".123456789", 123_456)],
)
@pytest.mark.parametrize(
    ("zone", "of"),
    [("", None), ("Z", timezone.utc), ("+00:00", timezone.utc), ("-05:30", timezone(-timedelta(hours=5, minutes=30)))],
)
def test_a_second_may_have_any_number_of_digits(text: str, microseconds: int, zone: str, of: timezone | None) -> None:
    assert moment_of(f"2026-03-01T08:00:00{text}{zone}") == datetime(2026, 3, 1, 8, 0, 0, microseconds, of)


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid isoformat"):
        moment_of("yesterday")
