"""Table checks as values: what they expect in words, which files declare them, and what is refused."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest

from lakelet.base.errors import DefinitionErrors
from lakelet.base.names import Namespace
from lakelet.quality.definitions import table_checks
from lakelet.quality.suites import META, SuiteExpectation, check_name, expectation_of, kind_of
from lakelet.quality.validation import freshness

CHECKS = {
    "unique: id": "no two rows with the same id",
    "unique: [id, kind]": "no two rows with the same id, kind",
    "complete: note": "all values of note known",
    "complete: {column: note, at_least: 0.95}": "95% of the values of note known",
    "rows: {at_least: 1}": "at least 1 rows",
    "rows: 7": "7 rows",
    "fresh: {column: at, within: 2 days}": "newest at not older than 2 days",
    "fresh: {column: at, within: 90 minutes}": "newest at not older than 90 minutes",
    "references: {columns: agent, table: agents, to: id}": "every agent in agents (id)",
    "values: {column: kind, in: [a, b], at_least: 0.5}": "50% of the values of kind in a, b",
    "mean: {column: amount, at_least: 3, at_most: 4.5}": "mean of amount at least 3 and at most 4.5",
    "max: {column: day, at_most: 2026-04-01}": "max of day at most 2026-04-01",
    "quantile: {column: amount, q: 0.95, at_most: 30}": "0.95 quantile of amount at most 30",
    "no_rows: SELECT 1": "no rows from SELECT 1",
}


@pytest.fixture
def folder(tmp_path):
    def write(**files):
        for name, text in files.items():
            path = tmp_path / "expectations" / name.replace("__", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text if isinstance(text, str) else json.dumps(text))
        return tmp_path / "expectations"

    return write


def of_file(check: str) -> str:
    return f"datasets:\n  orders:\n    checks:\n      c: {{{check}, severity: critical}}"


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_says_what_it_expects_and_comes_back_from_its_expectation(folder, check):
    (found,) = table_checks(folder(orders__yml=of_file(check)), Namespace())["main.default.orders"]
    assert (found.expected, found.severity, str(found.where)) == (CHECKS[check], "critical", "expectations/orders.yml, line 4")
    json.dumps(found.expectation.as_json())
    kind, arguments = kind_of(expectation_of(found.check))
    assert kind == found.check.kind
    assert {k: str(list(v) if isinstance(v, tuple) else v) for k, v in arguments.items()} == {
        k: str(list(v) if isinstance(v, tuple) else v) for k, v in found.check.arguments.items()
    }


def test_suites_beside_the_rule_files_are_checks_too(folder):
    unique = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}}
    suite = {"name": "orders", "expectations": [unique, unique, {**unique, "meta": {META: {"name": "one_each"}}, "severity": "warning"}]}
    found = table_checks(folder(orders__json=suite, other__json={"a": 1}, broken__json="{"), Namespace("c", "s"))
    names = [(check.name, check.severity) for check in found["c.s.orders"]]
    assert names == [
        ("column_values_to_be_unique_id", "critical"),
        ("column_values_to_be_unique_id_2", "critical"),
        ("one_each", "warning"),
    ]
    assert found["c.s.orders"][0].expected == 'expect_column_values_to_be_unique {"column": "id"}'


def test_files_of_other_forms_are_left_alone_and_mistakes_of_ours_are_refused(folder):
    strange = "- expect: {valid: id > 0}"
    assert (
        table_checks(
            folder(rules__yml=strange, more__yml="a: [", dqe__yml="expect_or_drop: {a: b}", a__json={"expectations": [{"type": "b"}]}),
            Namespace(),
        )
        == {}
    )
    with pytest.raises(DefinitionErrors) as refused:
        table_checks(folder(orders__yml=of_file("uniqe: id"), twice__yml=of_file("rows: {at_lest: 1}")), Namespace())
    assert [(e.code, e.where.file, e.nearest) for e in refused.value.errors] == [
        ("RULE_FILE_INVALID", "expectations/orders.yml", ("unique",)),
        ("RULE_FILE_INVALID", "expectations/orders.yml", ()),
        ("RULE_FILE_INVALID", "expectations/twice.yml", ("at_least", "at_most")),
        ("RULE_FILE_INVALID", "expectations/twice.yml", ()),
    ]


def test_two_checks_of_one_name_on_a_table_are_refused(folder):
    with pytest.raises(DefinitionErrors, match="RULE_FILE_INVALID") as refused:
        table_checks(folder(a__yml=of_file("rows: 1"), b__yml=of_file("unique: id")), Namespace())
    assert refused.value.errors[0].what == "orders has two checks 'c'"


def test_no_folder_means_no_checks(tmp_path):
    assert table_checks(tmp_path / "expectations", Namespace()) == {}


def test_an_expectation_without_a_name_is_called_by_its_type_and_columns():
    assert check_name(SuiteExpectation("expect_column_pair_values_to_be_equal", {"column_A": "a", "column_B": "b"})) == (
        "column_pair_values_to_be_equal_a_b"
    )


def test_the_newest_value_grows_old(folder):
    (check,) = table_checks(folder(orders__yml=of_file("fresh: {column: at, within: 2 days}")), Namespace())["main.default.orders"]
    now = datetime(2026, 3, 3, tzinfo=timezone.utc)
    found = [freshness(check, newest, now).success for newest in (None, now.timestamp() - 172800, now.timestamp() - 172801)]
    assert found == [False, True, False]
    assert freshness(check, (now - timedelta(days=1)).timestamp(), now).observed == "newest 2026-03-02T00:00:00Z"
