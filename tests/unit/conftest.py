"""Fixtures of the unit tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with `golden/<name>`. With LAKELET_UPDATE_GOLDEN=1 the file is written first: read the difference in git."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("LAKELET_UPDATE_GOLDEN"):
            path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        assert text.rstrip("\n") + "\n" == path.read_text(encoding="utf-8")

    return compare
