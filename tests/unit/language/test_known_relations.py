"""The tables that a SQL text reads are looked up once; several flows ask at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.language.sql_text import table_names
from lakelet.language.sql_text.table_names import references


class Forgetting(dict[Any, Any]):
    """What is known, as a flow sees it while another one clears it after each look."""

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.clear()
        return found


def test_a_text_that_another_flow_lets_forget_meanwhile_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function in (
        ("substitute", lambda _, text: text),
        ("settings_text", lambda _: ""),
        ("_found_references", lambda _, text, functions, args: [text]),
    ):
        monkeypatch.setattr(table_names, name, function)
    monkeypatch.setattr(table_names, "_known", Forgetting())
    spark: Any = None
    assert [references(spark, "SELECT 1") for _ in range(3)] == [["SELECT 1"]] * 3
