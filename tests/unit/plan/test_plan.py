"""Decisions of the plan: when a flow runs, when a view is computed (no Spark)."""

from __future__ import annotations

import pytest

from lakelet.plan.decisions import Decision, SourcePosition, Strategy, ViewState, stream_decision, view_decision

NOTHING = SourcePosition("a", False, "a has no new file")
SOMETHING = SourcePosition("b", True, "b has 2 new file(s)")
UNKNOWN = SourcePosition("c", None, "c cannot be listed")


def streams(*positions: SourcePosition, started: bool = True, unfinished: bool = False) -> Decision:
    return stream_decision(positions, started=started, unfinished=unfinished)


def test_a_flow_whose_sources_have_nothing_is_skipped_and_says_so_for_each() -> None:
    other = SourcePosition("d", False, "d has no new version")
    assert streams(NOTHING, other) == Decision(Strategy.SKIP, "a has no new file; d has no new version")


def test_a_flow_runs_for_what_is_new_and_names_only_that() -> None:
    assert streams(NOTHING, SOMETHING) == Decision(Strategy.STREAM, "b has 2 new file(s)")


def test_what_cannot_be_told_is_a_reason_to_run() -> None:
    assert streams(NOTHING, UNKNOWN) == Decision(Strategy.STREAM, "c cannot be listed")
    assert streams().strategy is Strategy.STREAM


def test_the_first_time_and_an_unfinished_batch_come_before_all_else() -> None:
    assert streams(NOTHING, started=False) == Decision(Strategy.STREAM, "it has not run yet")
    assert streams(NOTHING, unfinished=True) == Decision(Strategy.STREAM, "its last micro-batch was not completed")
    assert streams(NOTHING, started=False, unfinished=True).reason == "its last micro-batch was not completed"


FOUND = ViewState("print", {"a": 3, "b": 5})


def test_an_unchanged_view_is_skipped() -> None:
    assert view_decision("print", {"a": 3, "b": 5}, FOUND).strategy is Strategy.SKIP
    assert view_decision("print", {"a": 3, "b": 5, "no longer read": 9}, FOUND).strategy is Strategy.SKIP


@pytest.mark.parametrize(
    ("fingerprint", "inputs", "state", "reason"),
    [
        (None, {}, FOUND, "it has not been computed yet"),
        ("other", {"a": 3, "b": 5}, FOUND, "its query, rules, settings or the engine changed"),
        ("print", {"a": 3, "b": 4}, FOUND, "b changed"),
        ("print", {}, FOUND, "a, b changed"),
        ("print", {}, ViewState("print", dict.fromkeys("vwxyz", 1)), "v, w, x and more changed"),
        (
            "print",
            {"a": 3, "b": 5},
            ViewState("print", {"a": 3, "b": 5}, "it uses the current time or user"),
            "it uses the current time or user",
        ),
        (None, {}, ViewState("print", {}, "it is not deterministic"), "it has not been computed yet"),
    ],
)
def test_a_view_is_computed_again_and_says_why(fingerprint: str | None, inputs: dict[str, int], state: ViewState, reason: str) -> None:
    assert view_decision(fingerprint, inputs, state) == Decision(Strategy.FULL, reason)
