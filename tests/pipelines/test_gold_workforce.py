"""Gold: hours and agents, with numbers that can be checked by hand."""

from datetime import date, datetime, timezone

from chispa import assert_df_equality

FILE = "pipelines/gold/workforce.py"
DAY = date(2026, 3, 1)


def at(clock, day=1):
    return datetime.fromisoformat(f"2026-03-{day:02}T{clock}").replace(tzinfo=timezone.utc)


EIGHT, NINE = at("08:00"), at("09:00")


def test_workforce_hourly(spark, load_pipeline):
    tables = {
        "conversation_started": spark.createDataFrame(
            [(at("08:00:00"), "chat"), (at("08:59:59"), "chat"), (at("09:00:00"), None), (None, "chat")],
            "event_at TIMESTAMP, channel STRING",
        ),
        "message_received": spark.createDataFrame(
            [(at("08:10"), "chat"), (at("08:20"), "sms"), (at("09:30"), None)], "event_at TIMESTAMP, channel STRING"
        ),
        "message_sent": spark.createDataFrame(
            [
                (at("08:11"), "chat", "agent", 10),
                (at("08:12"), "chat", "agent", 25),
                (at("08:13"), "chat", "agent", None),  # a message, but no response time to average
                (at("08:14"), "chat", "assistant", 1),
                (at("08:15"), "chat", None, 1000),
                (at("09:15"), "email", "assistant", 2),
            ],
            "event_at TIMESTAMP, channel STRING, sender_kind STRING, response_seconds BIGINT",
        ),
    }
    p = load_pipeline(FILE, inputs=tables)

    expected = spark.createDataFrame(
        [
            (EIGHT, "chat", 2, 1, 5, 3, 35 / 2),
            (EIGHT, "sms", 0, 1, 0, 0, None),
            (NINE, None, 1, 1, 0, 0, None),
            (NINE, "email", 0, 0, 1, 0, None),
        ],
        "hour TIMESTAMP, channel STRING, conversations_started BIGINT, messages_received BIGINT, messages_sent BIGINT, "
        "agent_messages BIGINT, avg_response_seconds DOUBLE",
    )
    assert_df_equality(p["workforce_hourly"](), expected, ignore_row_order=True, ignore_nullable=True)


def test_agent_daily(spark, load_pipeline):
    tables = {
        "conversation_assigned": spark.createDataFrame(
            [
                (at("08:00"), "ann", 30),
                (at("23:59:59"), "ann", 45),
                (at("00:00", day=2), "ann", None),
                (at("08:00"), None, 1),
                (None, "ann", 1),
            ],
            "event_at TIMESTAMP, agent_id STRING, wait_seconds BIGINT",
        ),
        "conversation_closed": spark.createDataFrame(
            [
                (at("08:30"), "ann", "agent", 100),
                (at("08:40"), "ann", "agent", 201),
                (at("08:50"), "ann", "customer", 999),
                (at("09:00"), "bob", "agent", None),
            ],
            "event_at TIMESTAMP, agent_id STRING, closed_by STRING, handle_seconds BIGINT",
        ),
        "message_sent": spark.createDataFrame(
            [(at("08:05"), "ann", "agent"), (at("08:06"), "ann", "assistant"), (at("08:07"), "cem", "agent")],
            "event_at TIMESTAMP, agent_id STRING, sender_kind STRING",
        ),
    }
    p = load_pipeline(FILE, inputs=tables)

    expected = spark.createDataFrame(
        [
            (DAY, "ann", 2, 2, 1, 301, 301 / 2, 75 / 2),
            (date(2026, 3, 2), "ann", 1, 0, 0, 0, None, None),
            (DAY, "bob", 0, 1, 0, 0, None, None),
            (DAY, "cem", 0, 0, 1, 0, None, None),
        ],
        "day DATE, agent_id STRING, conversations_assigned BIGINT, conversations_closed BIGINT, messages_sent BIGINT, "
        "handle_seconds_total BIGINT, avg_handle_seconds DOUBLE, avg_wait_seconds DOUBLE",
    )
    assert_df_equality(p["agent_daily"](), expected, ignore_row_order=True, ignore_nullable=True)
