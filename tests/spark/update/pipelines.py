"""Pipelines that several tests of updates run."""

from __future__ import annotations

BRONZE = """
    import dlt

    @dlt.table
    def bronze():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))
"""


def states(project):
    """States that the last update passed through."""
    return [e.body["state"] for e in project.events if e.event_type == "update_progress"]


FAST = {"spark.sql.pipelines.execution.watchdog.minRetryTime": "1s"}


FRAGILE = """
    import dlt, os
    from pyspark.sql import functions as F

    @F.udf("bigint")
    def careful(number):
        marks = os.environ.get("UNUSED") or "{marks}"
        failed = len([f for f in os.listdir(marks) if f.startswith("failed")])
        if number == 3 and failed < {failures}:
            open(os.path.join(marks, f"failed{{failed}}"), "w").close()
            raise RuntimeError("the line was cut")
        return number

    @dlt.table({options})
    def numbers():
        stream = (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
                  .schema("id bigint").load(spark.conf.get("landing")))
        return stream.select(careful("id").alias("id"))

    @dlt.table
    def total():
        return dlt.read("numbers").agg(F.sum("id").alias("total"))

    @dlt.table
    def apart():
        return spark.range(3)
"""


BRANCHES = """
    import dlt

    @dlt.table
    def good():
        return spark.range(1)

    @dlt.table
    def bad():
        return spark.range({number}).where("assert_true(id < 2) is null")

    @dlt.table
    def below():
        return dlt.read("bad")

    @dlt.table
    def left_out():
        return dlt.read("bad")
"""
