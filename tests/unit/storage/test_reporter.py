"""The one way by which the engine tells what happens: whose event it is, what it is about, in whose name."""

from __future__ import annotations

import ast
import json
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from lakelet.storage.eventlog.events import Event, Reporter
from lakelet.storage.eventlog.states import EventType, Level
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset, StoredFlow
from tests.paths import ROOT

TABLE = StoredDataset("main.shop.t", "streaming_table", "tables/main/shop/t")


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def reporter(tmp_path: Path, told: list[Event]) -> Reporter:
    return Reporter("p", "shop", "u1", Storage(tmp_path), frozenset({"main.shop.out"}), told.append)


def test_an_event_names_pipeline_update_dataset_flow_and_batch(reporter: Reporter, told: list[Event]) -> None:
    body = {"status": "RUNNING"}
    reporter.emit(EventType.FLOW_PROGRESS, "it runs", body, dataset="main.shop.T", flow="f", id="one", batch_id=4)
    (event,) = told
    origin = event.origin
    assert (origin.pipeline_id, origin.pipeline_name, origin.update_id) == ("p", "shop", "u1")
    assert (origin.dataset_name, origin.sink_name, origin.flow_name, origin.batch_id) == ("main.shop.T", None, "f", 4)
    assert (event.id, event.level, json.loads(event.details_json())) == ("one", "INFO", {"flow_progress": body})


def test_a_sink_is_named_as_one(reporter: Reporter, told: list[Event]) -> None:
    reporter.emit(EventType.FLOW_PROGRESS, "it runs", {}, dataset="main.shop.Out", flow="f")
    assert (told[0].origin.dataset_name, told[0].origin.sink_name) == (None, "main.shop.Out")


def test_the_id_of_a_flow_is_new_after_a_full_refresh_and_in_another_pipeline(reporter: Reporter, told: list[Event]) -> None:
    """EL-5."""
    for epoch in (0, 0, 1):
        reporter.storage.save(StorageRegistry(datasets={"main.shop.t": replace(TABLE, epoch=epoch)}))
        reporter.emit(EventType.FLOW_PROGRESS, "it runs", {}, dataset="main.shop.t", flow="f")
    replace(reporter, pipeline_id="q").emit(EventType.FLOW_PROGRESS, "it runs", {}, dataset="main.shop.t", flow="f")
    first, again, refreshed, other = [event.origin.flow_id for event in told]
    assert first == again
    assert len({first, refreshed, other}) == 3


def test_the_id_of_a_flow_is_new_once_its_view_was_computed_as_a_whole_again(reporter: Reporter, told: list[Event]) -> None:
    """EL-5."""
    for recomputed in (0, 1, 1, 2):
        reporter.storage.note_flow(StoredFlow("f", target="main.shop.t", recomputed=recomputed))
        reporter.emit(EventType.FLOW_PROGRESS, "it runs", {}, dataset="main.shop.T", flow="f")
    first, second, again, third = [event.origin.flow_id for event in told]
    assert second == again
    assert len({first, second, third}) == 3


def test_events_of_an_update_that_died_are_told_in_its_name_and_go_elsewhere(reporter: Reporter, told: list[Event]) -> None:
    collected: list[Event] = []
    reporter.of_update("u0", collected.append).notice("late", text="it came late", where="a.py, line 3", dataset="main.shop.t")
    assert told == []
    (event,) = collected
    assert (event.origin.update_id, event.level, event.message) == ("u0", Level.WARN, "late")
    assert event.details_json() == '{"notice":{"text":"it came late","where":"a.py, line 3"}}'


def test_a_notice_without_another_text_says_its_message(reporter: Reporter, told: list[Event]) -> None:
    reporter.notice("all is well", level=Level.INFO)
    assert (told[0].level, told[0].details_json()) == (Level.INFO, '{"notice":{"text":"all is well"}}')


def test_nobody_changes_where_a_reporter_reports_to(reporter: Reporter) -> None:
    with pytest.raises(FrozenInstanceError):
        reporter.write = print  # type: ignore[misc]


def test_events_get_their_origin_in_one_place() -> None:
    """None goes out without its origin. Events of a workspace, of a record and of maintenance come with theirs."""
    sources = ROOT / "src" / "lakelet"
    makers = {
        str(path.relative_to(sources))
        for path in sources.rglob("*.py")
        if path.parent.name != "analysis"  # which has a class of that name of its own, for columns
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Origin"
    }
    assert makers == {"deploy/remote_updates.py", "maintenance/maintain.py", "storage/eventlog/events.py", "update/idle/record.py"}
