"""What the session of `lakelet watch` does while nobody needs it (decision 49)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from lakelet.spark.launch.resident.lending import Lender
from lakelet.spark.launch.resident.remains import Remains
from lakelet.spark.launch.resident.warming import Warming


def test_the_steps_end_and_leave_nothing(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remains, warming = Remains.of(spark), Warming()
    folders = []
    for _ in range(6):
        warming.step()
        folders.append(len(list(tmp_path.iterdir())))
    assert folders == [1, 1, 1, 1, 0, 0]
    assert remains.unlike() is None
    assert remains.cleaned() is None
    assert list(spark.streams.active) == []


def test_a_session_that_is_offered_to_nobody_is_left_alone() -> None:
    done: list[None] = []
    lender = Lender()
    lender.spare(lambda: done.append(None))
    assert done == []
