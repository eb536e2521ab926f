"""Queries over the table `facts` of the corpus, made at random from typed expressions."""

# ruff: noqa: E501

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

COLUMNS = {
    "int": ["id", "small", "k"],
    "decimal": ["price", "d"],
    "double": ["f"],
    "string": ["word", "s"],
    "date": ["day"],
    "timestamp": ["t"],
    "boolean": ["ok"],
}
LITERALS = {
    "int": ["0", "1", "-3", "7", "100"],
    "decimal": ["1.5", "0.05", "-2.50", "10.0"],
    "double": ["CAST(2 AS DOUBLE)", "1.5D"],
    "string": ["'x'", "''", "'Alpha'"],
    "date": ["DATE'2026-03-01'", "DATE'2000-01-31'"],
    "timestamp": ["TIMESTAMP'2026-03-01 08:00:00'"],
    "boolean": ["true", "false"],
}


def expression(rng: random.Random, kind: str, depth: int) -> str:
    """An expression of a type, of at most so many levels."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(COLUMNS[kind] if rng.random() < 0.75 else LITERALS[kind])

    def of(other: str) -> str:
        return expression(rng, other, depth - 1)

    same = [f"coalesce({of(kind)}, {of(kind)})", f"CASE WHEN {of('boolean')} THEN {of(kind)} ELSE {of(kind)} END"]
    if kind != "boolean":
        same.append(f"if({of('boolean')}, {of(kind)}, {of(kind)})")
    if kind not in ("boolean", "double"):
        same += [f"greatest({of(kind)}, {of(kind)})", f"least({of(kind)}, {of(kind)})"]
    return rng.choice(same + _others(rng, kind, depth))


def _others(rng: random.Random, kind: str, depth: int) -> list[str]:
    def of(other: str) -> str:
        return expression(rng, other, depth - 1)

    any_kind = rng.choice(["int", "decimal", "double", "string", "date", "timestamp"])
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
    found: dict[str, Callable[[], list[str]]] = {
        "int": lambda: [
            f"({of('int')} {rng.choice('+-*')} {of('int')})", f"({of('int')} DIV {of('int')})", f"({of('int')} % {of('int')})", f"-({of('int')})",
            f"length({of('string')})", f"year({of('date')})", f"dayofweek({of('date')})", f"hour({of('timestamp')})",
            f"datediff({of('date')}, {of('date')})", f"CAST({of('boolean')} AS INT)", f"CAST({of('int')} AS BIGINT)", f"abs({of('int')})",
        ],
        "decimal": lambda: [f"({of('decimal')} {rng.choice('+-')} {of('decimal')})", f"({of('decimal')} * {of('int')})", f"CAST({of('int')} AS DECIMAL(14,2))"],
        "double": lambda: [f"({of('int')} / {of('int')})", f"({of('double')} {rng.choice('+-*')} {of('double')})", f"round({of('double')}, {rng.randrange(4)})"],
        "string": lambda: [
            f"upper({of('string')})", f"trim({of('string')})", f"substring({of('string')}, {rng.randrange(1, 4)}, {rng.randrange(4)})",
            f"concat({of('string')}, {of('string')})", f"CAST({of('int')} AS STRING)", f"CAST({of('date')} AS STRING)",
            f"CAST({of('decimal')} AS STRING)", f"nullif({of('string')}, {of('string')})", f"CAST({of('timestamp')} AS STRING)",
        ],
        "date": lambda: [f"date_add({of('date')}, {rng.randrange(-40, 40)})", f"to_date({of('timestamp')})"],
        "timestamp": lambda: [f"date_trunc('{rng.choice(['month', 'week', 'day', 'hour'])}', {of('timestamp')})", f"CAST({of('date')} AS TIMESTAMP)"],
        "boolean": lambda: [
            f"({of(any_kind)} {sign} {of(any_kind)})", f"({of('boolean')} AND {of('boolean')})", f"({of('boolean')} OR {of('boolean')})",
            f"(NOT {of('boolean')})", f"({of(any_kind)} IS NULL)", f"({of('int')} IN (1, 10, {of('int')}))",
            f"({of('int')} BETWEEN {of('int')} AND {of('int')})", f"({of('string')} LIKE '{rng.choice(['a%', '%a', '_', '%'])}')",
        ],
    }  # fmt: skip
    return found[kind]()


def queries(rng: random.Random, number: int) -> Iterator[str]:
    """So many queries: a third of plain rows, a third with conditions, a third with groups."""
    for at in range(number):
        kinds = [rng.choice(list(COLUMNS)) for _ in range(5)]
        columns = [f"{expression(rng, kind, 3)} AS x{place}" for place, kind in enumerate(kinds)]
        if at % 3 == 0:
            yield f"SELECT id, {', '.join(columns[:3])} FROM facts ORDER BY id"
        elif at % 3 == 1:
            yield f"SELECT id, {', '.join(columns[:2])} FROM facts WHERE {expression(rng, 'boolean', 3)} ORDER BY id DESC"
        else:
            key = expression(rng, rng.choice(["int", "string", "date", "boolean"]), 2)
            counted = [
                f"{rng.choice(['min', 'max', 'count'])}({expression(rng, kind, 2)}) AS y{place}" for place, kind in enumerate(kinds[:2])
            ]
            total = f"sum({expression(rng, 'int', 1)}) AS total, avg({expression(rng, 'int', 1)}) AS mean"
            yield f"SELECT {key} AS key, count(*) AS n, {total}, {', '.join(counted)} FROM facts GROUP BY {key}"
