"""What `lakelet watch` does while nobody needs its session: it uses what an update will use first.

The first update in a Java process takes twice as long as the next one: its classes are loaded, its code is compiled. Each step is short,
because a file that is saved meanwhile waits for its end. Steps write below a folder of their own and leave nothing in the session.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from lakelet.files.scratch import scratch_folder


@dataclass
class Warming:
    """Steps that are done one by one."""

    _steps: Iterator[None] = field(default_factory=lambda: _steps())

    def step(self) -> None:
        """Do the next step; nothing after the last one. What goes wrong ends the steps: nobody needs them."""
        from pyspark.errors import PySparkException

        from lakelet.jvm.errors import Py4JError

        with suppress(Py4JError, PySparkException, OSError):
            next(self._steps, None)


def _steps() -> Iterator[None]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    active = SparkSession.getActiveSession()
    if active is None:
        return
    spark = active.newSession()
    folder = scratch_folder("warm")
    try:
        table, copied, checkpoint = (str(folder / name) for name in ("table", "copied", "checkpoint"))
        rows = spark.range(20).selectExpr("id", "concat('k', id % 2) AS kind", "CAST(id AS DECIMAL(20, 2)) AS amount")
        rows.write.format("delta").save(table)
        yield
        judged = spark.readStream.format("delta").load(table).withColumn("valid", F.struct((F.col("id") > 3).alias("positive")))
        measured = judged.observe("rules", F.count(F.lit(1)).alias("rows"), F.sum(F.col("valid.positive").cast("int")).alias("passed"))
        kept = measured.where("valid.positive").drop("valid").writeStream.format("delta").trigger(availableNow=True)
        kept.option("checkpointLocation", checkpoint).start(copied).awaitTermination()
        yield
        found = spark.read.format("delta").load(copied).groupBy("kind").agg(F.count(F.lit(1)).alias("n"), F.sum("amount").alias("amount"))
        found.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table)
        yield
        spark.read.format("delta").load(table).orderBy("kind").toArrow()
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["Warming"]
