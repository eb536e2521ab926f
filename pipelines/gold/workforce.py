"""Gold: the work of people, by hour and channel and by day and agent."""

from functools import reduce

from pyspark import pipelines as dp
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dp.materialized_view(comment="Conversations and messages by hour and channel.", table_properties={"quality": "gold"})
def workforce_hourly():
    return by_hour(
        started=spark.read.table("conversation_started"),
        received=spark.read.table("message_received"),
        sent=spark.read.table("message_sent"),
    )


@dp.materialized_view(comment="What each agent did each day.", table_properties={"quality": "gold"})
def agent_daily():
    return by_agent(
        assigned=spark.read.table("conversation_assigned"),
        closed=spark.read.table("conversation_closed"),
        sent=spark.read.table("message_sent"),
    )


def by_hour(started: DataFrame, received: DataFrame, sent: DataFrame) -> DataFrame:
    agent = F.col("sender_kind") == "agent"
    keys = {"hour": F.date_trunc("HOUR", "event_at"), "channel": F.col("channel")}
    response = {"agent_messages": F.when(agent, 1), "response_seconds": F.when(agent, F.col("response_seconds"))}
    facts = together(
        facts_of(started, keys, conversations_started=F.lit(1)),
        facts_of(received, keys, messages_received=F.lit(1)),
        facts_of(sent, keys, messages_sent=F.lit(1), **response),
    )
    return facts.groupBy("hour", "channel").agg(
        *counts("conversations_started", "messages_received", "messages_sent", "agent_messages"),
        average("response_seconds").alias("avg_response_seconds"),
    )


def by_agent(assigned: DataFrame, closed: DataFrame, sent: DataFrame) -> DataFrame:
    keys = {"day": F.to_date("event_at"), "agent_id": F.col("agent_id")}
    facts = together(
        facts_of(assigned, keys, conversations_assigned=F.lit(1), wait_seconds=F.col("wait_seconds")),
        facts_of(closed.where("closed_by = 'agent'"), keys, conversations_closed=F.lit(1), handle_seconds=F.col("handle_seconds")),
        facts_of(sent.where("sender_kind = 'agent'"), keys, messages_sent=F.lit(1)),
    )
    return (
        facts.where("agent_id IS NOT NULL")
        .groupBy("day", "agent_id")
        .agg(
            *counts("conversations_assigned", "conversations_closed", "messages_sent"),
            F.coalesce(F.sum("handle_seconds"), F.lit(0)).alias("handle_seconds_total"),
            average("handle_seconds").alias("avg_handle_seconds"),
            average("wait_seconds").alias("avg_wait_seconds"),
        )
    )


def facts_of(rows: DataFrame, keys: dict[str, Column], **measures: Column) -> DataFrame:
    """One row per event with a known time: the keys of its group, and what it adds to each measure (NULL: nothing)."""
    columns = {**keys, **measures}
    return rows.where("event_at IS NOT NULL").select(*(column.alias(name) for name, column in columns.items()))


def together(*facts: DataFrame) -> DataFrame:
    """All facts in one frame: one grouping then counts them all, and a key that is NULL is a group like any other."""
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), facts)


def counts(*measures: str) -> list[Column]:
    return [F.count(name).alias(name) for name in measures]


def average(measure: str) -> Column:
    return F.try_divide(F.sum(measure), F.count(measure))
