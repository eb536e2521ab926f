"""A report that keeps what it has read shows the same as one that reads everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet.dashboard import update_history
from lakelet.dashboard.page import KEPT, write_report
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage
from tests.event_samples import Log, first_update, second_update


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The updates whose events were read, in order."""
    found: list[str] = []
    event = update_history.row_of

    def noted(row: dict[str, Any]) -> dict[str, Any]:
        found.append(row["update_id"])
        return event(row)

    monkeypatch.setattr(update_history, "row_of", noted)
    return found


@pytest.mark.parametrize("damage", [None, "{", '{"format": 1}', '{"format": 1, "version": "0", "log": "x", "position": 1}\n{}'])
def test_an_update_that_has_ended_is_read_once_and_shown_the_same(damage: str | None, read: list[str], tmp_path: Path) -> None:
    storage, log = tmp_path / "storage", Log()
    first_update(log)
    append(Storage(storage).events, log.events)
    first = write_report(storage, tmp_path, tmp_path / "report")
    assert set(read) == {"u1"}
    said = len(log.events)
    second_update(log)
    append(Storage(storage).events, log.events[said:])
    kept = Storage(storage).root / "system" / KEPT
    if damage is not None:
        kept.write_text(damage)
    read.clear()
    second = write_report(storage, tmp_path, tmp_path / "report")
    assert set(read) == ({"u2"} if damage is None else {"u1", "u2"})
    assert second.history.updates[0] == first.history.updates[0]
    read.clear()
    kept.unlink()
    whole = write_report(storage, tmp_path, tmp_path / "report")
    assert set(read) == {"u1", "u2"}
    assert whole.history == second.history
