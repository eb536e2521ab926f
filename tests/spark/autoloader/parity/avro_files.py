"""The kinds of Avro files: types, logical types, unions, named types, and the records of each."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro

from tests.spark.autoloader.parity.typed_files import damaged

_NOON = datetime(2024, 7, 1, 12, 0, 0, 123000, timezone.utc)
_OLD = datetime(1500, 1, 1, 1, 2, 3, 0, timezone.utc)


def _record(name: str = "row", **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields.items()]}


def _optional(**fields: Any) -> dict[str, Any]:
    return _record(**{name: ["null", kind] for name, kind in fields.items()})


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


_DAY = _logical("int", "date")
_MILLIS, _MICROS = _logical("long", "timestamp-millis"), _logical("long", "timestamp-micros")
_LOCAL_MILLIS, _LOCAL_MICROS = _logical("long", "local-timestamp-millis"), _logical("long", "local-timestamp-micros")
_DECIMAL = _logical("bytes", "decimal", precision=10, scale=2)
_COLOUR = {"type": "enum", "name": "colour", "symbols": ["RED", "BLUE"]}
_POINT = _record("point", k="long", s="string")

FILES: Mapping[str, tuple[Any, Sequence[Mapping[str, Any]]]] = {
    "plain": (
        _optional(id="long", s="string", d="double", b="boolean"),
        [{"id": 1, "s": "é", "d": 1.5, "b": True}, {"id": 2, "s": "", "d": float("nan"), "b": False}, dict.fromkeys("idsb")],
    ),
    "required": (_record(id="long", s="string"), [{"id": 1, "s": "a"}]),
    "no-rows": (_record(id="long", s="string"), []),
    "numbers": (_record(id="int", d="float", n=_DECIMAL), [{"id": -1, "d": 0.5, "n": Decimal("-12.34")}]),
    "decimals": (
        _record(
            id="long",
            n={**_logical("fixed", "decimal", precision=10, scale=2), "name": "f", "size": 8},
            w=_logical("bytes", "decimal", precision=38, scale=0),
        ),
        [{"id": 1, "n": Decimal("-0.01"), "w": Decimal(10**37)}],
    ),
    "days": (_record(id="long", day=_DAY), [{"id": 1, "day": date(2024, 2, 29)}]),
    "old-days": (
        _record(id="long", day=_DAY),
        [{"id": n, "day": day} for n, day in enumerate([date(1500, 1, 1), date(1582, 10, 15), date(1, 1, 1)])],
    ),
    "moments": (_record(id="long", t=_MICROS), [{"id": 1, "t": _NOON.replace(microsecond=123456)}]),
    "moments-ms": (_record(id="long", t=_MILLIS), [{"id": 1, "t": _NOON}]),
    "local-moments": (_record(id="long", t=_LOCAL_MICROS), [{"id": 1, "t": _NOON.replace(tzinfo=None)}]),
    "local-moments-ms": (_record(id="long", t=_LOCAL_MILLIS), [{"id": 1, "t": _NOON.replace(tzinfo=None)}]),
    "old-moments": (_record(id="long", t=_MICROS, u=_MILLIS), [{"id": 1, "t": _OLD, "u": _OLD}]),
    "old-local-moments": (_record(id="long", t=_LOCAL_MICROS), [{"id": 1, "t": _OLD.replace(tzinfo=None)}]),
    "times-of-day": (
        _record(id="long", c=_logical("int", "time-millis"), e=_logical("long", "time-micros")),
        [{"id": 1, "c": time(12, 30), "e": time(12, 30)}],
    ),
    "times-as-numbers": (_record(id="long", c="int", e="long"), [{"id": 1, "c": 45_000_000, "e": 45_000_000_000}]),
    "identities": (_record(id="long", s=_logical("string", "uuid")), [{"id": 1, "s": UUID(int=5)}]),
    "unknown-logical-type": (_record(id="long", s=_logical("string", "colour"), c=_logical("long", "date")), [{"id": 1, "s": "a", "c": 5}]),
    "enums": (_record(id="long", s=_COLOUR, e=["null", "colour"]), [{"id": 1, "s": "RED", "e": None}, {"id": 2, "s": "BLUE", "e": "RED"}]),
    "bytes": (_record(id="long", x="bytes", y={"type": "fixed", "name": "four", "size": 4}), [{"id": 1, "x": b"\x00\xff", "y": b"abcd"}]),
    "nested": (
        _record(id="long", o=["null", _POINT], a={"type": "array", "items": ["null", "long"]}, m={"type": "map", "values": "long"}),
        [{"id": 1, "o": {"k": 1, "s": "x"}, "a": [1, None], "m": {"p": 1}}, {"id": 2, "o": None, "a": [], "m": {}}],
    ),
    "nested-more": (
        _record(id="long", o=_record("point", k="int", s="string", more="boolean"), l={"type": "array", "items": _record("one", k="long")}),
        [{"id": 1, "o": {"k": 1, "s": "x", "more": True}, "l": [{"k": 1}]}],
    ),
    "maps-of-records": (_record(id="long", m={"type": "map", "values": _POINT}), [{"id": 1, "m": {"p": {"k": 1, "s": "x"}}}]),
    "union-of-integers": (_record(id=["int", "long"], d=["float", "double"]), [{"id": 1, "d": 1.5}, {"id": 2**40, "d": 0.1}]),
    "union-with-null-last": (_record(id=["long", "null"], s=["string", "null"]), [{"id": 1, "s": None}, {"id": None, "s": "a"}]),
    "union-of-types": (_record(id="long", u=["null", "long", "string"]), [{"id": 1, "u": 1}, {"id": 2, "u": "t"}, {"id": 3, "u": None}]),
    "union-of-types-without-null": (
        _record(id="long", u=["string", "double", "boolean"]),
        [{"id": 1, "u": 1.5}, {"id": 2, "u": "t"}, {"id": 3, "u": True}],
    ),
    "union-of-records": (
        _record(id="long", u=[_record("p", k="long"), _record("q", s="string")]),
        [{"id": 1, "u": ("p", {"k": 1})}, {"id": 2, "u": ("q", {"s": "x"})}],
    ),
    "union-of-one": (_record(id=["long"], s=["string"]), [{"id": 1, "s": "a"}]),
    "union-of-integers-with-null": (
        _record(id=["null", "int", "long"], d=["float", "null", "double"]),
        [{"id": 1, "d": 1.5}, {"id": None, "d": None}],
    ),
    "union-of-integers-and-text": (
        _record(id="long", u=["int", "long", "string"]),
        [{"id": 1, "u": 2**40}, {"id": 2, "u": "a"}, {"id": 3, "u": 1}],
    ),
    "union-of-day-and-boolean": (
        _record(id="long", u=["null", "boolean", _DAY]),
        [{"id": 1, "u": date(2024, 2, 29)}, {"id": 2, "u": True}],
    ),
    "union-of-bytes": (
        _record(id="long", u=["bytes", {"type": "fixed", "name": "four", "size": 4}, _COLOUR, "string"]),
        [{"id": 1, "u": b"ab"}, {"id": 2, "u": ("four", b"abcd")}, {"id": 3, "u": ("colour", "RED")}, {"id": 4, "u": "a"}],
    ),
    "always-null": (_record(id="long", v="null"), [{"id": 1, "v": None}]),
    "empty-record": (_record(id="long", o=_record("none")), [{"id": 1, "o": {}}]),
    "contains-itself": (_record(id="long", next=["null", "row"]), [{"id": 1, "next": {"id": 2, "next": None}}]),
    "same-type-twice": (_record(id="long", o=_POINT, p="point"), [{"id": 1, "o": {"k": 1, "s": "x"}, "p": {"k": 2, "s": "y"}}]),
    "texts-for-numbers": (_record(id="string", d="string"), [{"id": "1", "d": "x"}]),
    "numbers-for-texts": (_record(id="long", s="long"), [{"id": 1, "s": 5}]),
    "more-columns": (_record(id="long", extra="double", other="string"), [{"id": 1, "extra": 1.5, "other": "o"}]),
    "fewer-columns": (_record(s="string"), [{"s": "a"}]),
    "spelling": (_record(ID="long", S="string"), [{"ID": 1, "S": "x"}]),
    "name-spaces": ({**_record("a.b.row", id="long", o=_record("c.point", k="long")), "aliases": ["x"]}, [{"id": 1, "o": {"k": 1}}]),
}


def _avro(schema: Any, records: Sequence[Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), records, **options)
    return sink.getvalue()


def avro_files() -> dict[str, bytes]:
    """Avro files by kind."""
    made = {kind: _avro(*file) for kind, file in FILES.items()}
    made["compressed"] = _avro(*FILES["plain"], codec="deflate")
    for kind in ("old-days", "old-moments"):
        made[f"{kind}-by-spark"] = _avro(*FILES[kind], metadata={"org.apache.spark.version": "4.2.0"})
        made[f"{kind}-by-spark-2"] = _avro(*FILES[kind], metadata={"org.apache.spark.version": "2.4.0"})
        legacy = {"org.apache.spark.version": "3.2.0", "org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"}
        made[f"{kind}-by-spark-legacy"] = _avro(*FILES[kind], metadata=legacy)
    made["bad-text"] = made["required"].replace(b"\x02\x02a", b"\x02\x02\xff")
    return made | damaged(made["plain"])
