"""Mutated statements: whatever stands in a SQL source, there is a result or an error that says where; nothing else is raised."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sql_statements import CONFIGURATION, THEMES

from lakelet.base.names import Namespace
from lakelet.language import sql
from lakelet.language.registry import Registry, recording
from lakelet.language.sql_text.spark_sql import json_paths

SEEDS = [statement for statements in THEMES.values() for statement in statements]
PIECES = [
    *"'\"`()[]{}<>;:,.=*-+/|&%$#@!?~^\\ \n\t\0é\u2028",
    *("--", "/*", "*/", "::", "${", "${floor}", ":floor", "=>", "r'", "x'", "0x", "1e", "1L", ".5", "''", "\\'", "{{", "/*+"),
    *("CREATE", "SELECT", "AS", "FROM", "STREAM", "CONSTRAINT", "EXPECT", "KEYS", "COLUMNS", "EXCEPT", "SET", "USE", "FLOW", "IDENTIFIER"),
]


def mutated(dice: random.Random) -> str:
    """One to four changes of a statement: characters, words, pieces of others."""
    text = dice.choice(SEEDS)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text) + 1)
        end = min(len(text), at + dice.choice((1, 1, 2, 5, 20)))
        words = text.split(" ")
        word = dice.randrange(len(words))
        change = dice.randrange(8)
        if change == 0:
            text = text[:at] + text[end:]
        elif change == 1:
            text = text[:at] + dice.choice(PIECES) + text[at:]
        elif change == 2:
            text = text[:at] + dice.choice(PIECES) + text[end:]
        elif change == 3:
            text = " ".join([*words[:word], *words[word + 1 :]])
        elif change == 4:
            text = " ".join([*words[: word + 1], *words[word:]])
        elif change == 5:
            text = " ".join(dice.sample(words, len(words))) if dice.random() < 0.3 else text[:at]
        elif change == 6:
            text = text[:at] + dice.choice(SEEDS)[: dice.randrange(60)] + text[at:]
        else:
            text = text[:at] + text[at:end].swapcase() + text[end:]
    return text


def complaint(text: str) -> str | None:
    """What is wrong with how a source was taken; None if it has a result, or errors that name a place in it."""
    registry = Registry(Namespace())
    with recording(registry):
        whole = sql.declare([sql.Cell(text)], Path("fuzz.sql"), configuration=CONFIGURATION, session=None)
    if whole != (not [error for error in registry.errors if not error.code.startswith("DUPLICATE")]):
        return "understood, and yet an error" if whole else "not understood, and no error"
    registry.definitions(complete=whole)
    lines = text.split("\n")
    for error in registry.errors:
        where = error.where
        if where is None or where.column is None or not 1 <= where.line <= len(lines):
            return f"no place: {error!r}"
        if not 1 <= where.column <= len(lines[where.line - 1]) + 1:
            return f"outside of the line: {error}"
        str(error)
    if json_paths(text).count("\n") != text.count("\n"):
        return "a path moved to another line"
    return None


def check(seed: int, number: int) -> None:
    dice = random.Random(seed)
    for _ in range(number):
        text = mutated(dice)
        problem = complaint(text)
        assert problem is None, f"{problem}\n{text!r}"


def test_three_hundred_mutated_statements():
    check(seed=2024, number=300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_mutated_statements(seed: int):
    check(seed, number=1000)


@pytest.mark.parametrize("depth", [50, 5000])
def test_deep_nesting_has_a_result_or_a_place(depth: int):
    rule = "a.b + " * depth + "1 > 0"
    nested = "(" * depth + "1" + ")" * depth
    assert complaint(f"CREATE MATERIALIZED VIEW v (CONSTRAINT r EXPECT ({rule})) AS SELECT {nested} AS b FROM a") is None
    assert complaint("CREATE MATERIALIZED VIEW v (s " + "ARRAY<" * depth + "INT" + ">" * depth + ") AS SELECT 1") is None
