"""Random rules on random rows: what summary, events and views count is what plain Python counts (EL-18)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lakelet.inspection import inspector
from lakelet.storage.eventlog.fold import reduce_events

ACTIONS = {"expect": "WARN", "expect_or_drop": "DROP"}
Row = dict[str, Any]


def conditions(draw: random.Random) -> tuple[str, Any]:
    """A condition in SQL and in Python, which gives None where SQL gives NULL."""
    column, bound = draw.choice(["a", "b"]), draw.randint(-3, 3)
    return draw.choice(
        [
            (f"{column} IS NOT NULL", lambda row: row[column] is not None),
            (f"{column} >= {bound}", lambda row: None if row[column] is None else row[column] >= bound),
            (f"{column} IN ({bound}, 0)", lambda row: None if row[column] is None else row[column] in (bound, 0)),
            ("a < b", lambda row: None if None in (row["a"], row["b"]) else row["a"] < row["b"]),
            ("true", lambda row: True),
        ]
    )


def rules_of(draw: random.Random) -> list[tuple[str, str, str, Any]]:
    """(name, decorator, SQL, Python) of some rules."""
    return [(f"r{n}", draw.choice(list(ACTIONS)), *conditions(draw)) for n in range(draw.randint(1, 6))]


def declared(rules: list[tuple[str, str, str, Any]]) -> str:
    return "".join(f'    @dlt.{decorator}("{name}", "{sql}")\n' for name, decorator, sql, _ in rules)


def counted(rules: list[tuple[str, str, str, Any]], rows: list[Row]) -> tuple[dict[str, tuple[int, int]], list[Row]]:
    """(passed, failed) per rule, and the rows that are kept."""
    held = [{name: judge(row) is True for name, _, _, judge in rules} for row in rows]
    counts = {name: (sum(one[name] for one in held), sum(not one[name] for one in held)) for name, _, _, _ in rules}
    drops = [name for name, decorator, _, _ in rules if decorator == "expect_or_drop"]
    return counts, [row for row, one in zip(rows, held, strict=True) if all(one[name] for name in drops)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_console_events_and_views_agree_with_a_count_by_hand(project, seed):
    draw = random.Random(seed)
    of_bronze, of_gold = rules_of(draw), rules_of(draw)
    p = project(f"""
    import dlt

    @dlt.table
{declared(of_bronze)}    def bronze():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("a INT, b INT")
                .option("cloudFiles.maxFilesPerTrigger", "1").load(spark.conf.get("landing")))

    @dlt.table
{declared(of_gold)}    def gold():
        return dlt.read("bronze").select("a", "b")
    """)
    stored: list[Row] = []
    for number in range(2):
        landed = []
        for file in range(2):
            rows = [{"a": draw.choice([None, *range(-4, 5)]), "b": draw.choice([None, *range(-4, 5)])} for _ in range(draw.randint(0, 30))]
            p.arrive(f"{number}-{file}.json", *rows)
            landed += rows
        p.run()
        bronze, kept = counted(of_bronze, landed)
        stored += kept
        gold, shown = counted(of_gold, stored)
        ran = reduce_events(event.as_json() for event in p.events).updates[-1]
        wanted = {("main.default.bronze", name): counts for name, counts in bronze.items()} if landed else {}
        wanted |= {("main.default.gold", name): counts for name, counts in gold.items()}
        dropped = {"main.default.bronze": len(landed) - len(kept), "main.default.gold": len(stored) - len(shown)}
        check_views(p, wanted, dropped)
        assert {key: (count.passed, count.failed) for key, count in ran.written_counts_by_rule.items() if count.rows} == {
            k: c for k, c in wanted.items() if sum(c)
        }
        assert {name: dataset.total("dropped") for name, dataset in ran.all_datasets.items()} == dropped
        assert len(p.rows("bronze")) == len(stored)
        assert len(p.rows("gold")) == len(shown)


def check_views(p: Any, wanted: dict[tuple[str, str], tuple[int, int]], dropped: dict[str, int]) -> None:
    def asked(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in inspector.run_sql(p.storage.root, sql, spark=p.spark).rows]

    latest = f"update_id = '{p.result.update_id}'"
    rows = asked(f"SELECT dataset, expectation, passed_records, failed_records, pass_rate FROM expectation_metrics WHERE {latest}")
    found = {(dataset, name): (passed, failed) for dataset, name, passed, failed, _ in rows}
    assert found == {key: counts for key, counts in wanted.items() if sum(counts) or key in found}
    assert all(
        rate is None if passed + failed == 0 else rate == pytest.approx(passed / (passed + failed)) for *_, passed, failed, rate in rows
    )
    events: dict[tuple[str, str], list[int]] = {}
    for event in p.events:
        for rule in event.body.get("data_quality", {}).get("expectations", []) if event.event_type == "flow_progress" else []:
            sums = events.setdefault((rule["dataset"], rule["name"]), [0, 0])
            sums[0] += rule["passed_records"]
            sums[1] += rule["failed_records"]
    assert {key: tuple(counts) for key, counts in events.items()} == found
    lost = dict(asked(f"SELECT dataset, coalesce(dropped_records, 0) FROM flow_metrics WHERE {latest}"))
    assert lost == dropped
    assert asked(f"SELECT dropped_records FROM updates WHERE {latest}") == [(sum(dropped.values()),)]
