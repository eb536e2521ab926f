"""What is remembered of the last checks of tables, and which of their events the log has."""

from __future__ import annotations

import uuid

from lakelet.storage.checked_versions import CheckedVersion, load_checked, save_checked
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.reading import known_ids
from lakelet.storage.eventlog.states import EventType
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage


def test_the_last_checks_come_back_as_they_were_saved(tmp_path):
    storage = Storage(tmp_path / "storage")
    storage.system.mkdir(parents=True)
    checked = {"c.s.t": CheckedVersion("id", 3, "abc", ("one_each",), {"fresh": 12.5, "empty": None}, ("empty",))}
    assert load_checked(storage) == {}
    save_checked(storage, checked)
    assert load_checked(storage) == checked
    written = (storage.system / "checks.json").stat().st_mtime_ns
    save_checked(storage, checked)
    assert (storage.system / "checks.json").stat().st_mtime_ns == written


def test_a_damaged_file_means_that_nothing_was_checked(tmp_path):
    storage = Storage(tmp_path / "storage")
    storage.system.mkdir(parents=True)
    for text in ("", "{", '{"a": {"table": "x"}}', '{"a": {"unknown": 1}}', "[]", '{"a": 1}'):
        (storage.system / "checks.json").write_text(text)
        assert load_checked(storage) == {}


def test_the_log_says_which_events_it_has(tmp_path):
    one, other, third = (str(uuid.uuid4()) for _ in range(3))
    assert known_ids(tmp_path / "events", EventType.TABLE_CHECK, [one]) == frozenset()
    origin = Origin("p", "pipeline", str(uuid.uuid4()))
    check = EventType.TABLE_CHECK
    append(tmp_path / "events", [Event(check, "holds", origin, {check: {}}, id=one)])
    append(tmp_path / "events", [Event(EventType.NOTICE, "n", origin, {EventType.NOTICE: {}}, id=third)])
    assert known_ids(tmp_path / "events", check, [one, other, third]) == {one}
    assert known_ids(tmp_path / "events", check, []) == frozenset()
