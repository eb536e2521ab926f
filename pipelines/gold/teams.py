"""Gold: the work of teams, by day."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


@dp.materialized_view(comment="What each team did each day.", table_properties={"quality": "gold"})
def team_daily():
    return by_team(
        worked=spark.read.table("agent_daily"),
        versions=spark.read.table("agents_history"),
        employed=spark.read.table("agents"),
    )


def by_team(worked: DataFrame, versions: DataFrame, employed: DataFrame) -> DataFrame:
    """Work counts for the team that an agent was in when the day ended, NULL if in none; `employed`: those that are agents now."""
    night = F.date_add("day", 1).cast("timestamp")
    there = (F.col("__START_AT") < night) & (F.col("__END_AT").isNull() | (F.col("__END_AT") >= night))
    teams = worked.alias("w").join(versions.alias("v"), (F.col("w.agent_id") == F.col("v.agent_id")) & there, "left")
    now = employed.select("agent_id", F.lit(1).alias("employed"))
    rows = teams.select("w.*", "v.team").join(now, "agent_id", "left")
    return rows.groupBy("day", "team").agg(
        F.count("*").alias("agents"),
        F.count("employed").alias("agents_employed"),
        F.sum("conversations_closed").alias("conversations_closed"),
        F.sum("messages_sent").alias("messages_sent"),
    )
