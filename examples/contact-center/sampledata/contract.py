"""The tables of system A as data: columns, rules and keys, exactly as docs/system-a.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa

Type = Literal["STRING", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "DATE", "STRUCT"]
Columns = Mapping[str, Type]
Row = Mapping[str, Any]

RAW, QUARANTINE, LOGS = "router_logs_raw", "unparsed_lines", "router_logs"
WATERMARK_MICROS = 12 * 3600 * 1_000_000

# A STRUCT is compared by presence only: what is in it comes back in the silver tables.
ARROW_TYPES: Mapping[Type, pa.DataType] = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "DATE": pa.date32(),
}


def _columns(text: str) -> dict[str, Type]:
    return {name: cast("Type", kind) for name, kind in (column.split() for column in text.split(","))}


@dataclass(frozen=True)
class Rule:
    """One expectation: its name, whether a row that breaks it is dropped, and the test. A NULL breaks every rule."""

    name: str
    drops: bool
    holds: Callable[[Row], bool]


def _known(name: str, column: str, *, drops: bool = False) -> Rule:
    return Rule(name, drops, lambda row: row[column] is not None)


PARSED = Rule("parsed", False, lambda row: row["insertId"] is not None and row["timestamp"] is not None)
SEVERITIES = frozenset({"DEBUG", "INFO", "NOTICE", "WARNING", "ERROR"})
KNOWN_SEVERITY = Rule("known_severity", False, lambda row: row["severity"] in SEVERITIES)
HAS_EVENT_TYPE = _known("has_event_type", "event_type", drops=True)
HAS_EVENT_ID = _known("has_event_id", "event_id", drops=True)
EVENT_AT_KNOWN = _known("event_at_known", "event_at")
HAS_CONVERSATION = _known("has_conversation", "conversation_id", drops=True)
CHANNELS = frozenset({"chat", "sms", "email", "phone"})
CHANNEL_KNOWN = Rule("channel_known", False, lambda row: row["channel"] in CHANNELS)
BODY_CHARS_KNOWN = _known("body_chars_known", "body_chars")
WAIT_NOT_NEGATIVE = Rule("wait_not_negative", False, lambda row: row["wait_seconds"] is not None and row["wait_seconds"] >= 0)
RATING_IN_RANGE = Rule("rating_in_range", True, lambda row: row["rating"] is not None and 1 <= row["rating"] <= 5)

_LANDED = (
    "insertId STRING, timestamp TIMESTAMP, receiveTimestamp TIMESTAMP, logName STRING, severity STRING, "
    "resource STRUCT, labels STRUCT, jsonPayload STRUCT, trace STRING, _rescued_data STRING, source_file STRING"
)
BRONZE: Mapping[str, Columns] = {
    RAW: _columns(_LANDED),
    QUARANTINE: _columns("source_file STRING, raw_line STRING"),
    LOGS: _columns(_LANDED + ", event_type STRING, event_date DATE"),
}
# their values depend on which copy of an entry came first, or on the folder the sample lies in
NOT_COMPARED: Mapping[str, frozenset[str]] = {LOGS: frozenset({"receiveTimestamp", "source_file"})}
PRESENCE_ONLY = "_rescued_data"

_SILVER_COMMON = "event_id STRING, event_at TIMESTAMP, event_date DATE, insert_id STRING"
_SILVER_OWN = {
    "conversation_started": "conversation_id STRING, customer_id STRING, channel STRING, entry_point STRING, "
    "is_returning BOOLEAN, priority STRING",
    "conversation_assigned": "conversation_id STRING, agent_id STRING, queue STRING, wait_seconds BIGINT",
    "conversation_transferred": "conversation_id STRING, from_agent_id STRING, to_agent_id STRING, reason STRING",
    "conversation_closed": "conversation_id STRING, agent_id STRING, closed_by STRING, resolution STRING, handle_seconds BIGINT",
    "message_received": "conversation_id STRING, message_id STRING, channel STRING, body_chars BIGINT, language STRING, "
    "sentiment_score DOUBLE",
    "message_sent": "conversation_id STRING, message_id STRING, channel STRING, agent_id STRING, sender_kind STRING, "
    "body_chars BIGINT, response_seconds BIGINT",
    "message_failed": "conversation_id STRING, message_id STRING, channel STRING, error_code STRING, exception_class STRING, "
    "exception_message STRING",
    "assistant_engaged": "conversation_id STRING, assistant_version STRING, confidence DOUBLE",
    "assistant_escalated": "conversation_id STRING, reason STRING, turns BIGINT",
    "assistant_resolved": "conversation_id STRING, intent STRING, turns BIGINT",
    "survey_sent": "conversation_id STRING, survey_id STRING, channel STRING",
    "survey_answered": "conversation_id STRING, survey_id STRING, rating BIGINT, comment STRING",
    "agent_status_changed": "agent_id STRING, status STRING, previous_status STRING",
    "appointment_booked": "conversation_id STRING, appointment_id STRING, scheduled_for TIMESTAMP, price DOUBLE",
}
SILVER: Mapping[str, Columns] = {table: _columns(f"{_SILVER_COMMON}, {own}") for table, own in _SILVER_OWN.items()}
SILVER_OWN: Mapping[str, Columns] = {table: _columns(own) for table, own in _SILVER_OWN.items()}
# every other own column is the payload field of its name
NESTED_FIELDS: Mapping[str, tuple[str, str]] = {
    "exception_class": ("exception", "class"),
    "exception_message": ("exception", "message"),
}

GOLD: Mapping[str, Columns] = {
    "workforce_hourly": _columns(
        "hour TIMESTAMP, channel STRING, conversations_started BIGINT, messages_received BIGINT, messages_sent BIGINT, "
        "agent_messages BIGINT, avg_response_seconds DOUBLE"
    ),
    "agent_daily": _columns(
        "day DATE, agent_id STRING, conversations_assigned BIGINT, conversations_closed BIGINT, messages_sent BIGINT, "
        "handle_seconds_total BIGINT, avg_handle_seconds DOUBLE, avg_wait_seconds DOUBLE"
    ),
    "channel_funnel": _columns(
        "day DATE, channel STRING, started BIGINT, assistant_engaged BIGINT, assigned BIGINT, closed BIGINT, "
        "survey_answered BIGINT, closed_rate DOUBLE"
    ),
    "assistant_deflection": _columns(
        "day DATE, channel STRING, engaged BIGINT, escalated BIGINT, resolved BIGINT, deflected BIGINT, "
        "deflection_rate DOUBLE, avg_confidence DOUBLE"
    ),
}

_AGENT = "agent_id STRING, name STRING, team STRING, site STRING, level BIGINT"
AGENTS: Mapping[str, Columns] = {
    "agent_changes": _columns(_AGENT + ", op STRING, changed_at TIMESTAMP"),
    "agents": _columns(_AGENT),
    "agents_history": _columns(_AGENT + ", __START_AT TIMESTAMP, __END_AT TIMESTAMP"),
    "team_daily": _columns(
        "day DATE, team STRING, agents BIGINT, agents_employed BIGINT, conversations_closed BIGINT, messages_sent BIGINT"
    ),
}
"""The change records of the agents, the change tables, and the gold table over them."""

TABLES: Mapping[str, Columns] = {**BRONZE, **SILVER, **GOLD, **AGENTS}
KEYS: Mapping[str, tuple[str, ...]] = {
    QUARANTINE: ("source_file", "raw_line"),
    **dict.fromkeys(SILVER, ("insert_id",)),
    "workforce_hourly": ("hour", "channel"),
    "agent_daily": ("day", "agent_id"),
    "channel_funnel": ("day", "channel"),
    "assistant_deflection": ("day", "channel"),
    "agent_changes": ("agent_id", "changed_at"),
    "agents": ("agent_id",),
    "agents_history": ("agent_id", "__START_AT"),
    "team_daily": ("day", "team"),
}


def _silver_rules(columns: Columns) -> tuple[Rule, ...]:
    by_column = {
        "conversation_id": HAS_CONVERSATION,
        "channel": CHANNEL_KNOWN,
        "body_chars": BODY_CHARS_KNOWN,
        "wait_seconds": WAIT_NOT_NEGATIVE,
        "rating": RATING_IN_RANGE,
    }
    return (HAS_EVENT_ID, EVENT_AT_KNOWN, *(rule for column, rule in by_column.items() if column in columns))


RULES: Mapping[str, tuple[Rule, ...]] = {
    RAW: (PARSED,),
    QUARANTINE: (),
    LOGS: (KNOWN_SEVERITY, HAS_EVENT_TYPE),
    **{table: _silver_rules(columns) for table, columns in SILVER.items()},
}


def arrow_schema(columns: Columns) -> pa.Schema:
    """The columns as an arrow schema; they must hold no STRUCT."""
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns.items()])
