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
        example: a combination that differs: grid, kind of file, choices.
    """

    reason: str
    covers: Callable[[Reading, str], bool]
    example: tuple[str, str, str]


UNMENDED: tuple[Unmended, ...] = ()


def reason_of(reading: Reading, kind: str) -> Unmended | None:
    """Why this combination may differ, if it may."""
    return next((entry for entry in UNMENDED if entry.covers(reading, kind)), None)
