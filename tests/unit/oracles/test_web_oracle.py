"""The oracle of the web example against rows written by hand, and what its generator writes."""

from __future__ import annotations

import csv
import hmac
import runpy
from collections.abc import Mapping
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


def read(folder: Path, *files: list[Mapping[str, str]]) -> dict[str, list[dict[str, Any]]]:
    for number, lines in enumerate(files):
        with (folder / f"{number}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, GENERATOR["COLUMNS"])
            writer.writeheader()
            writer.writerows(lines)
    return web.expected(folder, KEY)


def test_an_event_is_typed_masked_and_there_once_and_what_does_not_fit_is_kept(tmp_path: Path) -> None:
    broken = VIEW | {"Event Time": "yesterday", "duration_ms": "12.5", "amount": "9.999", "properties": '{"a",'}
    first, second = read(tmp_path, [VIEW, broken], [VIEW, VIEW | {"email": "another@example.com"}])["web_events"]
    assert (first["event_time"], first["event_date"], first["duration_ms"], first["phone"]) == (NOON, date(2026, 3, 1), 5, None)
    assert (first["person"], first["email"]) == (hmac.new(KEY.encode(), b"ann@example.com", "sha256").hexdigest(), "a***@example.com")
    assert (first["_misfits"], first["_corrupt"], first["details"]) == (None, None, None)
    assert second["_misfits"] == {"event_time": "yesterday", "duration_ms": "12.5", "amount": "9.999"}
    assert (second["event_date"], second["amount"], second["_corrupt"]) == (None, None, '{"a",')


@pytest.mark.parametrize(
    ("mask", "text", "expected"),
    [
        (web.masked_email, "b@example.com", "***@example.com"),
        (web.masked_email, "no address", "**********"),
        (web.masked_phone, "+49 (30) 901820-17", "+** (**) ******-17"),
        (web.masked_phone, "call me", "*******"),
        (web.masked_card, "4111 1111 1111 1234", "**** **** **** 1234"),
        (web.masked_card, "4111-x", "******"),
        (web.masked_card, None, None),
    ],
)
def test_masks_keep_the_form_of_a_value_or_hide_all_of_it(mask: Any, text: str | None, expected: str | None) -> None:
    assert mask(text) == expected


def test_pages_and_purchases_are_those_of_their_events(tmp_path: Path) -> None:
    bought = VIEW | {"event_id": "e2", "type": "purchase", "amount": "9.50", "properties": ITEMS}
    cut = bought | {"event_id": "e3", "properties": ITEMS[:-2]}
    other = VIEW | {"event_id": "e4", "email": "bo@example.com", "duration_ms": "n/a"}
    unknown = other | {"event_id": "e5", "Page URL": "/cart"}
    found = read(tmp_path, [VIEW, bought, cut, other, unknown])
    assert [tuple(row.values()) for row in found["pages_daily"]] == [
        (date(2026, 3, 1), "/", 2, 2, 5),
        (date(2026, 3, 1), "/cart", 1, 1, None),
    ]
    assert [tuple(row.values()) for row in found["purchases"]] == [
        ("e2", NOON, "u1", Decimal("9.50"), 2),
        ("e3", NOON, "u1", Decimal("9.50"), None),
    ]
    assert [tuple(row.values())[3:] for row in found["purchases_items"]] == [(0, "A", 2, 2), (1, "B", 1, 0)]
    assert [tuple(row.values())[3:] for row in found["purchases_items_tags"]] == [(0, 0, "new"), (0, 1, "sale")]


def test_generated_files_hold_what_the_example_must_bear(tmp_path: Path) -> None:
    lines = [GENERATOR["write"](number, tmp_path, 7) for number in (1, 2)]
    events = web.expected(tmp_path, KEY)["web_events"]
    assert len(events) < sum(lines)
    assert {name for row in events for name in row["_misfits"] or ()} == {"event_time", "duration_ms", "amount"}
    for name in ("event_id", "event_time", "phone", "_corrupt"):
        assert {row[name] is None for row in events} == {True, False}
