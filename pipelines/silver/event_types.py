"""Silver: one streaming table per event type.

To add an event type, add a line: its name, and its columns with their types. Each column is the payload field of the same name, or a
nested one: `exception_class` is `exception.class`. The columns that every table has are in event_rows.py. The rules come from
`expectations/`: those of the table, those of the layer silver, and those of each of its columns.
"""

from pyspark import pipelines as dp

from expectations import rules
from pipelines.silver.event_rows import PROPERTIES, event_rows

EVENT_TYPES = {
    "conversation_started": {
        "conversation_id": "STRING",
        "customer_id": "STRING",
        "channel": "STRING",
        "entry_point": "STRING",
        "is_returning": "BOOLEAN",
        "priority": "STRING",
    },
    "conversation_assigned": {"conversation_id": "STRING", "agent_id": "STRING", "queue": "STRING", "wait_seconds": "BIGINT"},
    "conversation_transferred": {"conversation_id": "STRING", "from_agent_id": "STRING", "to_agent_id": "STRING", "reason": "STRING"},
    "conversation_closed": {
        "conversation_id": "STRING",
        "agent_id": "STRING",
        "closed_by": "STRING",
        "resolution": "STRING",
        "handle_seconds": "BIGINT",
    },
    "message_received": {
        "conversation_id": "STRING",
        "message_id": "STRING",
        "channel": "STRING",
        "body_chars": "BIGINT",
        "language": "STRING",
        "sentiment_score": "DOUBLE",
    },
    "message_sent": {
        "conversation_id": "STRING",
        "message_id": "STRING",
        "channel": "STRING",
        "agent_id": "STRING",
        "sender_kind": "STRING",
        "body_chars": "BIGINT",
        "response_seconds": "BIGINT",
    },
    "message_failed": {
        "conversation_id": "STRING",
        "message_id": "STRING",
        "channel": "STRING",
        "error_code": "STRING",
        "exception_class": "STRING",
        "exception_message": "STRING",
    },
    "assistant_engaged": {"conversation_id": "STRING", "assistant_version": "STRING", "confidence": "DOUBLE"},
    "assistant_escalated": {"conversation_id": "STRING", "reason": "STRING", "turns": "BIGINT"},
    "assistant_resolved": {"conversation_id": "STRING", "intent": "STRING", "turns": "BIGINT"},
    "survey_sent": {"conversation_id": "STRING", "survey_id": "STRING", "channel": "STRING"},
    "survey_answered": {"conversation_id": "STRING", "survey_id": "STRING", "rating": "BIGINT", "comment": "STRING"},
    "agent_status_changed": {"agent_id": "STRING", "status": "STRING", "previous_status": "STRING"},
}

for event_type, columns in EVENT_TYPES.items():

    @dp.table(
        name=event_type,
        comment=f"Events of type {event_type}.",
        cluster_by=["event_date", next(iter(columns))],  # readers ask for days, and for one conversation or agent
        table_properties=PROPERTIES,
    )
    @dp.expect_all(rules(event_type, "warn", layer="silver", columns=columns))
    @dp.expect_all_or_drop(rules(event_type, "drop", layer="silver", columns=columns))
    @dp.expect_all_or_fail(rules(event_type, "fail", layer="silver", columns=columns))
    def events(event_type=event_type, columns=columns):  # defaults keep this round's values: the function is called after the loop
        return event_rows(spark.readStream.table("router_logs"), event_type, columns)
