import dlt
from pyspark.sql import functions as F


@dlt.table
@dlt.expect_or_drop("has_id", "id IS NOT NULL")
def raw():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))


@dlt.table
def totals():
    return dlt.read("raw").groupBy("name").agg(F.count("*").alias("rows"))


dlt.create_streaming_table("latest")
dlt.apply_changes(target="latest", source="raw", keys=["id"], sequence_by="at", apply_as_deletes="op = 'D'")
dlt.create_streaming_table("history")
dlt.apply_changes(target="history", source="raw", keys=["id"], sequence_by="at", apply_as_deletes="op = 'D'", stored_as_scd_type=2)
