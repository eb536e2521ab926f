"""Metrics that Spark observed while it ran a query.

A part of the plan that no row can leave is left out of it, and with it what is observed there: at once (`limit(0)`), or by adaptive
execution after the part has run, although it saw rows that it dropped. The flows' sessions keep the second from happening.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

_EXCLUDED = "spark.sql.adaptive.optimizer.excludedRules"
_LEAVES_OUT = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"


def keep_observed(spark: SparkSession) -> None:
    """Let adaptive execution plan again in this session, but leave out nothing that is observed."""
    excluded = [rule.strip() for rule in str(spark.conf.get(_EXCLUDED, "")).split(",") if rule.strip()]
    if _LEAVES_OUT not in excluded:
        spark.conf.set(_EXCLUDED, ",".join([*excluded, _LEAVES_OUT]))
