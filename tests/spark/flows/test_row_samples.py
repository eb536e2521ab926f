"""A few rows that broke a rule are kept with its counts, by the job that writes (docs/decisions/0098-rows-that-broke-a-rule.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lakelet.storage.eventlog.fold import reduce_events
from tests.spark.conftest import Project
from tests.spark.flows.test_replay import forget_last_batch

pytestmark = pytest.mark.spark

ORDERS = """
    import dlt

    @dlt.table(table_properties={properties})
    @dlt.expect("positive", "amount > 0")
    @dlt.{expect}("known", "length(customer) < 6")
    def orders():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .schema("id BIGINT, amount DOUBLE, customer STRING, note STRING").load(spark.conf.get("landing")))
"""


@pytest.fixture
def project(project: Any) -> Callable[[str], Project]:
    """Projects that keep three rows of each rule and batch."""

    def make(source: str) -> Project:
        made: Project = project(source)
        made.parameters["lakelet.sampleRows"] = "3"
        return made

    return make


def orders(expect: str = "expect", **properties: str) -> str:
    return ORDERS.format(expect=expect, properties=properties)


def order(id: int, amount: float | None, customer: str = "ada", note: str = "n") -> dict[str, Any]:
    return {"id": id, "amount": amount, "customer": customer, "note": note}


def samples(project: Project) -> dict[str, list[dict[str, Any]]]:
    """The rows of each rule in the last update's events, by its name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in project.events:
        for one in event.body.get("data_quality", {}).get("samples", []) if event.event_type == "flow_progress" else []:
            found.setdefault(one["name"], []).append(json.loads(one["row_json"]))
    return found


def test_no_row_is_kept_unless_it_is_asked_for(project: Any) -> None:
    p = project(orders("expect_or_fail", **{"lakelet.personalColumns": "customer"}))
    del p.parameters["lakelet.sampleRows"]
    p.arrive("1.json", order(1, -5.0), order(2, 1.0, "nobody"))
    p.run(expect="FAILED")
    assert (samples(p), p.quality()) == ({}, {"positive": (1, 1), "known": (1, 1)})
    assert "nobody" not in json.dumps(p.logged(), default=str)


def test_a_sample_has_the_columns_that_the_rule_reads(project: Any) -> None:
    p = project(orders())
    p.arrive("1.json", order(1, 5.0), order(2, -5.0), order(3, None), order(4, 1.0, "nobody"))
    p.run()
    assert sorted(samples(p)["positive"], key=repr) == [{"amount": "-5.0"}, {"amount": None}]
    assert samples(p)["known"] == [{"customer": "nobody"}]
    assert p.quality() == {"positive": (2, 2), "known": (3, 1)}


def test_at_most_three_rows_of_each_rule_are_kept_and_values_are_cut(project: Any) -> None:
    p = project(orders().replace("amount > 0", "length(note) < 9"))
    p.arrive("1.json", *[order(i, 1.0, note="x" * (1000 + i)) for i in range(20)], *[order(i, 1.0, note=f"{i}" * 9) for i in range(20)])
    p.run()
    kept = [row["note"] for row in samples(p)["positive"]]
    assert 1 <= len(kept) <= 3
    assert all(len(note) <= 201 for note in kept)
    assert p.quality()["positive"] == (0, 40)


@pytest.mark.parametrize(("rows", "kept"), [("0", 0), ("1", 1), ("20", 20)])
def test_a_setting_says_how_many_rows_are_kept(project: Any, rows: str, kept: int) -> None:
    p = project(orders())
    p.parameters["lakelet.sampleRows"] = rows
    p.arrive("1.json", *[order(i, -float(i)) for i in range(30)])
    p.run()
    assert len(samples(p).get("positive", [])) == kept
    assert p.quality()["positive"] == (0, 30)


@pytest.mark.parametrize("rows", ["-1", "21", "many"])
def test_a_number_of_rows_that_cannot_be_is_refused(project: Any, rows: str) -> None:
    p = project(orders())
    p.arrive("1.json", order(1, 1.0))
    p.parameters["lakelet.sampleRows"] = rows
    [error] = p.refused()
    assert (error.code, "lakelet.sampleRows" in error.what) == ("PROPERTY_INVALID", True)


def test_personal_columns_are_hidden_in_samples_and_first_values(project: Any) -> None:
    p = project(orders("expect_or_fail", **{"lakelet.personalColumns": "Customer, amount"}))
    p.arrive("1.json", order(1, -5.125), order(2, 1.0, "nobody"))
    p.run(expect="FAILED")
    assert samples(p) == {"positive": [{"amount": "***"}], "known": [{"customer": "***"}]}
    logged = json.dumps(p.logged(), default=str)
    assert all(value not in logged and value not in str(p.result.errors[0]) for value in ("nobody", "5.125"))


def test_a_rescued_value_of_a_personal_column_is_in_no_first_row(project: Any) -> None:
    p = project("""
    import dlt

    @dlt.table(table_properties={"lakelet.personalColumns": "phone"})
    @dlt.expect_or_fail("positive", "amount > 0")
    def calls():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .option("cloudFiles.schemaHints", "amount INT, phone BIGINT").load(spark.conf.get("landing")))
    """)
    p.arrive("1.json", {"amount": -1, "phone": "call me at home"})
    p.run(expect="FAILED")
    told = json.dumps(p.logged(), default=str) + str(p.result.errors[0])
    assert "amount is -1" in told
    assert "at home" not in told


def test_a_column_that_one_dataset_calls_personal_is_hidden_in_all(project: Any) -> None:
    p = project(
        orders(**{"lakelet.personalColumns": "customer"})
        + """
    @dlt.table
    @dlt.expect("short", "length(customer) < 2")
    def copies():
        return dlt.read("orders").select("customer")
    """
    )
    p.arrive("1.json", order(1, 1.0))
    p.run()
    assert samples(p)["short"] == [{"customer": "***"}]


def test_a_personal_column_that_is_unknown_is_refused(project: Any) -> None:
    p = project(orders(**{"lakelet.personalColumns": "custommer"}))
    p.arrive("1.json", order(1, 1.0))
    [error] = p.refused()
    assert (error.code, error.nearest) == ("PROPERTY_INVALID", ("customer",))


VIEW = """
    import dlt

    @dlt.view
    @dlt.expect("of_view", "amount < 100")
    def small():
        return spark.readStream.table("raw") if {stream} else spark.read.table("raw")

    @dlt.table
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .schema("id BIGINT, amount DOUBLE, at BIGINT").load(spark.conf.get("landing")))
"""
TARGETS = {
    "append": (
        True,
        """
    @dlt.table
    @dlt.expect("own", "amount > 0")
    def target():
        return dlt.read_stream("small")
    """,
    ),
    "view": (
        False,
        """
    @dlt.table
    @dlt.expect("own", "amount > 0")
    def target():
        return dlt.read("small")
    """,
    ),
    "quarantine": (
        True,
        """
    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect_or_drop("own", "amount > 0")
    def target():
        return dlt.read_stream("small")
    """,
    ),
    "once": (
        False,
        """
    dlt.create_streaming_table("target", expect_all={"own": "amount > 0"})

    @dlt.append_flow(target="target", once=True)
    def fill():
        return dlt.read("small")
    """,
    ),
    "changes": (
        True,
        """
    dlt.create_streaming_table("target", expect_all={"own": "amount > 0"})
    dlt.apply_changes(target="target", source="small", keys=["id"], sequence_by="at")
    """,
    ),
    "snapshots": (
        False,
        """
    dlt.create_streaming_table("target", expect_all={"own": "amount > 0"})
    dlt.apply_changes_from_snapshot(target="target", source="small", keys=["id"], stored_as_scd_type=1)
    """,
    ),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_each_way_of_writing_samples_its_rules_and_those_of_views(project: Any, kind: str) -> None:
    stream, target = TARGETS[kind]
    p = project(VIEW.format(stream=stream) + target)
    p.arrive("1.json", *({"id": i, "amount": amount, "at": i} for i, amount in enumerate((1.0, -2.0, 300.0))))
    p.run()
    key = {"id": "1"} if kind in ("changes", "snapshots") else {}
    assert samples(p)["own"] == [{**key, "amount": "-2.0"}]
    assert samples(p)["of_view"] == [{**({"id": "2"} if key else {}), "amount": "300.0"}]
    assert p.quality() == {"own": (2, 1), "of_view": (2, 1)}


def test_a_view_that_is_appended_to_keeps_the_sample_with_the_counts(project: Any) -> None:
    p = project(
        orders()
        + """
    from pyspark import pipelines as dp

    @dp.materialized_view(refresh_policy="incremental")
    @dlt.expect("large", "amount > 1")
    def large():
        return dlt.read("orders").select("id", "amount")
    """
    )
    p.arrive("1.json", order(1, 0.5), order(2, 3.0))
    p.run()
    assert samples(p)["large"] == [{"amount": "0.5"}]
    p.arrive("2.json", order(3, 0.25))
    p.run()
    assert p.quality("large") == {"large": (1, 2)}
    assert samples(p)["large"] == [{"amount": "0.25"}, {"amount": "0.5"}]


def test_columns_of_a_unique_check_say_which_row_it_is(project: Any) -> None:
    p = project(orders())
    (p.folder / "expectations").mkdir()
    (p.folder / "expectations" / "shop.yml").write_text("datasets:\n  orders:\n    checks:\n      one: {unique: id}\n")
    p.arrive("1.json", order(7, -5.0), order(8, 1.0))
    p.run()
    assert samples(p)["positive"] == [{"id": "7", "amount": "-5.0"}]


def test_a_batch_that_is_reported_twice_has_one_sample(project: Any) -> None:
    p = project(orders())
    p.arrive("1.json", order(1, -5.0))
    p.run()
    rows = [{**row, "timestamp": row["timestamp"].isoformat()} for row in p.logged()]
    again = [{**row, "id": row["id"] + "again"} for row in rows if row["event_type"] == "flow_progress"]
    [update] = reduce_events([*rows, *again]).updates
    [found] = update.samples_by_rule.values()
    assert [one.values for one in found] == [(("amount", "-5.0"),)]


def logged_samples(project: Project) -> list[tuple[str, str]]:
    bodies = [row["details"]["flow_progress"] for row in project.logged(event_type="flow_progress")]
    return sorted((one["name"], one["row_json"]) for body in bodies for one in body.get("data_quality", {}).get("samples", []))


def test_a_batch_that_is_tried_again_after_its_commit_is_not_sampled_twice(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    p = project(orders())
    p.arrive("1.json", order(1, -5.0))
    monkeypatch.setenv("LAKELET_FAILPOINT", "batch.committed:EIO")
    p.run(expect="FAILED")
    monkeypatch.delenv("LAKELET_FAILPOINT")
    p.run()
    forget_last_batch(p)
    p.run()
    assert logged_samples(p) == [("positive", '{"amount": "-5.0"}')]


def test_a_personal_column_is_hidden_in_the_samples_of_earlier_rows_too(project: Any) -> None:
    view = """
    from pyspark import pipelines as dp

    @dp.materialized_view(refresh_policy="incremental")
    @dp.expect("large", "amount > 1")
    def large():
        return dlt.read("orders").select("id", "amount")
    """
    p = project(orders() + view)
    p.arrive("1.json", order(1, 0.5))
    p.run()
    p.write(orders(**{"lakelet.personalColumns": "amount"}) + view)
    p.arrive("2.json", order(3, 5.0))
    p.run()
    assert samples(p)["large"] == [{"amount": "***"}]
