"""Single values of a file in the Arrow type of a column of the same, or of a wider, Spark type; others are reported."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.formats.typed.nested import plain, plain_type

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_MICROS = 1_000_000
_LIMIT = (1 << 63) - 1


def takes_whole(kind: Any) -> bool:
    """Whether every value of a file type can be taken, by a plain cast."""
    if isinstance(kind, pa.BaseExtensionType):
        return False
    kind = plain_type(kind)
    return not pa.types.is_timestamp(kind) or kind.unit == "us"


def taken(array: Any, arrow: Any) -> tuple[Any, Any | None]:
    """The values as `arrow`, and a mask of those that are NULL there because they do not fit; None when all fit."""
    if isinstance(array.type, pa.UuidType):
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()]
        return pa.array(texts, pa.string()), None
    array = plain(array)
    if array.type == arrow:
        return array, None
    if pa.types.is_timestamp(array.type):
        return _moments(array, arrow)
    if pa.types.is_duration(array.type):
        array = array.cast(pa.int64())
    return array.cast(arrow), None


def _moments(array: Any, arrow: Any) -> tuple[Any, Any | None]:
    """Microseconds. Nanoseconds that are not whole microseconds, and what is out of range, do not fit: cutting would change them."""
    micros, misfits = _micros(array)
    return micros.view(arrow), misfits


def _micros(array: Any) -> tuple[Any, Any | None]:
    numbers, per_second = array.view(pa.int64()), _PER_SECOND[array.type.unit]
    if per_second == _MICROS:
        return numbers, None
    if per_second > _MICROS:
        step = per_second // _MICROS
        micros = pc.divide(numbers, step)
        misfits = pc.not_equal(pc.multiply(micros, step), numbers)
    else:
        step = _MICROS // per_second
        misfits = pc.or_(pc.greater(numbers, _LIMIT // step), pc.less(numbers, -(_LIMIT // step)))
        micros = pc.multiply(pc.if_else(misfits, 0, numbers), step)
    misfits = pc.fill_null(misfits, False)
    if not pc.any(misfits).as_py():
        return micros, None
    return pc.if_else(misfits, pa.scalar(None, pa.int64()), micros), misfits
