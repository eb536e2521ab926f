"""The kinds of files with types of their own (Parquet, ORC, Avro), and files that are broken."""

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


def _damaged(whole: bytes) -> dict[str, bytes]:
    return {kind: damage(whole) for kind, damage in DAMAGED.items()}


def parquet_files() -> dict[str, bytes]:
    """Parquet files by kind."""
    made = {kind: _parquet(columns) for kind, columns in TABLES.items()}
    for kind in ("moments", "old-moments"):
        made[f"{kind}-int96"] = _parquet(TABLES[kind], use_deprecated_int96_timestamps=True)
    made["first-version"] = _parquet(TABLES["plain"], version="1.0", compression="gzip")
    made["time-of-day"] = _parquet({"id": [1], "c": pa.array([time(12, 30)], pa.time64("us"))})
    return made | _damaged(made["plain"])


_NOT_IN_ORC = {"unsigned", "fixed-bytes", "dictionary"}


def orc_files() -> dict[str, bytes]:
    """ORC files by kind."""
    made = {kind: _orc(columns) for kind, columns in TABLES.items() if kind not in _NOT_IN_ORC}
    return made | _damaged(made["plain"])


_LOGICAL = {
    "day": {"type": "int", "logicalType": "date"},
    "moment": {"type": "long", "logicalType": "timestamp-micros"},
    "milli": {"type": "long", "logicalType": "timestamp-millis"},
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "clock": {"type": "int", "logicalType": "time-millis"},
}
_AVRO: Mapping[str, tuple[Mapping[str, Any], list[dict[str, Any]]]] = {
    "plain": (
        {"id": "long", "s": ["null", "string"], "d": "double", "b": "boolean"},
        [{"id": 1, "s": "é", "d": 1.5, "b": True}, {"id": 2, "s": None, "d": -0.0, "b": False}],
    ),
    "no-rows": ({"id": "long"}, []),
    "integers": ({"id": "int", "d": "float"}, [{"id": 1, "d": 1.5}]),
    "days": ({"id": "long", "day": _LOGICAL["day"]}, [{"id": i, "day": day} for i, day in enumerate([date(2024, 2, 29), *_OLD])]),
    "moments": ({"id": "long", "t": _LOGICAL["moment"]}, [{"id": 1, "t": _NOON.replace(tzinfo=_UTC)}]),
    "old-moments": ({"id": "long", "t": _LOGICAL["moment"]}, [{"id": i, "t": m.replace(tzinfo=_UTC)} for i, m in enumerate(_OLD_MOMENTS)]),
    "moments-ms": ({"id": "long", "t": _LOGICAL["milli"]}, [{"id": 1, "t": _NOON.replace(microsecond=5000, tzinfo=_UTC)}]),
    "moments-without-zone": ({"id": "long", "t": _LOGICAL["local"]}, [{"id": i, "t": m} for i, m in enumerate([_NOON, *_OLD_MOMENTS])]),
    "decimals": ({"id": "long", "n": _LOGICAL["decimal"]}, [{"id": 1, "n": Decimal("12.34")}]),
    "uuid": ({"id": "long", "s": _LOGICAL["uuid"]}, [{"id": 1, "s": "12345678-1234-5678-1234-567812345678"}]),
    "time-of-day": ({"id": "long", "c": _LOGICAL["clock"]}, [{"id": 1, "c": time(12, 30)}]),
    "bytes": ({"id": "long", "x": "bytes", "f": {"type": "fixed", "name": "f", "size": 2}}, [{"id": 1, "x": b"\x00\xff", "f": b"ab"}]),
    "enum": ({"id": "long", "s": {"type": "enum", "name": "e", "symbols": ["A", "B"]}}, [{"id": 1, "s": "B"}]),
    "union": (
        {"id": "long", "u": ["null", "int", "string"], "w": ["int", "long"], "x": ["float", "double"]},
        [{"id": 1, "u": 5, "w": 1, "x": 1.5}, {"id": 2, "u": "t", "w": 2**40, "x": 2.5}],
    ),
    "nested": (
        {
            "id": "long",
            "o": {"type": "record", "name": "o", "fields": [{"name": "k", "type": "long"}, {"name": "s", "type": ["null", "string"]}]},
            "a": {"type": "array", "items": "long"},
            "m": {"type": "map", "values": "long"},
        },
        [{"id": 1, "o": {"k": 1, "s": "x"}, "a": [1, 2], "m": {"p": 1}}],
    ),
    "texts-for-numbers": ({"id": "string", "d": "string"}, [{"id": "1", "d": "x"}]),
    "more-columns": ({"id": "long", "extra": "double"}, [{"id": 1, "extra": 1.5}]),
    "fewer-columns": ({"s": "string"}, [{"s": "a"}]),
    "spelling": ({"ID": "long", "S": "string"}, [{"ID": 1, "S": "x"}]),
}


def avro_files() -> dict[str, bytes]:
    """Avro files by kind."""
    import fastavro

    made = {}
    for kind, (fields, records) in _AVRO.items():
        sink = io.BytesIO()
        schema = {"type": "record", "name": "row", "fields": [{"name": name, "type": type_} for name, type_ in fields.items()]}
        fastavro.writer(sink, schema, records, codec="deflate", sync_marker=b"0123456789abcdef")
        made[kind] = sink.getvalue()
    return made | _damaged(made["plain"])


def binary_files() -> dict[str, bytes]:
    """Files of any bytes."""
    return {"plain": b"abc\n", "without-bytes": b"", "any-bytes": bytes(range(256))}
