"""The factory of the silver tables. Helpers only: no dataset is defined until `event_table` is called."""

import re
from types import ModuleType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations import rules
from pipelines.payload import payload_column, payload_fields


def event_table(dp: ModuleType, spark: SparkSession, event_type: str, columns: str, *, comment: str | None = None) -> None:
    """Define the streaming table `event_type` with the common columns and its own `columns`, e.g. "agent_id STRING, turns BIGINT".

    Its rules come from `expectations/`: those of the table, those of the layer silver, and those of each of its columns.
    `dp` and `spark` come from the pipeline file: an imported module is not given the session, and a file that imports the decorators
    is seen to be a pipeline file.
    """
    types = declared(columns)
    scope = {"layer": "silver", "columns": list(types)}

    @dp.table(
        name=event_type,
        comment=comment or f"Events of type {event_type}.",
        cluster_by=["event_date", next(iter(types))],  # readers ask for days, and for one conversation or agent
        table_properties={"quality": "silver", "delta.enableChangeDataFeed": "true"},
    )
    @dp.expect_all(rules(event_type, "warn", **scope))
    @dp.expect_all_or_drop(rules(event_type, "drop", **scope))
    @dp.expect_all_or_fail(rules(event_type, "fail", **scope))
    def rows() -> DataFrame:
        # Nothing may come between the table and this filter on its partition column: it tells which tables a new file can concern.
        logs = spark.readStream.table("router_logs").where(F.col("event_type") == event_type)
        return event_rows(logs, types)


def event_rows(logs: DataFrame, types: dict[str, str]) -> DataFrame:
    """The common columns, then one column per entry of `types`, from log entries of one event type."""
    fields = payload_fields(logs)
    return logs.select(
        payload_column(fields, "event_id", "STRING"),
        payload_column(fields, "event_datetime", "TIMESTAMP").alias("event_at"),
        "event_date",
        F.col("insertId").alias("insert_id"),
        *(payload_column(fields, name, wanted) for name, wanted in types.items()),
    )


def declared(columns: str) -> dict[str, str]:
    """Name and type of each column of "a STRING, b DECIMAL(10,2)", in order."""
    types: dict[str, str] = {}
    for part in re.split(r",(?![^(<]*[)>])", columns):  # not at the comma of DECIMAL(10,2) or MAP<STRING,STRING>
        name, _, wanted = part.strip().partition(" ")
        if not wanted or name in types:
            raise ValueError(f"{columns!r}: {part.strip()!r} is {'a second ' + name if wanted else 'no name and type'}")
        types[name] = wanted.strip()
    return types
