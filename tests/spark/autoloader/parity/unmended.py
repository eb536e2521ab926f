"""Differences that are neither mended nor meant: each with its reason and an example that has to fail until it is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.spark.autoloader.parity import text_files
from tests.spark.autoloader.parity.combinations import Reading
from tests.spark.autoloader.parity.rules import columns_of, corrupt_name


@dataclass(frozen=True)
class Unmended:
    """One difference.

    Args:
        reason: what comes out, and what should.
        covers: whether a combination may differ for this reason.
        example: a combination that differs: grid, kind of file, choices.
    """

    reason: str
    covers: Callable[[Reading, str], bool]
    example: tuple[str, str, str]


_SURPLUS = {"surplus-empty", "empty", "only-separators"}


def _corrupt(reading: Reading) -> bool:
    return corrupt_name(reading) in columns_of(reading.schema or "") or "schemaHints" in str(reading.loader)


UNMENDED: tuple[Unmended, ...] = (
    Unmended(
        "JSON: BINARY from a text that is not base64",
        lambda r, kind: r.format == "json" and "bytes" in r.labels and any(name in str(text_files.JSON[kind]) for name in ('"s"', "'s'")),
        ("json", "plain", "bytes"),
    ),
    Unmended(
        "JSON: with lineSep or a charset, the text of a broken record has no blanks around it; Spark keeps them",
        lambda r, kind: (
            r.format == "json" and kind in ("document", "broken-document", "one-object") and _corrupt(r) and not r.get("multiLine")
        ),
        ("json", "document", "corrupt-column,cr-declared"),
    ),
    Unmended(
        "JSON inference: the type of sixty arrays within each other",
        lambda r, kind: r.format == "json" and kind == "deep" and r.schema is None,
        ("json inferred", "deep", "inferred"),
    ),
    Unmended(
        "with lineSep or a charset, the text of a broken record has three replacement characters for a byte",
        lambda r, kind: (
            r.format in ("json", "csv")
            and _corrupt(r)
            and (kind == "bad-bytes" or (kind == "words" and "undeclared-latin-1" in r.labels))
            and bool(r.get("lineSep") or r.get("encoding") or r.get("charset"))
        ),
        ("json", "bad-bytes", "corrupt-column,cr-declared"),
    ),
    Unmended(
        "CSV with lineSep: UTF-16 is not noticed where no encoding is given; it should be refused",
        lambda r, kind: r.format == "csv" and "undeclared-utf-16" in r.labels and r.get("lineSep") == "\r",
        ("csv", "plain", "undeclared-utf-16,cr-declared,string-columns"),
    ),
    Unmended(
        "JSON inference with prefersDecimal: a number with an exponent is read; Spark fails",
        lambda r, kind: (
            r.format == "json"
            and r.schema is None
            and "prefersDecimal" in r.labels
            and kind in ("plain", "numbers", "decimals", "huge", "not-numbers")
        ),
        ("json inferred", "decimals", "inferred,prefersDecimal"),
    ),
    Unmended(
        "JSON: a year of five digits is no TIMESTAMP in a time zone other than UTC; Spark reads it",
        lambda r, kind: (
            r.format == "json" and kind == "epochs-in-quotes" and "other-types" in r.labels and any("zone=" in label for label in r.labels)
        ),
        ("json", "epochs-in-quotes", "other-types,session-zone=Kolkata"),
    ),
    Unmended(
        "text: with a line separator or an option charset, a foreign byte is three bytes of a surrogate",
        lambda r, kind: (
            r.format == "text"
            and (
                kind == "bad-bytes"
                or (kind == "words" and r.charset == "cp1252")
                or bool({"undeclared-latin-1", "undeclared-utf-16"} & set(r.labels))
            )
        ),
        ("text", "bad-bytes", "crlf-declared"),
    ),
)


def reason_of(reading: Reading, kind: str) -> Unmended | None:
    """Why this combination may differ, if it may."""
    return next((entry for entry in UNMENDED if entry.covers(reading, kind)), None)
