"""Differences that are neither mended nor meant: each with its reason and an example that has to fail until it is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.spark.autoloader.parity.combinations import Reading


@dataclass(frozen=True)
class Unmended:
    """One difference.

    Args:
        reason: what comes out, and what should.
        covers: whether a combination may differ for this reason.
    """

    reason: str
    covers: Callable[[Reading, str], bool]


_BEHIND = {"text-behind", "two-values", "broken-document", "comments"}


def _setting(reading: Reading, name: str) -> bool:
    return name in dict(reading.settings)


UNMENDED: tuple[Unmended, ...] = (
    Unmended(
        "JSON: text behind the first value of a line breaks the record; Spark reads the first value",
        lambda r, kind: r.format == "json" and kind in _BEHIND and not r.get("multiLine"),
    ),
    Unmended(
        "JSON with multiLine: all values of a file are records; Spark reads the first one",
        lambda r, kind: r.format == "json" and bool(r.get("multiLine")),
    ),
    Unmended("JSON: 1e400 does not fit DOUBLE; Spark reads infinity", lambda r, kind: r.format == "json" and kind == "huge"),
    Unmended(
        "a time of day is no TIMESTAMP; Spark takes the day on which it reads",
        lambda r, kind: kind == "time-of-day" and r.format in ("json", "csv"),
    ),
    Unmended(
        "JSON: a key that comes twice is inferred; Spark refuses the column that exists already",
        lambda r, kind: r.format == "json" and kind == "repeated-key" and r.schema is None,
    ),
    Unmended(
        "the setting spark.sql.columnNameOfCorruptRecord does not count",
        lambda r, kind: _setting(r, "spark.sql.columnNameOfCorruptRecord"),
    ),
    Unmended("JSON: BINARY from a text that is not base64", lambda r, kind: r.format == "json" and "bytes" in r.labels),
    Unmended("the option locale alone is refused", lambda r, kind: bool(r.get("locale"))),
    Unmended(
        "CSV with multiLine: a line end within quotes stays as it is; Spark makes it a line feed",
        lambda r, kind: r.format == "csv" and bool(r.get("multiLine")) and r.ends != "\n" and kind in ("line-in-quotes", "unclosed-quote"),
    ),
    Unmended(
        "text: the option encoding decodes the text; Spark uses it for the line separator only",
        lambda r, kind: r.format == "text" and bool(r.get("encoding") or r.get("charset")),
    ),
    Unmended(
        "the setting spark.sql.parquet.binaryAsString does not count",
        lambda r, kind: _setting(r, "spark.sql.parquet.binaryAsString") and kind == "bytes",
    ),
    Unmended(
        "Parquet: a TIMESTAMP_NTZ before 1582 is moved",
        lambda r, kind: r.format == "parquet" and kind in ("old-moments-without-zone", "old-nested"),
    ),
    Unmended("the settings for rebasing do not count", lambda r, kind: "Rebase" in str(r.settings) and kind.startswith("old-")),
    Unmended("JSON inference: the type of sixty arrays within each other", lambda r, kind: kind == "deep" and r.schema is None),
)


def reason_of(reading: Reading, kind: str) -> Unmended | None:
    """Why this combination may differ, if it may."""
    return next((entry for entry in UNMENDED if entry.covers(reading, kind)), None)
