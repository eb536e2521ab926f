"""What the session of `lakelet watch` does while nobody needs it (decision 49)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet.jvm.remains import Remains
from lakelet.spark.launch.resident import warming
from lakelet.spark.launch.resident.lending import Lender


@pytest.mark.long
def test_the_steps_end_and_leave_nothing(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def scratch_folder(purpose: str) -> Path:
        folder = tmp_path / purpose
        folder.mkdir()
        return folder

    monkeypatch.setattr(warming, "scratch_folder", scratch_folder)
    remains, steps = Remains.of(spark), warming.Warming()
    folders = []
    for _ in range(6):
        steps.step()
        folders.append(len(list(tmp_path.iterdir())))
    assert folders == [1, 1, 1, 1, 0, 0]
    assert remains.unlike() is None
    assert remains.cleaned() is None
    assert list(spark.streams.active) == []


def test_a_session_is_used_in_idle_time_only_while_it_is_offered_and_nobody_has_or_had_it() -> None:
    done: list[str] = []
    lender: Any = Lender()
    lender.spare(lambda: done.append("not offered"))
    lender._running = object()
    lender.spare(lambda: done.append("offered"))
    with lender._in_use:
        lender.spare(lambda: done.append("in use"))
    lender.spare(lambda: done.append("again"))
    lender._lent = True
    lender.spare(lambda: done.append("lent"))
    assert done == ["offered", "again"]
    assert not lender._in_step
