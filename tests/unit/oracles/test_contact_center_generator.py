"""The sample generator: what lands is what docs/system-a.md promises."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sampledata import SampleError, generate
from sampledata.contract import SILVER, SILVER_OWN
from tests.paths import ROOT

CONTRACT_PAGE = ROOT / "docs" / "system-a.md"
NUMBER_FIELDS = {
    name: int if kind == "BIGINT" else float
    for columns in SILVER_OWN.values()
    for name, kind in columns.items()
    if kind in ("BIGINT", "DOUBLE")
}


class Line(NamedTuple):
    drop: int
    file: str
    text: str
    entry: dict[str, Any] | None

    @property
    def payload(self) -> dict[str, Any]:
        assert self.entry is not None
        return self.entry["jsonPayload"]

    @property
    def timestamp(self) -> datetime:
        assert self.entry is not None
        return _time(self.entry["timestamp"])


def landed(sample: Path) -> Iterator[Line]:
    for path in sorted((sample / "landing" / "router_logs").glob("*.json")):
        for text in path.read_text().splitlines():
            try:
                entry = json.loads(text)
            except ValueError:
                entry = None
            yield Line(int(path.name[5:8]), path.name, text, entry)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def files_of(sample: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sample.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample")
    generate(out, rows=6000, seed=42, drops=3)
    return out


@pytest.fixture(scope="module")
def lines(sample: Path) -> list[Line]:
    return list(landed(sample))


@pytest.fixture(scope="module")
def parsed(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.entry is not None]


# --- calls


def test_same_seed_and_calls_give_the_same_bytes(sample: Path, tmp_path: Path) -> None:
    generate(tmp_path, rows=6000, seed=42, drops=3)
    assert files_of(tmp_path) == files_of(sample)


def test_appending_drop_by_drop_gives_the_same_bytes_as_one_call(sample: Path, tmp_path: Path) -> None:
    for call in range(3):
        generate(tmp_path, rows=2000, seed=42, append=call > 0)
    assert files_of(tmp_path) == files_of(sample)


def test_another_seed_gives_another_sample(sample: Path, tmp_path: Path) -> None:
    generate(tmp_path, rows=6000, seed=43, drops=3)
    assert files_of(tmp_path) != files_of(sample)


def test_the_report_counts_what_landed(tmp_path: Path) -> None:
    report = generate(tmp_path, rows=1001, seed=5, drops=2)
    found = list(landed(tmp_path))
    assert report.rows == len(found) == 1001
    assert [drop.lines for drop in report.drops] == [501, 500]
    assert sum(drop.broken for drop in report.drops) == sum(line.entry is None for line in found)
    ids = [line.entry["insertId"] for line in found if line.entry]
    assert sum(drop.redelivered for drop in report.drops) == len(ids) - len(set(ids))
    assert {path.name for path in report.files} == {line.file for line in found}
    assert report.newest_timestamp == max(line.entry["timestamp"] for line in found if line.entry)


def test_large_drops_are_split_into_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("sampledata.generate"), "PART_LINES", 200)
    report = generate(tmp_path, rows=1000, seed=5)
    assert [path.name for path in report.files] == [f"drop_001-part-{part:03d}.json" for part in range(5)]
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"rows": 1000, "drops": 0}, "at least one drop"),
        ({"rows": 500, "drops": 3}, "Give --rows 600 or more"),
        ({"rows": 1000, "beyond_watermark": True}, "Give --drops 2 or more, or --append"),
        ({"rows": 1000, "append": True}, "Leave --append out"),
    ],
)
def test_contradicting_arguments_are_refused(tmp_path: Path, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(SampleError, match=says):
        generate(tmp_path, seed=1, **arguments)
    assert files_of(tmp_path) == {}


def test_a_folder_with_content_is_only_written_to_on_append(tmp_path: Path) -> None:
    generate(tmp_path, rows=200, seed=1)
    before = files_of(tmp_path)
    with pytest.raises(SampleError, match=r"not empty.*\n.*--append"):
        generate(tmp_path, rows=200, seed=1)
    with pytest.raises(SampleError, match="seed 1, not 2"):
        generate(tmp_path, rows=200, seed=2, append=True)
    assert files_of(tmp_path) == before


def test_a_state_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"format": 99, "seed": 1}')
    with pytest.raises(SampleError, match="format 99"):
        generate(tmp_path, rows=200, seed=1, append=True)


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"format": 1, "seed": 1')
    with pytest.raises(SampleError, match="cannot be read"):
        generate(tmp_path, rows=200, seed=1, append=True)


# --- what lands


def test_entries_are_late_and_out_of_order_but_never_six_hours_behind(parsed: list[Line]) -> None:
    newest, behind = parsed[0].timestamp, []
    for line in parsed:
        behind.append(newest - line.timestamp)
        newest = max(newest, line.timestamp)
    assert max(behind) < timedelta(hours=6)
    assert sum(lag > timedelta(hours=1) for lag in behind) >= 20
    assert sum(lag > timedelta(0) for lag in behind) >= 300


def test_a_drop_spans_about_six_hours_and_goes_on_where_the_last_one_stopped(parsed: list[Line]) -> None:
    ends = [max(line.timestamp for line in parsed if line.drop <= drop) for drop in (1, 2, 3)]
    starts = [parsed[0].timestamp, *ends]
    for start, end in zip(starts, ends, strict=False):
        assert timedelta(hours=4.5) < end - start < timedelta(hours=7.5)


def test_entries_are_redelivered_in_the_same_file_another_file_and_the_next_drop(parsed: list[Line]) -> None:
    first: dict[str, Line] = {}
    where = {"same file": 0, "other file": 0, "next drop": 0}
    for line in parsed:
        assert line.entry is not None
        before = first.setdefault(line.entry["insertId"], line)
        if before is line:
            continue
        assert {**line.entry, "receiveTimestamp": 0} == {**(before.entry or {}), "receiveTimestamp": 0}
        assert line.drop - before.drop in (0, 1)
        where["next drop" if line.drop > before.drop else "same file" if line.file == before.file else "other file"] += 1
    assert all(count >= 2 for count in where.values()), where
    assert 0.01 < sum(where.values()) / len(parsed) < 0.03


@pytest.mark.parametrize("seed", range(8))
def test_the_smallest_first_drop_shows_every_event_type_and_every_field_with_its_type(tmp_path: Path, seed: int) -> None:
    generate(tmp_path, rows=200, seed=seed)
    seen: dict[str, set[type]] = {}
    types = set()
    for line in landed(tmp_path):
        if line.entry is None:
            continue
        types.add(line.payload.get("event_type"))
        for name, value in line.payload.items():
            if value is not None:
                seen.setdefault(name, set()).add(type(value))
    assert types >= set(SILVER) | {"service_heartbeat", "cache_miss"}
    later = {"sentiment_score", "priority"}
    for name, kind in NUMBER_FIELDS.items():
        assert seen.get(name, set()) == (set() if name in later else {kind}), name
    assert seen["is_returning"] == {bool}
    assert seen["exception"] == {dict}
    assert not any(len(kinds) > 1 for kinds in seen.values())
    own = {name for columns in SILVER_OWN.values() for name in columns} - later - {"exception_class", "exception_message"}
    assert own <= set(seen)


def test_types_drift_only_after_the_first_drop_and_only_numbers_into_text(parsed: list[Line]) -> None:
    drifted: dict[int, set[str]] = {1: set(), 2: set(), 3: set()}
    for line in parsed:
        for name, value in line.payload.items():
            if value is None:
                continue
            if name in NUMBER_FIELDS and type(value) is not NUMBER_FIELDS[name]:
                assert value in ("n/a", "unknown", "pending")
                drifted[line.drop].add(name)
            elif name not in NUMBER_FIELDS and name not in ("is_returning", "healthy", "exception", "uptime_seconds", "shard"):
                assert isinstance(value, str)
    assert drifted[1] == set()
    assert len(drifted[2]) >= 3
    assert "sentiment_score" not in drifted[2] | drifted[3]


def test_new_fields_appear_midway(parsed: list[Line]) -> None:
    since = {"trace": 2, "sentiment_score": 2, "priority": 3}
    for name, drop in since.items():
        assert min(line.drop for line in parsed if name in {**(line.entry or {}), **line.payload}) == drop


def test_every_drop_has_broken_lines(lines: list[Line]) -> None:
    for drop in (1, 2, 3):
        broken = [line.text for line in lines if line.drop == drop and line.entry is None]
        assert len(broken) == 2
        assert all(text.startswith('{"insertId":') and text == text.strip() for text in broken)


def test_every_drop_has_the_flaws_that_rules_look_for(parsed: list[Line]) -> None:
    for drop in (1, 2, 3):
        payloads = [line.payload for line in parsed if line.drop == drop]
        entries = [line.entry or {} for line in parsed if line.drop == drop]

        def some(field: str, *values: Any, payloads: list[dict[str, Any]] = payloads) -> bool:
            return any(payload.get(field) in values for payload in payloads)

        assert some("event_id", None)
        assert some("event_type", None)
        assert some("event_datetime", "n/a", None, "2026-02-30T25:61:00.000Z")
        assert some("rating", 0, 6, -1, 99)
        assert some("wait_seconds", -1, -30)
        assert some("channel", "fax", "kiosk", "Chat")
        of_type = [p for p in payloads if p.get("event_type") in ("message_received", "message_sent")]
        assert any(p.get("conversation_id") is None for p in of_type)
        assert any(p.get("channel") is None for p in of_type)
        assert any(p.get("body_chars") is None for p in of_type)
        assert any(entry["severity"] in ("CRITICAL", "TRACE", "info", None) for entry in entries)


def test_conversations_have_one_coherent_life(parsed: list[Line]) -> None:
    stories: dict[str, dict[str, tuple[datetime, str]]] = {}
    for line in parsed:
        conversation = line.payload.get("conversation_id")
        if conversation and line.payload.get("event_type"):
            assert line.entry is not None
            stories.setdefault(conversation, {})[line.entry["insertId"]] = (line.timestamp, line.payload["event_type"])
    finished = 0
    for story in stories.values():
        steps = [step for _, step in sorted(story.values())]
        assert steps.count("conversation_started") <= 1
        assert steps.count("conversation_closed") <= 1
        if steps[0] == "conversation_started" and "conversation_closed" in steps:
            finished += 1
            after = set(steps[steps.index("conversation_closed") + 1 :])
            assert after <= {"survey_sent", "survey_answered"}
    assert finished > 0.6 * len(stories)


def test_conversations_go_on_in_the_next_drop(parsed: list[Line]) -> None:
    drops: dict[str, set[int]] = {}
    for line in parsed:
        if line.payload.get("conversation_id"):
            drops.setdefault(line.payload["conversation_id"], set()).add(line.drop)
    assert sum(seen == {1, 2} for seen in drops.values()) >= 10
    assert sum(seen == {2, 3} for seen in drops.values()) >= 10


def test_stale_entries_lie_three_days_behind_in_the_last_drop(sample: Path, tmp_path: Path) -> None:
    generate(tmp_path, rows=2000, seed=42)
    generate(tmp_path, rows=1000, seed=42, drops=2, append=True, beyond_watermark=True)
    found = [line for line in landed(tmp_path) if line.entry]
    newest = max(line.timestamp for line in found if line.drop < 3)
    stale = [line for line in found if line.drop == 3 and line.timestamp < newest - timedelta(hours=12)]
    assert len(stale) == 5
    assert all(newest - line.timestamp > timedelta(hours=71) for line in stale)


def test_a_small_drop_after_a_large_one_still_has_stories_of_its_own(tmp_path: Path) -> None:
    generate(tmp_path, rows=10_000, seed=1)
    generate(tmp_path, rows=200, seed=1, append=True)
    added = [line.payload.get("event_type") for line in landed(tmp_path) if line.drop == 2 and line.entry]
    assert added.count("conversation_started") >= 3


# --- the contract as data


def test_silver_columns_are_those_of_the_contract_page() -> None:
    rows = re.findall(r"^\| (\w+) \| (\w+ [A-Z]+(?:, \w+ [A-Z]+)*) \|$", CONTRACT_PAGE.read_text(), re.MULTILINE)
    on_page = {table: [tuple(column.split()) for column in columns.split(", ")] for table, columns in rows}
    assert on_page == {table: list(columns.items()) for table, columns in SILVER_OWN.items()}
