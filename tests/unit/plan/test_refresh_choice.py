"""The choice how a view is refreshed: what is right, what its policy asks for, what costs less (IV-40 to IV-50). No Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.plan.refresh_choice import Learned, RefreshFacts, choose, keys_now, never, reconsidered
from lakelet.plan.refreshes import Issue, IssueType, Leaf, Merge, RefreshPolicy, TableChange, Technique, ViewShape

MB = 1_000_000

LINEAR = ViewShape(Technique.ROWS, (Leaf("events", 0),), linear=True)
ROLLUP = ViewShape(Technique.GROUPS, (Leaf("events", 0),), keys=(0,))
SUMS = replace(ROLLUP, merges={1: Merge.SUM})
LATEST = replace(ROLLUP, technique=Technique.WINDOWS)

LARGE = Learned(full_seconds=60.0, full_bytes=1000 * MB, least_seconds=60.0)
SMALL = Learned(full_seconds=1.0, full_bytes=MB, least_seconds=1.0)

NOT_YET = Issue(IssueType.FIRST_COMPUTATION, "it has not been computed yet")
CHANGED_QUERY = Issue("QUERY_FINGERPRINT_CHANGED", "its query, rules, settings or the engine changed")
CLOCK = Issue("PLAN_NOT_DETERMINISTIC", "current_date() in the query", "TIME_FUNCTION", "Pass the date as a parameter.")


def change(
    key: str = "events", added: int = 10 * MB, removed: int = 0, size: int | None = 1000 * MB, searched: int | None = None
) -> TableChange:
    return TableChange(key, 3, 4, added, removed, size=size, searched=searched)


def facts(
    shape: ViewShape | Issue = ROLLUP, *changes: TableChange, policy: str = "auto", learned: Learned = LARGE, **more: Any
) -> RefreshFacts:
    return RefreshFacts(RefreshPolicy(policy), shape, changes or (change(),), learned=learned, **more)


def test_new_rows_of_a_query_of_rows_are_appended() -> None:
    assert choose(facts(LINEAR)).technique is Technique.APPEND


@pytest.mark.parametrize("learned", [Learned(), SMALL, LARGE])
def test_appending_needs_no_estimate_because_the_same_query_runs_on_fewer_rows(learned: Learned) -> None:
    for added in (1, 900 * MB):
        assert choose(facts(LINEAR, change(added=added), learned=learned)).technique is Technique.APPEND


def test_rules_of_any_action_leave_appending_possible() -> None:
    assert choose(facts(LINEAR, rules=frozenset({"warn", "drop", "fail"}), streamed=True)).technique is Technique.APPEND


def test_updated_rows_are_not_appended_and_the_reason_names_the_table() -> None:
    found = choose(facts(LINEAR, change(removed=1)))
    assert (found.technique, found.applicable) == (Technique.FULL, (Technique.FULL,))
    assert found.refused[Technique.APPEND] == (Issue("DATA_HAS_CHANGED", "rows of events were updated or deleted"),)


def test_rows_are_computed_by_their_keys_where_they_cannot_be_appended() -> None:
    keyed = replace(LINEAR, keys=(0,))
    assert choose(facts(keyed, change(removed=1))).technique is Technique.ROWS
    assert choose(facts(keyed)).technique is Technique.APPEND


JOINED = ViewShape(
    Technique.ROWS, (Leaf("a", 0, joined=frozenset({1})), Leaf("b", 0, preserved=False, joined=frozenset({0}))), (0,), linear=True
)
UNION = ViewShape(Technique.ROWS, (Leaf("a", 0), Leaf("a", 1)), linear=True)
SELF_JOIN = replace(JOINED, leaves=(Leaf("a", 0, joined=frozenset({1})), Leaf("a", 1, joined=frozenset({0}))))


@pytest.mark.parametrize(
    ("shape", "grown", "technique", "issue"),
    [
        (JOINED, "a", Technique.APPEND, ""),
        (JOINED, "b", Technique.ROWS, "outer join"),
        (JOINED, "ab", Technique.ROWS, "on the other side of a join"),
        (SELF_JOIN, "a", Technique.ROWS, "on the other side of a join"),
        (UNION, "a", Technique.APPEND, ""),
    ],
)
def test_new_rows_are_appended_unless_a_join_brings_them_together_or_fills_them(
    shape: ViewShape, grown: str, technique: Technique, issue: str
) -> None:
    changes = tuple(change(key, added=MB if key in grown else 0) for key in sorted({leaf.key for leaf in shape.leaves}))
    found = choose(facts(shape, *changes))
    assert found.technique is technique
    assert issue in " ".join(i.reason for i in found.refused.get(Technique.APPEND, ()))
    assert {one.key for one in found.changes} == set(grown)


def test_sums_of_new_rows_are_put_together_with_stored_ones_before_keys_are_tried() -> None:
    assert choose(facts(SUMS)).technique is Technique.MERGE
    assert choose(facts(SUMS)).applicable == (Technique.MERGE, Technique.GROUPS, Technique.FULL)
    assert choose(facts(SUMS, change(removed=1))).technique is Technique.GROUPS
    assert choose(facts(ROLLUP)).technique is Technique.GROUPS


@pytest.mark.parametrize(
    ("shape", "more", "type"),
    [
        (SUMS, {"rules": frozenset({"drop"})}, "EXPECTATIONS_NOT_SUPPORTED"),
        (SUMS, {"streamed": True}, "PLAN_NOT_INCREMENTALIZABLE"),
        (LINEAR, {"identities": True}, "PLAN_NOT_INCREMENTALIZABLE"),
        (LINEAR, {"quarantined": True}, "EXPECTATIONS_NOT_SUPPORTED"),
        (replace(ROLLUP, keys=()), {}, "PLAN_NOT_INCREMENTALIZABLE"),
        (CLOCK, {}, "PLAN_NOT_DETERMINISTIC"),
    ],
)
def test_a_view_whose_stored_rows_cannot_be_changed_exactly_is_computed_as_a_whole(
    shape: ViewShape | Issue, more: dict[str, Any], type: str
) -> None:
    found = choose(facts(shape, **more))
    assert (found.technique, found.issues[0].type) == (Technique.FULL, type)
    assert found.applicable == (Technique.FULL,)


def test_a_key_that_an_outer_join_fills_is_one_only_while_its_side_is_unchanged() -> None:
    shape = replace(JOINED, keys=(0, 1), nullable_keys={1: frozenset({1})}, linear=False, technique=Technique.GROUPS)
    only = replace(shape, keys=(1,), nullable_keys={0: frozenset({1})})
    assert (keys_now(shape, "a"), keys_now(shape, "b"), keys_now(only, "a"), keys_now(only, "ab")) == ((0, 1), (0,), (0,), ())
    for changed, technique in (("a", Technique.GROUPS), ("b", Technique.FULL)):
        found = choose(facts(only, *(change(key, added=MB if key == changed else 0) for key in "ab")))
        assert found.technique is technique
    assert "outer join's other side" in found.issues[0].reason


def test_rules_that_warn_or_fail_leave_keys_and_sums_possible() -> None:
    assert choose(facts(SUMS, rules=frozenset({"warn", "fail"}))).technique is Technique.MERGE


def test_versions_that_cannot_be_compared_come_before_what_the_query_does() -> None:
    found = choose(replace(facts(CLOCK), changes=CHANGED_QUERY))
    assert found.issues[:2] == (CHANGED_QUERY, CLOCK)


def test_a_changed_input_that_the_plan_does_not_show_is_a_reason_for_full() -> None:
    found = choose(facts(LINEAR, change(), change("hidden")))
    assert found.technique is Technique.FULL
    assert "hidden" in found.issues[0].reason


def test_a_view_is_skipped_where_only_files_were_put_together_but_not_one_that_depends_on_the_clock() -> None:
    assert choose(facts(ROLLUP, change(added=0))).technique is Technique.SKIP
    assert choose(facts(CLOCK, change(added=0))).technique is Technique.FULL


def test_partitions_come_before_keys_and_after_what_follows_the_new_rows_alone() -> None:
    assert choose(facts(ROLLUP, partitions=2)).technique is Technique.PARTITIONS
    assert choose(facts(SUMS, partitions=2)).technique is Technique.MERGE
    assert choose(facts(CLOCK, partitions=2)).technique is Technique.PARTITIONS
    assert choose(facts(ROLLUP, partitions=2, learned=Learned())).technique is Technique.PARTITIONS


# --- policies ----------------------------------------------------------------------------------------------------------------------------


def test_policy_full_computes_all_and_still_says_what_would_be_possible() -> None:
    found = choose(facts(SUMS, policy="full", partitions=1))
    assert (found.technique, found.issues[0].reason) == (Technique.FULL, "its refresh policy is full")
    assert Technique.MERGE in found.applicable
    assert choose(replace(facts(SUMS, policy="full"), changes=NOT_YET)).issues[0] == NOT_YET


@pytest.mark.parametrize("policy", ["incremental", "incremental_strict"])
def test_the_incremental_policies_ask_for_no_estimate(policy: str) -> None:
    for learned in (Learned(), SMALL):
        found = choose(facts(ROLLUP, change(added=900 * MB), policy=policy, learned=learned))
        assert found.technique is Technique.GROUPS
        again = reconsidered(found, facts(ROLLUP, policy=policy, learned=learned), keys=9, groups=9, pruned_bytes=1000 * MB)
        assert again.technique is Technique.GROUPS


def test_policy_incremental_computes_all_where_nothing_else_is_right_now() -> None:
    found = choose(replace(facts(policy="incremental"), changes=CHANGED_QUERY))
    assert (found.technique, found.issues[0]) == (Technique.FULL, CHANGED_QUERY)


def test_policy_incremental_strict_fails_instead_and_says_why_and_what_to_do() -> None:
    with pytest.raises(LakeletError) as raised:
        choose(replace(facts(policy="incremental_strict"), changes=CHANGED_QUERY))
    assert (raised.value.code, raised.value.why) == (
        "REFRESH_WOULD_BE_FULL",
        "[QUERY_FINGERPRINT_CHANGED] its query, rules, settings or the engine changed",
    )
    assert "--full-refresh" in str(raised.value.todo)


def test_policy_incremental_strict_allows_the_first_computation() -> None:
    assert choose(replace(facts(policy="incremental_strict"), changes=NOT_YET)).technique is Technique.FULL


def test_a_forced_technique_is_taken_where_it_is_right_and_only_there() -> None:
    for technique in (Technique.GROUPS, Technique.FULL, Technique.MERGE):
        tiny = facts(SUMS, learned=SMALL, forced=technique)
        found = choose(tiny)
        assert found.technique is technique
        assert reconsidered(found, tiny, keys=5, groups=5, pruned_bytes=1000 * MB).technique is technique
    assert choose(facts(ROLLUP, forced=Technique.APPEND)).technique is Technique.GROUPS


# --- cost --------------------------------------------------------------------------------------------------------------------------------

HISTORY = {5: 456 * MB, 50: 4560 * MB}
GROUPS_OF = {"hourly": 216_000, "latest": 200_000, "daily": 9_000, "sums": 216_000}
VIEW_BYTES = {"hourly": 6 * MB, "latest": 18 * MB, "daily": MB, "sums": 6 * MB}
SHAPES = {"hourly": ROLLUP, "daily": ROLLUP, "sums": SUMS, "latest": LATEST}

MEASURED = [
    # rows in millions, view, changed share, touched keys, share of the input that is read, seconds: full, in part
    (5, "hourly", 0.01, 100, 0.04, 2.8, 3.7),
    (5, "latest", 0.01, 500, 1.0, 4.3, 3.8),
    (5, "hourly", 0.01, 44_700, 1.0, 2.9, 4.8),
    (5, "latest", 0.01, 44_300, 1.0, 4.5, 4.3),
    (5, "hourly", 0.0001, 100, 0.04, 2.8, 4.2),
    (5, "hourly", 0.0001, 500, 1.0, 2.8, 5.2),
    (5, "latest", 0.0001, 500, 1.0, 4.4, 4.1),
    (5, "sums", 0.01, 100, 0.01, 2.0, 1.2),
    (50, "hourly", 0.01, 100, 0.02, 12.2, 4.5),
    (50, "sums", 0.01, 100, 0.02, 9.6, 1.5),
    (50, "latest", 0.01, 500, 1.0, 26.4, 7.4),
    (50, "daily", 0.01, 100, 0.02, 11.9, 3.1),
    (50, "hourly", 0.0001, 4_900, 1.0, 12.2, 9.2),
    (50, "latest", 0.0001, 4_900, 1.0, 26.4, 7.5),
    (50, "daily", 0.0001, 3_800, 1.0, 11.9, 12.4),
]


@pytest.mark.parametrize(("millions", "view", "changed", "keys", "read", "full", "in_part"), MEASURED)
def test_what_is_chosen_takes_at_most_fifteen_percent_longer_than_the_better_way(
    millions: int, view: str, changed: float, keys: int, read: float, full: float, in_part: float
) -> None:
    """Seconds measured on two cores, with the start values alone: nothing but the full refresh is known."""
    size = HISTORY[millions]
    known = Learned(full_seconds=full, full_bytes=size, least_seconds=full)
    given = facts(SHAPES[view], change(added=int(size * changed), size=size), learned=known, size=VIEW_BYTES[view])
    found = reconsidered(choose(given), given, keys=keys, groups=GROUPS_OF[view], pruned_bytes=int(size * read))
    chosen = full if found.technique is Technique.FULL else in_part
    assert chosen <= 1.15 * min(full, in_part)
    assert found.estimate.full == pytest.approx(full)


@pytest.mark.parametrize("removed", [46_000, 4_560_000])
@pytest.mark.parametrize(("view", "full"), [("hourly", 2.9), ("latest", 4.5)])
def test_updates_spread_over_all_files_of_a_small_table_are_computed_as_a_whole(view: str, full: float, removed: int) -> None:
    known = Learned(full_seconds=full, full_bytes=456 * MB, least_seconds=full)
    found = choose(facts(SHAPES[view], change(added=0, removed=removed, size=456 * MB, searched=2 * 456 * MB), learned=known))
    assert found.technique is Technique.FULL


def test_a_short_full_refresh_is_cheaper_than_looking_for_keys() -> None:
    found = choose(facts(ROLLUP, change(added=10_000, size=MB), learned=SMALL))
    assert (found.technique, found.issues[0].reason) == (Technique.FULL, "computing all is cheaper")
    assert found.issues[0].type == "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL"
    assert Technique.GROUPS in found.applicable


def test_a_change_of_more_than_a_quarter_has_databricks_name_for_it() -> None:
    found = choose(facts(ROLLUP, change(added=255 * MB)))
    assert found.issues[0].sub_type == "CHANGESET_SIZE_THRESHOLD_EXCEEDED"
    assert found.issues[0].reason == "more than a quarter of what it reads changed"
    assert choose(facts(ROLLUP, change(added=245 * MB))).technique is Technique.GROUPS


def test_keys_all_over_the_table_turn_the_choice_to_full_with_both_estimates() -> None:
    given = facts(ROLLUP)
    found = reconsidered(choose(given), given, keys=90_000, groups=100_000, pruned_bytes=1000 * MB)
    assert (found.technique, found.issues[0].reason) == (Technique.FULL, "computing all is cheaper")
    assert found.estimate.full == pytest.approx(60.0)
    assert found.estimate.partial == pytest.approx(2.5 + 60 * (0.5 * (0.01 + 1) + 0.5 * 0.9))


def test_what_is_not_chosen_by_keys_is_not_reconsidered() -> None:
    found = choose(facts(LINEAR))
    assert reconsidered(found, facts(LINEAR), keys=1, groups=1, pruned_bytes=0) is found


def test_the_full_estimate_grows_with_the_inputs_but_not_its_fixed_part() -> None:
    known = Learned(full_seconds=11.0, full_bytes=1000 * MB, least_seconds=11.0)
    assert choose(facts(ROLLUP, change(size=2000 * MB), learned=known)).estimate.full == pytest.approx(21.0)
    assert choose(facts(ROLLUP, change(size=100 * MB), learned=SMALL)).estimate.full == pytest.approx(1.0)


def test_without_a_known_full_refresh_keys_are_not_looked_for() -> None:
    found = choose(facts(ROLLUP, learned=Learned()))
    assert (found.technique, found.issues[0].reason) == (Technique.FULL, "what its refreshes take is not known yet")


def test_a_large_result_that_must_be_written_again_counts() -> None:
    given = facts(ROLLUP, size=3_000 * MB)
    found = reconsidered(choose(given), given, keys=10, groups=100_000, pruned_bytes=900 * MB)
    assert found.technique is Technique.FULL
    assert reconsidered(choose(given), given, keys=10, groups=100_000, pruned_bytes=50 * MB).technique is Technique.GROUPS


def test_an_append_beside_a_large_joined_table_is_estimated_with_that_table() -> None:
    alone = choose(facts(JOINED, change("a"), change("b", added=0, size=MB)))
    beside = choose(facts(JOINED, change("a"), change("b", added=0, size=9000 * MB), learned=replace(LARGE, full_bytes=10_000 * MB)))
    assert (alone.technique, beside.technique) == (Technique.APPEND, Technique.APPEND)
    assert alone.estimate.partial == pytest.approx(1.6, abs=0.1)
    assert beside.estimate.partial == pytest.approx(54.2, abs=0.1)


# --- learning ----------------------------------------------------------------------------------------------------------------------------


def test_a_full_refresh_is_remembered_with_the_bytes_that_it_read_and_the_shortest_stays() -> None:
    found = choose(facts(ROLLUP, learned=Learned()))
    once = Learned().after(found, seconds=4.0, bytes_read=MB)
    twice = once.after(found, seconds=5.0, bytes_read=2 * MB)
    assert (once, twice) == (Learned(4.0, MB, least_seconds=4.0), Learned(5.0, 2 * MB, least_seconds=4.0))


def test_a_fast_machine_shows_in_short_full_refreshes_so_keys_pay_earlier() -> None:
    quick = Learned(full_seconds=2.0, full_bytes=1000 * MB, least_seconds=0.3)
    slow = replace(quick, least_seconds=2.0)
    assert choose(facts(ROLLUP, learned=quick)).technique is Technique.GROUPS
    assert choose(facts(ROLLUP, learned=slow)).technique is Technique.FULL


def test_the_fixed_part_is_learned_from_what_a_refresh_took_beyond_its_estimate() -> None:
    found = choose(facts(ROLLUP))
    assert found.estimate.partial is not None
    learned = LARGE.after(found, seconds=found.estimate.partial - 1.5, bytes_read=20 * MB)
    assert learned.fixed_seconds == pytest.approx(1.0)
    assert (learned.full_seconds, learned.partial_bytes) == (60.0, 20 * MB)
    next_one = choose(facts(ROLLUP, learned=learned))
    assert next_one.estimate.partial == pytest.approx(found.estimate.partial - 1.5)


def test_the_learned_fixed_part_is_never_less_than_that_of_a_full_refresh() -> None:
    assert LARGE.after(choose(facts(ROLLUP)), seconds=0.0, bytes_read=MB).fixed_seconds == pytest.approx(1.0)
    assert replace(LARGE, least_seconds=0.2).after(choose(facts(ROLLUP)), seconds=0.0, bytes_read=MB).fixed_seconds == pytest.approx(0.2)


def test_a_merge_teaches_the_fixed_part_too_which_is_twice_its_own() -> None:
    found = choose(facts(SUMS))
    assert found.estimate.partial is not None
    learned = LARGE.after(found, seconds=found.estimate.partial + 0.5, bytes_read=10 * MB)
    assert learned.fixed_seconds == pytest.approx(3.5)
    assert choose(facts(SUMS, learned=learned)).estimate.partial == pytest.approx(found.estimate.partial + 0.5)


def test_one_slow_refresh_by_keys_is_forgotten_after_some_full_ones() -> None:
    known = replace(LARGE, full_seconds=6.0, least_seconds=6.0)
    by_key = choose(facts(ROLLUP, learned=known))
    assert by_key.technique is Technique.GROUPS
    known = known.after(by_key, seconds=15.0, bytes_read=20 * MB)
    fulls = 0
    while choose(facts(ROLLUP, learned=known)).technique is Technique.FULL:
        known, fulls = known.after(choose(facts(ROLLUP, learned=known)), seconds=6.0, bytes_read=1000 * MB), fulls + 1
    assert 10 < fulls < 50


def test_appends_and_skips_teach_nothing_about_keys() -> None:
    assert LARGE.after(choose(facts(LINEAR)), seconds=9.0, bytes_read=MB) == replace(LARGE, partial_seconds=9.0, partial_bytes=MB)
    assert LARGE.after(choose(facts(ROLLUP, change(added=0))), seconds=9.0, bytes_read=0) == LARGE


# --- definitions -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "more", "name"),
    [
        (LINEAR, {"rules": frozenset({"drop"})}, None),
        (SUMS, {}, None),
        (CLOCK, {"partitions": 0}, None),
        (SUMS, {"rules": frozenset({"drop"})}, "EXPECTATIONS_NOT_SUPPORTED"),
        (CLOCK, {}, "PLAN_NOT_DETERMINISTIC.TIME_FUNCTION"),
        (LINEAR, {"identities": True}, "PLAN_NOT_INCREMENTALIZABLE.OPERATOR_NOT_SUPPORTED"),
        (LINEAR, {"quarantined": True}, "EXPECTATIONS_NOT_SUPPORTED"),
    ],
)
def test_a_definition_is_known_to_be_never_followed_before_anything_changed(
    shape: ViewShape | Issue, more: dict[str, Any], name: str | None
) -> None:
    found = never(RefreshFacts(RefreshPolicy.INCREMENTAL, shape, (), **more))
    assert (found.name if found else None) == name
