"""What events say of a decision: backlog of streams (EL-14), technique of materialized views (EL-16)."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.flows.stream_decisions import files_position
from lakelet.plan.decisions import Decision, SourcePosition, Strategy
from lakelet.update.progress import backlog, emit_technique

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
