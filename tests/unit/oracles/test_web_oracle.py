"""The oracle of the web example against rows written by hand, what it notices in wrong tables, and what the generator writes."""

from __future__ import annotations

import csv
import hmac
import runpy
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.oracles import web
from tests.paths import ROOT

GENERATOR = runpy.run_path(str(ROOT / "examples/web/generate.py"), run_name="generate")
KEY = "sixteen bytes or more"
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
VIEW = {"event_id": "e1", "Event Time": "2026-03-01T12:00:00Z", "type": "page_view", "user": "u1", "email": "ann@example.com"} | {
    "ip": "10.0.0.1",
    "Page URL": "/",
    "duration_ms": "5",
}
ITEMS = '{"items": [{"sku": "A", "count": 2, "tags": ["new", "sale"]}, {"sku": "B", "count": 1, "tags": []}]}'
BOUGHT = VIEW | {"event_id": "e2", "type": "purchase", "user": "u2", "amount": "9.50", "properties": ITEMS}
Found = dict[str, list[dict[str, Any]]]


def write(folder: Path, *files: Iterable[Mapping[str, str]]) -> Path:
    for number, lines in enumerate(files):
        with (folder / f"{number}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, GENERATOR["COLUMNS"])
            writer.writeheader()
            writer.writerows(lines)
    return folder


def read(folder: Path, *files: list[Mapping[str, str]]) -> dict[str, list[dict[str, Any]]]:
    return web.expected(write(folder, *files), KEY)


def test_an_event_is_typed_masked_and_there_once_and_what_does_not_fit_is_kept(tmp_path: Path) -> None:
    broken = VIEW | {"Event Time": "yesterday", "duration_ms": "12.5", "amount": "9.999", "properties": '{"a",'}
    first, second = read(tmp_path, [VIEW, broken], [VIEW, VIEW | {"email": "another@example.com"}])["web_events"]
    assert (first["event_time"], first["event_date"], first["duration_ms"], first["phone"]) == (NOON, date(2026, 3, 1), 5, None)
    assert (first["person"], first["email"]) == (hmac.new(KEY.encode(), b"ann@example.com", "sha256").hexdigest(), "a***@example.com")
    assert (first["_misfits"], first["_corrupt"], first["details"], first["_file_name"]) == (None, None, None, {"0.csv", "1.csv"})
    assert second["_misfits"] == {"event_time": "yesterday", "duration_ms": "12.5", "amount": "9.999"}
    assert (second["event_date"], second["amount"], second["_corrupt"], second["_file_name"]) == (None, None, '{"a",', {"0.csv"})


@pytest.mark.parametrize(
    ("column", "text", "masked"),
    [
        ("email", "zoë4@example.com", "z***@example.com"),
        ("email", "b@example.com", "***@example.com"),
        ("email", "no address", "**********"),
        ("phone", "+49 (30) 901820-17", "+** (**) ******-17"),
        ("phone", "call me", "*******"),
        ("card", "4111 1111 1111 1234", "**** **** **** 1234"),
        ("card", "4111-x", "******"),
        ("card", "", None),
    ],
)
def test_masks_keep_the_form_of_a_value_or_hide_all_of_it(column: str, text: str, masked: str | None, tmp_path: Path) -> None:
    (event,) = read(tmp_path, [VIEW | {column: text}])["web_events"]
    assert event[column] == masked


def test_pages_and_purchases_are_those_of_their_events(tmp_path: Path) -> None:
    cut = BOUGHT | {"event_id": "e3", "properties": ITEMS[:-2]}
    other = VIEW | {"event_id": "e4", "email": "bo@example.com", "duration_ms": "n/a"}
    unknown = other | {"event_id": "e5", "Page URL": "/cart"}
    found = read(tmp_path, [VIEW, BOUGHT, cut, other, unknown])
    assert [tuple(row.values()) for row in found["pages_daily"]] == [
        (date(2026, 3, 1), "/", 2, 2, 5),
        (date(2026, 3, 1), "/cart", 1, 1, None),
    ]
    whole, broken = found["purchases"]
    assert tuple(whole.values())[:5] == ("e2", NOON, "u2", Decimal("9.50"), 2)
    assert tuple(broken.values()) == ("e3", NOON, "u2", Decimal("9.50"), None, [])
    assert whole["items"] == [
        {"sku": "A", "count": 2, "tags_size": 2, "tags": [{"value": "new"}, {"value": "sale"}]},
        {"sku": "B", "count": 1, "tags_size": 0, "tags": []},
    ]


def right_tables(landing: Path) -> Found:
    """Tables that are right, with tokens and keys of this test's own."""
    wanted = web.expected(landing, KEY)
    users, addresses = ({row[name]: None for row in wanted["web_events"]} for name in ("user", "ip"))
    tokens = {
        "user": {value: f"tok_{number:022}" for number, value in enumerate(users)},
        "ip": {value: f"ip_{number:012}" for number, value in enumerate(addresses)},
    }
    hidden = [
        {**row, **{name: tokens[name][row[name]] for name in tokens}, "_file_name": max(row["_file_name"])} for row in wanted["web_events"]
    ]
    purchases, items, tags = [], [], []
    for number, row in enumerate(wanted["purchases"]):
        purchases.append({**row, "user": tokens["user"][row["user"]], "_key": f"p{number}"})
        for place, item in enumerate(purchases[-1].pop("items")):
            key = f"p{number}-{place}"
            items.append({"_key": key, "_parent_key": f"p{number}", "_position": place, **item})
            below = items[-1].pop("tags")
            tags += [{"_key": f"{key}-{at}", "_parent_key": key, "_position": at, **tag} for at, tag in enumerate(below)]
    return {
        "web_events": hidden,
        "pages_daily": wanted["pages_daily"],
        "purchases": purchases,
        "purchases_items": items,
        "purchases_items_tags": tags,
    }


FAULTS: Mapping[str, Callable[[Found], Any]] = {
    "web_events has": lambda t: t["web_events"].pop(),
    "web_events has [('_corrupt', None), ('_file_name', ['0.csv', '1.csv'])": lambda t: t["web_events"].append(t["web_events"][0]),
    "('_file_name', 'no.csv')": lambda t: t["web_events"][0].update(_file_name="no.csv"),
    "('_file_name', '1.csv')": lambda t: t["web_events"][1].update(_file_name="1.csv"),
    "('type', 'search')": lambda t: t["web_events"][0].update(type="search"),
    "('amount', '9.50')": lambda t: t["web_events"][1].update(amount="9.50"),
    "user: tokens and values are not one to one": lambda t: t["web_events"][0].update(user=t["web_events"][1]["user"]),
    "ip: a token of another form": lambda t: [row.update(ip="10.0.0.1") for row in t["web_events"]],
    "purchases has": lambda t: t["purchases"][0].update(user=t["web_events"][0]["user"]),
    "pages_daily has": lambda t: t["pages_daily"][0].update(people=3),
    "purchases: a row without a key": lambda t: t["purchases"][1].update(_key="p0"),
    "purchases_items: rows without a parent": lambda t: t["purchases_items"][0].update(_parent_key="p9"),
    "purchases_items: positions": lambda t: t["purchases_items"][1].update(_position=2),
    "and lacks [('amount'": lambda t: t["purchases_items"][1].update(_parent_key="p1", _position=0),
    "('value', 'sale')": lambda t: [row.update(_position=1 - row["_position"]) for row in t["purchases_items_tags"]],
    "purchases_items_tags: two rows with one key": lambda t: t["purchases_items_tags"][1].update(_key="p0-0-0"),
}


def deliveries(folder: Path) -> Path:
    return write(folder, [VIEW, BOUGHT, BOUGHT | {"event_id": "e3", "properties": ""}], [VIEW])


def test_right_tables_do_not_differ(tmp_path: Path) -> None:
    landing = deliveries(tmp_path)
    assert web.differences(right_tables(landing), landing, KEY) == []


@pytest.mark.parametrize("told", [*FAULTS])
def test_a_fault_of_a_table_is_told(told: str, tmp_path: Path) -> None:
    landing = deliveries(tmp_path)
    tables = {name: [dict(row) for row in rows] for name, rows in right_tables(landing).items()}
    FAULTS[told](tables)
    assert told in "\n".join(web.differences(tables, landing, KEY))


def test_generated_files_hold_what_the_example_must_bear(tmp_path: Path) -> None:
    lines = [GENERATOR["write"](number, tmp_path, 7) for number in (1, 2)]
    events = web.expected(tmp_path, KEY)["web_events"]
    assert len(events) < sum(lines)
    assert {name for row in events for name in row["_misfits"] or ()} == {"event_time", "duration_ms", "amount"}
    assert max(len(row["_file_name"]) for row in events) > 1
    for name in ("event_id", "event_time", "phone", "_corrupt"):
        assert {row[name] is None for row in events} == {True, False}
    assert web.differences(right_tables(tmp_path), tmp_path, KEY) == []
