"""Audit events: each event once, flat and typed; what has no identity or time is kept apart."""

import dlt
from pyspark.sql import functions as F

EVENT = """
    eventName STRING, eventSource STRING, awsRegion STRING, sourceIPAddress STRING, userAgent STRING,
    userIdentity STRUCT<
        type: STRING, arn: STRING, userName: STRING, accountId: STRING,
        sessionContext: STRUCT<sessionIssuer: STRUCT<userName: STRING>>>,
    recipientAccountId STRING, errorCode STRING, errorMessage STRING, readOnly BOOLEAN,
    requestParameters STRING, responseElements STRING
"""
FILES_PER_BATCH = spark.conf.get("files_per_batch", "1000")
IDENTIFIED = "event_id IS NOT NULL AND event_time IS NOT NULL"


@dlt.table(
    comment="Every event once, by its eventID, however late it is repeated.",
    partition_cols=["event_date"],
    table_properties={"quality": "silver", "pipelines.autoOptimize.zOrderCols": "user_arn"},
)
@dlt.expect("name_known", "event_name IS NOT NULL")
@dlt.expect("source_known", "event_source IS NOT NULL")
def events():
    records = spark.readStream.option("maxFilesPerTrigger", FILES_PER_BATCH).table("audit_records")
    distinct = records.where(IDENTIFIED).dropDuplicates(["event_id"])
    event = F.col("event")
    user = event["userIdentity"]
    return distinct.withColumn("event", F.from_json("record", EVENT)).select(
        "event_id",
        "event_time",
        F.to_date("event_time").alias("event_date"),
        event["eventName"].alias("event_name"),
        event["eventSource"].alias("event_source"),
        event["awsRegion"].alias("aws_region"),
        event["sourceIPAddress"].alias("source_ip"),
        event["userAgent"].alias("user_agent"),
        user["type"].alias("user_type"),
        user["arn"].alias("user_arn"),
        F.coalesce(user["userName"], user["sessionContext"]["sessionIssuer"]["userName"]).alias("user_name"),
        F.coalesce(user["accountId"], event["recipientAccountId"]).alias("account_id"),
        event["errorCode"].alias("error_code"),
        event["errorMessage"].alias("error_message"),
        event["readOnly"].alias("read_only"),
        event["requestParameters"].alias("request_parameters"),
        event["responseElements"].alias("response_elements"),
        "source_file",
    )


@dlt.table(comment="Records without eventID or eventTime, and files that are not CloudTrail logs, as text.")
def records_apart():
    return dlt.read_stream("audit_records").where(f"NOT ({IDENTIFIED})").select("record", "source_file")
