"""Twelve kinds of faults in one shop: what, since when, which rows, whose, who is affected, getting worse.

Asked in SQL over the event log, of the data of the page, and of the queries of the dashboard file. What is right is known from the
deliveries alone (tests/faulty_shop.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakelet.dashboard.page import write_report
from lakelet.inspection.inspector import run_sql
from tests.docs.test_reference_blocks import blocks
from tests.faulty_shop import FAULTS, Fault, FaultyShop
from tests.spark.conftest import Project
from tests.spark.inspection.test_dashboard_queries import DATASETS

pytestmark = [pytest.mark.spark, pytest.mark.long]

BY_KIND = {fault.kind: fault for fault in FAULTS}
RULES = {"warn": "amount_positive", "drop": "has_customer", "fail": "known_currency"}
LAST_ROWS = {"warn": {"id": "404", "amount": "-5.0"}, "drop": {"id": "409", "customer": "NULL"}, "fail": {"currency": "XXX"}}
"""One of the rows of the last delivery that break each rule, by the columns that the rule reads and the key of its table."""
INPUT = {"rescued": "rescued", "broken": "broken", "undecodable": "undecodable", "late": "late"}
COUNTS = {
    **{kind: f"SELECT update_id, failed_records FROM expectation_metrics WHERE expectation = '{rule}'" for kind, rule in RULES.items()},
    **{
        kind: f"SELECT update_id, sum(bad_records) FROM bad_input WHERE problem = '{problem}' GROUP BY 1" for kind, problem in INPUT.items()
    },
    "schema": "SELECT update_id, count(*) FROM schema_changes GROUP BY 1",
    "check": "SELECT update_id, count(*) FROM table_checks WHERE NOT success GROUP BY 1",
    **{
        kind: f"SELECT update_id, count(*) FROM flow_metrics WHERE dataset = '{{dataset}}' AND status = '{status}' GROUP BY 1"
        for kind, status in {"error": "FAILED", "stale": "SKIPPED", "skipped": "SKIPPED"}.items()
    },
}
"""By kind of fault a query for its count in each update."""


RECURSIVE = ("freshness", "affected")
"""Queries of the dashboard that follow who reads whom: half a minute each on Spark. Their views are asked above."""


@dataclass(frozen=True)
class Delivered:
    """The shop after its four deliveries, the data of its page by dataset, and what `lakelet report --json` says is at fault."""

    shop: FaultyShop
    page: Mapping[str, Mapping[str, Any]]
    failing: Sequence[Mapping[str, Any]]

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        rows = run_sql(self.shop.project.storage.root, text, note=_refuse_spark).rows
        return [tuple(row.values()) for row in rows]


def _refuse_spark(reason: str) -> None:
    """DuckDB answers these queries, in a tenth of the time; that both engines agree is tested with the views."""
    pytest.fail(reason)


@pytest.fixture(scope="module")
def shop(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Delivered:
    opened = FaultyShop(Project(tmp_path_factory.mktemp("shop"), spark)).open()
    for number in (1, 2, 3, 4):
        opened.deliver(number)
    out = tmp_path_factory.mktemp("page") / "report"
    site = write_report(opened.project.storage.root, opened.project.folder, out, sample_rows=20)
    return Delivered(opened, page_data(out), site.summary()["failing"])


def page_data(report: Path) -> dict[str, Any]:
    """What the page of each dataset is made of, by its name."""
    found = {}
    for file in (report / "data").glob("dataset-*.js"):
        text = re.fullmatch(r'lakelet\("[^"]*",(.*)\);?\s*', file.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert text is not None
        document = json.loads(text[1])
        found[document["name"].rsplit(".", 1)[-1]] = document
    return found


def full(name: str) -> str:
    return f"main.default.{name}"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_sql_says_how_often_a_fault_happened_since_when_and_whether_it_gets_worse(shop: Delivered, fault: Fault) -> None:
    found = {update: int(count) for update, count in shop.sql(COUNTS[fault.kind].format(dataset=full(fault.dataset))) if count}
    by_delivery = {shop.shop.updates.index(update) + 1: count for update, count in found.items()}
    assert by_delivery == dict(fault.counts)
    assert min(by_delivery) == fault.since
    assert (by_delivery.get(4, 0) > by_delivery.get(3, 0)) == fault.worse


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_sql_says_whose_a_fault_is_and_all_that_reads_the_dataset(shop: Delivered, fault: Fault) -> None:
    assert shop.sql(f"SELECT owner FROM dataset_health WHERE dataset = '{full(fault.dataset)}'") == [(fault.owner,)]
    affected = {name for (name,) in shop.sql(f"SELECT dataset FROM dataset_sources WHERE source = '{full(fault.dataset)}'")}
    assert affected == {full(name) for name in fault.affected}


def test_sql_lists_what_is_at_fault_now_as_the_report_does(shop: Delivered) -> None:
    rows = shop.sql("SELECT dataset, name, since_update_id, failed_updates, coalesce(owner, ''), failed_records FROM faults")
    assert sorted((dataset, name or "", since, updates, owner) for dataset, name, since, updates, owner, _ in rows) == sorted(
        (row["dataset"], row.get("rule") or row.get("check") or "", row["since"], row["updates"], row["owner"]) for row in shop.failing
    )
    newest = {name: failed for _, name, _, _, _, failed in rows if failed is not None}
    assert newest == {rule: BY_KIND[kind].counts[4] for kind, rule in RULES.items() if BY_KIND[kind].counts.get(4)}


@pytest.mark.parametrize("kind", ["fail", "error"])
def test_sql_lists_what_a_failed_dataset_holds_up_with_owners(shop: Delivered, kind: str) -> None:
    fault = BY_KIND[kind]
    rows = shop.sql(f"SELECT dataset, cause_owner, problem, owner IS NOT NULL FROM affected_datasets WHERE cause = '{full(fault.dataset)}'")
    assert {row[0] for row in rows} == {full(name) for name in fault.affected}
    assert {row[1:] for row in rows} == {(fault.owner, "failed", True)}


@pytest.mark.parametrize("kind", INPUT)
def test_sql_names_the_file_and_line_of_the_first_bad_input(shop: Delivered, kind: str) -> None:
    fault = BY_KIND[kind]
    since = shop.shop.updates[fault.since - 1]
    query = f"SELECT file, line FROM bad_input WHERE problem = '{INPUT[kind]}' AND update_id = '{since}'"
    [(file, line)] = shop.sql(query)
    assert (str(file).endswith(str(fault.file)), line) == (True, fault.line)


@pytest.mark.parametrize(("kind", "column"), [("rescued", "amount"), ("broken", None), ("undecodable", None)])
def test_sql_and_the_page_show_the_first_bad_input_and_its_column(shop: Delivered, kind: str, column: str | None) -> None:
    fault = BY_KIND[kind]
    assert fault.sample is not None
    query = f"SELECT column_name, sample, update_id FROM bad_input WHERE problem = '{INPUT[kind]}'"
    texts = {update: text for name, text, update in shop.sql(query) if name == column}
    assert len(texts) == len(fault.counts)
    assert fault.sample in texts[shop.shop.updates[fault.since - 1]]
    [row] = [one for one in shop.page[fault.dataset]["bad_input"] if one["problem"] == INPUT[kind]]
    assert row["sample"] == [column or "", texts[shop.shop.updates[-1]]]


@pytest.mark.parametrize("kind", RULES)
def test_the_page_counts_a_rule_as_sql_does_and_says_since_when_it_fails(shop: Delivered, kind: str) -> None:
    fault = BY_KIND[kind]
    [rule] = [one for one in shop.page[fault.dataset]["rules"] if one["name"] == RULES[kind]]
    assert {update + 1: failed for update, _, failed in rule["points"] if failed} == dict(fault.counts)
    since, updates, _ = rule["failing"]
    assert (since + 1, updates, rule["owner"]) == (fault.since, 5 - fault.since, fault.owner)


def test_the_page_shows_the_rows_of_faults(shop: Delivered) -> None:
    for kind in ("drop", "fail"):
        fault = BY_KIND[kind]
        assert fault.sample is not None
        assert fault.sample in json.dumps(shop.page[fault.dataset])


@pytest.mark.parametrize("kind", RULES)
def test_the_page_shows_rows_that_broke_a_rule_and_sql_gives_the_same(shop: Delivered, kind: str) -> None:
    fault = BY_KIND[kind]
    [rule] = [one for one in shop.page[fault.dataset]["rules"] if one["name"] == RULES[kind]]
    update = shop.shop.updates[rule["sample"]["n"]]
    assert rule["sample"]["short"] == update[:6]
    query = f"SELECT row_json FROM violation_samples WHERE expectation = '{RULES[kind]}' AND update_id = '{update}'"
    of_sql = [{name: "NULL" if value is None else value for name, value in json.loads(row).items()} for (row,) in shop.sql(query)]
    of_page = [dict(values) for values, _ in rule["sample"]["rows"]]
    assert sorted(of_page, key=repr) == sorted(of_sql, key=repr)
    assert LAST_ROWS[kind] in of_page


def test_queries_of_the_dashboard_count_as_sql_does(shop: Delivered, spark: Any) -> None:
    quick = {name: text for name, text in DATASETS.items() if name not in RECURSIVE}
    found = {name: list(run_sql(shop.shop.project.storage.root, text, spark=spark).rows) for name, text in quick.items()}
    assert all(found.values()), "each query of the dashboard has rows where everything is broken"
    broken = {(row["expectation"], shop.shop.updates.index(row["update_id"]) + 1): row["failed_records"] for row in found["rules"]}
    expected = {(RULES[kind], delivery): BY_KIND[kind].counts.get(delivery, 0) for kind in RULES for delivery in (1, 2, 3, 4)}
    assert broken == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", RECURSIVE)
def test_queries_of_the_dashboard_about_who_waits_have_rows(shop: Delivered, spark: Any, name: str) -> None:
    assert list(run_sql(shop.shop.project.storage.root, DATASETS[name], spark=spark).rows)


@pytest.mark.parametrize("query", blocks("quality-reader.md", "sql"))
def test_the_queries_of_the_page_about_reading_quality_find_faults(shop: Delivered, query: str) -> None:
    assert shop.sql(query)
