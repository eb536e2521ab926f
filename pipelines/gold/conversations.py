"""Gold: what became of the conversations, by the day they started and their channel."""

from functools import reduce

import dlt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


@dlt.table(comment="How many conversations of a day and channel reached each step.", table_properties={"quality": "gold"})
def channel_funnel():
    return funnel(
        started=spark.read.table("conversation_started"),
        assistant_engaged=spark.read.table("assistant_engaged"),
        assigned=spark.read.table("conversation_assigned"),
        closed=spark.read.table("conversation_closed"),
        survey_answered=spark.read.table("survey_answered"),
    )


@dlt.table(comment="How many conversations the assistant settled without an agent.", table_properties={"quality": "gold"})
def assistant_deflection():
    return deflection(
        started=spark.read.table("conversation_started"),
        engaged=spark.read.table("assistant_engaged"),
        escalated=spark.read.table("assistant_escalated"),
        resolved=spark.read.table("assistant_resolved"),
        assigned=spark.read.table("conversation_assigned"),
        closed=spark.read.table("conversation_closed"),
    )


def funnel(started: DataFrame, **steps: DataFrame) -> DataFrame:
    return (
        conversations(started)
        .join(reached(**steps), "conversation_id", "left")
        .groupBy("day", "channel")
        .agg(F.count("conversation_id").alias("started"), *(F.count(step).alias(step) for step in steps))
        .withColumn("closed_rate", F.try_divide("closed", "started"))
    )


def deflection(
    started: DataFrame, engaged: DataFrame, escalated: DataFrame, resolved: DataFrame, assigned: DataFrame, closed: DataFrame
) -> DataFrame:
    confidence = (
        timed(engaged)
        .groupBy("conversation_id")
        .agg(F.sum("confidence").alias("confidence_sum"), F.count("confidence").alias("confidence_count"))
    )
    steps = reached(escalated=escalated, resolved=resolved, assigned=assigned, closed=closed)
    deflected = F.col("closed").isNotNull() & F.col("escalated").isNull() & F.col("assigned").isNull()
    return (
        conversations(started)
        .join(confidence, "conversation_id")
        .join(steps, "conversation_id", "left")
        .groupBy("day", "channel")
        .agg(
            F.count("conversation_id").alias("engaged"),
            F.count("escalated").alias("escalated"),
            F.count("resolved").alias("resolved"),
            F.count_if(deflected).alias("deflected"),
            F.try_divide(F.sum("confidence_sum"), F.sum("confidence_count")).alias("avg_confidence"),
        )
        .withColumn("deflection_rate", F.try_divide("deflected", "engaged"))
    )


def conversations(started: DataFrame) -> DataFrame:
    """Every conversation once, with the day it started and its channel."""
    return timed(started).select("conversation_id", F.to_date("event_at").alias("day"), "channel").distinct()


def reached(**steps: DataFrame) -> DataFrame:
    """One row per conversation that occurs in any step's table, at any time; per step a column: true if it occurs there, else NULL."""
    events = [timed(rows).select("conversation_id", F.lit(True).alias(step)) for step, rows in steps.items()]
    together = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), events)
    return together.groupBy("conversation_id").agg(*(F.bool_or(step).alias(step) for step in steps))


def timed(events: DataFrame) -> DataFrame:
    return events.where("event_at IS NOT NULL")
