"""Small views are computed by one task; those of a long update by compiled code once they are larger (decision 52)."""

from __future__ import annotations

import pytest

from lakelet.flows.environment import KeptQueries
from lakelet.flows.views import sizes
from lakelet.spark import partitions
from lakelet.spark.launch.session import cores

PIPELINE = """
import dlt
from pyspark.sql import functions as F

@dlt.table
def numbers():
    return spark.range({rows})

@dlt.table{options}
def seen():
    names = ["spark.sql.shuffle.partitions", "spark.sql.codegen.factoryMode", "spark.sql.codegen.wholeStage"]
    return dlt.read("numbers").limit(1).select(*(F.lit(spark.conf.get(name)).alias(name.split(".")[-1]) for name in names))
"""
SMALL = ("1", "NO_CODEGEN", "false")
LARGE = (str(cores()), "NO_CODEGEN", "false")


def seen(project, options="", rows=10, **parameters):
    """The settings with which the view was computed; another number of `rows` makes a second update compute it again."""
    p = project().write(PIPELINE.format(rows=rows, options=options))
    p.parameters |= parameters
    return p.run().rows("seen")


def test_a_view_of_little_data_is_computed_by_one_task_and_a_larger_one_by_several(project, monkeypatch):
    assert seen(project) == [SMALL]
    monkeypatch.setattr(partitions, "ONE_TASK_BYTES", 1)
    assert seen(project, rows=11) == [LARGE]


def test_what_the_pipeline_or_its_dataset_sets_stays(project):
    assert seen(project, **{"spark.sql.shuffle.partitions": "7"}) == [("7", *SMALL[1:])]
    assert seen(project, **{"spark.sql.shuffle.partitions": str(cores())}) == [LARGE]
    assert seen(project, options='(spark_conf={"spark.sql.shuffle.partitions": "5"})') == [("5", *SMALL[1:])]


def test_a_view_of_what_is_no_dataset_is_left_to_spark(project, tmp_path):
    (tmp_path / "lines.txt").write_text("a\n")
    p = project().write(PIPELINE.format(rows=10, options="").replace('dlt.read("numbers")', f'spark.read.text("{tmp_path}/lines.txt")'))
    assert p.run().rows("seen") == [LARGE]


def test_a_larger_view_of_a_continuous_update_is_computed_by_compiled_code(project, monkeypatch):
    monkeypatch.setattr(sizes, "COMPILED_BYTES", 1)
    assert seen(project) == [SMALL]
    monkeypatch.setattr(KeptQueries, "on", property(lambda self: True, lambda self, value: None), raising=False)
    assert seen(project, rows=11) == [("1", "FALLBACK", "true")]


@pytest.mark.parametrize("rows", [0, 40_000])
def test_a_view_has_the_same_rows_however_it_is_computed(project, rows):
    p = project().write(f"""
        import dlt
        from pyspark.sql import functions as F

        @dlt.table
        def numbers():
            return spark.range({rows}).select("id", (F.col("id") % 7).alias("of"))

        @dlt.table
        def totals():
            return dlt.read("numbers").groupBy("of").agg(F.sum("id").alias("total"), F.count("*").alias("rows"))
    """)
    assert sorted(p.run().rows("totals")) == [(of, sum(range(of, rows, 7)), len(range(of, rows, 7))) for of in range(min(rows, 7))]
