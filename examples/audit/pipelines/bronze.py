"""Audit records as they arrived: one row per record of each log file, as text, whatever it holds."""

import dlt
from pyspark.sql import functions as F

LANDING = spark.conf.get("landing", "landing")
NEWEST_FIRST = spark.conf.get("newest_first", "false")
FILES_PER_BATCH = spark.conf.get("files_per_batch", "1000")

LOG = "Records ARRAY<STRING>"
NEXT_LOG = r'(?<=\})\s*(?=\{\s*"Records")'  # some carriers put several logs into one file; within a JSON text the quotes would be escaped
KEYS = "eventID STRING, eventTime STRING"


@dlt.view(comment="Log files as text, one row per file.")
def audit_files():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").option("wholeText", "true")
    reader = reader.option("cloudFiles.maxFilesPerTrigger", FILES_PER_BATCH).option("latestFirst", NEWEST_FIRST)
    return reader.load(LANDING).select("value", F.col("_metadata.file_path").alias("source_file"))


@dlt.table(
    comment="Every record of every file, repeated ones too. What is not a JSON object with Records is one row with its text.",
    table_properties={"quality": "bronze"},
)
def audit_records():
    logs = F.split(F.trim("value", F.lit(" \r\n\t")), NEXT_LOG)
    files = dlt.read_stream("audit_files").select(F.explode(logs).alias("log"), "source_file")
    is_object = F.startswith("log", F.lit("{")) & F.endswith("log", F.lit("}"))
    records = F.when(is_object, F.from_json("log", LOG)["Records"])
    rows = files.select(F.explode(F.coalesce(records, F.array("log"))).alias("record"), "source_file")
    keys = F.from_json("record", KEYS)
    return rows.select(
        F.nullif(keys["eventID"], F.lit("")).alias("event_id"),
        F.try_to_timestamp(keys["eventTime"]).alias("event_time"),
        "record",
        "source_file",
    )
