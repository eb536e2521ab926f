"""Gold: what became of five conversations. c1..c3 by chat on March 1st, c4 by sms, c5 by chat on March 2nd."""

from datetime import date, datetime, timezone

import pytest
from chispa import assert_df_equality

FILE = "pipelines/gold/conversations.py"
FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)


def at(day, hour=8):
    return datetime(2026, 3, day, hour, tzinfo=timezone.utc)


@pytest.fixture
def tables(spark):
    def events(*rows, also=""):
        return spark.createDataFrame(list(rows), f"event_at TIMESTAMP, conversation_id STRING{also}")

    return {
        "conversation_started": events(
            (at(1), "c1", "chat"),
            (at(1, 23), "c2", "chat"),
            (at(1), "c3", "chat"),
            (at(1), "c4", "sms"),
            (at(2), "c5", "chat"),
            (None, "c6", "chat"),  # no time: counted nowhere
            also=", channel STRING",
        ),
        # c1 was engaged twice; c9 never started
        "assistant_engaged": events(
            (at(1), "c1", 0.5), (at(2), "c1", 1.0), (at(1), "c2", None), (at(2), "c5", 0.25), (at(1), "c9", 0.9), also=", confidence DOUBLE"
        ),
        "assistant_escalated": events((at(1), "c2")),
        "assistant_resolved": events((at(1), "c1"), (at(1), "c4")),
        "conversation_assigned": events((at(1), "c2"), (at(1), "c3"), (None, "c1")),
        "conversation_closed": events((at(3), "c1"), (at(1), "c2"), (at(1), "c2")),
        "survey_answered": events((at(4), "c1")),
    }


def test_channel_funnel(spark, load_pipeline, tables):
    p = load_pipeline(FILE, inputs=tables)

    expected = spark.createDataFrame(
        [(FIRST, "chat", 3, 2, 2, 2, 1, 2 / 3), (FIRST, "sms", 1, 0, 0, 0, 0, 0.0), (SECOND, "chat", 1, 1, 0, 0, 0, 0.0)],
        "day DATE, channel STRING, started BIGINT, assistant_engaged BIGINT, assigned BIGINT, closed BIGINT, survey_answered BIGINT, "
        "closed_rate DOUBLE",
    )
    assert_df_equality(p["channel_funnel"](), expected, ignore_row_order=True, ignore_nullable=True)


def test_assistant_deflection(spark, load_pipeline, tables):
    p = load_pipeline(FILE, inputs=tables)

    expected = spark.createDataFrame(
        # c1 is deflected: closed, never escalated, never (at a known time) assigned. c5 is still open.
        [(FIRST, "chat", 2, 1, 1, 1, 0.5, 0.75), (SECOND, "chat", 1, 0, 0, 0, 0.0, 0.25)],
        "day DATE, channel STRING, engaged BIGINT, escalated BIGINT, resolved BIGINT, deflected BIGINT, deflection_rate DOUBLE, "
        "avg_confidence DOUBLE",
    )
    found = p["assistant_deflection"]()
    assert_df_equality(found, expected, ignore_row_order=True, ignore_column_order=True, ignore_nullable=True)


def test_a_plain_function_of_the_file_can_be_tested_alone(spark, load_pipeline, tables):
    p = load_pipeline(FILE)

    starts = tables["conversation_started"]
    found = p.module.conversations(starts.union(starts)).where("conversation_id IN ('c4', 'c6')")
    expected = spark.createDataFrame([("c4", FIRST, "sms")], "conversation_id STRING, day DATE, channel STRING")
    assert_df_equality(found, expected)
