"""examples/web as its README runs it: two deliveries, the second with late and doubled rows, against an oracle that reads the CSV files."""

from __future__ import annotations

import base64
import csv
import hashlib
import hmac
import json
import re
import runpy
import shlex
import shutil
import sys
from collections import Counter, defaultdict
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.cli.main import main
from tests.paths import ROOT

SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def mac(key: str, text: str) -> bytes:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()


def token(key: str, domain: str, text: str, prefix: str, length: int) -> str:
    return prefix + base64.urlsafe_b64encode(mac(key, f"{domain}\0{text}")).decode()[:length]


def stars(text: str, keep: int) -> str:
    """The digits but for the last ones as stars."""
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    return "".join("*" if i in digits[:-keep] else c for i, c in enumerate(text))


def number(text: str | None, kind: Any) -> Any:
    """What the text says as a whole number of 32 bits or an amount in cents; None if it is neither."""
    if text is None:
        return None
    if kind is int:
        return int(text) if text.isdigit() and int(text) < 2**31 else None
    return Decimal(text) if re.fullmatch(r"\d{1,8}\.\d{1,2}", text) else None


def moment(text: str | None) -> datetime | None:
    return None if text in (None, "yesterday") else datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def expected_events(folder: Path, key: str) -> list[dict[str, Any]]:
    """The rows of `web_events`, each event of all files once."""
    seen: dict[Any, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for text in csv.DictReader(file):
                row = {name: value or None for name, value in text.items()}
                seen[row["event_id"], row["Event Time"], row["user"]] = row
    return [expected_event(row, key) for row in seen.values()]


def expected_event(row: dict[str, Any], key: str) -> dict[str, Any]:
    at = moment(row["Event Time"])
    mail, phone, card, text = row["email"], row["phone"], row["card"], row["properties"]
    duration, amount = number(row["duration_ms"], int), number(row["amount"], Decimal)
    typed = {"event_time": (row["Event Time"], at), "duration_ms": (row["duration_ms"], duration), "amount": (row["amount"], amount)}
    misfits = {name: given for name, (given, value) in typed.items() if given is not None and value is None}
    broken = text is not None and text.endswith(",")
    return {
        "event_id": row["event_id"],
        "event_time": at,
        "event_date": at and at.date(),
        "type": row["type"],
        "page": row["Page URL"],
        "user": token(key, "user", row["user"], "tok_", 22),
        "ip": token(key, "ip", row["ip"], "ip_", 12),
        "person": mac(key, mail).hex(),
        "email": mail[0] + "***@example.com" if "@" in mail and not mail.startswith("@") else "*" * len(mail),
        "phone": phone and (stars(phone, 2) if re.search(r"\d", phone) else "*" * len(phone)),
        "card": card and (stars(card, 4) if len(card) > 12 else "*" * len(card)),
        "duration_ms": duration,
        "amount": amount,
        "properties": text,
        "details": None if text is None or broken else {"query": None, "items": None, **json.loads(text)},
        "_misfits": misfits or None,
        "_corrupt": text if broken else None,
    }


def rows(project: Path, name: str) -> list[dict[str, Any]]:
    (place,) = {path.parent for path in (project / ".lakelet").rglob("_delta_log") if path.parent.name.split("-")[0] == name}
    found: list[dict[str, Any]] = DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    return found


def comparable(found: list[dict[str, Any]], names: Any) -> Counter[str]:
    """Rows as texts, to be counted. Maps come as lists of pairs, times in several classes of UTC."""

    def shown(name: str, value: Any) -> Any:
        if isinstance(value, datetime):
            return value.astimezone(timezone.utc).isoformat()
        return dict(value) if name == "_misfits" and value else value

    return Counter(repr([(name, shown(name, row[name])) for name in sorted(names)]) for row in found)


def check(project: Path, key: str) -> None:
    """Every table equals what the files that have arrived say."""
    events = expected_events(project / "landing", key)
    stored = rows(project, "web_events")
    assert comparable(stored, events[0]) == comparable(events, events[0])
    assert {row["_file_name"] for row in stored} <= {path.name for path in (project / "landing").iterdir()}

    views: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["type"] == "page_view":
            views[event["event_date"], event["page"]].append(event)
    daily = [
        {
            "event_date": day,
            "page": page,
            "views": len(seen),
            "people": len({e["person"] for e in seen}),
            "duration_ms": sum(e["duration_ms"] or 0 for e in seen),
        }
        for (day, page), seen in views.items()
    ]
    assert comparable(rows(project, "pages_daily"), daily[0]) == comparable(daily, daily[0])
    assert len(daily) > 10

    bought = [event for event in events if event["type"] == "purchase"]
    purchases, items, tags = (rows(project, name) for name in ("purchases", "purchases_items", "purchases_items_tags"))
    of_item, of_tag = defaultdict(list), defaultdict(list)
    for row in sorted(items, key=lambda row: row["_position"]):
        of_item[row["_parent_key"]].append(row)
    for row in sorted(tags, key=lambda row: row["_position"]):
        of_tag[row["_parent_key"]].append(row["value"])
    together = [
        {
            **{name: row[name] for name in ("event_id", "event_time", "user", "amount")},
            "items": None
            if row["items_size"] is None
            else [{"sku": i["sku"], "count": i["count"], "tags": of_tag[i["_key"]]} for i in of_item[row["_key"]]],
        }
        for row in purchases
    ]
    oracle = [
        {**{name: e[name] for name in ("event_id", "event_time", "user", "amount")}, "items": e["details"] and e["details"]["items"]}
        for e in bought
    ]
    assert comparable(together, oracle[0]) == comparable(oracle, oracle[0])
    assert sum(map(len, of_item.values())) == sum(len(e["items"] or ()) for e in oracle) > 50


@pytest.mark.long
def test_the_readme_of_the_web_example_gives_the_tables_of_the_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    project = tmp_path / "web"
    shutil.copytree(ROOT / "examples" / "web", project, ignore=shutil.ignore_patterns("__pycache__", "landing", ".lakelet"))
    monkeypatch.chdir(project)
    (commands,) = SH.findall((project / "README.md").read_text(encoding="utf-8"))
    key, updates = "", 0
    for line in commands.splitlines():
        first, *rest = shlex.split(line)
        if first == "export":
            name, _, key = rest[0].partition("=")
            monkeypatch.setenv(name, key)
        elif first == "python":
            monkeypatch.setattr(sys, "argv", rest)
            runpy.run_path(rest[0], run_name="__main__")
        else:
            assert (first, main(rest)) == ("lakelet", 0), line
        if rest[0] == "run":
            check(project, key)
            updates += 1
    assert updates == 2
    stored = (path for path in (project / ".lakelet").rglob("*") if path.is_file())
    days = {row["event_date"] for row in rows(project, "web_events")}
    assert {date(2026, 3, 1), date(2026, 3, 6), None} <= days
    secrets = [key.encode(), b"4111 1111 1111 1"]
    assert [path for path in stored if any(secret in path.read_bytes() for secret in secrets)] == []
