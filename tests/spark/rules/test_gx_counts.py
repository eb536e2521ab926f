"""The counts of Great Expectations and those of the converted rules are equal on random rows with NULLs, both ways."""

from __future__ import annotations

import random

import pytest

from lakelet.config.rule_files import Check
from lakelet.quality.definitions import TableCheck
from lakelet.quality.suites import SuiteExpectation
from lakelet.quality.validation import validate
from lakelet.rules.predicates import expectation_kwargs, predicate_of

pytestmark = [pytest.mark.spark, pytest.mark.long]


def _condition():
    """A row condition in the form that Great Expectations writes it since 1.9."""
    compared = {"column": {"name": "odd name"}, "operator": ">=", "parameter": 0, "type": "comparison"}
    within = {"column": {"name": "s"}, "operator": "IN", "parameter": ["x", "it's"], "type": "comparison"}
    known = {"column": {"name": "b"}, "is_null": False, "type": "nullity"}
    return {"conditions": [within, {"conditions": [compared, known], "type": "and"}], "type": "or"}


EXPECTATIONS = [
    ("expect_column_values_to_not_be_null", {"column": "a"}),
    ("expect_column_values_to_be_null", {"column": "a"}),
    ("expect_column_values_to_be_between", {"column": "a", "min_value": 2, "max_value": 7, "strict_max": True}),
    ("expect_column_values_to_be_between", {"column": "odd name", "min_value": -0.5}),
    ("expect_column_values_to_be_in_set", {"column": "s", "value_set": ["x", "it's"]}),
    ("expect_column_values_to_not_be_in_set", {"column": "a", "value_set": [1, 2, 3]}),
    ("expect_column_values_to_match_regex", {"column": "s", "regex": r"^\w+\d'?$"}),
    ("expect_column_values_to_not_match_regex", {"column": "s", "regex": "x"}),
    ("expect_column_value_lengths_to_be_between", {"column": "s", "min_value": 2, "max_value": 3}),
    ("expect_column_value_lengths_to_equal", {"column": "s", "value": 1}),
    ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "a", "column_B": "b"}),
    ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "a", "column_B": "b", "or_equal": True}),
    ("expect_column_pair_values_to_be_equal", {"column_A": "a", "column_B": "b"}),
    ("expect_column_values_to_not_be_null", {"column": "a", "row_condition": _condition()}),
]
PREDICATES = [
    "a BETWEEN 2 AND 7",
    "s IN ('x', 'it\\'s')",
    "a > b OR `odd name` < 0",
    "s LIKE '{%' -- a comment",
    "coalesce(a, 0) + coalesce(b, 0) > 9",
    "s RLIKE '^[a-z]{2}'",
    "a <=> b",
    "a IS NULL OR (a >= 2 AND a < 7)",
]


def _check(number, type_, kwargs):
    name = f"e{number}"
    return TableCheck(name, "warning", SuiteExpectation(type_, kwargs), None, None)


def test_counts_are_equal(spark):
    chance = random.Random(7)
    texts = ["x", "it's", "xy1", "ab", "{1", "a2'", None, "", "xyz9"]
    values = [
        (chance.choice([None, *range(10)]), chance.choice([None, *range(10)]), chance.choice([None, -1.0, 0.0, 2.5]), chance.choice(texts))
        for _ in range(500)
    ]
    rows = spark.createDataFrame(values, "a INT, b INT, `odd name` DOUBLE, s STRING").cache()
    cases = [(type_, kwargs, predicate_of(type_, kwargs)) for type_, kwargs in EXPECTATIONS]
    cases += [(*expectation_kwargs(predicate), predicate) for predicate in PREDICATES]
    conditions = [f"count_if(NOT coalesce((\n{predicate}\n), false)) AS c{i}" for i, (_, _, predicate) in enumerate(cases)]
    wanted = rows.selectExpr(*conditions).collect()[0]

    found = validate(rows, [_check(i, type_, kwargs) for i, (type_, kwargs, _) in enumerate(cases)], {}, None)
    assert [o.message for o in found] == [""] * len(cases)
    numbers = [int(str(o.observed).split()[0].replace(",", "")) for o in found]
    assert {case[2]: number for case, number in zip(cases, numbers, strict=True)} == {
        case[2]: wanted[f"c{i}"] for i, case in enumerate(cases)
    }
    assert sum(numbers) > 1000


@pytest.mark.slow
def test_a_check_of_a_rule_file_has_the_count_of_its_condition(spark):
    rows = spark.createDataFrame([(1, "a"), (1, "a"), (2, None), (None, "b"), (None, "b")], "id INT, k STRING")
    check = Check("t", "unique", "unique", {"columns": ("id",)}, "critical", "", 0)
    from lakelet.quality.suites import expectation_of

    (found,) = validate(rows, [TableCheck("unique", "critical", expectation_of(check), check, None)], {}, None)
    assert (found.success, found.observed) == (False, "2 of 5 rows")  # rows without a value do not count
