"""Random rules and rows against plain Python: each row is in the dataset or in its quarantine, with the rules that it broke (QU-1)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.spark.flows.test_quarantine import held

pytestmark = pytest.mark.long

Value = int | None
TABLES = 4
SETTINGS = ("", ', "delta.columnMapping.mode": "name"', ', "delta.enableChangeDataFeed": "true"', "")


@dataclass(frozen=True)
class Rule:
    """A constraint in SQL and in Python; None is SQL's NULL."""

    name: str
    action: str
    sql: str
    holds: Callable[[Value, Value], bool | None]

    def broken_by(self, row: tuple[int, Value, Value]) -> bool:
        return self.holds(row[1], row[2]) is not True


def known(value: Value, test: Callable[[int], bool]) -> bool | None:
    return None if value is None else test(value)


def either(left: bool | None, right: bool | None) -> bool | None:
    """SQL's OR."""
    return True if True in (left, right) else None if None in (left, right) else False


def rules(rng: random.Random) -> list[Rule]:
    """Some rules on the columns a and b, at least one of which drops."""

    def one(number: int) -> Rule:
        limit = rng.randrange(-3, 8)
        forms: list[tuple[str, Callable[[Value, Value], bool | None]]] = [
            (f"a > {limit}", lambda a, b: known(a, lambda v: v > limit)),
            ("b IS NOT NULL", lambda a, b: b is not None),
            (f"a + b < {limit + 8}", lambda a, b: None if a is None or b is None else a + b < limit + 8),
            (f"NOT (b = {limit})", lambda a, b: known(b, lambda v: v != limit)),
            (f"a > {limit} OR b < {limit}", lambda a, b: either(known(a, lambda v: v > limit), known(b, lambda v: v < limit))),
            ("CAST(NULL AS BOOLEAN)" if rng.random() < 0.1 else "true", lambda a, b: None),
        ]
        sql, holds = rng.choice(forms)
        if sql == "true":
            holds = lambda a, b: True  # noqa: E731
        return Rule(f"r{number}", rng.choice(["expect", "expect_or_drop"]), sql, holds)

    return [*(one(n) for n in range(rng.randrange(5))), Rule("last", "expect_or_drop", "a <> 4", lambda a, b: known(a, lambda v: v != 4))]


def source(found: list[list[Rule]]) -> str:
    lines = ["import dlt"]
    for number, own in enumerate(found):
        lines += ["", f'@dlt.table(table_properties={{"lakelet.quarantine": "true"{SETTINGS[number]}}})']
        lines += [f'@dlt.{rule.action}("{rule.name}", "{rule.sql}")' for rule in own]
        lines += [f"def t{number}():", '    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")']
        lines += [f'    return reader.schema("id BIGINT, a BIGINT, b BIGINT").load(spark.conf.get("landing") + "/t{number}")']
    return "\n".join(lines)


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_row_is_in_one_of_both_tables_with_the_rules_it_broke_and_the_counts_are_those_of_python(seed: int, project: Any) -> None:
    rng = random.Random(seed)
    declared = [rules(rng) for _ in range(TABLES)]
    p = project(source(declared))
    given: list[list[tuple[int, Value, Value]]] = [[] for _ in declared]
    counted = [Counter[str]() for _ in declared]
    for batch in range(2):
        for number in range(TABLES):
            values = [None, *range(-4, 10)]
            rows = [(100 * batch + n, rng.choice(values), rng.choice(values)) for n in range(rng.randrange(1, 30))]
            given[number] += rows
            records = [{k: v for k, v in zip(("id", "a", "b"), row, strict=True) if v is not None} for row in rows]
            p.arrive(f"{batch}.json", *records, folder=f"t{number}")
        p.run()
        for event in p.events:
            quality = event.body.get("data_quality") if event.event_type == "flow_progress" else None
            if quality:
                of = int(event.origin.dataset_name[-1])
                counted[of]["dropped"] += quality["dropped_records"]
                counted[of]["quarantined"] += quality["quarantined_records"]
                counted[of]["written"] += event.body["metrics"]["num_output_rows"]
                for rule in quality["expectations"]:
                    counted[of][rule["name"]] += rule["failed_records"]
                    counted[of][f"{rule['name']} passed"] += rule["passed_records"]
    for number, (own, rows) in enumerate(zip(declared, given, strict=True)):
        drops = [rule for rule in own if rule.action == "expect_or_drop"]
        leaving = [row for row in rows if any(rule.broken_by(row) for rule in drops)]
        staying = [row for row in rows if row not in leaving]
        assert p.rows(f"t{number}", "id", "a", "b") == sorted(staying, key=repr)
        wanted = [(*row, tuple(rule.name for rule in own if rule.broken_by(row))) for row in leaving]
        assert held(p, f"t{number}", "id", "a", "b") == sorted(wanted, key=repr)
        told = counted[number]
        assert (told["written"], told["dropped"], told["quarantined"]) == (len(staying), len(leaving), len(leaving))
        for rule in own:
            broken = sum(map(rule.broken_by, rows))
            assert (told[rule.name], told[f"{rule.name} passed"]) == (broken, len(rows) - broken)
