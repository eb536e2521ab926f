"""What the session of `lakelet watch` does while nobody needs it (decision 49)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet.jvm.leftovers import Leftovers
from lakelet.spark.launch.resident import server
from lakelet.spark.launch.resident.server import SessionServer


@pytest.mark.long
def test_the_steps_end_and_leave_nothing(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def scratch_folder(purpose: str) -> Path:
        folder = tmp_path / purpose
        folder.mkdir()
        return folder

    monkeypatch.setattr(server, "scratch_folder", scratch_folder)
    leftovers, steps = Leftovers.of(spark), server.WarmUpSteps()
    folders = []
    for _ in range(6):
        steps.step()
        folders.append(len(list(tmp_path.iterdir())))
    assert folders == [1, 1, 1, 1, 0, 0]
    assert leftovers.unlike() is None
    assert leftovers.cleaned() is None
    assert list(spark.streams.active) == []


def test_a_session_is_used_in_idle_time_only_while_it_is_served_and_nobody_has_or_had_it() -> None:
    done: list[str] = []
    server: Any = SessionServer()
    server.use_idle_time(lambda: done.append("not served"))
    server._running = object()
    server.use_idle_time(lambda: done.append("served"))
    with server._in_use:
        server.use_idle_time(lambda: done.append("in use"))
    server.use_idle_time(lambda: done.append("again"))
    server._was_used = True
    server.use_idle_time(lambda: done.append("used"))
    assert done == ["served", "again"]
    assert not server._in_step
