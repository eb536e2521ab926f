"""How the queries of materialized views are followed: a query, and what is known of its rows (docs/semantics/views.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakelet.analysis.plan_facts import Placeholders, never_skippable, printed_plan
from lakelet.analysis.plan_tree import plan_tree
from lakelet.analysis.view_shapes import QueryFacts, shape_of
from lakelet.jvm.frames import plan_json
from lakelet.plan.refreshes import Issue, Leaf, ViewShape

TABLES = {
    "orders": "id BIGINT, customer BIGINT, amount DECIMAL(10,2), price DOUBLE, day DATE, at TIMESTAMP, kind STRING, tags ARRAY<STRING>, "
    "ok BOOLEAN, parts MAP<STRING, INT>, code STRING COLLATE UTF8_LCASE",
    "customers": "customer BIGINT, name STRING, country STRING, since DATE",
    "visits": "visitor BIGINT, started TIMESTAMP, channel STRING",
}


class Queries:
    """Queries over placeholders. A table's second placeholder, as for a second read of a function, has the name with `_2`."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.placeholders = Placeholders(spark)
        self.columns: dict[tuple[str, int], tuple[str, ...]] = {}
        for name, columns in TABLES.items():
            schema = StructType.fromDDL(columns)
            for copy in (0, 1):
                frame = self.placeholders.frame(name, schema, streaming=False, copy=copy)
                frame.alias(name).createOrReplaceTempView(name if copy == 0 else f"{name}_2")
                self.columns[name, copy] = tuple(schema.names)

    def facts(self, frame: DataFrame) -> QueryFacts:
        types = [None if "collate" in field.dataType.simpleString() else field.dataType.jsonValue() for field in frame.schema.fields]
        always = never_skippable(frame, printed_plan(frame), self.placeholders)
        return QueryFacts(self.placeholders.reads, self.columns, types, always=always)

    def shape(self, query: str | DataFrame, **changes: Any) -> ViewShape | Issue:
        frame = self.spark.sql(query) if isinstance(query, str) else query
        return shape_of(plan_tree(plan_json(frame)), replace(self.facts(frame), **changes))

    def shown(self, query: str | DataFrame, **changes: Any) -> str:
        """The shape of a query as text: how, by which columns, what is put together how; then each leaf."""
        frame = self.spark.sql(query) if isinstance(query, str) else query
        found = self.shape(frame, **changes)
        if isinstance(found, Issue):
            return f"{found.type} {found.sub_type or ''}".strip()
        names = frame.columns
        keys = [names[position] for position in found.keys]
        nullable = {keys[number]: below for number, below in found.nullable_keys.items()}
        parts = ["linear" if found.linear else found.technique.name.lower()]
        parts.append("by " + " ".join(f"{k}?{''.join(map(str, sorted(nullable[k])))}" if k in nullable else k for k in keys))
        if found.merges is not None:
            parts.append("merging " + (" ".join(f"{names[p]}={merge.name}" for p, merge in found.merges.items()) or "nothing"))
        return ", ".join(parts) + "".join(f" | {leaf_text(leaf, keys)}" for leaf in found.leaves)


def leaf_text(leaf: Leaf, keys: list[str]) -> str:
    """A leaf: its columns that are keys, and those that keys come from; `*` where a join fills it with NULL."""
    text = leaf.key + ("" if leaf.copy == 0 else f"_{leaf.copy + 1}") + ("" if leaf.preserved else "*")
    within = [f"{column}={keys[key]}" if column != keys[key] else column for column, key in sorted(leaf.within.items())]
    ranges = [f"{column}~{keys[r.key]}:{r.function}:{r.unit}".lower() for column, r in sorted(leaf.ranges.items())]
    joined = [f"+{number}" for number in sorted(leaf.joined)]
    return " ".join((text, *within, *ranges, *joined))


@pytest.fixture(scope="module")
def queries(spark: SparkSession) -> Queries:
    return Queries(spark.newSession())


def examples() -> dict[str, dict[str, str]]:
    """The queries of view_shapes.sql with what is expected of them, by group."""
    found: dict[str, dict[str, str]] = {}
    for part in Path(__file__).with_name("view_shapes.sql").read_text(encoding="utf-8").split("\n\n")[1:]:
        if part.startswith("-- # "):
            group = found[part.removeprefix("-- # ").strip()] = {}
        else:
            query, _, expected = part.partition("\n--> ")
            group[" ".join(query.split())] = expected.strip()
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("group", EXAMPLES)
def test_what_is_known_of_the_rows_of_a_query(queries: Queries, group: str) -> None:
    assert {query: queries.shown(query) for query in EXAMPLES[group]} == EXAMPLES[group]


def test_sums_are_put_together_where_an_overflow_is_an_error(queries: Queries) -> None:
    decimals = "SELECT day, sum(amount) AS s FROM orders GROUP BY day"
    assert queries.shown(decimals, ansi=True) == "groups, by day, merging s=SUM | orders day"
    assert queries.shown(decimals, ansi=False) == "groups, by day | orders day"
    assert queries.shown("SELECT day, sum(id) AS s FROM orders GROUP BY day", ansi=False) == "groups, by day, merging s=SUM | orders day"
    assert queries.shown("SELECT day, try_sum(id) AS s FROM orders GROUP BY day", tries=True) == "groups, by day | orders day"


def test_functions_by_order_are_followed_where_the_author_asks_for_it(queries: Queries) -> None:
    query = "SELECT day, first(kind) AS k, collect_list(id) AS ids FROM orders GROUP BY day"
    found = queries.shape(query, by_chance=True)
    assert isinstance(found, ViewShape)
    assert found.ordered_by_chance == "first(), by the order of rows, collect_list(), by the order of rows"
    duplicates = queries.spark.table("orders").dropDuplicates(["customer"]).select("customer", "day")
    assert queries.shown(duplicates) == "PLAN_NOT_DETERMINISTIC NON_DETERMINISTIC_EXPRESSION"
    assert queries.shown(duplicates, by_chance=True) == "groups, by customer | orders customer"
    assert (
        queries.shown(queries.spark.table("orders").select("customer", "day").dropDuplicates())
        == "groups, by customer day | orders customer day"
    )


@pytest.mark.parametrize(
    ("query", "left_to_chance"),
    [
        ("SELECT day, count(*) AS n FROM orders GROUP BY day", None),
        ("SELECT day, rank() OVER (PARTITION BY day ORDER BY at) AS r FROM orders", None),
        ("SELECT day, sum(id) OVER (PARTITION BY day ORDER BY at) AS r FROM orders", None),
        (
            "SELECT day, row_number() OVER (PARTITION BY day ORDER BY at) AS r FROM orders",
            "row_number() between rows that its ORDER BY puts equal",
        ),
        ("SELECT day, lag(id) OVER (PARTITION BY day ORDER BY at) AS r FROM orders", "lag() between rows that its ORDER BY puts equal"),
        (
            "SELECT day, sum(id) OVER (PARTITION BY day ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM orders",
            "a window of ROWS between rows that its ORDER BY puts equal",
        ),
        (
            "SELECT day, first_value(id) OVER (PARTITION BY day ORDER BY at) AS r FROM orders",
            "first() between rows that its ORDER BY puts equal",
        ),
        ("SELECT day, max_by(id, at) AS r FROM orders GROUP BY day", "max_by() between rows with equal values"),
    ],
)
def test_the_plan_says_what_is_left_to_chance(queries: Queries, query: str, left_to_chance: str | None) -> None:
    found = queries.shape(query)
    assert isinstance(found, ViewShape)
    assert found.ordered_by_chance == left_to_chance


def test_frames_of_python_are_followed_as_sql_is(queries: Queries) -> None:
    orders, customers = queries.spark.table("orders"), queries.spark.table("customers")
    hourly = (
        orders.withColumn("hour", F.date_trunc("hour", "at"))
        .groupBy("hour", "kind")
        .agg(F.count("*").alias("n"), F.sum("amount").alias("s"))
    )
    assert queries.shown(hourly) == "groups, by hour kind, merging n=SUM s=SUM | orders kind at~hour:date_trunc:hour"
    joined = orders.join(customers, "customer", "left").groupBy("customer").agg(F.max("name").alias("name"))
    assert queries.shown(joined) == "groups, by customer, merging name=MAX | orders customer +1 | customers* customer +0"
    repeated = orders.select("id", "day").union(orders.select("id", "day"))
    assert queries.shown(repeated) == "linear, by id day | orders day id | orders day id"
    assert queries.shown(orders.join(orders.alias("o"), "id").select("id")) == "PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED"
    assert queries.shown(orders.limit(3)) == "PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED"


def test_a_query_over_more_than_tables_of_the_pipeline_is_not_followed(queries: Queries) -> None:
    assert queries.shown(queries.spark.range(3)) == "PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED"
    refused = Issue("EXPECTATIONS_NOT_SUPPORTED", "it reads a view with rules")
    assert queries.shown("SELECT id FROM orders", refused=refused) == "EXPECTATIONS_NOT_SUPPORTED"
    assert (
        queries.shown("SELECT id FROM orders", always="its function looks at rows") == "PLAN_NOT_INCREMENTALIZABLE OPERATOR_NOT_SUPPORTED"
    )


def test_a_long_chain_of_columns_is_followed(queries: Queries) -> None:
    frame = queries.spark.table("orders").select("id", "day")
    for number in range(60):
        frame = frame.select("*", F.lit(number).alias(f"c{number}"))
    assert queries.shown(frame) == "linear, by id day | orders day id"
