"""What an update leaves behind in a process that runs many."""

from __future__ import annotations

from typing import Any

from pyspark.sql.utils import ForeachBatchFunction

PIPELINE = """
import dlt

@dlt.table
def raw():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))

dlt.create_streaming_table("latest")
dlt.apply_changes(target="latest", source="raw", keys=["id"], sequence_by="at")
"""


def test_an_update_leaves_no_function_behind_that_java_could_call(project: Any) -> None:
    made = project(PIPELINE)
    made.arrive("a.json", {"id": 1, "at": 1})
    before = kept(made.spark)  # by streams of other tests that Lakelet does not run
    made.run()
    assert kept(made.spark) <= before


def kept(spark: Any) -> set[int]:
    """Identities of the functions of streaming queries that Java could call."""
    functions = list(spark.sparkContext._gateway.gateway_property.pool.dict.values())
    return {id(function) for function in functions if isinstance(function, ForeachBatchFunction)}
