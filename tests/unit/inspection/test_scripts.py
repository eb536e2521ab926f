"""Texts of several statements in `lakelet sql`: views, then a query."""

from __future__ import annotations

import pytest

from lakelet.base.names import Namespace
from lakelet.inspection.scripts import ScopedQuery, Script, script, split


@pytest.mark.parametrize(
    ("text", "views", "query"),
    [
        ("SELECT 1;", (), "SELECT 1"),
        ("  -- ; nothing\nSELECT ';' AS x ; ", (), "-- ; nothing\nSELECT ';' AS x"),
        ("CREATE VIEW a AS SELECT 1; SELECT * FROM a", ((("a",), "SELECT 1"),), "SELECT * FROM a"),
        (
            "create or replace temp view `A b` as\nselect ';' as x;\nCREATE TEMPORARY VIEW c AS SELECT 2; SELECT 3;",
            ((("A b",), "select ';' as x"), (("c",), "SELECT 2")),
            "SELECT 3",
        ),
        ("CREATE VIEW a AS SELECT 1", (), "CREATE VIEW a AS SELECT 1"),
        ("CREATE VIEW a AS SELECT 1;", (), "CREATE VIEW a AS SELECT 1"),
        ("CREATE TABLE a AS SELECT 1; SELECT 2", (), "CREATE TABLE a AS SELECT 1; SELECT 2"),
        ("CREATE VIEW s.`a b` AS SELECT 1; SELECT 2", ((("s", "a b"), "SELECT 1"),), "SELECT 2"),
        ("CREATE VIEW s. AS SELECT 1; SELECT 2", (), "CREATE VIEW s. AS SELECT 1; SELECT 2"),
        ("SELECT 1; SELECT 2", (), "SELECT 1; SELECT 2"),
        ("", (), ""),
    ],
)
def test_views_are_taken_off_in_front_of_the_query(text: str, views: tuple[tuple[str, str], ...], query: str) -> None:
    assert script(text) == Script(tuple((name, ScopedQuery(inner)) for name, inner in views), ScopedQuery(query))


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        ("SELECT 1", ("main", "default")),
        ("USE CATALOG other; SELECT 1", ("other", "default")),
        ("USE s; USE CATALOG other; SELECT 1", ("other", "default")),
        ("use `a b`; SELECT 1", ("main", "a b")),
        ("USE SCHEMA s; USE CATALOG c; CREATE VIEW v AS SELECT 2; USE x.y; SELECT 1;", ("x", "y")),
    ],
)
def test_use_in_front_of_the_query_completes_its_names(text: str, namespace: tuple[str, str]) -> None:
    found = script(text).query
    assert (found.query, found.namespace(Namespace("main", "default"))) == ("SELECT 1", Namespace(*namespace))


def test_a_view_has_the_namespace_of_its_own_statement() -> None:
    (_, before), (_, after) = script("CREATE VIEW a AS SELECT 1; USE s; CREATE VIEW b AS SELECT 2; SELECT 3").views
    assert [one.namespace(Namespace("c", "d")) for one in (before, after)] == [Namespace("c", "d"), Namespace("c", "s")]


def test_use_alone_and_with_too_many_parts_is_no_namespace() -> None:
    assert script("USE a;") == Script((), ScopedQuery("USE a"))
    with pytest.raises(ValueError, match=r"USE CATALOG a\.b"):
        script("USE CATALOG a.b; SELECT 1").query.namespace(Namespace())


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
        ("USE a; SELECT 1; SELECT 2;", ["USE a; SELECT 1;", "SELECT 2;"], ""),
        ("CREATE VIEW a AS SELECT 1; -- no query", ["CREATE VIEW a AS SELECT 1;"], ""),
    ],
)
def test_a_text_is_split_at_its_semicolons_views_going_with_the_query_after_them(text: str, found: list[str], rest: str) -> None:
    assert split(text) == (found, rest)
