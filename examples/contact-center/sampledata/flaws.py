"""What is wrong with some of the sample's entries: missing identifiers, impossible values, drifted types.

Every flaw changes one entry in place. At most one flaw touches an entry, so that each has a recognisable effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

Json = dict[str, Any]

CONVERSATION_EVENTS = frozenset(
    {
        "conversation_started",
        "conversation_assigned",
        "conversation_transferred",
        "conversation_closed",
        "message_received",
        "message_sent",
        "message_failed",
        "assistant_engaged",
        "assistant_escalated",
        "assistant_resolved",
        "survey_sent",
        "survey_answered",
        "appointment_booked",
    }
)
# every event type whose payload holds a number, with those fields; a drifted text can be cast to none of their types
NUMBER_FIELDS: Mapping[str, tuple[str, ...]] = {
    "conversation_assigned": ("wait_seconds",),
    "conversation_closed": ("handle_seconds",),
    "message_received": ("body_chars",),
    "message_sent": ("body_chars", "response_seconds"),
    "assistant_engaged": ("confidence",),
    "assistant_escalated": ("turns",),
    "assistant_resolved": ("turns",),
    "survey_answered": ("rating",),
    "appointment_booked": ("price",),
}
DRIFTED_VALUES = ("n/a", "unknown", "pending")
IMPOSSIBLE_TIMES = ("n/a", "2026-02-30T25:61:00.000Z", None)


@dataclass(frozen=True)
class Flaw:
    """One kind of defect: the event types it can happen to, how often it does, and since which drop."""

    name: str
    event_types: frozenset[str]
    rate: float
    apply: Callable[[Random, Json], None]
    since_drop: int = 1


def _without(key: str) -> Callable[[Random, Json], None]:
    """Payload field `key` is null or not there at all."""

    def apply(rng: Random, body: Json) -> None:
        if rng.random() < 0.5:
            body["jsonPayload"].pop(key, None)
        else:
            body["jsonPayload"][key] = None

    return apply


def _one_of(key: str, *values: Any) -> Callable[[Random, Json], None]:
    """Payload field `key` holds one of `values`."""

    def apply(rng: Random, body: Json) -> None:
        body["jsonPayload"][key] = rng.choice(values)

    return apply


def _unknown_severity(rng: Random, body: Json) -> None:
    body["severity"] = rng.choice(("CRITICAL", "TRACE", "info", None))


def _no_labels(rng: Random, body: Json) -> None:
    del body["labels"]


def _drift(rng: Random, body: Json) -> None:
    payload = body["jsonPayload"]
    payload[rng.choice(NUMBER_FIELDS[payload["event_type"]])] = rng.choice(DRIFTED_VALUES)


_MESSAGES = frozenset({"message_received", "message_sent"})
FLAWS = (
    Flaw("no_event_id", CONVERSATION_EVENTS, 0.002, _without("event_id")),
    Flaw("no_conversation_id", CONVERSATION_EVENTS, 0.002, _without("conversation_id")),
    Flaw("no_event_type", CONVERSATION_EVENTS, 0.001, _without("event_type")),
    Flaw("impossible_time", CONVERSATION_EVENTS, 0.001, _one_of("event_datetime", *IMPOSSIBLE_TIMES)),
    Flaw("unknown_severity", CONVERSATION_EVENTS, 0.002, _unknown_severity),
    Flaw("no_labels", CONVERSATION_EVENTS, 0.001, _no_labels),
    Flaw("rating_out_of_range", frozenset({"survey_answered"}), 0.04, _one_of("rating", 0, 6, -1, 99)),
    Flaw("no_rating", frozenset({"survey_answered"}), 0.02, _without("rating")),
    Flaw("negative_wait", frozenset({"conversation_assigned"}), 0.02, _one_of("wait_seconds", -1, -30)),
    Flaw("no_body_chars", _MESSAGES, 0.005, _without("body_chars")),
    Flaw("impossible_appointment", frozenset({"appointment_booked"}), 0.02, _one_of("scheduled_for", "next week")),
    Flaw("drift", frozenset(NUMBER_FIELDS), 0.004, _drift, since_drop=2),
)
_BY_NAME = {flaw.name: flaw for flaw in FLAWS}

# the flaws that the odd specimens of every drop carry, on the first entry of the event type
SPECIMEN_FLAWS: Mapping[int, Mapping[str, str]] = {
    3: {
        "conversation_assigned": "negative_wait",
        "conversation_transferred": "no_event_type",
        "conversation_closed": "drift",
        "message_received": "no_body_chars",
        "message_sent": "drift",
        "message_failed": "unknown_severity",
        "assistant_engaged": "drift",
        "assistant_resolved": "no_event_id",
        "appointment_booked": "impossible_appointment",
        "survey_answered": "rating_out_of_range",
    },
    4: {
        "conversation_assigned": "drift",
        "conversation_transferred": "impossible_time",
        "message_received": "no_conversation_id",
        "message_sent": "no_event_id",
        "message_failed": "no_labels",
        "assistant_escalated": "drift",
        "appointment_booked": "drift",
        "survey_answered": "no_rating",
    },
}


def flaw_named(name: str, drop: int) -> Flaw | None:
    """The flaw of that name, or None if the drop is too early for it."""
    flaw = _BY_NAME[name]
    return flaw if drop >= flaw.since_drop else None


def flaw_by_chance(rng: Random, event_type: str, drop: int) -> Flaw | None:
    """The flaw that befalls an entry of this type, mostly none."""
    chance = rng.random()
    for limit, flaw in _limits(event_type, min(drop, 2)):
        if chance < limit:
            return flaw
    return None


@cache
def _limits(event_type: str, drop: int) -> tuple[tuple[float, Flaw], ...]:
    """Flaws that can befall the type, with their rates added up, so that one random number picks at most one."""
    total, result = 0.0, []
    for flaw in FLAWS:
        if event_type in flaw.event_types and drop >= flaw.since_drop:
            total += flaw.rate
            result.append((total, flaw))
    return tuple(result)
