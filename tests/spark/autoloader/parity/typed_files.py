"""The kinds of files with types of their own (Parquet, ORC), and files that are broken."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

_UTC = timezone.utc
_NOON = datetime(2024, 7, 1, 12, 0, 0, 123456)
_OLD = [date(1500, 1, 1), date(1582, 10, 14), date(1582, 10, 15), date(1, 1, 1)]
_OLD_MOMENTS = [datetime(1500, 1, 1, 1, 2, 3), datetime(1582, 10, 4), datetime(1883, 11, 18, 12, 0), datetime(1, 1, 1)]
_IDS = pa.array([1, 2, 3, 4], pa.int64())


def _struct(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.struct([("k", pa.int64()), ("s", pa.string())]))


def _moments(values: list[Any], unit: str, zone: str | None) -> pa.Array:
    return pa.array([v.replace(tzinfo=_UTC) if zone and v else v for v in values], pa.timestamp(unit, zone))


TABLES: Mapping[str, Mapping[str, Any]] = {
    "plain": {"id": [1, 2, None], "s": ["a", "é", None], "d": [1.5, -0.0, float("nan")], "b": [True, False, None]},
    "no-rows": {"id": pa.array([], pa.int64()), "s": pa.array([], pa.string())},
    "days": {"id": [1, 2], "day": [date(2024, 2, 29), None]},
    "old-days": {"id": _IDS, "day": _OLD},
    "moments": {"id": [1, 2], "t": _moments([_NOON, None], "us", "UTC")},
    "moments-ms": {"id": [1, 2], "t": _moments([_NOON.replace(microsecond=5000), None], "ms", "UTC")},
    "moments-without-zone": {"id": [1, 2], "t": _moments([_NOON, None], "us", None)},
    "moments-without-zone-ms": {"id": [1, 2], "t": _moments([_NOON.replace(microsecond=5000), None], "ms", None)},
    "moments-ns": {"id": [1, 2], "t": _moments([_NOON, None], "ns", "UTC")},
    "old-moments": {"id": _IDS, "t": _moments(_OLD_MOMENTS, "us", "UTC")},
    "old-moments-without-zone": {"id": _IDS, "t": _moments(_OLD_MOMENTS, "us", None)},
    "decimals": {"id": [1, 2], "n": pa.array([Decimal("12.34"), None], pa.decimal128(10, 2))},
    "wide-decimals": {"id": [1], "n": pa.array([Decimal("1234567890123456789012345678.90")], pa.decimal128(30, 2))},
    "narrow-decimals": {"id": [1], "n": pa.array([Decimal("1.5")], pa.decimal128(5, 1))},
    "small-integers": {"id": pa.array([1, 2], pa.int8()), "d": pa.array([1, 2], pa.int32()), "n": pa.array([1, 2], pa.int16())},
    "integers": {"id": pa.array([1, -2], pa.int32()), "d": pa.array([1.5, 2.5], pa.float32())},
    "unsigned": {"id": pa.array([1, 2**32 - 1], pa.uint32()), "u": pa.array([1, 2**63], pa.uint64()), "v": pa.array([1, 255], pa.uint8())},
    "texts-for-numbers": {"id": ["1", "x"], "d": ["1.5", "y"]},
    "numbers-for-texts": {"id": [1], "s": [5]},
    "fractions-for-numbers": {"id": [1.0, 1.5], "b": [1, 0]},
    "days-for-numbers": {"id": [date(2024, 2, 29)], "t": [date(2024, 2, 29)]},
    "bytes": {"id": [1], "s": pa.array([b"ab\xff"], pa.binary()), "x": pa.array([b"\x00\x01"], pa.binary())},
    "fixed-bytes": {"id": [1], "x": pa.array([b"abcd"], pa.binary(4))},
    "nested": {
        "id": [1, 2],
        "o": _struct([{"k": 1, "s": "x"}, None]),
        "a": pa.array([[1, None], []], pa.list_(pa.int64())),
        "m": pa.array([[("p", 1)], []], pa.map_(pa.string(), pa.int64())),
    },
    "nested-wider": {
        "id": [1],
        "o": pa.array([{"k": 1, "s": "x", "more": True}], pa.struct([("k", pa.int32()), ("s", pa.string()), ("more", pa.bool_())])),
    },
    "nested-narrower": {
        "id": [1],
        "o": pa.array([{"s": "x"}], pa.struct([("s", pa.string())])),
        "a": pa.array([[1]], pa.list_(pa.int32())),
    },
    "old-nested": {
        "id": [1],
        "p": pa.array(
            [{"t": datetime(1500, 1, 1, tzinfo=_UTC), "day": date(1500, 1, 1), "n": datetime(1500, 1, 1)}],
            pa.struct([("t", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("n", pa.timestamp("us"))]),
        ),
    },
    "lists-of-objects": {"id": [1], "l": pa.array([[{"k": 1}, {"k": None}]], pa.list_(pa.struct([("k", pa.int64())])))},
    "more-columns": {"id": [1], "extra": [1.5], "other": ["o"]},
    "fewer-columns": {"s": ["a"]},
    "spelling": {"ID": [1], "S": ["x"]},
    "odd-names": {"id": [1], "a b": [1], "c.d": [2], "é": [3]},
    "dictionary": {"id": [1, 2], "s": pa.array(["a", "b"]).dictionary_encode()},
    "always-null": {"id": [1], "s": pa.array([None], pa.string())},
}

DAMAGED: Mapping[str, Callable[[bytes], bytes]] = {
    "truncated": lambda whole: whole[: len(whole) // 2],
    "without-bytes": lambda whole: b"",
    "text-instead": lambda whole: b"id,s\n1,a\n",
    "damaged-middle": lambda whole: whole[:20] + bytes(len(whole) // 3) + whole[20 + len(whole) // 3 :],
    "byte-behind": lambda whole: whole + b"\n",
}


def _parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink, store_schema=False, **options)
    return sink.getvalue()


def _orc(columns: Mapping[str, Any]) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table(dict(columns)), sink)
    return sink.getvalue()


def damaged(whole: bytes) -> dict[str, bytes]:
    """The file, damaged in each way."""
    return {kind: damage(whole) for kind, damage in DAMAGED.items()}


def parquet_files() -> dict[str, bytes]:
    """Parquet files by kind."""
    made = {kind: _parquet(columns) for kind, columns in TABLES.items()}
    for kind in ("moments", "old-moments"):
        made[f"{kind}-int96"] = _parquet(TABLES[kind], use_deprecated_int96_timestamps=True)
    made["first-version"] = _parquet(TABLES["plain"], version="1.0", compression="gzip")
    made["time-of-day"] = _parquet({"id": [1], "c": pa.array([time(12, 30)], pa.time64("us"))})
    return made | damaged(made["plain"])


_NOT_IN_ORC = {"unsigned", "fixed-bytes", "dictionary"}


def orc_files() -> dict[str, bytes]:
    """ORC files by kind."""
    made = {kind: _orc(columns) for kind, columns in TABLES.items() if kind not in _NOT_IN_ORC}
    return made | damaged(made["plain"])


def binary_files() -> dict[str, bytes]:
    """Files of any bytes."""
    return {"plain": b"abc\n", "without-bytes": b"", "any-bytes": bytes(range(256))}
