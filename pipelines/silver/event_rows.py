"""The rows of a silver table. Helpers only: no dataset is defined here."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.payload import payload_column, payload_fields

PROPERTIES = {"quality": "silver", "delta.enableChangeDataFeed": "true"}


def event_rows(logs: DataFrame, event_type: str, columns: Mapping[str, str]) -> DataFrame:
    """The common columns, then one column per entry of `columns` (name to type), from the log entries of one event type."""
    # Nothing may come between the table and this filter on its partition column: it tells which tables a new file can concern.
    events = logs.where(F.col("event_type") == event_type)
    fields = payload_fields(events)
    return events.select(
        payload_column(fields, "event_id", "STRING"),
        payload_column(fields, "event_datetime", "TIMESTAMP").alias("event_at"),
        "event_date",
        F.col("insertId").alias("insert_id"),
        *(payload_column(fields, name, wanted) for name, wanted in columns.items()),
    )
