"""Random rules over random rows: events, views, console, page and Great Expectations count the same."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.summary import summary
from lakelet.dashboard.page import write_report
from lakelet.inspection.inspector import run_sql
from lakelet.quality.definitions import TableCheck
from lakelet.quality.suites import SuiteExpectation
from lakelet.quality.validation import validate
from lakelet.rules.predicates import expectation_kwargs
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.states import UpdateState

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCHEMA = "a INT, b INT, s STRING"
PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect_all({warn})
    @dlt.expect_all_or_drop({drop})
    def numbers():
        return spark.createDataFrame({rows}, "{schema}")

    @dlt.table(table_properties={{"lakelet.quarantine": "true"}})
    @dlt.expect_all({warn})
    @dlt.expect_all_or_drop({drop})
    def arrived():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("{schema}")
        return files.load(spark.conf.get("landing"))
"""
DATASETS = ("numbers", "arrived")
Counts = dict[tuple[str, str], tuple[int, int]]
"""(passed, failed) by dataset and rule."""


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


def _page(folder: Path) -> tuple[Counts, Counts, dict[str, dict[str, Any]], dict[str, Any]]:
    """What the files of a page say: rules of the quality view, rules of the update, datasets, the update."""
    overview, quality, update = (
        json.loads((folder / "data" / f"{name}.js").read_text(encoding="utf-8").partition(",")[2].rstrip().removesuffix(");"))
        for name in ("overview", "quality", "update-0")
    )
    names = [item["short"] for item in overview["datasets"]]
    matrix = {(names[row["d"]], row["rule"]): tuple(row["points"][-1][1:]) for row in quality["rows"]}
    rules = {(names[number], rule): (passed, failed) for number, rule, passed, failed in update["rules"]}
    return matrix, rules, dict(zip(names, overview["datasets"], strict=True)), update


def _printed(lines: list[str]) -> tuple[Counts, dict[str, tuple[int, int, int]], tuple[int, int, int]]:
    """What the summary on the terminal says: broken rules; (rows, dropped, quarantined) of each dataset and of the update."""
    number = lambda text: int((text or "0").replace(",", ""))  # noqa: E731
    rules, datasets, whole = {}, {}, (0, 0, 0)
    for line in lines:
        if found := re.fullmatch(r" +(\w+) +(\w+) +([\d,]+) +of ([\d,]+) rows", line):
            rules[found[1], found[2]] = (number(found[4]) - number(found[3]), number(found[3]))
        elif found := re.match(r" +(?:\w+ +)?(numbers|arrived) +COMPLETED +([\d,]+) +([\d,]+)(?: \(([\d,]+) quarantined\))? ", line):
            datasets[found[1]] = (number(found[2]), number(found[3]), number(found[4]))
        elif found := re.search(r"([\d,]+) rows written, ([\d,]+) dropped, ([\d,]+) of them quarantined", line):
            whole = (number(found[1]), number(found[2]), number(found[3]))
    return rules, datasets, whole


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_are_the_same_everywhere(project, spark, tmp_path, seed):
    chance = random.Random(seed)
    texts = [None, "", "x", "xy", "y3", "zz"]
    rows = [(chance.choice([None, *range(10)]), chance.choice([None, *range(10)]), chance.choice(texts)) for _ in range(200)]
    warn, drop = ({f"{kind}_{i}": _rule(chance) for i in range(5)} for kind in ("warn", "drop"))
    p = project(PIPELINE.format(warn=warn, drop=drop, rows=rows, schema=SCHEMA))
    p.arrive("a.json", *({"a": a, "b": b, "s": s} for a, b, s in rows[:120]))
    p.arrive("b.json", *({"a": a, "b": b, "s": s} for a, b, s in rows[120:]))
    p.run()

    rules = {**warn, **drop}
    checks = [TableCheck(n, "warning", SuiteExpectation(*expectation_kwargs(c)), None, None) for n, c in rules.items()]
    judged = validate(spark.createDataFrame(rows, SCHEMA), checks, {}, None)
    failed = {outcome.check.name: int(str(outcome.observed).split()[0]) for outcome in judged}
    wanted = {(dataset, name): (len(rows) - failed[name], failed[name]) for dataset in DATASETS for name in rules}
    broken = {key: counts for key, counts in wanted.items() if counts[1]}
    assert sum(failed.values()) > 100
    kept = {dataset: len(p.rows(dataset)) for dataset in DATASETS}
    lost = len(rows) - kept["numbers"]
    assert 0 < lost == len(rows) - kept["arrived"] == len(p.rows("arrived_quarantine"))

    assert {(dataset, name): counts for dataset in DATASETS for name, counts in p.quality(dataset).items()} == wanted
    view = run_sql(p.storage.root, "SELECT dataset, expectation, passed_records, failed_records FROM expectation_metrics", spark=spark).rows
    assert {(r["dataset"].rpartition(".")[2], r["expectation"]): (r["passed_records"], r["failed_records"]) for r in view} == wanted

    write_report(p.storage.root, p.folder, tmp_path / "report")
    matrix, of_update, items, update = _page(tmp_path / "report")
    assert matrix == of_update == wanted
    assert {name: (item["rows"], item["wrote"], item["dropped"], item["held"]) for name, item in items.items()} == {
        "numbers": (kept["numbers"], kept["numbers"], lost, None),
        "arrived": (kept["arrived"], kept["arrived"], lost, lost),
    }
    ran = reduce_events(event.as_json() for event in p.events).updates[-1]
    said, of_datasets, whole = _printed([line.text for line in summary(ran, UpdateState.COMPLETED)])
    assert said == broken
    assert of_datasets == {"numbers": (kept["numbers"], lost, 0), "arrived": (kept["arrived"], lost, lost)}
    assert whole == (update["rows"], update["dropped"], update["quarantined"]) == (sum(kept.values()), 2 * lost, lost)
