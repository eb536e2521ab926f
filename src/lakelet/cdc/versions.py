"""What a snapshot function gives: a full copy of its source and the copy's version (dlt-semantics 6.3). Layer 4."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelet.errors import LakeletError


def copy_of(given: Any) -> tuple[Any, Any] | None:
    """(DataFrame, version) of what the function returned; None after the last copy. Raises CDC_SNAPSHOT_INVALID for anything else."""
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise LakeletError(
            "CDC_SNAPSHOT_INVALID",
            f"the snapshot function returned {type(given).__name__}, not a DataFrame and its version",
            todo="Return (data_frame, version), and None after the last snapshot.",
        )
    frame, version = given
    if frame is None:
        return None
    if version is None:
        raise LakeletError("CDC_SNAPSHOT_INVALID", "the snapshot function gave a snapshot without a version", todo="Return (df, version).")
    return frame, version


def sequence_of(version: Any) -> Column:
    """A version in the place of the sequence; whole numbers are always BIGINT, so that the type does not change when they grow."""
    return F.lit(version).cast("bigint") if type(version) is int else F.lit(version)
