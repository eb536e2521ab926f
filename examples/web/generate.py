"""Makes web events as CSV files, the same for the same seed: `python generate.py 1` the first delivery, `python generate.py 2` the second.

The second has new days, events of earlier days that come late, a file that was there before under another name, and single rows that
were there before. Some values are broken, as in life.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

COLUMNS = ["event_id", "Event Time", "type", "user", "email", "phone", "ip", "Page URL", "duration_ms", "amount", "card", "properties"]
TYPES = ["page_view"] * 7 + ["search", "add_to_cart", "purchase"]
PAGES = ["/", "/products", "/products/42", "/cart", "/über-uns"]
NAMES = ["ann", "bo", "zoë", "li.na", "max+news"]
START = datetime(2026, 3, 1, tzinfo=timezone.utc)
BATCHES, ROWS = 6, 150

Row = dict[str, str]


def event(random: random.Random, number: int, day: int) -> Row:
    """One event; about one value in thirty is broken."""
    kind, name = random.choice(TYPES), random.choice(NAMES)
    at = START + timedelta(days=day, seconds=random.randrange(86_400))
    bought = kind == "purchase"
    row = {
        "event_id": f"e{number:06}",
        "Event Time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "type": kind,
        "user": f"u{random.randrange(40)}",
        "email": f"{name}{random.randrange(9)}@example.com",
        "phone": random.choice(["+49 (30) 901820-{:02}", "030/9018{:04}", "+1 202 555 01{:02}", ""]).format(random.randrange(99)),
        "ip": f"10.0.{random.randrange(4)}.{random.randrange(256)}",
        "Page URL": random.choice(PAGES),
        "duration_ms": str(random.randrange(60_000)),
        "amount": f"{random.randrange(100, 90_000) / 100:.2f}" if bought else "",
        "card": "4111 1111 1111 " + str(random.randrange(1000, 9999)) if bought else "",
        "properties": json.dumps(properties(random, kind), ensure_ascii=False) if kind != "page_view" else "",
    }
    broken = {
        "event_id": "",
        "Event Time": "yesterday",
        "email": "no address",
        "phone": "call me",
        "card": "4111-x",
        "duration_ms": random.choice(["n/a", "12.5", "99999999999"]),
        "amount": random.choice(["1.234,50", "9.999"]),
        "properties": row["properties"][:-2] + ",",
    }
    name = random.choice([*broken, *[""] * 20])
    if name and row[name]:
        row[name] = broken[name]
    return row


def properties(random: random.Random, kind: str) -> dict[str, object]:
    if kind == "search":
        return {"query": random.choice(["boots", 'say "hi", ok', "größe 42"])}
    skus = random.sample(["A-1", "B-2", "C-3", "D-4"], random.randrange(0, 4))
    return {
        "items": [
            {"sku": sku, "count": random.randrange(1, 4), "tags": random.sample(["new", "sale"], random.randrange(3))} for sku in skus
        ]
    }


def delivery(number: int, seed: int = 7, count: int = ROWS) -> dict[str, list[Row]]:
    """Rows by file name, `count` in each new file."""
    rng = random.Random(seed)
    batches = [[event(rng, n * count + i, day=n // 2) for i in range(count)] for n in range(BATCHES * 2)]
    first = {f"events-{n:03}.csv": batches[n] for n in range(BATCHES)}
    if number == 1:
        return first
    late = [event(rng, max(900_000, 2 * BATCHES * count) + i, day=rng.randrange(3)) for i in range(count)]
    known = [row for rows in first.values() for row in rows]
    seen = rng.sample(known, min(40, len(known)))
    second = {f"events-{n:03}.csv": [*batches[n], *seen[n::BATCHES]] for n in range(BATCHES, BATCHES * 2)}
    return {**second, "late-001.csv": late, "events-002-again.csv": first["events-002.csv"]}


def write(number: int, folder: Path, seed: int = 7, count: int = ROWS) -> int:
    """Write a delivery; how many rows it has."""
    folder.mkdir(parents=True, exist_ok=True)
    files = delivery(number, seed, count)
    for name, rows in files.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    return sum(map(len, files.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("delivery", type=int, choices=[1, 2])
    parser.add_argument("--out", type=Path, default=Path("landing"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each file")
    given = parser.parse_args()
    print(f"{write(given.delivery, given.out, given.seed, given.rows)} rows in {given.out}")
