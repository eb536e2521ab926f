"""How rows of a table differ from the expected ones, as a test shows it."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.testing.row_comparison import canonical, difference


def test_a_row_is_shown_above_the_one_that_is_most_like_it() -> None:
    expected = [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}, {"id": 3, "name": "cy"}]
    found = [{"id": 2, "name": "bert"}, {"id": 1, "name": "ann"}, {"id": 9, "name": "zoe"}]
    assert difference(found, expected, ["id", "name"]).lines("people") == [
        "people: 2 missing and 2 unexpected, 1 row as expected",
        "              id  name",
        "  - expected  2   'bob'",
        "  + found     2   'bert'",
        "                  ^^^^^^",
        "  - expected  3   'cy'",
        "  + found     9   'zoe'",
    ]


def test_many_differing_rows_are_compared_no_more_often_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counting(value: Any) -> Any:
        nonlocal calls
        calls += 1
        return canonical(value)

    expected, found = ([{"id": number, "side": side} for number in range(start, start + 3_000)] for side, start in (("a", 0), ("b", 9_000)))
    differing = difference(found, expected, ["id", "side"])
    monkeypatch.setattr("lakelet.testing.row_comparison.canonical", counting)
    lines = differing.lines("t")
    assert lines[0] == "t: 3000 missing and 3000 unexpected, 0 rows as expected"
    assert lines[-1] == "  … and 2980 more"
    assert calls < 100_000
