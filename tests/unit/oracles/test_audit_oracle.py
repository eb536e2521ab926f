"""The oracle of the audit example against tables computed by hand, and what its generator writes."""

from __future__ import annotations

import gzip
import json
import runpy
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import audit
from tests.paths import ROOT, SHARED_DATA, unpack

GENERATOR = runpy.run_path(str(ROOT / "examples/audit/generate.py"), run_name="generate")
SAMPLE = SHARED_DATA / "cloudtrail" / "cloudtrail.tar.gz"
DAY, NOON = date(2026, 3, 1), datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def record(event_id: str | None, **fields: Any) -> dict[str, Any]:
    """A record at noon of 2026-03-01; fields may replace any of it."""
    made = {
        "eventID": event_id,
        "eventTime": "2026-03-01T12:00:00Z",
        "eventSource": "s3",
        "eventName": "GetObject",
        "awsRegion": "us-east-1",
    }
    return {**made, "sourceIPAddress": "10.0.0.1", "userIdentity": {"arn": "ann"}, **fields}


def read(folder: Path, *files: list[dict[str, Any]]) -> dict[str, Any]:
    for number, records in enumerate(files):
        GENERATOR["write"](folder / f"2026/03/01/{number}.json.gz", GENERATOR["packed"](records))
    return audit.expected(folder)


def test_a_record_becomes_a_flat_event_with_its_parameters_as_text(tmp_path: Path) -> None:
    full = record(
        "e1",
        userAgent="cli",
        userIdentity={"type": "IAMUser", "arn": "arn:ann", "userName": "ann", "accountId": "1"},
        errorCode="AccessDenied",
        errorMessage="no",
        readOnly=True,
        requestParameters={"b": [1, 2.5, None], "a": {"x": "ü"}},
        responseElements={},
    )
    assert read(tmp_path, [full])["events"] == [
        (
            *("e1", NOON, DAY, "GetObject", "s3", "us-east-1", "10.0.0.1", "cli", "IAMUser", "arn:ann", "ann", "1"),
            *("AccessDenied", "no", True, '{"a":{"x":"ü"},"b":[1,2.5,null]}', "{}"),
        )
    ]
    assert audit.json_text('{ "b" : [1, 2.5, null], "a": {"x": "\\u00fc"} }') == '{"a":{"x":"ü"},"b":[1,2.5,null]}'


@pytest.mark.parametrize(
    ("identity", "name", "account"),
    [
        ({"userName": "ann", "accountId": "1", "sessionContext": {"sessionIssuer": {"userName": "role"}}}, "ann", "1"),
        ({"userName": None, "sessionContext": {"sessionIssuer": {"userName": "role"}}}, "role", "9"),
        ({"sessionContext": {"sessionIssuer": {}}}, None, "9"),
        ({"sessionContext": None, "accountId": None}, None, "9"),
        (None, None, "9"),
    ],
)
def test_names_and_accounts_have_a_second_source(identity: Any, name: str | None, account: str) -> None:
    event = audit.event_of(record("e1", userIdentity=identity, recipientAccountId="9"))
    assert event is not None
    assert (event.user_name, event.account_id) == (name, account)


def test_repeated_events_count_once_and_records_without_id_or_time_are_apart(tmp_path: Path) -> None:
    without = record("e3")
    del without["eventTime"]
    found = read(
        tmp_path, [record("e1"), record("e1"), record(None), without], [record("e1"), record("e2"), record("", eventTime="yesterday")], []
    )
    assert [row[0] for row in found["events"]] == ["e1", "e2"]
    assert found["rejected_records"] == 3
    assert found["calls_daily"] == [(DAY, "s3", "GetObject", 2, 0)]


def test_denied_calls_and_principals_of_a_day(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            record("e1", errorCode="AccessDenied", eventTime="2026-03-01T23:59:59Z"),
            record("e2", errorCode="AccessDenied"),
            record("e3", errorCode="Client.UnauthorizedOperation", eventSource="ec2", sourceIPAddress=None),
            record("e4", errorCode="access denied", awsRegion="eu-central-1"),
            record("e5", eventTime="2026-03-02T00:00:00Z"),
            record("e6", userIdentity=None),
        ],
    )
    last = datetime(2026, 3, 1, 23, 59, 59, tzinfo=timezone.utc)
    assert found["denied_calls"] == [
        (DAY, "ann", "ec2", "GetObject", "Client.UnauthorizedOperation", 1, NOON, NOON),
        (DAY, "ann", "s3", "GetObject", "AccessDenied", 2, NOON, last),
    ]
    assert found["principals_daily"] == [(DAY, "ann", 4, 2, 2, 1, 3), (DAY, None, 1, 1, 1, 1, 0), (date(2026, 3, 2), "ann", 1, 1, 1, 1, 0)]
    assert found["calls_daily"][1] == (DAY, "s3", "GetObject", 4, 3)


def test_sensitive_changes_are_single_events_also_failed_ones() -> None:
    events = [audit.event_of(record("e1", eventName=name, errorCode="AccessDenied")) for name in ("CreateUser", "CreateUsers", "GetUser")]
    assert audit.sensitive_changes(filter(None, events)) == [(NOON, "e1", "ann", "10.0.0.1", "s3", "CreateUser", "AccessDenied")]


EVENTS = st.lists(
    st.builds(
        record,
        st.sampled_from(["e1", "e2", "e3", "e4", None]),
        eventName=st.sampled_from(["GetObject", "StopLogging"]),
        eventTime=st.sampled_from(["2026-03-01T12:00:00Z", "2026-03-02T00:00:00Z", None]),
        errorCode=st.sampled_from([None, "AccessDenied", "NotFound"]),
        userIdentity=st.sampled_from([None, {"arn": "ann"}, {"arn": "bo"}]),
    ),
    max_size=15,
    unique_by=lambda made: made["eventID"],
)


@given(EVENTS)
def test_the_gold_tables_count_the_same_events(records: list[dict[str, Any]]) -> None:
    events = [event for event in map(audit.event_of, records) if event]
    found = audit.tables(events)
    assert sum(row[3] for row in found["calls_daily"]) == sum(row[2] for row in found["principals_daily"]) == len(events)
    assert sum(row[5] for row in found["denied_calls"]) == sum(row[6] for row in found["principals_daily"])
    assert len(found["sensitive_changes"]) == sum(row[3] for row in found["calls_daily"] if row[2] == "StopLogging")


def test_generated_files_hold_what_the_example_must_bear(tmp_path: Path) -> None:
    first = dict(GENERATOR["files"](2, 3, 100, 1))
    assert first == dict(GENERATOR["files"](2, 3, 100, 1)) != dict(GENERATOR["files"](2, 3, 100, 2))
    for name, content in first.items():
        GENERATOR["write"](tmp_path / name, content)
    before = audit.expected(tmp_path)
    records = [made for content in first.values() for made in json.loads(gzip.decompress(content))["Records"]]
    assert len(before["events"]) == 600 < len(records) - before["rejected_records"]  # some come twice
    assert before["rejected_records"] > 0
    assert {row[2] for row in before["events"]} == {date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 2)}  # delivered after midnight
    assert {row[9] is None for row in before["events"]} == {True, False}
    assert before["denied_calls"]
    assert before["sensitive_changes"]

    second = dict(GENERATOR["files"](2, 3, 100, 1, late=True))
    assert not first.keys() & second.keys()
    assert set(first.values()) & set(second.values())  # a file under another name
    for name, content in second.items():
        GENERATOR["write"](tmp_path / name, content)
    days = [row[2] for row in audit.expected(tmp_path)["events"]]
    assert len(days) == 600 + 2 * 100 + 300
    assert days.count(date(2026, 3, 1)) > [row[2] for row in before["events"]].count(date(2026, 3, 1))
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.real_data
@pytest.mark.skipif(not SAMPLE.exists(), reason="the published CloudTrail sample is not there")
def test_the_published_sample_has_2900_events(tmp_path: Path) -> None:
    unpack(SAMPLE, tmp_path)
    found = audit.expected(tmp_path)
    assert (len(found["events"]), found["rejected_records"]) == (2900, 0)
    assert sum(row[5] for row in found["denied_calls"]) == 44 + 16
    assert {row[5] for row in found["sensitive_changes"]} <= audit.SENSITIVE
