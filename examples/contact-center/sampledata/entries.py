"""What the sample's log entries say: conversations, agents' shifts and service noise.

An `Episode` is a small story (one conversation, one shift) whose entries are rebuilt exactly from the seed and the episode
alone. A sample that is continued later therefore only has to remember which episodes are still open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

import orjson

from sampledata.flaws import SPECIMEN_FLAWS, flaw_by_chance, flaw_named

Json = dict[str, Any]

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

MAX_DELAY = 5 * HOUR + 45 * MINUTE  # the contract allows 6 hours
SPECIMENS = 5  # the first episodes of every drop: together they hold every event type and every flaw
PLAIN_SPECIMEN, AGENT_SPECIMEN, SERVICE_SPECIMEN, ODD_CHANNEL_SPECIMEN, NO_CHANNEL_SPECIMEN = range(SPECIMENS)

CHANNELS = ("chat", "chat", "chat", "sms", "sms", "email", "email", "phone")
ODD_CHANNELS = ("fax", "kiosk", "Chat")
ENTRY_POINTS = ("website", "app", "store_locator", "campaign", "callback")
QUEUES = ("sales", "service", "billing", "returns")
LANGUAGES = ("en", "de", "fr", "es", "pl")
INTENTS = ("opening_hours", "order_status", "cancel_order", "change_address", "price_question")
TRANSFER_REASONS = ("wrong_queue", "shift_end", "skill_missing", "language")
ESCALATION_REASONS = ("asked_for_human", "low_confidence", "negative_mood", "policy")
RESOLUTIONS = ("solved", "solved", "follow_up", "no_answer", "spam")
STATUSES = ("available", "busy", "break", "training", "offline")
FAILURES = (
    ("E1001", "DeliveryTimeout", "gateway did not answer within 30 s"),
    ("E1002", "NumberUnreachable", "subscriber absent"),
    ("E2001", "TemplateRejected", 'template "welcome_v2" is not approved'),
    ("E3007", "QuotaExceeded", "daily limit reached\nretry after midnight"),
)
COMMENTS = (
    "quick and friendly",
    "sehr schön, danke!",
    'she said "tomorrow" twice',
    "took too long\nand nobody called back",
    "très bien 👍",
    r"path C:\temp was of no help",
    "",
    None,
    "ok",
)
SERVICES: Mapping[str, str] = {
    "message_received": "message-service",
    "message_sent": "message-service",
    "message_failed": "message-service",
    "assistant_engaged": "assistant-service",
    "assistant_escalated": "assistant-service",
    "assistant_resolved": "assistant-service",
    "survey_sent": "survey-service",
    "survey_answered": "survey-service",
    "agent_status_changed": "agent-desk",
    "appointment_booked": "booking-service",
    "service_heartbeat": "platform",
    "cache_miss": "platform",
}
REGIONS = ("eu-west", "eu-central", "us-east")


@dataclass(frozen=True)
class Episode:
    """One story: its running number over all drops, its start in epoch milliseconds, the drop it starts in, and its place there."""

    number: int
    start: int
    drop: int
    index: int


class Entry(NamedTuple):
    """One entry ready to land: when it arrives, its own timestamp (both epoch milliseconds), and its line without line end."""

    arrival: int
    timestamp: int
    line: bytes


def entries(seed: int, episode: Episode) -> list[Entry]:
    """All entries of an episode, in the order in which they happen; the same for the same arguments, always."""
    rng = Random(f"{seed}/{episode.number}")
    script = _Script(rng, episode)
    if episode.index in (PLAIN_SPECIMEN, ODD_CHANNEL_SPECIMEN, NO_CHANNEL_SPECIMEN):
        _conversation(script)
    elif episode.index == AGENT_SPECIMEN:
        _shift(script)
    elif episode.index == SERVICE_SPECIMEN:
        _service_noise(script)
    else:
        chance = rng.random()
        (_conversation if chance < 0.86 else _shift if chance < 0.93 else _service_noise)(script)
    forced = dict(SPECIMEN_FLAWS.get(episode.index, {}))
    return [_entry(rng, episode, place, event, forced) for place, event in enumerate(script.events)]


def stale_entries(seed: int, drop: int, *, timestamp: int, arrival: int, count: int) -> list[Entry]:
    """Entries far in the past that land now: unflawed received messages of conversations nobody else knows."""
    rng = Random(f"{seed}/stale/{drop}")
    result = []
    for place in range(count):
        at = timestamp + place * SECOND
        conversation = f"c-stale-{drop}-{place}"
        said = {"conversation_id": conversation, "message_id": _token(rng, "m"), "channel": "chat", "body_chars": 42, "language": "en"}
        body = _body(rng, f"stale-{drop}-{place}", _Event(at, "message_received", said), arrival, drop)
        result.append(Entry(arrival, at, orjson.dumps(body)))
    return result


def with_receive_time(line: bytes, received: int) -> bytes:
    """The same entry delivered at another time: only `receiveTimestamp` changes."""
    mark = b'"receiveTimestamp":"'
    start = line.index(mark) + len(mark)
    return line[:start] + utc_text(received).encode() + line[line.index(b'"', start) :]


def utc_text(millis: int) -> str:
    """RFC 3339 text in UTC with milliseconds."""
    return f"{_second_text(millis // SECOND)}.{millis % SECOND:03d}Z"


@lru_cache(maxsize=50_000)
def _second_text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


class _Event(NamedTuple):
    at: int
    event_type: str
    fields: Json


class _Script:
    """Collects the events of one episode while its clock moves on."""

    def __init__(self, rng: Random, episode: Episode) -> None:
        self.rng, self.episode, self.at = rng, episode, episode.start
        self.complete = episode.index < SPECIMENS  # a specimen walks through every stage
        self.events: list[_Event] = []

    def wait(self, low_seconds: float, high_seconds: float) -> None:
        self.at += int(SECOND * (low_seconds + (high_seconds - low_seconds) * self.rng.random()))

    def happens(self, probability: float) -> bool:
        return self.complete or self.rng.random() < probability

    def add(self, event_type: str, fields: Json) -> None:
        self.events.append(_Event(self.at, event_type, fields))


# --- stories


class _Talk:
    """One conversation: what its stages share, and how they write events."""

    def __init__(self, script: _Script) -> None:
        rng = script.rng
        self.script, self.rng = script, rng
        self.id = f"c-{script.episode.number:07x}-{rng.getrandbits(24):06x}"
        self.agent: str | None = None
        self.assigned_at: int | None = None
        self.explicit_nulls = rng.random() < 0.5
        self.channel = _channel(rng, script.episode.index)

    def add(self, event_type: str, **fields: Any) -> None:
        kept = fields if self.explicit_nulls else {k: v for k, v in fields.items() if v is not None}
        self.script.add(event_type, {"conversation_id": self.id, **kept})

    def receive(self) -> None:
        self.script.wait(5, 60)
        fields: Json = {"message_id": _token(self.rng, "m"), "channel": self.channel}
        fields |= {"body_chars": 1 + int(self.rng.expovariate(1 / 90)), "language": self.rng.choice(LANGUAGES)}
        if self.script.episode.drop >= 2:
            fields["sentiment_score"] = round(self.rng.uniform(-1, 1), 3)
        self.add("message_received", **fields)

    def send(self, sender_kind: str) -> None:
        seconds = self.rng.randint(0, 3) if sender_kind == "assistant" else self.rng.randint(4, 240)
        self.script.wait(seconds, seconds + 1)
        message = _token(self.rng, "m")
        fields: Json = {"message_id": message, "channel": self.channel, "agent_id": self.agent if sender_kind == "agent" else None}
        fields |= {"sender_kind": sender_kind, "body_chars": 1 + int(self.rng.expovariate(1 / 140)), "response_seconds": seconds}
        self.add("message_sent", **fields)
        if self.rng.random() < 0.03:
            self.fail(message)

    def fail(self, message: str) -> None:
        self.script.wait(1, 30)
        code, name, text = self.rng.choice(FAILURES)
        exception = {"class": f"com.acme.comms.{name}", "message": text}
        self.add("message_failed", message_id=message, channel=self.channel, error_code=code, exception=exception)

    def assign(self) -> None:
        waited = int(self.rng.expovariate(1 / 45))
        self.script.wait(waited, waited + 1)
        self.agent = _agent(self.rng)
        self.assigned_at = self.assigned_at or self.script.at
        self.add("conversation_assigned", agent_id=self.agent, queue=self.rng.choice(QUEUES), wait_seconds=waited)


def _conversation(script: _Script) -> None:
    talk, rng = _Talk(script), script.rng
    start: Json = {"customer_id": f"cu-{rng.randrange(200_000):06d}", "channel": talk.channel}
    start |= {"entry_point": rng.choice(ENTRY_POINTS), "is_returning": rng.random() < 0.4}
    if script.episode.drop >= 3:
        start["priority"] = rng.choice(("low", "normal", "high"))
    talk.add("conversation_started", **start)
    talk.receive()
    solved = False
    if script.complete:
        _assistant(talk, solves=True)
        _assistant(talk, solves=False)
    elif rng.random() < 0.6:
        solved = rng.random() < 0.5
        _assistant(talk, solves=solved)
    if not solved:
        _human(talk)
    if script.happens(0.08):
        _appointment(talk)
    if script.happens(0.92):
        _close(talk, by_assistant=solved)


def _assistant(talk: _Talk, *, solves: bool) -> None:
    rng, turns = talk.rng, talk.rng.randint(1, 4)
    talk.script.wait(0.5, 3)
    talk.add("assistant_engaged", assistant_version=rng.choice(("a-4.1", "a-4.2")), confidence=round(rng.uniform(0.2, 0.99), 4))
    for _ in range(turns):
        talk.send("assistant")
        if rng.random() < 0.7:
            talk.receive()
    talk.script.wait(1, 5)
    if solves:
        talk.add("assistant_resolved", intent=rng.choice(INTENTS), turns=turns)
    else:
        talk.add("assistant_escalated", reason=rng.choice(ESCALATION_REASONS), turns=turns)


def _human(talk: _Talk) -> None:
    rng = talk.rng
    talk.assign()
    if talk.script.happens(0.1):
        talk.script.wait(20, 120)
        before, after = talk.agent, _agent(rng)
        talk.add("conversation_transferred", from_agent_id=before, to_agent_id=after, reason=rng.choice(TRANSFER_REASONS))
        talk.assign()
    for _ in range(rng.randint(1, 5)):
        talk.send("agent")
        if rng.random() < 0.8:
            talk.receive()
    if talk.script.complete:
        talk.fail(_token(rng, "m"))


def _appointment(talk: _Talk) -> None:
    rng = talk.rng
    talk.script.wait(5, 40)
    day = talk.script.at - talk.script.at % (24 * HOUR) + rng.randint(1, 14) * 24 * HOUR
    begin = _second_text((day + rng.randint(16, 34) * 30 * MINUTE) // SECOND) + "Z"
    talk.add("appointment_booked", appointment_id=_token(rng, "ap"), scheduled_for=begin, price=round(rng.uniform(15, 250), 2))


def _close(talk: _Talk, *, by_assistant: bool) -> None:
    rng, script = talk.rng, talk.script
    script.wait(5, 120)
    closer = "agent" if script.complete else "assistant" if by_assistant else rng.choice(("agent", "agent", "agent", "customer", "system"))
    handled = None if talk.assigned_at is None else (script.at - talk.assigned_at) // SECOND
    resolution = rng.choice(RESOLUTIONS)
    talk.add("conversation_closed", agent_id=talk.agent, closed_by=closer, resolution=resolution, handle_seconds=handled)
    if script.happens(0.45):
        survey = _token(rng, "s")
        script.wait(2, 20)
        talk.add("survey_sent", survey_id=survey, channel=talk.channel)
        if script.happens(0.5):
            script.wait(20, 300 if script.complete else 5_400)
            comment = COMMENTS[0] if script.complete else rng.choice(COMMENTS)
            talk.add("survey_answered", survey_id=survey, rating=rng.choice((1, 2, 3, 4, 4, 5, 5, 5)), comment=comment)


def _shift(script: _Script) -> None:
    agent, previous = _agent(script.rng), script.rng.choice(STATUSES)
    for _ in range(script.rng.randint(2, 5)):
        status = script.rng.choice([s for s in STATUSES if s != previous])
        script.add("agent_status_changed", {"agent_id": agent, "status": status, "previous_status": previous})
        previous = status
        script.wait(30, 900)


def _service_noise(script: _Script) -> None:
    rng = script.rng
    for _ in range(2):
        script.add("service_heartbeat", {"uptime_seconds": rng.randrange(1_000_000), "healthy": rng.random() < 0.99})
        script.wait(10, 60)
    script.add("cache_miss", {"cache_key": f"k:{rng.randrange(10_000)}", "shard": rng.randrange(16)})


# --- from an event to a line


def _entry(rng: Random, episode: Episode, place: int, event: _Event, forced: dict[str, str]) -> Entry:
    """The line of one event. `forced` names the flaws still owed to this episode by event type; a used one is taken out."""
    specimen = episode.index < SPECIMENS
    delay = _delay(rng, prompt=specimen)
    if episode.index == NO_CHANNEL_SPECIMEN and event.event_type == "survey_sent":
        delay = 5 * HOUR
    # the running number makes the id unique, the random digits make it look like one
    body = _body(rng, f"{rng.getrandbits(40):010x}{episode.number:07x}{place:02x}", event, event.at + delay, episode.drop)
    name = forced.pop(event.event_type, None)
    flaw = flaw_named(name, episode.drop) if name else None if specimen else flaw_by_chance(rng, event.event_type, episode.drop)
    if flaw:
        flaw.apply(rng, body)
    return Entry(event.at + delay, event.at, orjson.dumps(body))


def _body(rng: Random, insert_id: str, event: _Event, arrival: int, drop: int) -> Json:
    region = rng.choice(REGIONS)
    payload = {
        "event_type": event.event_type,
        "event_id": f"{rng.getrandbits(64):016x}",
        "event_datetime": utc_text(event.at - rng.randint(1, 40)),
        **event.fields,
    }
    body: Json = {
        "insertId": insert_id,
        "timestamp": utc_text(event.at),
        "receiveTimestamp": utc_text(arrival),
        "logName": "projects/acme/logs/comms",
        "severity": _severity(rng, event.event_type),
        "resource": {"type": "k8s_container", "labels": {"cluster_name": f"comms-{region}", "namespace_name": "prod"}},
        "labels": {"service": SERVICES.get(event.event_type, "conversation-service"), "region": region},
    }
    if drop >= 2:
        body["trace"] = f"projects/acme/traces/{rng.getrandbits(64):016x}"
    body["jsonPayload"] = payload
    return body


def _delay(rng: Random, *, prompt: bool) -> int:
    """Milliseconds between an event and its arrival: mostly seconds, some minutes, a few hours."""
    chance = 1.0 if prompt else rng.random()
    if chance < 0.006:
        return rng.randint(HOUR, MAX_DELAY)
    if chance < 0.03:
        return rng.randint(MINUTE, HOUR)
    return 5 + int(min(rng.expovariate(1 / (1.5 * SECOND)), MINUTE))


def _severity(rng: Random, event_type: str) -> str:
    if event_type == "message_failed":
        return "ERROR"
    if event_type == "cache_miss":
        return "DEBUG"
    chance = rng.random()
    return "INFO" if chance < 0.95 else "NOTICE" if chance < 0.99 else "WARNING"


def _channel(rng: Random, index: int) -> str | None:
    chance = rng.random()
    if index == NO_CHANNEL_SPECIMEN or (index >= SPECIMENS and chance < 0.01):
        return None
    if index == ODD_CHANNEL_SPECIMEN or (index >= SPECIMENS and chance < 0.02):
        return rng.choice(ODD_CHANNELS)
    return rng.choice(CHANNELS)


def _agent(rng: Random) -> str:
    return f"agent-{rng.randrange(120):03d}"


def _token(rng: Random, prefix: str) -> str:
    return f"{prefix}-{rng.getrandbits(48):012x}"
