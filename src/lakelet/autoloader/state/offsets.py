"""The offset of a stream: the number of the last batch that its ledger planned."""

from __future__ import annotations

import json
from typing import Any

from lakelet.base.errors import LakeletError, unknown_format

OFFSET_FORMAT = 1

NO_OFFSET = "is not an offset of Auto Loader"
"""Part of the text of an error for a checkpoint whose source was another one before."""


def offset_of(batch: int) -> dict[str, int]:
    """The offset that Spark logs after planning `batch`; -1 means nothing was planned."""
    return {"v": OFFSET_FORMAT, "batch": batch}


def batch_of(offset: dict[str, Any] | str | None) -> int:
    """The batch number in an offset. Raises FORMAT_UNKNOWN or CF_STATE_DAMAGED."""
    if offset is None:
        return -1
    try:
        fields = json.loads(offset) if isinstance(offset, str) else offset
        version, batch = int(fields["v"]), int(fields["batch"])
    except (ValueError, KeyError, TypeError):
        raise LakeletError("CF_STATE_DAMAGED", f"{offset!r} {NO_OFFSET}", todo="Do a full refresh.") from None
    if version != OFFSET_FORMAT:
        raise unknown_format("an offset", version, OFFSET_FORMAT)
    return batch


def is_offset(line: str) -> bool:
    """Whether a line of Spark's offset log is an offset of Auto Loader."""
    try:
        fields = json.loads(line)
    except ValueError:
        return False
    return isinstance(fields, dict) and set(fields) == {"v", "batch"}
