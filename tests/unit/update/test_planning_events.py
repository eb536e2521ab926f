"""What events say of a decision: backlog of streams (EL-14), technique of materialized views (EL-16)."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.flows.planning_events import emit_technique, warn_of_full
from lakelet.flows.stream_decisions import files_position
from lakelet.language.model import RefreshPolicy
from lakelet.plan.decisions import Decision, SourcePosition, Strategy, refresh_decision
from lakelet.plan.refresh_choice import Learned, RefreshFacts, choose
from lakelet.plan.refreshes import Issue, IssueType, Leaf, Merge, Refresh, TableChange, Technique, ViewShape
from lakelet.update.progress import backlog

FILES = files_position("/landing", 3, 2_000_000)
TABLE = SourcePosition("main.shop.orders", True, "main.shop.orders has 2 new file(s)", 2)
UNKNOWN = SourcePosition("main.shop.x", True, "main.shop.x changed")


def test_the_backlog_is_what_was_found_in_each_source() -> None:
    assert backlog([FILES]) == {
        "metrics": {
            "backlog_files": 3,
            "backlog_bytes": 2_000_000,
            "source_metrics": [{"source_name": "/landing", "backlog_files": 3, "backlog_bytes": 2_000_000}],
        }
    }
    assert backlog([FILES], processed=True)["metrics"]["source_metrics"] == [
        {"source_name": "/landing", "backlog_files": 0, "backlog_bytes": 0}
    ]


def test_a_sum_is_left_out_where_a_source_is_not_known() -> None:
    found = backlog([FILES, TABLE])["metrics"]
    assert {key: value for key, value in found.items() if key != "source_metrics"} == {"backlog_files": 5}
    assert list(backlog([FILES, UNKNOWN])["metrics"]) == ["source_metrics"]
    assert backlog([UNKNOWN]) == backlog([]) == {}


class Told:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, ...]] = []

    def emit(self, kind: Any, message: str, body: Any, **of: Any) -> None:
        self.found.append((str(kind), message, body, of))

    def notice(self, message: str, **of: Any) -> None:
        self.found.append(("notice", message, {}, of))


@pytest.mark.parametrize(
    ("strategy", "chosen"),
    [
        (Strategy.SKIP, "MAINTENANCE_TYPE_NO_OP"),
        (Strategy.FULL, "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE"),
        (Strategy.PARTITIONS, "MAINTENANCE_TYPE_PARTITION_OVERWRITE"),
    ],
)
def test_the_technique_of_a_materialized_view_has_its_reason(strategy: Strategy, chosen: str) -> None:
    told: Any = Told()
    emit_technique(told, Decision(strategy, "orders changed"), dataset="main.shop.daily", flow="daily")
    ((kind, message, body, _),) = told.found
    assert (kind, body["reason"]) == ("planning_information", "orders changed")
    assert [one["maintenance_type"] for one in body["technique_information"] if one["is_chosen"]] == [chosen]
    assert message.endswith(f"as {chosen.removeprefix('MAINTENANCE_TYPE_')} because orders changed.")


SUMS = ViewShape(Technique.GROUPS, (Leaf("main.shop.orders", 0),), keys=(0,), merges={1: Merge.SUM})
APPENDED = TableChange("main.shop.orders", 3, 4, added=10_000, size=1_000_000)
LEARNED = Learned(full_seconds=60.0, full_bytes=1_000_000, least_seconds=60.0)
NAMES = {"main.shop.orders": "main.shop.Orders"}


def refresh(*changes: TableChange, policy: str = "auto", learned: Learned = LEARNED, **more: Any) -> Refresh:
    return choose(RefreshFacts(RefreshPolicy(policy), SUMS, changes or (APPENDED,), size=5_000, learned=learned, **more))


def event(found: Refresh) -> dict[str, Any]:
    told: Any = Told()
    emit_technique(told, refresh_decision(found, names=NAMES), dataset="main.shop.daily", flow="daily", names=NAMES)
    ((_, _, body, _),) = told.found
    return dict(body)


def test_all_techniques_are_in_the_event_with_what_is_possible_chosen_and_estimated() -> None:
    techniques = {one.pop("maintenance_type").removeprefix("MAINTENANCE_TYPE_"): one for one in event(refresh())["technique_information"]}
    assert list(techniques) == [technique.value for technique in Technique]
    assert [name for name, one in techniques.items() if one["is_chosen"]] == ["GROUP_AGGREGATE"]
    assert [name for name, one in techniques.items() if one["is_applicable"]] == [
        "GENERIC_AGGREGATE",
        "GROUP_AGGREGATE",
        "COMPLETE_RECOMPUTE",
    ]
    assert techniques["GROUP_AGGREGATE"]["cost"] == pytest.approx(1.85)
    assert techniques["COMPLETE_RECOMPUTE"]["cost"] == pytest.approx(60.0)
    (issue,) = techniques["APPEND_ONLY"]["incrementalization_issues"]
    assert issue == {
        "issue_type": "PLAN_NOT_INCREMENTALIZABLE",
        "plan_not_incrementalizable_sub_type": "OPERATOR_NOT_SUPPORTED",
        "prevent_incrementalization": True,
        "reason": "its query puts rows together, so new rows change rows that are there",
    }


def test_what_changed_in_the_sources_and_the_size_of_the_target_are_in_the_event() -> None:
    body = event(refresh(APPENDED, TableChange("main.shop.items", 1, 1, size=7)))
    assert body["source_table_information"] == [
        {"table_name": "main.shop.Orders", "full_size": 1_000_000, "change_size": 10_000, "table_change_type": "APPEND_ONLY"}
    ]
    assert body["target_table_information"] == {"table_name": "main.shop.daily", "full_size": 5_000}
    updated = event(refresh(TableChange("main.shop.orders", 3, 4, added=1, removed=1)))
    assert [one["table_change_type"] for one in updated["source_table_information"]] == ["GENERAL_CHANGE"]
    assert "full_size" not in updated["source_table_information"][0]


def test_a_technique_that_costs_more_is_applicable_and_has_the_cost_model_as_its_issue() -> None:
    body = event(refresh(TableChange("main.shop.orders", 3, 4, added=300_000, removed=1, size=1_000_000)))
    (found,) = [one for one in body["technique_information"] if one["maintenance_type"].endswith("GENERIC_AGGREGATE")]
    assert (found["is_applicable"], found["is_chosen"]) == (True, False)
    (issue,) = found["incrementalization_issues"]
    assert issue["cost_model_rejection_subtype"] == "CHANGESET_SIZE_THRESHOLD_EXCEEDED"
    assert body["reason"] == (
        "main.shop.Orders changed 30.0 %; more than a quarter of what it reads changed (CHANGESET_SIZE_THRESHOLD_EXCEEDED); "
        "est. full 1 min 00 s, in part 29.5 s"
    )


def test_a_full_refresh_under_the_incremental_policy_is_a_warning_but_for_the_first_one() -> None:
    def warned(found: Refresh, policy: RefreshPolicy) -> list[str]:
        told: Any = Told()
        warn_of_full(told, refresh_decision(found), policy, dataset="main.shop.daily", flow="daily")
        return [message for _, message, _, _ in told.found]

    other = Issue("QUERY_FINGERPRINT_CHANGED", "its query changed")
    changed = choose(RefreshFacts(RefreshPolicy.INCREMENTAL, SUMS, other))
    first = choose(RefreshFacts(RefreshPolicy.INCREMENTAL, SUMS, Issue(IssueType.FIRST_COMPUTATION, "it has not been computed yet")))
    assert warned(changed, RefreshPolicy.INCREMENTAL) == [
        "main.shop.daily: its refresh policy is incremental, and all of it is computed because its query changed"
    ]
    assert warned(first, RefreshPolicy.INCREMENTAL) == warned(changed, RefreshPolicy.AUTO) == []
    assert warned(refresh(policy="incremental"), RefreshPolicy.INCREMENTAL) == []
