"""Dates and timestamps before 1582-10-15 in the old hybrid calendar: options datetimeRebaseMode and int96RebaseMode (FF-24).

Spark 3 and later write the Gregorian calendar, and say so in the file. For other files the option decides: LEGACY moves old values so
that year, month and day stay as the writer saw them, CORRECTED takes the numbers as they are, EXCEPTION refuses such a file. A timestamp
without a zone is never moved, as its type is younger than the old calendar. Time zones before they were standardised do not count:
the calendar is that of UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.formats.option_tables import Option, word
from lakelet.autoloader.formats.typed.arrow_arrays import entries_of, items_of, list_of, map_of, plain, struct_of

LEGACY, CORRECTED, EXCEPTION = "LEGACY", "CORRECTED", "EXCEPTION"
_SWITCH = -141_427  # days from 1970-01-01 to 1582-10-15
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


class OldDates(ValueError):
    """A file has dates or timestamps that are not read: in Parquet and Avro those before 1582-10-15 where the mode is EXCEPTION."""


def rebase_option(name: str) -> Option:
    """The option of this name."""
    return word(name, LEGACY, (LEGACY, CORRECTED, EXCEPTION))


def mode_of(metadata: Mapping[bytes, Any], option: str, *, legacy_key: bytes, since: tuple[int, ...]) -> str:
    """The mode for a file: what its writer says, else the option. `since`: the first Spark that wrote the new calendar."""
    version = metadata.get(b"org.apache.spark.version")
    if version is None:
        return option
    text = version.decode() if isinstance(version, bytes) else str(version)
    numbers = tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
    return LEGACY if numbers < since or legacy_key in metadata else CORRECTED


def rebase_old_dates(array: Any, mode: str) -> Any:
    """The array with its old dates and timestamps moved, at any depth. Raises OldDates."""
    if mode == CORRECTED or not _has_time(array.type):
        return array
    array = plain(array)
    kind = array.type
    if pa.types.is_struct(kind):
        before = array.flatten()
        after = [rebase_old_dates(column, mode) for column in before]
        changed = any(new is not old for new, old in zip(after, before, strict=True))
        return struct_of(array, after, _struct_type(kind, after)) if changed else array
    if pa.types.is_map(kind):
        offsets, keys, values = entries_of(array)
        new_keys, new = rebase_old_dates(keys, mode), rebase_old_dates(values, mode)
        return array if new is values and new_keys is keys else map_of(array, offsets, new_keys, new, pa.map_(new_keys.type, new.type))
    if pa.types.is_list(kind):
        offsets, items = items_of(array)
        new = rebase_old_dates(items, mode)
        return array if new is items else list_of(array, offsets, new, pa.list_(new.type))
    return _rebased_leaf(array, mode)


def _struct_type(kind: Any, columns: list[Any]) -> Any:
    return pa.struct([pa.field(kind.field(at).name, column.type) for at, column in enumerate(columns)])


def _has_time(kind: Any) -> bool:
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return pa.types.is_date(kind) or kind.tz is not None
    return any(_has_time(kind.field(at).type) for at in range(kind.num_fields)) if pa.types.is_nested(kind) else False


def _rebased_leaf(array: Any, mode: str) -> Any:
    kind = array.type
    if pa.types.is_date64(kind):
        array, kind = array.cast(pa.date32()), pa.date32()
    width = 1 if pa.types.is_date32(kind) else _DAY[kind.unit]
    numbers = array.view(pa.int32() if width == 1 else pa.int64())
    least = pc.min(numbers).as_py()
    if least is None or least >= _SWITCH * width:
        return array
    if mode == EXCEPTION:
        raise OldDates("a date or timestamp before 1582-10-15 may be in the old calendar, and the rebase mode is EXCEPTION")
    moved = [_moved_number(number, width) for number in numbers.to_pylist()]
    return pa.array(moved, numbers.type).view(kind)


def _moved_number(number: int | None, width: int) -> int | None:
    if number is None or number >= _SWITCH * width:
        return number
    day, rest = divmod(number, width)
    return julian_to_gregorian(day) * width + rest


def julian_to_gregorian(day: int) -> int:
    """Days since 1970 of the date that the Julian calendar gives the same year, month and day as day number `day`."""
    years, rest = divmod(4 * (day + 2_440_588 + 32_082) + 3, 1461)  # years from 1 March 4801 BC, so that leap days come last
    leaps = years // 4 - years // 100 + years // 400
    return rest // 4 + 1 + 365 * years + leaps - 32_045 - 2_440_588
