"""The tables of the web events example, computed from its CSV files by the standard library alone.

Written from docs/web.md, the example's README and docs/transforms.md, without looking at the pipeline. Tokens and the keys of
`relationalize` are not computed: an event holds `user` and `ip` as they came, a row of a nested table its event and its positions.
Whoever compares (tests/web_example.py) finds out which token stands for which value and which row a key means.
"""

from __future__ import annotations

import csv
import hmac
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

Row = dict[str, Any]
INT_LIMIT = 2**31


def expected(landing: Path, key: str) -> dict[str, list[Row]]:
    """Rows of all tables by name; `key`: the secret of the hash."""
    seen: dict[tuple[Any, ...], Row] = {}
    for path in sorted(landing.rglob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                texts = {name: value or None for name, value in line.items()}
                seen.setdefault((texts["event_id"], texts["Event Time"], texts["user"]), event_of(texts, key))
    events = list(seen.values())
    return {"web_events": events, "pages_daily": pages_daily(events), **purchases(events)}


def event_of(line: Mapping[str, str | None], key: str) -> Row:
    """The event of a line, in which NULL is what was empty."""
    misfits: dict[str, str] = {}

    def fitting(name: str, text: str | None, convert: Any) -> Any:
        try:
            return None if text is None else convert(text)
        except ValueError:
            misfits[name] = str(text)
            return None

    email, properties = line["email"], line["properties"]
    at = fitting("event_time", line["Event Time"], time_of)
    details, corrupt = details_of(properties)
    return {
        "event_id": line["event_id"],
        "event_time": at,
        "event_date": at and at.date(),
        "type": line["type"],
        "person": email and hmac.new(key.encode(), email.encode(), "sha256").hexdigest(),
        "user": line["user"],
        "ip": line["ip"],
        "email": masked_email(email),
        "phone": masked_phone(line["phone"]),
        "card": masked_card(line["card"]),
        "page": line["Page URL"],
        "duration_ms": fitting("duration_ms", line["duration_ms"], integer),
        "amount": fitting("amount", line["amount"], money),
        "properties": properties,
        "details": details,
        "_misfits": misfits or None,
        "_corrupt": corrupt,
        "_rescued_data": None,
    }


def time_of(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def integer(text: str) -> int:
    """A whole number of 32 bits."""
    if not -INT_LIMIT <= int(text) < INT_LIMIT:
        raise ValueError(text)
    return int(text)


def money(text: str) -> Decimal:
    """A number of at most two digits behind its point."""
    if not re.fullmatch(r"-?\d{1,8}(\.\d{1,2})?", text):
        raise ValueError(text)
    return Decimal(text)


def details_of(text: str | None) -> tuple[Row | None, str | None]:
    """The JSON text as a value, or kept as broken."""
    if text is None:
        return None, None
    try:
        said = json.loads(text)
    except ValueError:
        return None, text
    items = said.get("items")
    found = None if items is None else [{name: item.get(name) for name in ("sku", "count", "tags")} for item in items]
    return {"query": said.get("query"), "items": found}, None


# ------------------------------------------------------------------------------------------------------------------ masks


def masked_email(text: str | None) -> str | None:
    if not text:
        return text
    address = re.fullmatch(r"([^@\s\"']+)@([^@\s\"']+)", text)
    if address is None:
        return "*" * len(text)
    return f"{address[1][0] if len(address[1]) > 1 else ''}***@{address[2]}"


def masked_phone(text: str | None) -> str | None:
    return masked_digits(text, 7, 15, keep=2, form=r"\+?[\d\s().\-/]+")


def masked_card(text: str | None) -> str | None:
    return masked_digits(text, 12, 19, keep=4, form=r"\d+([ -]\d+)*")


def masked_digits(text: str | None, least: int, most: int, *, keep: int, form: str) -> str | None:
    """All digits but the last ones as stars; a text that is no such number as stars alone."""
    if not text:
        return text
    count = len(re.findall(r"\d", text))
    if not re.fullmatch(form, text) or not least <= count <= most:
        return "*" * len(text)
    left = iter(range(count, 0, -1))
    return re.sub(r"\d", lambda digit: "*" if next(left) > keep else digit[0], text)


# ----------------------------------------------------------------------------------------------------------------- tables


def pages_daily(events: Iterable[Row]) -> list[Row]:
    """Views, people and time of each page and day."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for event in events:
        if event["type"] == "page_view":
            groups[event["event_date"], event["page"]].append(event)
    known = {place: [event["duration_ms"] for event in group if event["duration_ms"] is not None] for place, group in groups.items()}
    return [
        {
            "event_date": day,
            "page": page,
            "views": len(group),
            "people": len({event["person"] for event in group} - {None}),
            "duration_ms": sum(known[day, page]) if known[day, page] else None,
        }
        for (day, page), group in groups.items()
    ]


def purchases(events: Iterable[Row]) -> dict[str, list[Row]]:
    """The three tables of nested purchases. A row names its event and its positions in place of keys."""
    found: dict[str, list[Row]] = {"purchases": [], "purchases_items": [], "purchases_items_tags": []}
    for event in events:
        if event["type"] != "purchase":
            continue
        items = (event["details"] or {}).get("items")
        identity = {"event_id": event["event_id"], "event_time": event["event_time"], "user": event["user"]}
        size = None if items is None else len(items)
        found["purchases"].append({**identity, "amount": event["amount"], "items_size": size})
        for place, item in enumerate(items or []):
            tags = item["tags"]
            sold = {"sku": item["sku"], "count": item["count"], "tags_size": None if tags is None else len(tags)}
            found["purchases_items"].append({**identity, "item": place, **sold})
            found["purchases_items_tags"] += [{**identity, "item": place, "tag": at, "value": tag} for at, tag in enumerate(tags or [])]
    return found
