"""Since when something is at fault, and what was edited in between: values of the history, from the events of updates."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from lakelet.dashboard.changes import what_changed
from lakelet.dashboard.page import KEPT, write_report
from lakelet.inspection.inspector import run_sql
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.root import Storage
from tests.event_logs import Log, shop, site, store

A = "main.s.a"


def story(*texts: str, counts: dict[int, tuple[int, int]] | None = None) -> Log:
    """An update for each text of the rule `r`; `counts`: passed and failed rows by number of the update, else (10, 0)."""
    log = Log(every=timedelta(hours=1))
    for number, text in enumerate(texts):
        update = log.update()
        update.define(A, rules={"r": (text, "warn")})
        update.flow(A, 1, 2, rows=10, rules={"r": (counts or {}).get(number, (10, 0))})
        update.state("COMPLETED", 3)
    return log


def rule_of(log: Log) -> dict:
    (row,) = site(log).quality()["rows"]
    return row


@pytest.mark.parametrize(
    ("broken", "since"),
    [
        ({}, None),
        ({1: (9, 1), 2: (10, 0)}, None),
        ({3: (9, 1)}, [3, 1, ""]),
        ({0: (9, 1), 2: (9, 1), 3: (9, 1)}, [2, 2, ", 1 hour"]),
        ({2: (9, 1), 3: (0, 0)}, [2, 1, ""]),  # an update without rows says nothing
    ],
)
def test_a_rule_fails_since_the_first_update_without_a_break(broken, since) -> None:
    log = story(*["id > 0"] * 4, counts=broken)
    found = rule_of(log)["failing"]
    if since is None:
        assert found is None
    else:
        number, updates, rest = since
        short = log.updates[number].id[:6]
        assert found == [number, updates, f"since update {short}, {updates} update{'s' * (updates > 1)}{rest}"]


def test_a_fall_by_definition_is_not_a_fall_by_data() -> None:
    log = story("id > 0", "id > 0", "id > 5", counts={2: (4, 6)})
    assert [c.text for c in what_changed(reduce_events(log.rows))] == [
        "40.00% pass its new text; 100% passed the old one, id > 0",
        "the rule was changed, text: id > 0 → id > 5",
    ]
    rule = rule_of(log)
    assert rule["edits"] == [[2, "text: id > 0 → id > 5", "id > 0", "warn"]]
    assert rule["failing"][:2] == [2, 1]
    worse = story("id > 0", "id > 5", "id > 5", counts={0: (9, 1), 1: (4, 6), 2: (3, 7)})
    assert [c.text for c in what_changed(reduce_events(worse.rows))] == ["pass rate fell from 40.00% to 30.00% (7 rows)"]
    assert rule_of(worse)["failing"][:2] == [1, 2]  # what broke the old text is another story


def test_an_edit_that_is_not_measured_at_once_stands_between_the_two_measurements() -> None:
    log = story("id > 0", "id > 0")
    update = log.update()
    update.define(A, rules={"r": ("id > 5", "drop")})
    update.flow(A, None, status="IDLE")
    last = log.update()
    last.define(A, rules={"r": ("id > 5", "drop")})
    last.flow(A, 1, 2, rows=4, rules={"r": (4, 6)})
    assert [c.text for c in what_changed(reduce_events(log.rows))] == ["40.00% pass its new text; 100% passed the old one, id > 0"]
    assert rule_of(log)["edits"] == [[2, "text: id > 0 → id > 5; action: warn → drop", "id > 0", "warn"]]


def test_a_dataset_that_fails_again_says_since_when_and_a_skipped_run_says_nothing() -> None:
    log = Log(every=timedelta(hours=1))
    for status in ("COMPLETED", "FAILED", "SKIPPED", "FAILED"):
        update = log.update()
        update.define(A)
        failed = status == "FAILED"
        update.flow(A, 1 if failed else None, 2, status=status, error=("FLOW_FAILED", "the disk is full") if failed else None)
    since = f"since update {log.updates[1].id[:6]}, 2 updates, 2 hours"
    assert [c.text for c in what_changed(reduce_events(log.rows))] == [f"failed again ({since}): the disk is full"]
    (item,) = site(log).overview()["datasets"]
    assert item["failing"] == [1, 2, since]


def test_a_check_fails_since_its_first_result_without_a_break() -> None:
    log = Log(every=timedelta(hours=1))
    for success in (False, True, False, None, False):
        update = log.update()
        update.define(A)
        update.check(A, "unique", success)
    (check,) = site(log).quality()["checks"]
    assert check["failing"] == [2, 2, f"since update {log.updates[2].id[:6]}, 2 updates, 2 hours"]


def test_a_rule_that_stopped_its_flow_shows_the_values_of_the_first_such_row_until_it_is_met() -> None:
    log = Log()
    update = log.update()
    update.define(A, rules={"paid": ("paid > 0", "fail"), "named": ("name IS NOT NULL", "warn")})
    update.stopped(A, 1, 2, rule="paid", rules={"paid": (9, 1), "named": (5, 5)}, values={"paid": "-3.0", "name": None})
    stops = {row["rule"]: row["stops"] for row in site(log).quality()["rows"]}
    assert stops == {"paid": [["paid", "-3.0"], ["name", "NULL"]], "named": None}
    after = log.update()
    after.define(A, rules={"paid": ("paid > 0", "fail")})
    after.flow(A, 1, 2, rows=3, rules={"paid": (3, 0)})
    assert [row["stops"] for row in site(log).quality()["rows"]] == [None]


def test_the_numbers_of_a_dataset_are_those_of_one_update() -> None:
    log = Log()
    first = log.update()
    first.define(A, rules={"r": ("id > 0", "warn"), "s": ("id > 1", "drop")})
    first.flow(A, 1, 2, rows=10, dropped=4, rules={"r": (7, 3), "s": (6, 4)})
    second = log.update()
    second.define(A, rules={"r": ("id > 0", "warn"), "s": ("id > 1", "drop")})
    second.flow(A, 1, 2, rows=10, rules={"r": (8, 2)})
    (item,) = site(log).overview()["datasets"]
    assert (item["measured"], item["violations"], item["broken_rules"], item["rate"], item["dropped"]) == (1, 2, 1, 0.8, 0)
    sums = [[u["violations"], u["broken_rules"], u["measured_rules"], u["dropped"]] for u in site(log).overview()["recent"]]
    assert sums == [[7, 2, 2, 4], [2, 1, 1, 0]]


def test_edits_of_rules_are_read_from_a_long_log_as_a_whole_and_bit_by_bit(tmp_path: Path) -> None:
    log = story("id > 0", "id > 5", "id > 5", "id > 7", "id > 7", "id > 0", "id > 0", "id > 0")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    store(whole, log.rows)
    edits = [[1, "id > 0"], [3, "id > 5"], [5, "id > 7"]]
    (row,) = write_report(whole, tmp_path, tmp_path / "read").quality()["rows"]
    assert [[number, before] for number, _, before, _ in row["edits"]] == edits
    ids = [update.id for update in log.updates]
    for some in (ids[:2], ids[2:7], ids[7:]):
        store(parts, [row for row in log.rows if row["origin"]["update_id"] in some])
        shown = write_report(parts, tmp_path, tmp_path / "report")
    (row,) = shown.quality()["rows"]
    assert [[number, before] for number, _, before, _ in row["edits"]] == edits
    assert (Storage(parts).root / "system" / KEPT).is_file()


def troubled(seed: int) -> Log:
    """Two datasets over twelve updates, with rules that are edited, flows that fail or are skipped, and checks, as chance has it."""
    chance, log = random.Random(seed), Log(every=timedelta(hours=1))
    text, action = "id > 0", "warn"
    for _ in range(12):
        update = log.update()
        text, action = (f"id > {chance.randrange(3)}", chance.choice(["warn", "drop"])) if chance.random() < 0.2 else (text, action)
        for name in (A, "main.s.b"):
            update.define(name, owner="ada@example.com", rules={"r": (text, action), "s": ("n > 0", "warn")})
            status = chance.choice(["COMPLETED"] * 4 + ["FAILED", "SKIPPED"])
            counted = {rule: (chance.randrange(1, 3), chance.randrange(3)) for rule in ("r", "s")} if status == "COMPLETED" else None
            error = ("FLOW_FAILED", "no") if status == "FAILED" else None
            update.flow(name, None if status == "SKIPPED" else 1, 2, rows=2, status=status, error=error, rules=counted)
            update.check(name, "unique", chance.choice([True, False, False, None]))
        update.state("COMPLETED", 3)
    return log


@pytest.mark.parametrize("make", [shop, *(partial(troubled, seed) for seed in range(12))])
def test_sql_and_the_page_say_the_same_is_at_fault_since_the_same_update(tmp_path: Path, make: Callable[[], Log]) -> None:
    log = make()
    store(tmp_path, log.rows)
    found = run_sql(tmp_path, "SELECT dataset, name, since_update_id, failed_updates, owner FROM faults").rows
    shown = site(log).summary()["failing"]
    assert shown
    assert sorted((row["dataset"], row["name"] or "", row["since_update_id"], row["failed_updates"]) for row in found) == sorted(
        (row["dataset"], row.get("rule") or row.get("check") or "", row["since"], row["updates"]) for row in shown
    )
