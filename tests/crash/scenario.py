"""The pipeline of the crash tests, the files that land for it, and what its tables must hold: computed here in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    def landed(folder):
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").option("cloudFiles.maxFilesPerTrigger", "1")
                .option("cloudFiles.schemaHints", "id BIGINT, amount BIGINT, at TIMESTAMP")
                .load(f"{spark.conf.get('landing')}/{folder}"))

    @dlt.table(partition_cols=["kind"])
    @dlt.expect("amount_known", "amount IS NOT NULL")
    @dlt.expect_or_drop("id_known", "id IS NOT NULL")
    def bronze():
        return landed("orders").withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])

    @dlt.view
    @dlt.expect_or_drop("positive", "amount > 0")
    def checked():
        return dlt.read_stream("bronze")

    @dlt.table
    def clean():
        return spark.readStream.table("checked")

    dlt.create_streaming_table("everything", expect_all={"small": "amount < 100"})

    @dlt.append_flow(target="everything")
    def from_orders():
        return dlt.read_stream("bronze").where("kind = 'x'").select("id", "kind", "amount")

    @dlt.append_flow(target="everything")
    def from_letters():
        return landed("letters")

    @dlt.table
    @dlt.expect_or_drop("kind_known", "kind <> 'z'")
    def totals():
        return dlt.read("clean").groupBy("kind").agg(F.sum("amount").alias("total"))
"""

Record = Mapping[str, Any]
BROKEN = '{"id": 104, "kind": '
DRIFT = "a lot"  # an amount that is not a number


def order(id: int | None, kind: str, amount: Any, at: str, **more: Any) -> Record:
    return {"id": id, "kind": kind, "amount": amount, "at": f"2026-03-01T{at}:00Z", **more}


@dataclass(frozen=True)
class Drop:
    """Files that land together, in the order in which they are read; each becomes one micro-batch."""

    orders: Mapping[str, Sequence[Record]]
    letters: Mapping[str, Sequence[Record | str]]


FIRST = Drop(
    orders={
        "a1.json": [order(1, "x", 10, "10:00"), order(1, "x", 10, "10:00"), order(2, "y", 20, "10:10"), order(None, "x", 5, "10:12")],
        "a2.json": [order(2, "y", 20, "10:10"), order(3, "x", None, "10:20"), order(4, "z", 500, "10:25")],
    },
    letters={"c1.json": [{"id": 101, "kind": "x", "amount": 1}]},
)
SECOND = Drop(
    orders={
        "b1.json": [order(4, "z", 500, "10:25"), order(5, "x", -3, "10:40"), order(6, "y", DRIFT, "10:41")],
        "b2.json": [order(7, "x", 70, "13:00"), order(8, "y", 80, "13:05", note="new")],  # the watermark moves; a new column
        "b3.json": [order(8, "y", 80, "13:05", note="new"), order(10, "z", 100, "13:10")],
        "b4.json": [order(9, "x", 90, "11:00"), order(11, "y", 110, "13:20", note="last")],  # the first one comes too late
    },
    letters={
        "d1.json": [{"id": 102, "kind": "x", "amount": 200}, BROKEN],
        "d2.json": [{"id": 103, "kind": "y", "amount": 3, "is flag": True}],  # another new column, which needs column mapping
    },
)


def later_drop(number: int) -> Drop:
    """One more drop, for tests with many updates."""
    at, first = f"{14 + number}:00", 1000 * number
    return Drop(
        orders={
            f"e{number}-1.json": [order(first + i, "xyz"[i % 3], i * 10 - 10, at) for i in range(6)],
            f"e{number}-2.json": [order(first, "x", -10, at), order(first + 7, "y", 7, at, **{f"extra{number}": number})],
        },
        letters={f"f{number}.json": [{"id": first + 8, "kind": "z", "amount": 90 + number * 5}]},
    )


# ------------------------------------------------------------------------------------------------------- the right answer


@dataclass(frozen=True)
class Answer:
    """What the tables hold after all drops. `quality`: (passed, failed) per rule; of `totals` per refresh, so only its last one."""

    rows: Mapping[str, list[tuple[Any, ...]]]
    quality: Mapping[str, tuple[int, int]]
    late: int
    rescued: int
    corrupt: int


def answer(drops: Sequence[Drop]) -> Answer:
    """Compute everything from the landed records."""
    files = [records for drop in drops for records in drop.orders.values()]
    letters = [record for drop in drops for records in drop.letters.values() for record in records]
    arrived, late = _deduplicated(files)
    bronze = [r for r in arrived if r["id"] is not None]
    clean = [r for r in bronze if (_amount(r) or 0) > 0]
    everything = [r for r in bronze if r["kind"] == "x"] + [{} if isinstance(r, str) else r for r in letters]
    totals = Counter[str]()
    for r in clean:
        totals[r["kind"]] += r["amount"]
    return Answer(
        rows={
            "bronze": _tuples(bronze, "id", "kind", "amount", "note"),
            "clean": _tuples(clean, "id", "kind", "amount", "note"),
            "everything": _tuples(everything, "id", "kind", "amount", "is flag"),
            "totals": _sorted((kind, total) for kind, total in totals.items() if kind != "z"),
        },
        quality={
            "amount_known": _judged(_amount(r) is not None for r in arrived),
            "id_known": _judged(r["id"] is not None for r in arrived),
            "positive": _judged((_amount(r) or 0) > 0 for r in bronze),
            "small": _judged((amount := _amount(r)) is not None and amount < 100 for r in everything),
            "kind_known": _judged(kind != "z" for kind in totals),
        },
        late=late,
        rescued=sum(r["amount"] == DRIFT for records in files for r in records),
        corrupt=sum(r == BROKEN for r in letters),
    )


COLUMNS = {"bronze": ("id", "kind", "amount", "note"), "everything": ("id", "kind", "amount", "is flag"), "totals": ("kind", "total")}
COLUMNS["clean"] = COLUMNS["bronze"]


def _deduplicated(files: Sequence[Sequence[Record]]) -> tuple[list[Record], int]:
    """First record per id, and how many came too late: behind the watermark that stood before the previous micro-batch ended."""
    seen, kept, late = set(), [], 0
    newest = [max(_moment(r) for r in records) for records in files]
    for i, records in enumerate(files):
        watermark = max(newest[: max(0, i - 1)], default=datetime.min) - timedelta(hours=1) if i > 1 else datetime.min
        for r in records:
            if _moment(r) <= watermark:
                late += 1
            elif r["id"] not in seen:
                seen.add(r["id"])
                kept.append(r)
    return kept, late


def _moment(record: Record) -> datetime:
    return datetime.fromisoformat(record["at"].removesuffix("Z"))


def _amount(record: Record) -> int | None:
    amount = record.get("amount")
    return amount if isinstance(amount, int) else None


def _tuples(records: Iterable[Record], *names: str) -> list[tuple[Any, ...]]:
    return _sorted(tuple(_amount(r) if n == "amount" else r.get(n) for n in names) for r in records)


def _sorted(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def _judged(results: Iterable[bool]) -> tuple[int, int]:
    found = Counter(results)
    return found[True], found[False]
