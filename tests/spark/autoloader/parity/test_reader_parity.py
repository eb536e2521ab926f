"""Auto Loader returns what Spark's reader of the same version returns, or what a numbered rule says instead.

A combination is a small file of one kind (well-formed, or broken in one way), read with options, session settings and columns that are
declared or inferred. `make test` tries some of them, `-m slow` all. One combination alone: its id in brackets behind the test's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from tests.spark.autoloader.parity.combinations import Combination, picked, readings
from tests.spark.autoloader.parity.grids import GRIDS
from tests.spark.autoloader.parity.laboratory import Laboratory, same
from tests.spark.autoloader.parity.rules import RULES, Rule, expected, returned

QUICK = {
    "json": (6, 4),
    "json inferred": (6, 10),
    "csv": (6, 4),
    "csv inferred": (6, 10),
    "xml": (5, 5),
    "xml inferred": (4, 10),
    "parquet": (6, 8),
    "orc": (3, 8),
    "text": (5, 3),
    "binaryFile": (2, 2),
}
"""Of each grid the first readings, and each of them with every so manieth kind of file."""
SLOW = dict.fromkeys(GRIDS, (10_000, 11))


def chosen(parts: dict[str, tuple[int, int]]) -> Iterator[Combination]:
    for name, (most, step) in parts.items():
        format, grid = GRIDS[name]
        kinds = Laboratory.kinds(format)
        for place, reading in enumerate(islice(readings(format, grid), most)):
            picks = kinds[place % step :: step]  # single bytes mean nothing in a charset of two or four
            yield from (
                Combination(reading, kind)
                for kind in picks
                if kind != "bad-bytes" or ("utf-16" not in str(reading.labels) and "utf-32" not in str(reading.labels))
            )


SEMANTICS = [page.read_text() for page in sorted((Path(__file__).parents[4] / "docs" / "semantics").glob("*.md"))]


def example(shown: Rule) -> Combination:
    """The combination that shows it."""
    name, kind, labels = shown.example
    return Combination(picked(*GRIDS[name], labels), kind)


QUICK_ONES = list(dict.fromkeys([*chosen(QUICK), *(example(rule) for rule in RULES if rule.example[0] != "avro")]))
SLOW_ONES = [c for c in chosen(SLOW) if c not in set(QUICK_ONES)]


@pytest.fixture(scope="module")
def laboratory(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(spark, tmp_path_factory.mktemp("parity"))


def prepare(laboratory: Laboratory, format: str) -> None:
    """Skip a test of Avro where Spark's reader of it cannot be had."""
    try:
        laboratory.learn_avro() if format == "avro" else None
    except LakeletError as error:
        pytest.skip(f"spark-avro: {error}")


def check(laboratory: Laboratory, combination: Combination) -> None:
    reading, kind = combination.reading, combination.kind
    prepare(laboratory, reading.format)
    wanted, found = expected(laboratory, reading, kind), returned(laboratory, reading, kind)
    if not same(wanted, found):
        pytest.fail(f"{combination.id}\nexpected: {wanted}\nAuto Loader: {found}\n{reading}", pytrace=False)


@pytest.mark.parametrize("combination", QUICK_ONES, ids=lambda c: c.id)
def test_files_are_read_as_sparks_reader_reads_them(combination: Combination, laboratory: Laboratory) -> None:
    check(laboratory, combination)


@pytest.mark.slow
@pytest.mark.parametrize("combination", SLOW_ONES, ids=lambda c: c.id)
def test_every_pair_of_options_is_read_as_sparks_reader_reads_it(combination: Combination, laboratory: Laboratory) -> None:
    check(laboratory, combination)


def test_there_are_as_many_combinations_as_promised() -> None:
    assert len(QUICK_ONES) >= 200
    assert len(QUICK_ONES) + len(SLOW_ONES) >= 2000
    assert len({c.id for c in QUICK_ONES + SLOW_ONES}) == len(QUICK_ONES) + len(SLOW_ONES)


def shown_rule(rule: Rule) -> Any:
    slow = [pytest.mark.slow] if rule.example[0] == "avro" else []
    return pytest.param(rule, id=f"{rule.id}-{rule.what.replace(' ', '-')}", marks=slow)


@pytest.mark.parametrize("rule", list(map(shown_rule, RULES)))
def test_every_rule_makes_a_difference_and_is_documented(rule: Rule, laboratory: Laboratory) -> None:
    """A rule that no combination needs would hide a difference some day."""
    assert any(f"**{rule.id}**" in page or f"| {rule.id} |" in page for page in SEMANTICS), "the rule is in docs/semantics"
    one = example(rule)
    prepare(laboratory, one.reading.format)
    assert rule.applies(one.reading, one.kind)
    others = [other for other in RULES if other is not rule]
    wanted = expected(laboratory, one.reading, one.kind)
    assert not same(wanted, expected(laboratory, one.reading, one.kind, rules=others))
