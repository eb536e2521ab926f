"""Edits of a SQL text are of the text that was parsed, and are applied together. No Spark."""

from __future__ import annotations

from lakelet.language.sql_text.table_names import Edits, with_short_prefixes


def replaced(text: str, *parts: tuple[str, str]) -> Edits:
    """Edits that replace the first occurrence of each part."""
    return Edits(text).plus((text.index(old), text.index(old) + len(old), new) for old, new in parts)


def test_edits_do_not_move_one_another() -> None:
    query = replaced("SELECT a.b.x FROM a.b JOIN c.d", ("FROM a.b", "FROM a_long_name"), ("c.d", "v"))
    assert query.applied() == "SELECT a.b.x FROM a_long_name JOIN v"
    assert query.text == "SELECT a.b.x FROM a.b JOIN c.d"


def test_insertions_at_one_place_stay_in_their_order() -> None:
    assert Edits("ab").plus([(1, 1, "1"), (1, 1, "2")]).applied() == "a12b"


def test_an_edit_within_what_is_replaced_is_left_out() -> None:
    query = replaced("f(a.b) + a.b", ("f(a.b)", "v"))
    assert query.plus([(2, 5, "x"), (9, 12, "y")]).applied() == "v + y"


def test_prefixes_are_those_of_columns_and_not_the_names_of_tables_that_were_replaced() -> None:
    query = replaced("SELECT a.b.x, a.b.*, 'a.b.x' FROM a.b.c", ("a.b.c", "v"))
    assert with_short_prefixes(query, {("a", "b"): "b"}).applied() == "SELECT `b`.x, `b`.*, 'a.b.x' FROM v"
