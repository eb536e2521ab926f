"""Small questions about bytes and numbers that several text formats ask."""

from __future__ import annotations

import math
import struct


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
    """The number as FLOAT holds it; None when it is too large for one."""
    if number is None or math.isinf(number) or math.isnan(number):
        return number
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return None
