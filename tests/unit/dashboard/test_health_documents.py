"""What `report --json` says of what waits, who is affected and which input was bad."""

from __future__ import annotations

from tests.event_logs import shop, site
from tests.unit.storage.test_freshness import faulty_input


def test_scripts_get_who_is_affected_and_what_waits_with_owners_and_times() -> None:
    said = site(shop(3)).summary()
    (affected,) = said["affected"]
    assert affected["since_at"].startswith("2026-03-01T18:00:43")
    assert {**affected, "since_at": ""} == {
        "cause": "main.silver.payments",
        "cause_owner": "orders@example.com",
        "problem": "failed",
        "since_at": "",
        "failed_updates": 1,
        "dataset": "main.gold.daily_sales",
        "owner": "finance@example.com",
        "distance": 1,
    }
    assert {b["dataset"]: b["waiting_rows"] for b in said["behind"]} == {"main.silver.payments": 69_391, "main.gold.daily_sales": 69_391}
    assert said["bad_input"] == []


def test_scripts_get_each_kind_of_bad_input_with_its_newest_number_and_first_place() -> None:
    said = site(faulty_input()).summary()["bad_input"]
    assert [(b["dataset"], b["problem"], b["records"], b["updates"], b["file"], b["line"]) for b in said] == [
        ("main.s.clean", "late", 6, 2, None, None),
        *[
            ("main.s.raw", problem, records, 2, "/in/a.json", line)
            for problem, records, line in (
                ("broken", 3, 6),
                ("left out", 1, 6),
                ("rescued", 5, 4),
                ("unread text", 2, 4),
                ("undecodable", 1, 4),
            )
        ],
    ]
    assert {b["problem"]: b["sample"] for b in said if b["sample"]} == {"broken": '{"id": 3', "left out": '{"id": 3'}
