"""Audit records as they arrived: one row per record of each log file, as text, whatever it holds."""

import dlt
from pyspark.sql import functions as F

LANDING = spark.conf.get("landing", "landing")
NEWEST_FIRST = spark.conf.get("newest_first", "false")
FILES_PER_BATCH = spark.conf.get("files_per_batch", "1000")

FILE = "Records ARRAY<STRING>"
KEYS = "eventID STRING, eventTime STRING"


@dlt.view(comment="Log files as text, one row per file.")
def audit_files():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").option("wholeText", "true")
    reader = reader.option("cloudFiles.maxFilesPerTrigger", FILES_PER_BATCH).option("latestFirst", NEWEST_FIRST)
    return reader.load(LANDING).select("value", F.col("_metadata.file_path").alias("source_file"))


@dlt.table(
    comment="Every record of every file, repeated ones too. A file that is not a JSON object with Records is one row with its text.",
    table_properties={"quality": "bronze"},
)
def audit_records():
    records = F.coalesce(F.from_json("value", FILE)["Records"], F.array("value"))
    rows = dlt.read_stream("audit_files").select(F.explode(records).alias("record"), "source_file")
    keys = F.from_json("record", KEYS)
    return rows.select(
        F.nullif(keys["eventID"], F.lit("")).alias("event_id"),
        F.try_to_timestamp(keys["eventTime"]).alias("event_time"),
        "record",
        "source_file",
    )
