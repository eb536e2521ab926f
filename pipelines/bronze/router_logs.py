"""Bronze: the entries as the log router delivered them, the broken lines in a table of their own, and every good entry once."""

import dlt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations import rules
from pipelines.payload import payload_column, payload_fields

# What the rules and the de-duplication need is there from the first file on, even if that file holds nothing but broken lines.
HINTS = "insertId STRING, timestamp TIMESTAMP, receiveTimestamp TIMESTAMP, severity STRING"

PARSED = rules("router_logs_raw", "warn")["parsed"]


@dlt.table(
    comment="Every line of every file, unchanged; what did not fit the schema is in _rescued_data.",
    table_properties={"quality": "bronze"},
)
@dlt.expect_all(rules("router_logs_raw", "warn"))
@dlt.expect_all_or_drop(rules("router_logs_raw", "drop"))
@dlt.expect_all_or_fail(rules("router_logs_raw", "fail"))
def router_logs_raw():
    return (
        spark.readStream.format("cloudFiles")
        .option("cloudFiles.format", "json")
        .option("cloudFiles.inferColumnTypes", "true")
        .option("cloudFiles.schemaHints", HINTS)
        .load(f"{spark.conf.get('landing')}/router_logs")
        .withColumn("source_file", F.col("_metadata.file_name"))
    )


@dlt.table(comment="Lines of router_logs_raw that are no log entry.", table_properties={"quality": "bronze"})
def unparsed_lines():
    return unparsed(spark.readStream.table("router_logs_raw"))


@dlt.table(
    comment="Every parsed log entry once.",
    partition_cols=["event_date", "event_type"],
    table_properties={"quality": "bronze"},
)
@dlt.expect_all(rules("router_logs", "warn"))
@dlt.expect_all_or_drop(rules("router_logs", "drop"))
@dlt.expect_all_or_fail(rules("router_logs", "fail"))
def router_logs():
    return with_event(once(parsed(spark.readStream.table("router_logs_raw"))))


def parsed(raw: DataFrame) -> DataFrame:
    return raw.where(PARSED)


def unparsed(raw: DataFrame) -> DataFrame:
    """The rows that `parsed` leaves out, with the text of the line where the line itself was broken."""
    broken = ~F.coalesce(F.expr(PARSED), F.lit(False))
    return raw.where(broken).select("source_file", F.get_json_object("_rescued_data", "$._corrupt_record").alias("raw_line"))


def once(entries: DataFrame) -> DataFrame:
    """One row per insertId. Entries come at most 6 hours late; 12 hours of memory leave a margin."""
    return entries.withWatermark("timestamp", "12 hours").dropDuplicatesWithinWatermark(["insertId"])


def with_event(entries: DataFrame) -> DataFrame:
    event_type = payload_column(payload_fields(entries), "event_type", "STRING")
    return entries.withColumns({"event_type": event_type, "event_date": F.to_date("timestamp")})
