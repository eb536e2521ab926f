"""Texts of several statements in `lakelet sql`: views, then a query."""

from __future__ import annotations

import pytest

from lakelet.inspection.scripts import Script, script, split


@pytest.mark.parametrize(
    ("text", "views", "query"),
    [
        ("SELECT 1;", (), "SELECT 1"),
        ("  -- ; nothing\nSELECT ';' AS x ; ", (), "-- ; nothing\nSELECT ';' AS x"),
        ("CREATE VIEW a AS SELECT 1; SELECT * FROM a", (("a", "SELECT 1"),), "SELECT * FROM a"),
        (
            "create or replace temp view `A b` as\nselect ';' as x;\nCREATE TEMPORARY VIEW c AS SELECT 2; SELECT 3;",
            (("A b", "select ';' as x"), ("c", "SELECT 2")),
            "SELECT 3",
        ),
        ("CREATE VIEW a AS SELECT 1", (), "CREATE VIEW a AS SELECT 1"),
        ("CREATE VIEW a AS SELECT 1;", (), "CREATE VIEW a AS SELECT 1"),
        ("CREATE TABLE a AS SELECT 1; SELECT 2", (), "CREATE TABLE a AS SELECT 1; SELECT 2"),
        ("CREATE VIEW s.a AS SELECT 1; SELECT 2", (), "CREATE VIEW s.a AS SELECT 1; SELECT 2"),
        ("SELECT 1; SELECT 2", (), "SELECT 1; SELECT 2"),
        ("", (), ""),
    ],
)
def test_views_are_taken_off_in_front_of_the_query(text: str, views: tuple[tuple[str, str], ...], query: str) -> None:
    assert script(text) == Script(views, query)


@pytest.mark.parametrize(
    ("text", "found", "rest"),
    [
        ("", [], ""),
        ("SELECT 1", [], "SELECT 1"),
        (";; SELECT 1 ; -- ;", ["SELECT 1 ;"], ""),
        ("SELECT 1; /* ;", ["SELECT 1;"], "/* ;"),
        (
            "CREATE VIEW a AS SELECT 1; CREATE VIEW b AS SELECT 2; SELECT",
            [],
            "CREATE VIEW a AS SELECT 1; CREATE VIEW b AS SELECT 2; SELECT",
        ),
        (
            "SELECT 0; CREATE VIEW a AS SELECT 1; SELECT 2; SELECT 3;",
            ["SELECT 0;", "CREATE VIEW a AS SELECT 1; SELECT 2;", "SELECT 3;"],
            "",
        ),
        ("CREATE VIEW a AS SELECT 1; -- no query", ["CREATE VIEW a AS SELECT 1;"], ""),
    ],
)
def test_a_text_is_split_at_its_semicolons_views_going_with_the_query_after_them(text: str, found: list[str], rest: str) -> None:
    assert split(text) == (found, rest)
