"""Refreshes at the edges of their types and rules end as a full computation ends: with the same rows, or with the same error."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.spark.conftest import Project
from tests.view_refreshes.lives import SWITCH, environment

SUMS = """
import dlt
from pyspark.sql import functions as F

@dlt.table
def paid():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.schema("k STRING, n BIGINT, amount DECIMAL(38,2)").load(spark.conf.get("landing"))

@dlt.table
def counts():
    return dlt.read("paid").groupBy("k").agg(F.count("*").alias("rows"), F.sum("n").alias("n"))

@dlt.table
def amounts():
    return dlt.read("paid").groupBy("k").agg(F.sum("amount").alias("amount"))

@dlt.table
@dlt.expect_or_fail("small", "n < 100 OR n > 1000")
@dlt.expect("has_key", "k IS NOT NULL")
def judged():
    return dlt.read("paid").select("k", "n")
"""


@pytest.mark.long
@pytest.mark.parametrize("forced", ["merge", "groups", "full"])
def test_a_sum_that_leaves_its_type_fails_the_refresh_and_the_table_stays(forced: str, project: Callable[..., Project]) -> None:
    made = project(SUMS)
    largest, many = 2**63 - 1, "9" * 36 + ".99"
    made.arrive("a.json", {"k": "a", "n": largest, "amount": 1}, {"k": "b", "n": 5, "amount": many})
    with environment(SWITCH, forced):
        made.run()
        before = (made.rows("counts"), made.rows("amounts"))
        made.arrive("b.json", {"k": "a", "n": 1, "amount": 1}, {"k": "b", "n": 1, "amount": "0.01"})
        made.run(expect="FAILED")
        assert {*made.errors()} == {"counts", "amounts"}
        assert (made.rows("counts"), made.rows("amounts")) == before
        made.spark.sql(f"DELETE FROM delta.`{made.path('paid')}` WHERE n = 1")
        made.arrive("c.json", {"k": "b", "n": 2, "amount": "-0.01"})
        made.run()
    assert made.rows("counts") == [("a", 1, largest), ("b", 2, 7)]
    assert made.rows("amounts") == [("a", Decimal("1.00")), ("b", Decimal("9" * 36 + ".98"))]


@pytest.mark.long
@pytest.mark.parametrize("forced", ["append", "full"])
def test_a_rule_that_fails_an_update_also_fails_it_for_new_rows_alone(forced: str, project: Callable[..., Project]) -> None:
    made = project(SUMS)
    made.arrive("a.json", {"k": "a", "n": 1}, {"n": 2})
    with environment(SWITCH, forced):
        made.run()
        assert made.quality("judged") == {"small": (2, 0), "has_key": (1, 1)}
        made.arrive("b.json", {"n": 3})
        made.run()
        assert made.quality("judged") == {"small": (3, 0), "has_key": (1, 2)}
        made.arrive("c.json", {"k": "c", "n": 500})
        made.run(expect="FAILED")
        assert {*made.errors()} == {"judged"}
        assert made.rows("judged", "n") == [1, 2, 3]
        made.spark.sql(f"DELETE FROM delta.`{made.path('paid')}` WHERE n = 500")
        made.arrive("d.json", {"k": "d", "n": 4})
        made.run()
    assert made.rows("judged", "n") == [1, 2, 3, 4]
    assert made.quality("judged") == {"small": (4, 0), "has_key": (2, 2)}


STREAMED = """
import dlt
from pyspark.sql import functions as F

@dlt.table
def visits():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.schema("page STRING, n BIGINT").load(spark.conf.get("landing"))

@dlt.table
def pages():
    return dlt.read("visits").where("n > 0").select(F.upper("page").alias("page"), "n")

@dlt.table
def seen():
    return dlt.read_stream("pages")
"""


@pytest.mark.long
@pytest.mark.parametrize("forced", ["append", "full", None], ids=str)
def test_a_stream_gets_each_new_row_of_a_view_once(forced: str | None, project: Callable[..., Project]) -> None:
    made = project(STREAMED)
    wanted: list[Any] = []
    with environment(SWITCH, forced):
        for number, rows in enumerate([[("a", 1), ("b", 2)], [("a", 1), ("c", 0)], [("a", 1), ("b", 7)]]):
            made.arrive(f"{number}.json", *({"page": page, "n": n} for page, n in rows))
            made.run()
            wanted += [(page.upper(), n) for page, n in rows if n]
            assert made.rows("pages") == made.rows("seen") == sorted(wanted)
