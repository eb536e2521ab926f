"""Counts of the rules of views, whatever the query above them does (docs/semantics/updates.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.spark.conftest import Project

HEAD = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.view
    @dlt.expect("even", "id % 2 = 0")
    @dlt.expect_or_drop("small", "id < 900")
    def numbers():
        return spark.range(1000).repartition(4)
"""
QUERIES = {
    "sorted": "v.orderBy('id')",
    "sorted_twice": "v.orderBy('id').withColumn('n', F.col('id') % 7).orderBy('n')",
    "by_range": "v.repartitionByRange(3, 'id')",
    "sorted_join": "v.join(spark.range(2000), 'id').orderBy(F.desc('id'))",
    "of_a_union": "v.where('id < 10').union(v.where('id > 10'))",
    "read_twice": "v.union(dlt.read('numbers'))",
    "self_join": "v.join(dlt.read('numbers'), 'id')",
    "broadcast": "spark.range(5).join(F.broadcast(v), 'id')",
    "grouped": "v.groupBy((F.col('id') % 5).alias('k')).count().orderBy('count')",
    "top": "v.orderBy('id').limit(7)",
    "spread": "v.repartition(5)",
}


@pytest.fixture(params=["adaptive", "fixed"])
def adaptive(request: pytest.FixtureRequest, spark: Any) -> Iterator[None]:
    key = "spark.sql.adaptive.enabled"
    before = spark.conf.get(key)
    spark.conf.set(key, str(request.param == "adaptive").lower())
    yield
    spark.conf.set(key, before)


def counted(project: Callable[..., Project], queries: dict[str, str]) -> tuple[Project, dict[str, dict[str, tuple[int, int]]]]:
    """The project of tables with these queries of the view after its update, and what the view's rules counted in each flow."""
    tables = "".join(
        f"""
    @dlt.table
    def {name}():
        v = dlt.read("numbers")
        return {query}
"""
        for name, query in queries.items()
    )
    made = project(HEAD + tables).run()
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for event in made.events:
        for e in event.body.get("data_quality", {}).get("expectations", []) if event.event_type == "flow_progress" else []:
            flow = found.setdefault(str(event.origin.flow_name).rsplit(".", 1)[-1], {})
            assert e["name"] not in flow, event
            flow[e["name"]] = (e["passed_records"], e["failed_records"])
    return made, found


@pytest.mark.slow
@pytest.mark.usefixtures("adaptive")
def test_each_row_of_a_view_counts_once_in_each_flow_that_reads_it(project: Callable[..., Project], spark: Any) -> None:
    spark.catalog.clearCache()
    made, found = counted(project, QUERIES)
    assert found == {name: {"even": (500, 500), "small": (900, 100)} for name in QUERIES}
    assert made.rows("sorted") == sorted(range(900), key=repr)
    assert made.spark._jsparkSession.sharedState().cacheManager().numCachedEntries() == 0


def test_rows_of_a_view_that_the_query_caches_count_once(project: Callable[..., Project], spark: Any) -> None:
    _, found = counted(project, {"cached": "v.cache()", "cached_and_sorted": "v.cache().orderBy('id')"})
    spark.catalog.clearCache()
    assert found == {name: {"even": (500, 500), "small": (900, 100)} for name in ("cached", "cached_and_sorted")}


def test_rows_of_a_view_over_an_aggregate_of_a_stream_count_once_below_a_sort(project: Callable[..., Project]) -> None:
    made = project("""
    import dlt
    from pyspark.sql import functions as F

    @dlt.view
    @dlt.expect("even", "n % 2 = 0")
    @dlt.expect_or_drop("named", "kind <> 'secret'")
    def groups():
        stream = spark.readStream.schema("kind STRING").json(spark.conf.get("landing"))
        return stream.groupBy("kind").agg(F.count("*").alias("n"))

    @dlt.table
    def largest_first():
        return dlt.read_stream("groups").orderBy(F.desc("n")).select("kind", "n")
    """)
    made.arrive("a.json", *({"kind": kind} for kind in ("x", "x", "y", "secret")))
    made.run()
    assert made.rows("largest_first") == [("x", 2), ("y", 1)]
    assert made.quality("groups") == {"even": (1, 2), "named": (2, 1)}
