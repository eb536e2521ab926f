"""Keys that changed rows touch, found by a query without what puts rows together (IV-24)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakelet.jvm.key_plans import CHANGED, INEXACT, KeyPlan, NoKeyPlan, aliases_in

Query = Callable[..., DataFrame]


@pytest.fixture
def session(spark: Any) -> Any:
    """A session of its own, for its views."""
    return spark.newSession()


@pytest.fixture
def sales(session: Any) -> DataFrame:
    rows = [(1, "x", "2026-01-01 10:00:00", 5.0), (2, "y", "2026-01-02 11:00:00", 6.0), (None, "x", None, 1.0)]
    return session.createDataFrame(rows, "shop INT, kind STRING, at STRING, price DOUBLE").withColumn("at", F.col("at").cast("timestamp"))


@pytest.fixture
def shops(session: Any) -> DataFrame:
    return session.createDataFrame([(1, "north"), (2, "south"), (3, "south")], "shop INT, region STRING")


def keys(frame: DataFrame, *positions: int) -> set[Any]:
    plan = KeyPlan.of(frame)
    assert set(positions) <= plan.positions, plan.positions
    return {tuple(row) for row in plan.select(positions).collect()}


def changed(frame: DataFrame) -> DataFrame:
    return frame.alias(CHANGED)


def test_grouping_expressions_are_keys_and_conditions_on_results_do_not_count(sales: DataFrame) -> None:
    day = F.to_date("at")
    found = changed(sales).groupBy("shop", day.alias("day")).agg(F.sum("price").alias("s"), F.count("*").alias("n")).where("s > 100")
    assert {(shop, str(at)) for shop, at in keys(found, 0, 1)} == {(1, "2026-01-01"), (2, "2026-01-02"), (None, "None")}
    assert KeyPlan.of(found).positions == {0, 1}
    renamed = found.select((F.col("s") * 2).alias("double"), F.col("shop").alias("store"), (F.col("n") + F.col("shop")).alias("both"))
    assert keys(renamed, 1) == {(1,), (2,), (None,)}
    assert KeyPlan.of(renamed).positions == {1}


def test_conditions_on_columns_below_the_aggregate_count(sales: DataFrame) -> None:
    found = changed(sales).where("kind = 'x'").groupBy("shop").count().where("shop IS NOT NULL AND count > 0")
    assert keys(found, 0) == {(1,)}


def test_distinct_sort_and_aliases_let_keys_pass(sales: DataFrame) -> None:
    assert keys(changed(sales).alias("s").select("s.shop", "kind").distinct().orderBy("kind"), 0, 1) == {(1, "x"), (2, "y"), (None, "x")}


def test_of_a_window_only_the_columns_of_its_partitions_are_left(sales: DataFrame) -> None:
    """The newest row of a key may have left the condition, so that an older one follows."""
    by = Window.partitionBy("shop").orderBy(F.desc("at"))
    newest = changed(sales).withColumn("n", F.row_number().over(by)).where("n = 1 AND kind = 'y'").drop("n")
    assert keys(newest, 0) == {(1,), (2,), (None,)}
    assert KeyPlan.of(newest).positions == {0}
    twice = newest.withColumn("r", F.rank().over(Window.partitionBy("shop", "kind").orderBy("price")))
    assert KeyPlan.of(twice).positions == {0}


def test_inner_joins_and_unions(sales: DataFrame, shops: DataFrame) -> None:
    per_region = changed(sales).join(shops, "shop").groupBy("region").agg(F.sum("price"))
    assert keys(per_region, 0) == {("north",), ("south",)}
    none = sales.where("false").alias(INEXACT)
    both = changed(sales).select("shop", "kind").union(none.select("shop", "kind")).groupBy("kind").count()
    assert keys(both, 0) == {("x",), ("y",)}
    counts = sales.alias(INEXACT).groupBy("shop").agg(F.max("kind").alias("kind"))
    mixed = changed(sales).select("shop", "kind").union(counts).groupBy("shop", "kind").count()
    assert KeyPlan.of(mixed).positions == {0}  # one branch has lost the other column


def test_a_change_below_a_lower_aggregate_finds_keys_through_the_join(sales: DataFrame, shops: DataFrame) -> None:
    totals = changed(sales).where("price < 6").groupBy("shop").agg(F.sum("price").alias("total"))
    found = shops.join(totals, "shop").where("total > 1000").groupBy("region").agg(F.sum("total"))
    assert keys(found, 0) == {("north",)}
    left = shops.join(totals, "shop", "left").groupBy("region").agg(F.sum("total"))
    assert keys(left, 0) == {("north",)}


def test_a_changed_right_side_of_a_left_join_gives_keys_of_the_left_alone(sales: DataFrame, shops: DataFrame) -> None:
    found = shops.join(changed(sales).drop("at"), "shop", "left").groupBy("region", "kind").agg(F.sum("price"))
    assert KeyPlan.of(found).positions == {0}
    assert keys(found, 0) == {("north",), ("south",)}
    filtered = shops.join(changed(sales).where("price > 5.5"), "shop", "left").where("price IS NULL").groupBy("region").count()
    assert keys(filtered, 0) == {("south",)}  # the shops whose rows changed, whatever they find now
    right = changed(sales).join(shops, "shop", "right").groupBy("region").count()
    assert keys(right, 0) == {("north",), ("south",)}


def test_a_right_side_with_other_rows_fills_nothing_with_null(sales: DataFrame, shops: DataFrame) -> None:
    """A condition on results that is left out would find partners for rows that have none."""
    large = shops.groupBy("shop").agg(F.max("region").alias("region")).where("region = 'nowhere'")
    found = changed(sales).join(large, "shop", "left").where("region IS NULL").groupBy("kind").count()
    assert keys(found, 0) == {("x",), ("y",)}
    ever = changed(sales).join(shops.alias(INEXACT), "shop", "left").where("region IS NULL").groupBy("kind").count()
    assert keys(ever, 0) == {("x",), ("y",)}
    exact = changed(sales).join(shops, "shop", "left").groupBy("region").count()
    assert keys(exact, 0) == {("north",), ("south",), (None,)}


def test_semi_and_anti_joins(sales: DataFrame, shops: DataFrame) -> None:
    assert keys(changed(sales).join(shops.where("shop = 1"), "shop", "left_semi").groupBy("kind").count(), 0) == {("x",)}
    assert keys(changed(sales).join(shops.where("shop = 1"), "shop", "left_anti").groupBy("kind").count(), 0) == {("x",), ("y",)}
    changing = changed(shops).where("shop = 1")
    assert keys(sales.join(changing, "shop", "left_anti").groupBy("kind").count(), 0) == {("x",)}
    ever = shops.alias(INEXACT)
    assert keys(changed(sales).where("shop = 1").join(ever, "shop", "left_anti").groupBy("kind").count(), 0) == {("x",)}


def test_explode_and_common_table_expressions(session: Any, sales: DataFrame, shops: DataFrame) -> None:
    exploded = changed(sales).withColumn("w", F.explode(F.split("kind", ""))).groupBy("w").count()
    assert ("x",) in keys(exploded, 0)
    changed(sales).createOrReplaceTempView("sales")
    shops.createOrReplaceTempView("shops")
    found = session.sql(
        """WITH totals AS (SELECT shop, kind, SUM(price) AS total FROM sales GROUP BY shop, kind),
                big AS (SELECT shop, total FROM totals WHERE total > 100)
           SELECT region, MAX(totals.total) FROM totals JOIN big USING (shop) JOIN shops USING (shop) GROUP BY region"""
    )
    assert keys(found, 0) == {("north",), ("south",)}
    assert aliases_in(found)[CHANGED] == 2


def test_each_level_of_a_rollup_that_a_row_is_counted_in_is_touched(sales: DataFrame, shops: DataFrame) -> None:
    found = changed(sales).where("kind = 'y'").rollup("shop", "kind").agg(F.sum("price"))
    assert keys(found, 0, 1) == {(2, "y"), (2, None), (None, None)}
    by_column = changed(sales).where("shop = 1").selectExpr("shop", "CAST(price AS STRING) AS price", "kind")
    long = by_column.unpivot(["shop"], ["price", "kind"], "name", "value").groupBy("name").count()
    assert keys(long, 0) == {("price",), ("kind",)}
    totals = changed(sales).groupBy("shop").agg(F.sum("price").alias("total")).rollup("total").count()
    with pytest.raises(NoKeyPlan, match="put together"):
        KeyPlan.of(totals)


def test_changed_rows_are_those_of_their_frame_whatever_that_computes(sales: DataFrame) -> None:
    twice = sales.union(sales.where("kind = 'x'")).groupBy("shop", "kind").count().where("count > 1").drop("count")
    assert keys(changed(twice).groupBy("kind").count(), 0) == {("x",)}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (lambda sales, shops: changed(sales).agg(F.count("*")), "an aggregate of all rows"),
        (lambda sales, shops: changed(sales).withColumn("n", F.rank().over(Window.orderBy("price"))), "a window over all rows"),
        (lambda sales, shops: changed(sales).limit(3).groupBy("shop").count(), "the operator GlobalLimit"),
        (lambda sales, shops: changed(sales).join(shops, "shop", "full"), "a FullOuter join"),
        (lambda sales, shops: sales.groupBy("shop").count(), "a plan that does not show the changed rows"),
        (
            lambda sales, shops: shops.join(changed(sales).groupBy("kind").agg(F.max("shop").alias("top")), F.col("shop") == F.col("top")),
            "a join on a value that is computed from rows that are put together",
        ),
    ],
    ids=["no group", "no partition", "limit", "full join", "no change", "join on a result"],
)
def test_plans_without_keys_are_refused(sales: DataFrame, shops: DataFrame, query: Query, text: str) -> None:
    with pytest.raises(NoKeyPlan, match=text):
        KeyPlan.of(query(sales, shops))
