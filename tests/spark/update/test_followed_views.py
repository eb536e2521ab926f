"""Views under each refresh policy: what updates do, fail and warn of, what plan and events say (IV-44 to IV-46, IV-51, EL-5, EL-16)."""

from __future__ import annotations

import pytest

from lakelet.plan.view_explanation import explanation_text
from tests.spark.conftest import Project

PIPELINE = """
    from pyspark import pipelines as dp
    from pyspark.sql import functions as F

    @dp.table
    def sales():
        return spark.readStream.schema("shop STRING, price BIGINT").json(spark.conf.get("landing"))

    @dp.materialized_view(refresh_policy="incremental_strict")
    def by_shop():
        return spark.read.table("sales").groupBy("shop").agg(F.sum("price").alias("price"))

    @dp.materialized_view
    def dear():
        return spark.read.table("sales").where("price > 2")
"""


def chosen(project: Project) -> dict[str, str]:
    found = {}
    for event in project.events:
        for technique in event.body.get("technique_information", ()):
            if technique["is_chosen"]:
                name = str(event.origin.flow_name).rpartition(".")[2]
                found[name] = technique["maintenance_type"].removeprefix("MAINTENANCE_TYPE_")
    return found


def flow_ids(project: Project, name: str) -> list[str]:
    return [e.origin.flow_id for e in project.events if str(e.origin.flow_name).endswith(f".{name}") and e.event_type == "flow_progress"]


@pytest.mark.long
def test_a_strict_view_follows_its_input_and_fails_instead_of_computing_all_until_a_full_refresh(project: Project) -> None:
    p = project(PIPELINE)
    p.arrive("1.json", {"shop": "a", "price": 1}, {"shop": "b", "price": 3})
    p.run()
    assert chosen(p) == {"by_shop": "COMPLETE_RECOMPUTE", "dear": "COMPLETE_RECOMPUTE"}
    first = flow_ids(p, "by_shop")[-1]

    p.arrive("2.json", {"shop": "b", "price": 4})
    plan = {step.dataset.rpartition(".")[2]: step for step in p.pipeline.plan().steps}
    assert [(plan[name].strategy.value, plan[name].reason) for name in ("by_shop", "dear")] == [
        ("merge", "main.default.sales will be updated first"),
        ("append", "main.default.sales will be updated first"),
    ]
    assert "keys" in explanation_text([plan["by_shop"]])
    p.run()
    assert chosen(p) == {"by_shop": "GROUP_AGGREGATE", "dear": "APPEND_ONLY"}
    assert p.rows("by_shop") == [("a", 1), ("b", 7)]
    assert p.rows("dear") == [("b", 3), ("b", 4)]
    assert set(flow_ids(p, "by_shop")) == {first}

    p.write(PIPELINE.replace("F.sum(", "F.max("))
    assert [s.reason for s in p.pipeline.plan().steps if s.dataset.endswith("by_shop")] == [
        "the update fails it: its refresh policy is incremental_strict, and this update would compute all of it "
        "[QUERY_FINGERPRINT_CHANGED] its query, rules, settings or the engine changed"
    ]
    p.run(expect="FAILED")
    assert p.errors() == {"by_shop": "REFRESH_WOULD_BE_FULL"}
    assert p.rows("by_shop") == [("a", 1), ("b", 7)]
    p.run(full_refresh=("by_shop",))
    assert p.rows("by_shop") == [("a", 1), ("b", 4)]

    p.write(PIPELINE.replace("F.sum(", "F.min(").replace("incremental_strict", "incremental"))
    p.run()
    assert p.rows("by_shop") == [("a", 1), ("b", 3)]
    warned = [e.message for e in p.events if e.event_type == "notice" and e.level == "WARN"]
    assert warned == [
        "main.default.by_shop: its refresh policy is incremental, and all of it is computed because "
        "its query, rules, settings or the engine changed"
    ]
    assert len(set(flow_ids(p, "by_shop"))) == 2
