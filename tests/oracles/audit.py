"""The tables of the audit example, computed from its files by the standard library alone.

Written from the contract of the data, without looking at the pipeline. Choices where the contract leaves room:

- Files are all `*.json.gz` below the folder, and all `*.json` (the published sample comes unpacked).
- A record without `eventID` or without an `eventTime` of the form 2026-03-01T10:00:00Z is kept apart; `rejected_records` counts each of
  its occurrences. NULL and the empty text are both "without" for these two.
- An `eventID` that comes again is the same event; should its records differ, the first in order of path and place counts.
- A field that is absent and a field that is null are both NULL; an empty text is a text (also for `user_name` and `account_id`).
- `request_parameters` and `response_elements` are JSON texts in a normal form: keys sorted, no spaces, no escapes but the necessary.
  Bring the pipeline's texts to it by `json_text` before comparing, since readers may keep or change the spaces of the file.
- "contains Denied or Unauthorized" minds the case. A call is an event; an error is an event with an `error_code`.
- Distinct services, regions and addresses are counted without NULL.
- Rows come sorted by all columns from the left, NULL last.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

SENSITIVE = {
    "CreateUser",
    "DeleteUser",
    "CreateAccessKey",
    "AttachUserPolicy",
    "AttachRolePolicy",
    "PutUserPolicy",
    "PutRolePolicy",
    "CreateLoginProfile",
    "UpdateLoginProfile",
    "StopLogging",
    "DeleteTrail",
    "UpdateTrail",
    "PutBucketPolicy",
    "DeleteBucketPolicy",
    "AuthorizeSecurityGroupIngress",
    "DeactivateMFADevice",
    "ConsoleLogin",
}


class Event(NamedTuple):
    """A row of `events`, without `source_file`."""

    event_id: str
    event_time: datetime
    event_date: date
    event_name: str | None
    event_source: str | None
    aws_region: str | None
    source_ip: str | None
    user_agent: str | None
    user_type: str | None
    user_arn: str | None
    user_name: str | None
    account_id: str | None
    error_code: str | None
    error_message: str | None
    read_only: bool | None
    request_parameters: str | None
    response_elements: str | None


def expected(landing: Path) -> dict[str, Any]:
    """`events` and the four gold tables as lists of tuples, and `rejected_records`."""
    read = [event_of(record) for path in files(landing) for record in records_of(path)]
    events = {event.event_id: event for event in reversed(read) if event}
    return {**tables(list(events.values())), "rejected_records": read.count(None)}


def files(landing: Path) -> list[Path]:
    return sorted([*landing.rglob("*.json.gz"), *landing.rglob("*.json")])


def records_of(path: Path) -> Iterator[Mapping[str, Any]]:
    data = path.read_bytes()
    yield from json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["Records"]


def event_of(record: Mapping[str, Any]) -> Event | None:
    """The event of a record; None for a record that is kept apart."""
    user = record.get("userIdentity") or {}
    issuer = (user.get("sessionContext") or {}).get("sessionIssuer") or {}
    at = time_of(record.get("eventTime"))
    if not record.get("eventID") or at is None:
        return None
    return Event(
        event_id=record["eventID"],
        event_time=at,
        event_date=at.date(),
        event_name=record.get("eventName"),
        event_source=record.get("eventSource"),
        aws_region=record.get("awsRegion"),
        source_ip=record.get("sourceIPAddress"),
        user_agent=record.get("userAgent"),
        user_type=user.get("type"),
        user_arn=user.get("arn"),
        user_name=issuer.get("userName") if user.get("userName") is None else user["userName"],
        account_id=record.get("recipientAccountId") if user.get("accountId") is None else user["accountId"],
        error_code=record.get("errorCode"),
        error_message=record.get("errorMessage"),
        read_only=record.get("readOnly"),
        request_parameters=normal(record.get("requestParameters")),
        response_elements=normal(record.get("responseElements")),
    )


def time_of(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text or "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def normal(value: Any) -> str | None:
    """The JSON value as text in normal form; NULL stays NULL."""
    return None if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def json_text(text: str | None) -> str | None:
    """A JSON text in normal form: for the pipeline's texts, before they are compared."""
    return None if text is None else normal(json.loads(text))


def tables(events: list[Event]) -> dict[str, list[tuple[Any, ...]]]:
    """The five tables of distinct events."""
    return {
        "events": in_order(events),
        "calls_daily": in_order(calls_daily(events)),
        "denied_calls": in_order(denied_calls(events)),
        "principals_daily": in_order(principals_daily(events)),
        "sensitive_changes": in_order(sensitive_changes(events)),
    }


def grouped(events: Iterable[Event], key: Callable[[Event], tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Event]]:
    groups = defaultdict(list)
    for event in events:
        groups[key(event)].append(event)
    return groups


def is_denied(event: Event) -> bool:
    return "Denied" in (event.error_code or "") or "Unauthorized" in (event.error_code or "")


def calls_daily(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """Calls and errors of each day, service and name."""
    groups = grouped(events, lambda event: (event.event_date, event.event_source, event.event_name))
    return [(*key, len(group), sum(event.error_code is not None for event in group)) for key, group in groups.items()]


def denied_calls(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """Who was refused what on a day, how often, first and last."""
    groups = grouped(
        filter(is_denied, events), lambda event: (event.event_date, event.user_arn, event.event_source, event.event_name, event.error_code)
    )
    times = {key: [event.event_time for event in group] for key, group in groups.items()}
    return [(*key, len(at), min(at), max(at)) for key, at in times.items()]


def principals_daily(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """What each principal (NULL is one) did on a day."""
    return [
        (
            *key,
            len(group),
            distinct(event.event_source for event in group),
            distinct(event.aws_region for event in group),
            distinct(event.source_ip for event in group),
            sum(map(is_denied, group)),
        )
        for key, group in grouped(events, lambda event: (event.event_date, event.user_arn)).items()
    ]


def sensitive_changes(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """The events that change who may do what or what is recorded, also those that failed."""
    return [
        (event.event_time, event.event_id, event.user_arn, event.source_ip, event.event_source, event.event_name, event.error_code)
        for event in events
        if event.event_name in SENSITIVE
    ]


def distinct(values: Iterable[str | None]) -> int:
    return len({value for value in values if value is not None})


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows by their columns from the left, NULL last."""
    return sorted((tuple(row) for row in rows), key=lambda row: [(value is None, value) for value in row])
