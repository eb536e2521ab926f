"""Which rows the reads of a view's function give when it follows a change (IV-24, IV-26)."""

from __future__ import annotations

from lakelet.flows.views.leaf_rows import LeafRows, pruned_columns, rows_that_come, rows_that_touch
from lakelet.plan.refreshes import Leaf, Range, Technique, ViewShape

NONE, CHANGED, PRESENT, EVER = LeafRows
A, B, D = ("a", 0), ("b", 0), ("d", 0)


def shape(*leaves: Leaf, keys: tuple[int, ...] = (0,)) -> ViewShape:
    return ViewShape(Technique.GROUPS, leaves, keys)


JOIN = shape(Leaf("a", 0, joined=frozenset({1})), Leaf("d", 0, joined=frozenset({0})))
UNION = shape(Leaf("a", 0), Leaf("b", 0))
BOTH = shape(Leaf("a", 0, joined=frozenset({1})), Leaf("d", 0, joined=frozenset({0})), Leaf("b", 0))
OUTER = shape(Leaf("a", 0, joined=frozenset({1})), Leaf("d", 0, preserved=False, joined=frozenset({0})))


def test_new_rows_of_one_side_meet_all_rows_of_the_other_and_no_rows_of_other_branches() -> None:
    assert rows_that_come(JOIN, {"a"}) == {A: CHANGED, D: PRESENT}
    assert rows_that_come(BOTH, {"a"}) == {A: CHANGED, D: PRESENT, B: NONE}
    assert rows_that_come(BOTH, {"b"}) == {A: NONE, D: NONE, B: CHANGED}
    assert rows_that_come(UNION, {"a", "b"}) == {A: CHANGED, B: CHANGED}


def test_new_rows_that_meet_new_rows_or_replace_filled_ones_are_not_added() -> None:
    assert rows_that_come(JOIN, {"a", "d"}) is None
    assert rows_that_come(OUTER, {"d"}) is None
    assert rows_that_come(OUTER, {"a"}) == {A: CHANGED, D: PRESENT}


def test_one_read_in_two_places_must_give_the_same_rows_in_both_to_be_added() -> None:
    twice = shape(Leaf("a", 0, joined=frozenset({1})), Leaf("d", 0, joined=frozenset({0})), Leaf("d", 0))
    assert rows_that_come(twice, {"a"}) is None
    assert rows_that_touch(twice, {"a"}) == [{A: CHANGED, D: PRESENT}]


def test_keys_are_found_read_by_read_and_other_changed_tables_give_all_rows_they_ever_had() -> None:
    assert rows_that_touch(JOIN, {"a", "d"}) == [{A: CHANGED, D: EVER}, {A: EVER, D: CHANGED}]
    assert rows_that_touch(BOTH, {"d"}) == [{A: PRESENT, D: CHANGED, B: NONE}]
    assert rows_that_touch(UNION, {"a", "b"}) == [{A: CHANGED, B: NONE}, {A: NONE, B: CHANGED}]


def test_a_table_that_is_read_twice_is_changed_in_one_read_at_a_time() -> None:
    pairs = shape(Leaf("a", 0, joined=frozenset({1})), Leaf("a", 1, joined=frozenset({0})))
    assert rows_that_touch(pairs, {"a"}) == [{A: CHANGED, ("a", 1): EVER}, {A: EVER, ("a", 1): CHANGED}]
    assert rows_that_touch(shape(Leaf("a", 0, joined=frozenset({1})), Leaf("a", 0, joined=frozenset({0}))), {"a"}) is None
    assert rows_that_touch(shape(Leaf("a", 0), Leaf("a", 0)), {"a"}) == [{A: CHANGED}]


def test_a_read_is_pruned_only_by_what_holds_in_each_of_its_places() -> None:
    days = Range(1, "date")
    first = Leaf("a", 0, within={"k": 0, "x": 2}, ranges={"at": days})
    assert pruned_columns(shape(first), {0, 1, 2}) == {A: ({"k": 0, "x": 2}, {"at": days})}
    assert pruned_columns(shape(first), {0}) == {A: ({"k": 0}, {})}
    assert pruned_columns(shape(first, Leaf("a", 0, within={"k": 0, "x": 1})), {0, 1, 2}) == {A: ({"k": 0}, {})}
