"""Random rules over random rows: events, views, console, page and Great Expectations count the same."""

from __future__ import annotations

import random

import pytest

from lakelet.cli.tally import Tally
from lakelet.dashboard.history import reduce_events
from lakelet.inspection.inspector import run_sql
from lakelet.quality.definitions import TableCheck
from lakelet.quality.suites import SuiteExpectation
from lakelet.quality.validation import validate
from lakelet.rules.predicates import expectation_kwargs

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCHEMA = "a INT, b INT, s STRING"
PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect_all({warn})
    @dlt.expect_all_or_drop({drop})
    def numbers():
        return spark.createDataFrame({rows}, "{schema}")
"""


def _rule(chance):
    column, number = chance.choice("ab"), chance.randint(0, 9)
    return chance.choice(
        [
            f"{column} > {number}",
            f"{column} IS NULL OR ({column} >= {number} AND {column} < {number + 4})",
            f"{column} IS NOT NULL",
            f"a <=> b OR {column} = {number}",
            f"s IN ('x', 'y{number}')",
            f"s IS NULL OR length(s) = {number % 3}",
            f"NOT (s RLIKE '^[xy]' AND {column} < {number})",
            "a IS NULL OR b IS NULL OR a >= b",
        ]
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_are_the_same_everywhere(project, spark, seed):
    chance = random.Random(seed)
    texts = [None, "", "x", "xy", "y3", "zz"]
    rows = [(chance.choice([None, *range(10)]), chance.choice([None, *range(10)]), chance.choice(texts)) for _ in range(200)]
    warn, drop = ({f"{kind}_{i}": _rule(chance) for i in range(6)} for kind in ("warn", "drop"))
    p = project(PIPELINE.format(warn=warn, drop=drop, rows=rows, schema=SCHEMA)).run()

    rules = {**warn, **drop}
    checks = [TableCheck(n, "warning", SuiteExpectation(*expectation_kwargs(c)), None, None) for n, c in rules.items()]
    judged = validate(spark.createDataFrame(rows, SCHEMA), checks, {}, None)
    failed = {outcome.check.name: int(str(outcome.observed).split()[0]) for outcome in judged}
    wanted = {name: (len(rows) - failed[name], failed[name]) for name in rules}
    assert sum(failed.values()) > 100

    assert p.quality() == wanted
    tally = Tally()
    for event in p.events:
        tally.feed(event)
    assert {name: tuple(counts) for (_, name), counts in tally.rules.items()} == wanted
    view = run_sql(
        p.storage.root, "SELECT expectation, passed_records, failed_records, pass_rate FROM expectation_metrics", spark=spark
    ).rows
    found = {row["expectation"]: (row["passed_records"], row["failed_records"]) for row in view}
    assert found == wanted
    (update,) = reduce_events([event.as_json() for event in p.events]).updates
    assert {rule.rule: (rule.passed, rule.failed) for run in update.runs for rule in run.rules} == wanted
    assert sum(run.dropped for run in update.runs) == tally.dropped == len(rows) - len(p.rows("numbers"))
