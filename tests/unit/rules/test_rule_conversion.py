"""Rules between rule files, suites of Great Expectations and SQL: both ways, and what is named because it has no counterpart."""

from __future__ import annotations

import json

import pytest
import yaml

from lakelet.base.errors import LakeletError
from lakelet.rules.conversion import convert
from lakelet.rules.predicates import expectation_kwargs, predicate_of

RULES = """\
datasets:
  orders:
    warn:
      shipped_later: ordered_at IS NULL OR shipped_at IS NULL OR shipped_at >= ordered_at
      same: total <=> computed
    drop:
      has_id:
        constraint: id IS NOT NULL
        tags: [keys]
        description: An order has a number.
        owner: sales@example.com
      paid: amount IS NULL OR (amount >= 0 AND amount < 10000)
      known: kind IN ('a', 'b')
    fail:
      odd name: note IS NULL OR note RLIKE '^\\\\d+{2}'
    checks:
      one_each: {unique: id, severity: critical}
      pair: {unique: [id, kind], severity: warning, tags: [keys]}
      filled: {rows: {at_least: 1, at_most: 900}, severity: critical}
      exactly: {rows: 7, severity: warning}
      complete: {complete: note, severity: info}
      mostly: {complete: {column: note, at_least: 0.9}, severity: warning}
      kinds: {values: {column: kind, in: [a, b], at_least: 0.5}, severity: warning}
      fresh: {fresh: {column: ordered_at, within: 2 days}, severity: warning}
      customers: {references: {columns: customer, table: customers, to: id}, severity: warning}
      mean: {mean: {column: amount, at_least: 1, at_most: 9.5}, severity: warning}
      tail: {quantile: {column: amount, q: 0.95, at_most: 30}, severity: warning}
      none: {no_rows: "SELECT * FROM {batch} WHERE amount = 13", severity: warning}
layers:
  silver:
    drop:
      has_event: event_id IS NOT NULL
"""

FIVE = {"name": "five", "action": "drop"}


@pytest.fixture
def written(tmp_path):
    def write(text, name):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def test_a_rule_file_comes_back_from_a_suite_as_it_was(written):
    suites = convert(written(RULES, "orders.yml"), "gx")
    back = convert(written(suites.text, "orders.json"), "yaml")
    assert yaml.safe_load(back.text) == yaml.safe_load(RULES)
    assert back.notes == ()


def test_row_rules_come_back_from_sql_and_everything_else_is_named(written):
    clauses = convert(written(RULES, "orders.yml"), "sql")
    rows = "\n".join(line for line in clauses.text.split("\n\n")[0].splitlines() if not line.startswith("--"))
    back = yaml.safe_load(convert(written(rows, "orders.sql"), "yaml").text)
    wanted = yaml.safe_load(RULES)["datasets"]["orders"]
    wanted["drop"]["has_id"] = "id IS NOT NULL"
    checks = wanted.pop("checks")
    assert back == {"datasets": {"orders": wanted}}
    assert "datasets.orders.has_id: tags, description, owner have no counterpart in SQL" in clauses.notes
    assert [note for note in clauses.notes if "a table check has no counterpart" in note] == [
        f"datasets.orders.checks.{name}: a table check has no counterpart in SQL" for name in checks
    ]


def test_rules_of_a_whole_statement_are_read(written):
    sql = """
        CREATE OR REFRESH STREAMING TABLE paid (
          id BIGINT,
          CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION FAIL UPDATE,
          CONSTRAINT small EXPECT (amount < 5)
        ) AS SELECT * FROM STREAM orders;"""
    found = yaml.safe_load(convert(written(sql, "pipeline.sql"), "yaml").text)
    assert found == {"datasets": {"paid": {"warn": {"small": "amount < 5"}, "fail": {"has_id": "id IS NOT NULL"}}}}


def test_a_suite_of_somebody_else_becomes_rules_and_checks_and_the_rest_is_named(written):
    expectations = [
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}},
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "note", "mostly": 0.9}, "severity": "warning"},
        {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "note", "regex": r"^\d$", "mostly": 0.5}},
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "n", "min_value": 5.0}, "meta": {"dlt": FIVE}},
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "k", "value_set": [1], "row_condition": "n > 0"}},
        {"type": "expect_column_kl_divergence_to_be_less_than", "kwargs": {"column": "k", "threshold": 0.1}},
        {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}},
    ]  # fmt: skip
    found = convert(written(json.dumps({"name": "orders", "expectations": expectations}), "suite.json"), "yaml")
    assert yaml.safe_load(found.text) == {
        "datasets": {
            "orders": {
                "warn": {
                    "column_values_to_not_be_null_id": "id IS NOT NULL",
                    "column_values_to_match_regex_note": r"note IS NULL OR note RLIKE '^\\d$'",
                    "column_values_to_be_in_set_k": "NOT coalesce((n > 0), false) OR (k IS NULL OR k IN (1))",
                },
                "drop": {"five": "n IS NULL OR (n >= 5)"},
                "checks": {
                    "column_values_to_not_be_null_note": {"complete": {"column": "note", "at_least": 0.9}, "severity": "warning"},
                    "table_row_count_to_be_between": {"rows": {"at_least": 1}, "severity": "critical"},
                },
            }
        }
    }
    assert found.notes == (
        "orders.column_values_to_match_regex_note: mostly 0.5 is left out: a rule judges each row",
        "orders.column_kl_divergence_to_be_less_than_k: expect_column_kl_divergence_to_be_less_than has no counterpart: "
        '{"column": "k", "threshold": 0.1}',
    )
    assert found.text.startswith("# orders.column_values_to_match_regex_note: mostly")


def _compared(name, operator, parameter):
    return {"column": {"name": name}, "operator": operator, "parameter": parameter, "type": "comparison"}


KNOWN = {"column": {"name": "n"}, "is_null": False, "type": "nullity"}


@pytest.mark.parametrize(
    ("condition", "parser", "text"),
    [
        ("n > 0", "spark", "n > 0"),
        ({"pass_through_filter": "n > 0", "type": "pass_through"}, "spark", "n > 0"),
        (KNOWN, None, "n IS NOT NULL"),
        ({**KNOWN, "is_null": True}, None, "n IS NULL"),
        (_compared("odd name", "==", "it's"), None, r"`odd name` = 'it\'s'"),
        (_compared("n", "<=", 2.5), "great_expectations", "n <= 2.5"),
        (_compared("n", "NOT_IN", [1, 2]), None, "n NOT IN (1, 2)"),
        ({"conditions": [KNOWN, _compared("s", "IN", ["x"])], "type": "and"}, None, "(n IS NOT NULL) AND (s IN ('x'))"),
        (
            {"conditions": [_compared("n", "!=", 1), {"conditions": [KNOWN, _compared("n", ">", 0)], "type": "and"}], "type": "or"},
            None,
            "(n != 1) OR ((n IS NOT NULL) AND (n > 0))",
        ),
        ('col("n") >= -1', "great_expectations", "n >= -1"),
        ('col("s") == "x"', "great_expectations__experimental__", "s = 'x'"),
        ('col("n").notNull()', "great_expectations", "n IS NOT NULL"),
        ('col("d") > date("2024-01-01")', "great_expectations", None),
        ("n > 0", "pandas", None),
        ({"pass_through_filter": "n > 0", "type": "pass_through"}, "pandas", None),
        (_compared("n", "IN", []), None, None),
        (_compared("n", "LIKE", "x"), None, None),
        ({"conditions": [KNOWN, _compared("n", "==", None)], "type": "or"}, None, None),
        ({"type": "unheard of"}, None, None),
    ],
)
def test_a_row_condition_is_converted_in_each_of_its_forms_or_named(condition, parser, text, written):
    kwargs = {"column": "k", "row_condition": condition} | ({"condition_parser": parser} if parser else {})
    expectation = {"type": "expect_column_values_to_not_be_null", "kwargs": kwargs}
    found = convert(written(json.dumps({"name": "orders", "expectations": [expectation]}), "suite.json"), "yaml")
    if text is None:
        (note,) = found.notes
        assert note.startswith("orders.column_values_to_not_be_null_k: expect_column_values_to_not_be_null has no counterpart: ")
    else:
        rule = yaml.safe_load(found.text)["datasets"]["orders"]["warn"]["column_values_to_not_be_null_k"]
        assert (rule, found.notes) == (f"NOT coalesce(({text}), false) OR (k IS NOT NULL)", ())


def test_a_suite_in_yaml_and_one_of_before_version_1_are_read(written):
    old = {
        "expectation_suite_name": "orders",
        "expectations": [{"expectation_type": "expect_column_values_to_be_null", "kwargs": {"column": "a"}}],
    }
    found = convert(written(yaml.safe_dump(old), "old.yml"), "sql")
    assert found.text == "-- datasets.orders\nCONSTRAINT column_values_to_be_null_a EXPECT (a IS NULL)"


@pytest.mark.parametrize(
    ("predicate", "expectation"),
    [
        ("c IS NOT NULL", "expect_column_values_to_not_be_null"),
        ("NOT (c IS NULL)", "expect_column_values_to_not_be_null"),
        ("c IS NULL", "expect_column_values_to_be_null"),
        ("c IS NULL OR c BETWEEN 1 AND 5", "expect_column_values_to_be_between"),
        ("c IS NULL OR (c > -1.5 AND c <= 5)", "expect_column_values_to_be_between"),
        ("`odd name` IS NULL OR `odd name` NOT IN ('x')", "expect_column_values_to_not_be_in_set"),
        ("c IS NULL OR NOT c RLIKE 'it\\'s'", "expect_column_values_to_not_match_regex"),
        ("c IS NULL OR length(c) BETWEEN 1 AND 2", "expect_column_value_lengths_to_be_between"),
        ("c IS NULL OR length(c) = 2", "expect_column_value_lengths_to_equal"),
        ("a IS NULL OR b IS NULL OR a > b", "expect_column_pair_values_a_to_be_greater_than_b"),
        ("a <=> b", "expect_column_pair_values_to_be_equal"),
        ("c BETWEEN 1 AND 5", "unexpected_rows_expectation"),
        ("c IS NULL OR c IN (SELECT 1)", "unexpected_rows_expectation"),
        ("c IS NULL OR d > 5", "unexpected_rows_expectation"),
        ("c IS NULL OR c IN (1, NULL)", "unexpected_rows_expectation"),
        ("x -> 'not SQL", "unexpected_rows_expectation"),
        ("c = '{x}' -- why", "unexpected_rows_expectation"),
    ],
)
def test_a_predicate_becomes_the_expectation_that_counts_the_same_rows(predicate, expectation):
    found, kwargs = expectation_kwargs(predicate)
    assert found == expectation
    back = predicate_of(found, kwargs)
    assert back == predicate or expectation_kwargs(back) == (found, kwargs)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("datasets: [", "a.yml", "neither JSON nor YAML"),
        ("{}", "a.json", "holds no suite"),
        ("datasets:\n  a:\n    dorp: {}", "a.yml", "unknown action 'dorp'"),
        ("CONSTRAINT a EXPECT x", "a.sql", "SQL_SYNTAX"),
    ],
)
def test_a_file_that_holds_no_rules_is_refused(written, text, name, message):
    with pytest.raises(LakeletError, match=message) as error:
        convert(written(text, name), "yaml")
    assert error.value.code in ("RULE_FILE_INVALID", "SQL_SYNTAX")
