"""The record of an idle update is read as it was written, by the version that wrote it only (IF-9)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.language.model import Kind
from lakelet.plan.decisions import PlanStep, Strategy
from lakelet.plan.refreshes import NO_OP
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import EventType, Level
from lakelet.storage.root import Storage
from lakelet.update.idle.facts import Fact, FactKind
from lakelet.update.idle.record import (
    PLACEHOLDER_ID,
    IdleRecord,
    for_update,
    load_record,
    names_placeholder_id,
    remove_record,
    save_record,
    stale_reason_json,
)

ORIGIN = Origin("p", "shop", PLACEHOLDER_ID, "main.shop.orders", "orders", "f")
PROGRESS = Event(
    EventType.UPDATE_PROGRESS, f"Update {PLACEHOLDER_ID[:6]} is QUEUED.", ORIGIN, {EventType.UPDATE_PROGRESS: {"state": "QUEUED"}}
)
LISTED = Event(
    EventType.OPERATION_PROGRESS,
    "Flow 'orders' listed 2 file(s) of /landing/*.json.",
    ORIGIN,
    {EventType.OPERATION_PROGRESS: {"duration_ms": 900, "auto_loader_details": {"source_path": "/landing/*.json"}}},
    level=Level.WARN,
)
STEP = PlanStep("main.shop.orders", Kind.STREAMING_TABLE, "orders", Strategy.SKIP, "it has no new file", ("main.shop.raw",), ())
RECORD = IdleRecord(b"key", (Fact(FactKind.FILE, "/a", "1"),), (PROGRESS, LISTED), (STEP, replace(STEP, refresh=NO_OP)), {"graph": []})


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


def test_a_record_is_read_as_it_was_written(storage: Storage) -> None:
    save_record(storage, RECORD.to_json())
    found = load_record(storage)
    assert found is not None
    assert (found.key, found.facts, found.steps, found.checked) == (RECORD.key, RECORD.facts, RECORD.steps, RECORD.checked)
    assert [step.refresh for step in found.steps] == [None, NO_OP]
    assert [(e.event_type, e.message, e.origin, e.details, e.level) for e in found.events] == [
        (e.event_type, e.message, e.origin, e.details, e.level) for e in RECORD.events
    ]
    remove_record(storage)
    assert load_record(storage) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "\x00", stale_reason_json("clock"), RECORD.to_json().replace('"format":2', '"format":1'), '{"format": 1}'],
)
def test_what_is_no_record_of_this_version_is_left_alone(storage: Storage, text: str) -> None:
    save_record(storage, text)
    assert load_record(storage) is None


def test_a_record_of_another_lakelet_is_left_alone(storage: Storage) -> None:
    save_record(storage, json.dumps({**json.loads(RECORD.to_json()), "lakelet": "0.0.1"}))
    assert load_record(storage) is None


def test_events_are_told_as_those_of_the_update_that_happens() -> None:
    emitted = [for_update(event, "abcdef12-0000", {"/landing": 0.02}) for event in RECORD.events]
    assert [event.origin.update_id for event in emitted] == ["abcdef12-0000"] * 2
    assert emitted[0].message == "Update abcdef is QUEUED."
    assert emitted[1].body["duration_ms"] == 20
    assert emitted[1].level is Level.WARN
    assert emitted[0].id != PROGRESS.id
    assert emitted[0].timestamp > PROGRESS.timestamp


def test_a_listing_takes_as_long_as_that_of_its_own_folder() -> None:
    seconds = {"/": 5.0, "/land": 4.0, "/landing": 0.02, "/landing/deeper": 3.0}
    assert for_update(LISTED, "abcdef12-0000", seconds).body["duration_ms"] == 20
    assert for_update(LISTED, "abcdef12-0000", {"/land": 4.0}).body["duration_ms"] == 0


def test_an_event_that_names_the_update_elsewhere_makes_no_record() -> None:
    named = Event(EventType.NOTICE, "note", ORIGIN, {EventType.NOTICE: {"text": PLACEHOLDER_ID}})
    assert not names_placeholder_id([PROGRESS, LISTED])
    assert names_placeholder_id([PROGRESS, named])
