"""The answer to an update with nothing to do is an update like every other, for the registry and in the event log (IF-10)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.config.update_config import PipelineConfig
from lakelet.plan.selection import EVERYTHING, Request
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.reading import read_events
from lakelet.storage.eventlog.states import EventType, UpdateState
from lakelet.storage.root import LastUpdate, Storage, StorageRegistry
from lakelet.update.idle.answer import SWITCH, idle_answer, is_asked
from lakelet.update.idle.facts import FactKind, Here, looked_up, of_process
from lakelet.update.idle.record import PLACEHOLDER_ID, IdleRecord, save_record

LAST = LastUpdate("1", "2026-01-01", clean=True)


def progress(state: UpdateState) -> Event:
    message = f"Update {PLACEHOLDER_ID[:6]} is {state}."
    return Event(EventType.UPDATE_PROGRESS, message, Origin("p", "shop", PLACEHOLDER_ID), {EventType.UPDATE_PROGRESS: {"state": state}})


@pytest.fixture
def config(tmp_path: Path) -> PipelineConfig:
    """A pipeline with a storage that holds the record of an idle update."""
    (tmp_path / "pipeline.py").write_text("x = 1")
    storage = Storage(tmp_path / ".lakelet")
    storage.save(StorageRegistry(pipeline_id="p", last_update=LAST))
    made = PipelineConfig("shop", "p", tmp_path, (tmp_path / "pipeline.py",), (tmp_path,), Namespace(), {}, storage.root)
    here = Here(made, b"key", dict(os.environ))
    facts = (*of_process(here), *looked_up(here, [(FactKind.FILE, str(tmp_path / "pipeline.py")), (FactKind.REGISTRY, "")]))
    events = (progress(UpdateState.RUNNING), progress(UpdateState.COMPLETED))
    save_record(storage, IdleRecord(b"key", facts, events, (), {}).to_json())
    return made


def last(config: PipelineConfig) -> LastUpdate | None:
    return Storage(config.storage).registry().last_update


def test_the_answer_is_registered_as_an_update(config: PipelineConfig) -> None:
    heard: list[Event] = []
    for number in (1, 2):
        answer = idle_answer(config, [heard.append])
        assert answer is not None
        assert answer.state is UpdateState.COMPLETED
        found = last(config)
        assert found is not None
        assert (found.id, found.clean) == (answer.update_id, True)
        logged = read_events(config.storage, every=True)
        assert [event["id"] for event in logged] == [event.id for event in heard]
        assert [event.sequence for event in heard] == [1, 2] * number
        assert {event["origin"]["update_id"] for event in logged[-2:]} == {answer.update_id}
    assert not list(Storage(config.storage).system.glob("lease-*"))


def test_where_something_changed_nothing_is_told_or_written(config: PipelineConfig) -> None:
    (config.root / "pipeline.py").write_text("x = 2")
    assert idle_answer(config, [lambda event: pytest.fail("an event was emitted")]) is None
    assert last(config) == LAST
    assert not Storage(config.storage).events.exists()


def test_an_answer_that_dies_on_the_way_leaves_an_update_that_did_not_end(config: PipelineConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = Storage.save

    def save(storage: Storage, registry: StorageRegistry) -> None:
        if registry.last_update is not None and registry.last_update.clean:
            raise KeyboardInterrupt
        saved(storage, registry)

    monkeypatch.setattr(Storage, "save", save)
    with pytest.raises(KeyboardInterrupt):
        idle_answer(config, [])
    monkeypatch.undo()
    found = last(config)
    assert found is not None
    assert not found.clean
    assert idle_answer(config, []) is None


def test_an_answer_waits_for_no_other_update(config: PipelineConfig) -> None:
    with Storage(config.storage).lease("other"), pytest.raises(LakeletError) as raised:
        idle_answer(config, [])
    assert raised.value.code == "LAKELET_STORAGE_BUSY"


def test_only_plain_updates_are_answered(config: PipelineConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_asked(config, EVERYTHING)
    assert not is_asked(config, Request(select=("a",)))
    assert not is_asked(config, Request(full_refresh_all=True))
    assert not is_asked(config, Request(refresh_failed=True))
    assert not is_asked(replace(config, continuous=True), EVERYTHING)
    assert not is_asked(replace(config, take_over=("other",)), EVERYTHING)
    monkeypatch.setenv(SWITCH, "off")
    assert not is_asked(config, EVERYTHING)
