"""The oracle on a handful of hand-written lines: every number below was worked out by hand."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sampledata import SampleError, expected_counts, generate, write_expected
from sampledata.contract import SILVER, TABLES
from sampledata.facts import text_number

BROKEN = '{"insertId":"cut","timestamp":"2026-03-01T08:0'


def entry(insert_id: str, event_type: str | None, at: str, /, *, severity: str = "INFO", **fields: Any) -> str:
    """One line. `at` is a time of 2026-03-01, or a whole timestamp; a `None` field becomes a JSON null."""
    moment = at if "T" in at else f"2026-03-01T{at}.000Z"
    payload = {"event_type": event_type, "event_id": f"e-{insert_id}", "event_datetime": moment, **fields}
    body = {
        "insertId": insert_id,
        "timestamp": moment,
        "receiveTimestamp": moment,
        "logName": "projects/acme/logs/comms",
        "severity": severity,
        "jsonPayload": payload,
    }
    return json.dumps(body)


def land(sample: Path, drop: int, *lines: str) -> None:
    folder = sample / "landing" / "router_logs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"drop_{drop:03d}-part-000.json").write_text("".join(line + "\n" for line in lines))


FIRST_DROP = (
    # c1: a chat that the assistant settles alone
    entry("i01", "conversation_started", "08:10:00", conversation_id="c1", channel="chat", is_returning=True),
    entry("i02", "message_received", "08:11:00", conversation_id="c1", channel="chat", body_chars=10),
    entry("i03", "assistant_engaged", "08:12:00", conversation_id="c1", confidence=0.9),
    entry(
        "i04", "message_sent", "08:13:00", conversation_id="c1", channel="chat", sender_kind="assistant", response_seconds=1, body_chars=3
    ),
    entry("i05", "assistant_resolved", "08:14:00", conversation_id="c1", turns=2),
    entry("i06", "conversation_closed", "08:15:00", conversation_id="c1", agent_id=None, closed_by="assistant"),
    # c2: a chat that goes from the assistant to agent a1
    entry("i07", "conversation_started", "08:50:00", conversation_id="c2", channel="chat"),
    entry("i08", "assistant_engaged", "08:51:00", conversation_id="c2", confidence=0.5),
    entry("i09", "assistant_engaged", "08:52:00", conversation_id="c2", confidence=0.4),
    entry("i10", "assistant_escalated", "08:53:00", conversation_id="c2", turns=4),
    entry("i11", "conversation_assigned", "08:54:00", conversation_id="c2", agent_id="a1", wait_seconds=30),
    entry(
        "i12",
        "message_sent",
        "08:55:00",
        conversation_id="c2",
        channel="chat",
        agent_id="a1",
        sender_kind="agent",
        response_seconds=20,
        body_chars=5,
    ),
    entry(
        "i13",
        "message_sent",
        "09:05:00",
        conversation_id="c2",
        channel="chat",
        agent_id="a1",
        sender_kind="agent",
        response_seconds=41,
        body_chars=5,
    ),
    entry("i14", "conversation_closed", "09:06:00", conversation_id="c2", agent_id="a1", closed_by="agent", handle_seconds=600),
    entry("i15", "survey_answered", "09:07:00", conversation_id="c2", rating=5),
    entry(
        "i12",
        "message_sent",
        "08:55:00",
        conversation_id="c2",
        channel="chat",
        agent_id="a1",
        sender_kind="agent",
        response_seconds=20,
        body_chars=5,
    ),
    BROKEN,
    # c3: no channel, and several values that break rules
    entry("i16", "conversation_started", "09:00:00", conversation_id="c3", channel=None),
    entry("i17", "conversation_assigned", "09:01:00", conversation_id="c3", agent_id="a1", wait_seconds=-5),
    entry("i18", "message_sent", "09:02:00", conversation_id="c3", agent_id="a1", sender_kind="agent"),
    entry("i19", "survey_answered", "09:20:00", conversation_id="c3", rating=9),
    entry("i20", "message_sent", "09:03:00", channel="chat", agent_id="a1", sender_kind="agent", response_seconds=1),
    entry("i21", "message_received", "09:04:00", conversation_id="c3", channel="fax", event_id=None, body_chars=1),
    entry("i22", None, "09:04:30", conversation_id="c3"),
    entry("i23", "service_heartbeat", "09:05:30", uptime_seconds=3, severity="CRITICAL"),
    # c4: starts at a time that nobody knows
    entry("i24", "conversation_started", "09:30:00", conversation_id="c4", channel="email", event_datetime="n/a"),
)
SECOND_DROP = (
    entry("i14", "conversation_closed", "09:06:00", conversation_id="c2", agent_id="a1", closed_by="agent", handle_seconds=600),
    entry("i25", "conversation_closed", "10:00:00", conversation_id="c3", agent_id="a1", closed_by="agent", handle_seconds="n/a"),
    # the next day: c5 ends without an agent, c6 has only an engagement at an unknown time
    entry("i26", "conversation_started", "2026-03-02T00:05:00.000Z", conversation_id="c5", channel="sms", priority="high"),
    entry("i27", "assistant_engaged", "2026-03-02T00:06:00.000Z", conversation_id="c5", confidence="unknown"),
    entry("i28", "conversation_started", "2026-03-02T00:10:00.000Z", conversation_id="c6", channel="sms"),
    entry("i29", "assistant_engaged", "2026-03-02T00:11:00.000Z", conversation_id="c6", confidence=0.7, event_datetime=None),
    entry("i30", "conversation_assigned", "2026-03-02T00:12:00.000Z", conversation_id="c6", agent_id="a2", wait_seconds="pending"),
    entry(
        "i31", "message_failed", "2026-03-02T00:13:00.000Z", conversation_id="c6", channel="sms", exception={"class": "X", "message": "é"}
    ),
)
# the newest timestamp of the first drop is 09:30 of March 1st: 12 hours before it lies the watermark
BEHIND_WATERMARK = entry("i40", "message_received", "2026-02-28T21:30:00.000Z", conversation_id="c9", channel="chat", body_chars=1)
JUST_BEFORE_WATERMARK = entry("i41", "message_received", "2026-02-28T21:30:00.001Z", conversation_id="c9", channel="sms", body_chars=1)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hand-written")
    land(out, 1, *FIRST_DROP)
    land(out, 2, *SECOND_DROP)
    write_expected(out)
    return out


def rows(sample: Path, drop: int, table: str) -> list[tuple[Any, ...]]:
    table_rows = pq.read_table(sample / "expected" / f"drop_{drop:03d}" / f"{table}.parquet").to_pylist()
    return [tuple(row.values()) for row in table_rows]


def facts(sample: Path, drop: int) -> dict[str, Any]:
    return json.loads((sample / "expected" / f"drop_{drop:03d}" / "facts.json").read_text())["tables"]


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=timezone.utc)


MARCH_1, MARCH_2 = date(2026, 3, 1), date(2026, 3, 2)


def test_workforce_hourly(sample: Path) -> None:
    first = [
        # hour, channel, started, received, sent, by agents, average response of agents
        (at(1, 8), "chat", 2, 1, 2, 1, 20.0),
        (at(1, 9), None, 1, 0, 1, 1, None),
        (at(1, 9), "chat", 0, 0, 1, 1, 41.0),
    ]
    assert rows(sample, 1, "workforce_hourly") == first
    assert rows(sample, 2, "workforce_hourly") == [*first, (at(2, 0), "sms", 2, 0, 0, 0, None)]


def test_agent_daily(sample: Path) -> None:
    # assigned, closed, messages sent, total and average handle seconds, average wait seconds
    assert rows(sample, 1, "agent_daily") == [(MARCH_1, "a1", 2, 1, 3, 600, 600.0, 12.5)]
    assert rows(sample, 2, "agent_daily") == [
        (MARCH_1, "a1", 2, 2, 3, 600, 600.0, 12.5),
        (MARCH_2, "a2", 1, 0, 0, 0, None, None),
    ]


def test_channel_funnel(sample: Path) -> None:
    # started, assistant engaged, assigned, closed, survey answered, closed rate
    assert rows(sample, 1, "channel_funnel") == [
        (MARCH_1, None, 1, 0, 1, 0, 0, 0.0),
        (MARCH_1, "chat", 2, 2, 1, 2, 1, 1.0),
    ]
    assert rows(sample, 2, "channel_funnel") == [
        (MARCH_1, None, 1, 0, 1, 1, 0, 1.0),
        (MARCH_1, "chat", 2, 2, 1, 2, 1, 1.0),
        (MARCH_2, "sms", 2, 1, 1, 0, 0, 0.0),
    ]


def test_assistant_deflection(sample: Path) -> None:
    # engaged, escalated, resolved, deflected, deflection rate, average confidence
    first = (MARCH_1, "chat", 2, 1, 1, 1, 0.5, pytest.approx(0.6))
    assert rows(sample, 1, "assistant_deflection") == [first]
    assert rows(sample, 2, "assistant_deflection") == [first, (MARCH_2, "sms", 1, 0, 0, 0, 0.0, None)]


def test_silver_rows_are_cast_and_without_what_drop_rules_reject(sample: Path) -> None:
    assert rows(sample, 1, "survey_answered") == [("e-i15", at(1, 9, 7), MARCH_1, "i15", "c2", None, 5, None)]
    assert [row[3] for row in rows(sample, 1, "message_sent")] == ["i04", "i12", "i13", "i18"]
    assert [row[3] for row in rows(sample, 1, "message_received")] == ["i02"]
    started = rows(sample, 2, "conversation_started")
    assert started[0] == ("e-i01", at(1, 8, 10), MARCH_1, "i01", "c1", None, "chat", None, True, None)
    assert [(row[3], row[1], row[-1]) for row in started[3:5]] == [("i24", None, None), ("i26", at(2, 0, 5), "high")]
    assert rows(sample, 2, "conversation_closed")[-1][-1] is None
    assert rows(sample, 2, "message_failed") == [("e-i31", at(2, 0, 13), MARCH_2, "i31", "c6", None, "sms", None, "X", "é")]


def test_bronze_facts(sample: Path) -> None:
    raw, logs = facts(sample, 2)["router_logs_raw"], facts(sample, 2)["router_logs"]
    assert raw["rows"] == len(FIRST_DROP) + len(SECOND_DROP) == 34
    assert raw["columns"]["insertId"]["non_null"] == 33
    assert raw["columns"]["_rescued_data"] == {"type": "STRING", "non_null": 4, "sum": None}
    assert raw["columns"]["source_file"]["non_null"] == 34
    # 34 lines - 1 broken - 2 redelivered - 1 without event type
    assert logs["rows"] == 30
    assert logs["columns"]["insertId"]["sum"] == sum(text_number(f"i{i:02d}") for i in range(1, 32) if i != 22) % 2**61
    assert not {"receiveTimestamp", "source_file"} & logs["columns"].keys()
    groups = {(day, event_type): count for day, event_type, count in logs["groups"]}
    march_1 = (MARCH_1 - date(1970, 1, 1)).days
    assert groups[march_1, "message_sent"] == 5
    assert groups[march_1, "service_heartbeat"] == 1
    assert groups[march_1 + 1, "conversation_started"] == 2


def test_quarantine_holds_the_broken_line(sample: Path) -> None:
    assert rows(sample, 2, "unparsed_lines") == [("drop_001-part-000.json", BROKEN)]


def test_expectation_counts_after_the_first_drop(sample: Path) -> None:
    counts = expected_counts(sample, 1)
    failing = {
        ("router_logs_raw", "parsed"): (25, 1),
        ("router_logs", "known_severity"): (23, 1),
        ("router_logs", "has_event_type"): (23, 1),
        ("conversation_started", "event_at_known"): (3, 1),
        ("conversation_started", "channel_known"): (3, 1),
        ("conversation_assigned", "wait_not_negative"): (1, 1),
        ("message_received", "has_event_id"): (1, 1),
        ("message_received", "channel_known"): (1, 1),
        ("message_sent", "has_conversation"): (4, 1),
        ("message_sent", "channel_known"): (4, 1),
        ("message_sent", "body_chars_known"): (3, 2),
        ("survey_answered", "rating_in_range"): (1, 1),
    }
    assert {key: count for key, count in counts.rules.items() if count[1]} == failing
    assert counts.rules["message_sent", "has_event_id"] == (5, 0)
    assert counts.rules["message_received", "body_chars_known"] == (2, 0)
    assert counts.rules["appointment_booked", "has_event_id"] == (0, 0)
    dropped = {"router_logs": 1, "message_received": 1, "message_sent": 1, "survey_answered": 1}
    assert {table: count for table, count in counts.dropped.items() if count} == dropped
    assert (counts.lines, counts.broken_lines, counts.rescued_rows) == (26, 1, 1)
    assert (counts.duplicates, counts.watermark_dropped) == (1, 0)
    assert counts.rescued_values == {}


def test_expectation_counts_add_up_over_drops(sample: Path) -> None:
    counts = expected_counts(sample)
    assert counts.rules["router_logs_raw", "parsed"] == (33, 1)
    assert counts.rules["router_logs", "has_event_type"] == (30, 1)
    assert counts.rules["assistant_engaged", "event_at_known"] == (4, 1)
    assert counts.rules["conversation_assigned", "wait_not_negative"] == (1, 2)
    assert counts.rescued_values == {"confidence": 1, "handle_seconds": 1, "wait_seconds": 1}
    assert (counts.lines, counts.duplicates, counts.rescued_rows) == (34, 2, 4)


def test_every_rule_of_the_contract_is_counted_under_its_table(sample: Path) -> None:
    rules = expected_counts(sample).rules
    by_table = {table: [rule for of, rule in rules if of == table] for table in SILVER}
    common = ["has_event_id", "event_at_known"]
    assert by_table["agent_status_changed"] == common
    assert by_table["appointment_booked"] == [*common, "has_conversation"]
    assert by_table["conversation_assigned"] == [*common, "has_conversation", "wait_not_negative"]
    assert by_table["survey_answered"] == [*common, "has_conversation", "rating_in_range"]
    for table in ("message_received", "message_sent"):
        assert by_table[table] == [*common, "has_conversation", "channel_known", "body_chars_known"]
    for table in ("conversation_started", "message_failed", "survey_sent"):
        assert by_table[table] == [*common, "has_conversation", "channel_known"]


def test_entries_behind_the_watermark_of_earlier_drops_stay_out_of_router_logs(tmp_path: Path) -> None:
    land(tmp_path, 1, *FIRST_DROP)
    land(tmp_path, 2, BEHIND_WATERMARK, JUST_BEFORE_WATERMARK)
    write_expected(tmp_path)
    assert facts(tmp_path, 2)["router_logs_raw"]["rows"] == facts(tmp_path, 1)["router_logs_raw"]["rows"] + 2
    assert facts(tmp_path, 2)["router_logs"]["rows"] == facts(tmp_path, 1)["router_logs"]["rows"] + 1
    assert "i41" in {row[3] for row in rows(tmp_path, 2, "message_received")}
    assert expected_counts(tmp_path).watermark_dropped == 1
    assert expected_counts(tmp_path).rules["router_logs", "has_event_type"] == (24, 1)


def test_within_one_drop_nothing_is_behind_the_watermark(tmp_path: Path) -> None:
    land(tmp_path, 1, *FIRST_DROP, BEHIND_WATERMARK)
    write_expected(tmp_path)
    assert expected_counts(tmp_path).watermark_dropped == 0


def test_valid_json_without_an_id_is_quarantined_without_text(tmp_path: Path) -> None:
    land(tmp_path, 1, '{"timestamp":"2026-03-01T08:00:00.000Z","jsonPayload":{}}', "[1]", "", '{"insertId":"x","timestamp":"soon"}')
    write_expected(tmp_path)
    assert [row[1] for row in rows(tmp_path, 1, "unparsed_lines")] == [None, "[1]", None]
    assert expected_counts(tmp_path).lines == 3


def test_all_tables_are_written_and_many_silver_rows_become_facts_only(sample: Path, tmp_path: Path) -> None:
    written = {path.stem for path in (sample / "expected" / "drop_002").glob("*.parquet")}
    assert written == set(TABLES) - {"router_logs_raw", "router_logs"}
    land(tmp_path, 1, *FIRST_DROP)
    write_expected(tmp_path, silver_rows_kept=10)
    assert not {path.stem for path in tmp_path.rglob("*.parquet")} & set(SILVER)
    assert facts(tmp_path, 1) == facts(sample, 1)
    assert rows(tmp_path, 1, "agent_daily") == rows(sample, 1, "agent_daily")


def test_the_answer_for_a_drop_does_not_change_when_later_drops_land(tmp_path: Path) -> None:
    generate(tmp_path, rows=400, seed=3)
    write_expected(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "expected" / "drop_001").iterdir()}
    generate(tmp_path, rows=400, seed=3, append=True)
    folders = write_expected(tmp_path)
    assert [folder.name for folder in folders] == ["drop_001", "drop_002"]
    assert {path.name: path.read_bytes() for path in folders[0].iterdir()} == before


def test_a_generated_sample_is_answered_as_it_was_made(tmp_path: Path) -> None:
    generate(tmp_path, rows=1000, seed=9)
    report = generate(tmp_path, rows=1000, seed=9, append=True, beyond_watermark=True)
    write_expected(tmp_path)
    first, second = expected_counts(tmp_path, 1), expected_counts(tmp_path, 2)
    (drop,) = report.drops
    assert second.lines - first.lines == drop.lines == 1000
    assert second.broken_lines - first.broken_lines == drop.broken
    assert second.duplicates - first.duplicates == drop.redelivered
    assert second.watermark_dropped == drop.stale == 5
    assert first.rescued_values == {}
    assert second.rescued_values


def test_a_folder_without_landed_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SampleError, match="holds no sample"):
        write_expected(tmp_path)
