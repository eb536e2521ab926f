"""What `lakelet plan` prints about the refresh of views: one line each, and all about one (IV-51, IV-52). No Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.language.model import Kind, RefreshPolicy
from lakelet.plan.decisions import Plan, PlanStep, Strategy, ViewFacts, refresh_decision, step_of
from lakelet.plan.explanation import plan_json, plan_text
from lakelet.plan.refresh_choice import Learned, RefreshFacts, choose
from lakelet.plan.refreshes import Issue, IssueType, Leaf, TableChange, Technique, ViewShape
from lakelet.plan.view_explanation import explained_steps, explanation_json, explanation_text

MB = 1_000_000
SPACE = Namespace("main", "gold")
EVENTS, USERS = "main.silver.events", "main.silver.users"
ROLLUP = ViewShape(Technique.GROUPS, (Leaf(EVENTS, 0),), keys=(0, 1))
JOINED = ViewShape(
    Technique.ROWS,
    (Leaf(EVENTS, 0, joined=frozenset({1})), Leaf(USERS, 0, preserved=False, joined=frozenset({0}))),
    linear=True,
)
CLOCK = Issue("PLAN_NOT_DETERMINISTIC", "current_date() in the query", "TIME_FUNCTION", "Pass the date as a parameter.")
LEARNED = Learned(12.0, 1000 * MB, 3.0, 20 * MB, 1.5, 12.0)
GREW = TableChange(EVENTS, 3, 5, added=10 * MB, rows=50_000, size=1000 * MB)


def step(name: str, shape: ViewShape | Issue, changes: Any = (GREW,), *, learned: Learned = LEARNED, **more: Any) -> PlanStep:
    policy = RefreshPolicy(more.pop("policy", "auto"))
    found = choose(RefreshFacts(policy, shape, changes, learned=learned, size=MB, **more))
    decision = refresh_decision(found, names={EVENTS: EVENTS, USERS: USERS})
    made = step_of(decision, f"main.gold.{name}", Kind.MATERIALIZED_VIEW, f"main.gold.{name}", (EVENTS, USERS))
    return replace(made, view=ViewFacts(policy, ("hour", "region", "n"), shape))


HOURLY = step("hourly", ROLLUP)
SEGMENTS = step("segments", CLOCK)
TINY = step("tiny", ROLLUP, learned=Learned(1.9, 1000 * MB, least_seconds=1.9))
FACTS = step("facts", JOINED, (GREW, TableChange(USERS, 2, 2, size=5 * MB)))
NEW = step("new", ROLLUP, Issue(IssueType.FIRST_COMPUTATION, "it has not been computed yet"), learned=Learned())
PLAN = Plan((HOURLY, SEGMENTS, TINY, FACTS, NEW))


def lines(text: str) -> dict[str, str]:
    rows = [line.split(None, 4) for line in text.splitlines()[1:] if line.count("  ")]
    return {row[1]: f"{row[0]} {row[-1]}" for row in rows}


def test_the_plan_has_one_line_per_view_with_change_estimates_reason_and_remedy() -> None:
    found = lines(plan_text(PLAN))
    assert found["gold.hourly"] == "groups silver.events appended 1.0 %; est. 1.7 s, full 12.0 s"
    assert found["gold.facts"] == "append silver.events appended 1.0 %; est. 1.2 s, full 12.1 s"
    assert found["gold.tiny"] == "full silver.events appended 1.0 %; computing all is cheaper; est. full 1.9 s, in part 2.5 s"
    assert found["gold.segments"] == (
        "full silver.events appended 1.0 %; current_date() in the query (TIME_FUNCTION); est. full 12.0 s; "
        "remedy: pass the date as a parameter"
    )
    assert found["gold.new"] == "full it has not been computed yet"


def test_the_strategies_of_views_are_counted_in_the_order_of_what_they_cost() -> None:
    assert plan_text(PLAN).splitlines()[-1] == "5 steps: 1 append, 1 groups, 3 full"


def test_a_change_of_unknown_share_is_named_without_one_and_many_inputs_are_cut() -> None:
    unknown = step("unknown", ROLLUP, (TableChange(EVENTS, 1, 2, removed=5),), policy="incremental", learned=Learned())
    assert unknown.reason == "main.silver.events changed"
    many = tuple(TableChange(f"t{number}", 1, 2, added=1, size=100) for number in range(5))
    shape = ViewShape(Technique.ROWS, tuple(Leaf(change.key, 0) for change in many), linear=True)
    assert step("many", shape, many).reason.partition(";")[0] == "t0 appended 1.0 %, t1 appended 1.0 %, t2 appended 1.0 % and more"


def test_the_partitions_of_a_view_are_counted_in_its_reason() -> None:
    found = choose(RefreshFacts(RefreshPolicy.AUTO, ROLLUP, (GREW,), partitions=2))
    decision = refresh_decision(found, partitions=2)
    assert (decision.strategy, decision.reason) == (Strategy.PARTITIONS, "main.silver.events appended 1.0 % in 2 partitions")


def test_json_of_the_plan_has_technique_issues_changes_and_estimates_beside_the_old_keys() -> None:
    hourly, segments, *_ = plan_json(PLAN)["steps"]
    assert list(hourly)[:6] == ["dataset", "kind", "flow", "strategy", "reason", "inputs"]
    assert (hourly["technique"], hourly["applicable"], hourly["issue_type"]) == ("groups", ["groups", "full"], None)
    assert hourly["estimate"]["full"] == pytest.approx(12.0)
    assert hourly["changes"] == [
        {
            "dataset": EVENTS,
            "appends": True,
            "from_version": 3,
            "to_version": 5,
            "rows": 50_000,
            "bytes": 1000 * MB,
            "added_bytes": 10 * MB,
            "removed_bytes": 0,
        }
    ]
    assert (segments["issue_type"], segments["issues"][0]["sub_type"]) == ("PLAN_NOT_DETERMINISTIC", "TIME_FUNCTION")
    stream = PlanStep("main.bronze.raw", Kind.STREAMING_TABLE, "raw", Strategy.STREAM, "2 new files", ())
    assert "technique" not in plan_json(Plan((stream,)))["steps"][0]


def test_all_about_a_view_is_printed_when_it_is_named(golden: Any) -> None:
    golden("plan_explain.txt", explanation_text([HOURLY, FACTS, SEGMENTS]))


def test_all_about_a_view_as_json_has_keys_what_it_reads_and_what_was_learned() -> None:
    (found,) = explanation_json([FACTS])["steps"]
    assert (found["strategy"], found["technique"], found["policy"], found["keys"]) == ("append", "append", "auto", [])
    assert found["reads"] == [
        {"dataset": EVENTS, "preserved": True, "joined": [1]},
        {"dataset": USERS, "preserved": False, "joined": [0]},
    ]
    assert found["learned"]["fixed_seconds"] == 1.5
    assert list(found["not_taken"]) == ["rows"]
    assert explanation_json([HOURLY])["steps"][0]["keys"] == ["hour", "region"]
    assert explanation_json([SEGMENTS])["steps"][0]["always_full"]["sub_type"] == "TIME_FUNCTION"
    json.dumps(explanation_json(PLAN.steps))


def test_what_is_explained_is_named_as_elsewhere_and_a_wrong_name_gets_the_nearest() -> None:
    assert explained_steps(PLAN, ["tiny", "main.gold.HOURLY"], SPACE) == (TINY, HOURLY)
    with pytest.raises(LakeletError) as raised:
        explained_steps(PLAN, ["hourley"], SPACE)
    assert (raised.value.code, raised.value.nearest) == ("UNKNOWN_SELECTION", ("main.gold.hourly",))


def test_a_step_that_is_no_view_says_what_it_reads() -> None:
    stream = PlanStep("main.bronze.raw", Kind.STREAMING_TABLE, "raw", Strategy.STREAM, "2 new files", ())
    assert explanation_text([stream]) == "raw: stream, because 2 new files\n  reads  no table of this pipeline"


def test_an_order_that_depends_on_chance_is_said() -> None:
    found = explanation_text([step("latest", replace(ROLLUP, ordered_by_chance="row_number() with ties"))])
    assert "row_number() with ties: a full refresh may give other rows, too" in found
