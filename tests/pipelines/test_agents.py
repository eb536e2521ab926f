"""Agents and teams, with rows that can be checked by hand."""

from datetime import date, datetime, timezone

DAY = date(2026, 3, 1)


def at(hour, day=1):
    return datetime(2026, 3, day, hour, tzinfo=timezone.utc)


def test_team_daily_counts_work_for_the_team_at_the_end_of_the_day(spark, load_pipeline):
    worked = [(DAY, "a", 2, 5), (DAY, "d", 1, 1), (DAY, "x", 0, 3), (date(2026, 2, 28), "c", 1, 1)]
    versions = [
        ("a", "billing", at(10), at(12)),
        ("a", "sales", at(12), None),
        ("c", "billing", at(8), None),
        ("d", "sales", at(8), at(20)),
    ]
    tables = {
        "agent_daily": spark.createDataFrame(worked, "day DATE, agent_id STRING, conversations_closed BIGINT, messages_sent BIGINT"),
        "agents_history": spark.createDataFrame(versions, "agent_id STRING, team STRING, __START_AT TIMESTAMP, __END_AT TIMESTAMP"),
        "agents": spark.createDataFrame([("a",), ("c",)], "agent_id STRING"),
    }
    found = load_pipeline("pipelines/gold/teams.sql", inputs=tables)["team_daily"]()
    assert found.columns == ["day", "team", "agents", "agents_employed", "conversations_closed", "messages_sent"]
    assert sorted(map(tuple, found.collect()), key=repr) == sorted(
        [(date(2026, 2, 28), None, 1, 1, 1, 1), (DAY, None, 2, 0, 1, 4), (DAY, "sales", 1, 1, 2, 5)], key=repr
    )


def test_a_version_that_ends_at_midnight_was_the_team_of_that_day(spark, load_pipeline):
    midnight = at(0, day=2)
    tables = {
        "agent_daily": spark.createDataFrame(
            [(DAY, "a", 1, 1)], "day DATE, agent_id STRING, conversations_closed BIGINT, messages_sent BIGINT"
        ),
        "agents_history": spark.createDataFrame(
            [("a", "billing", at(9), midnight), ("a", "sales", midnight, None)],
            "agent_id STRING, team STRING, __START_AT TIMESTAMP, __END_AT TIMESTAMP",
        ),
        "agents": spark.createDataFrame([("a",)], "agent_id STRING"),
    }
    found = load_pipeline("pipelines/gold/teams.sql", inputs=tables)["team_daily"]()
    assert [row.team for row in found.collect()] == ["billing"]
