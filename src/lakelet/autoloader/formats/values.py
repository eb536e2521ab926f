"""Small questions about bytes and numbers that several text formats ask."""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_EXACT = Context(prec=120)


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
    """The number as FLOAT holds it; infinity when it is too large for one, as in Java."""
    if number is None or math.isinf(number) or math.isnan(number):
        return number
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def decimal_of(text: str, precision: int, scale: int, *, rounds: bool = False) -> Decimal | None:
    """The number of a text with exactly this scale; None when the text is not a number or does not fit.

    `rounds`: digits beyond the scale are rounded, half up, as Spark's readers do it; else they do not fit.
    """
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        number = Decimal(text)
        if number and number.adjusted() >= precision - scale:
            return None
        if rounds and number and number.adjusted() < -scale - 1:
            number = Decimal(0)
        fitted = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT) if abs(number.adjusted()) < 60 else number
    except InvalidOperation:
        return None
    if (not rounds and fitted != number) or -int(fitted.as_tuple().exponent) != scale:
        return None
    return fitted if not fitted or fitted.adjusted() < precision - scale else None
