"""The comparison: silent on what is right, precise about what is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sampledata import Difference, SampleError, check, check_expectations, expected_counts, generate, write_expected
from sampledata.contract import TABLES
from tests.paths import ROOT

Tables = dict[str, pa.Table]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample")
    generate(out, rows=1200, seed=8, drops=2)
    write_expected(out)
    return out


@pytest.fixture(scope="module")
def right(sample: Path) -> Tables:
    """All tables as a correct pipeline would leave them after the second drop."""
    stored = {path.stem: pq.read_table(path) for path in (sample / "expected" / "drop_002").glob("*.parquet")}
    return {**stored, **bronze(sample)}


@pytest.fixture
def facts_only(sample: Path, tmp_path: Path) -> Path:
    """The same sample, with silver tables expected by facts instead of rows."""
    shutil.copytree(sample / "landing", tmp_path / "landing")
    write_expected(tmp_path, silver_rows_kept=0)
    return tmp_path


def bronze(sample: Path) -> Tables:
    """The two large bronze tables, made from the landed lines in the plainest way."""
    raw: list[dict[str, Any]] = []
    for path in sorted((sample / "landing" / "router_logs").glob("*.json")):
        raw.extend(landed_row(text, path.name) for text in path.read_text().splitlines())
    logs: dict[str, dict[str, Any]] = {}
    for row in raw:
        if row["insertId"] and row["event_type"]:
            logs.setdefault(row["insertId"], {**row, "event_date": row["timestamp"].date()})
    return {
        "router_logs_raw": pa.Table.from_pylist(raw).drop_columns(["event_type"]),
        "router_logs": pa.Table.from_pylist(list(logs.values())),
    }


def landed_row(text: str, source_file: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except ValueError:
        entry = {}
    payload = entry.get("jsonPayload", {})
    chars = payload.get("body_chars")
    drifted = [v for v in payload.values() if v in ("n/a", "unknown", "pending")] and payload.get("event_datetime") != "n/a"
    return {
        "insertId": entry.get("insertId"),
        "timestamp": moment(entry.get("timestamp")),
        "receiveTimestamp": moment(entry.get("receiveTimestamp")),
        "logName": entry.get("logName"),
        "severity": entry.get("severity"),
        "resource": json.dumps(entry["resource"]) if "resource" in entry else None,
        "labels": json.dumps(entry["labels"]) if "labels" in entry else None,
        "trace": entry.get("trace"),
        "jsonPayload": {"body_chars": chars if isinstance(chars, int) else None} if entry else None,
        "event_type": payload.get("event_type"),
        "_rescued_data": "{}" if drifted or not entry else None,
        "source_file": source_file,
    }


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def changed(tables: Tables, table: str, new: pa.Table) -> Tables:
    return {**tables, table: new}


def with_value(table: pa.Table, column: str, row: int, value: Any) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    place = table.schema.get_field_index(column)
    return table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))


def only(differences: list[Difference]) -> Difference:
    assert len(differences) == 1, [str(d) for d in differences]
    return differences[0]


# --- nothing wrong


def test_right_tables_show_no_difference(sample: Path, facts_only: Path, right: Tables) -> None:
    assert check(sample, right.__getitem__) == []
    assert check(facts_only, right.__getitem__) == []


def test_row_order_chunks_string_kinds_and_time_units_mean_nothing(sample: Path, right: Tables) -> None:
    def shuffled(name: str) -> pa.RecordBatchReader:
        table = right[name].take(list(reversed(range(right[name].num_rows))))
        fields = []
        for field in table.schema:
            kind = pa.large_string() if pa.types.is_string(field.type) else field.type
            fields.append(pa.field(field.name, pa.timestamp("ns", tz="Europe/Berlin") if pa.types.is_timestamp(kind) else kind))
        return table.cast(pa.schema(fields)).to_reader(max_chunksize=100)

    assert check(sample, shuffled) == []


def test_floats_within_the_tolerance_are_equal(sample: Path, right: Tables) -> None:
    deflection = right["assistant_deflection"]
    confidence = deflection["avg_confidence"].to_pylist()[0]
    near = with_value(deflection, "avg_confidence", 0, confidence * (1 + 1e-12))
    far = with_value(deflection, "avg_confidence", 0, confidence * (1 + 1e-6))
    assert check(sample, changed(right, "assistant_deflection", near).__getitem__) == []
    assert only(check(sample, changed(right, "assistant_deflection", far).__getitem__)).kind == "different_row"


def test_an_earlier_drop_can_be_asked_for(sample: Path, right: Tables) -> None:
    first = {path.stem: pq.read_table(path) for path in (sample / "expected" / "drop_001").glob("*.parquet")}
    found = check(sample, {**right, **first}.__getitem__, drop=1)
    assert {difference.table for difference in found} == {"router_logs_raw", "router_logs"}


# --- one thing wrong


def test_a_changed_value_is_shown_with_its_key(sample: Path, right: Tables) -> None:
    closed = right["conversation_closed"]
    key = closed["insert_id"].to_pylist()[3]
    wrong = changed(right, "conversation_closed", with_value(closed, "handle_seconds", 3, 123_456))
    difference = only(check(sample, wrong.__getitem__))
    assert (difference.table, difference.kind) == ("conversation_closed", "different_row")
    before = closed["handle_seconds"].to_pylist()[3]
    expected = "NULL" if before is None else before
    assert difference.message == f"1 row(s) differ\n  insert_id={key!r}: handle_seconds is 123456, expected {expected}"


def test_a_changed_time_is_shown_as_a_time(sample: Path, right: Tables) -> None:
    hourly = right["workforce_hourly"]
    late = hourly["hour"].to_pylist()[0] + timedelta(minutes=30)
    wrong = changed(right, "workforce_hourly", with_value(hourly, "hour", 0, late))
    missing, unexpected = check(sample, wrong.__getitem__)
    assert (missing.kind, unexpected.kind) == ("missing_row", "unexpected_row")
    assert "hour=2026-03-01T08:00:00+00:00, channel=" in missing.message
    assert "hour=2026-03-01T08:30:00+00:00, channel=" in unexpected.message


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("message_sent", "sender_kind", "robot"),
        ("message_sent", "response_seconds", 7_777),
        ("appointment_booked", "price", 0.01),
        ("conversation_started", "event_at", datetime(2020, 1, 1, tzinfo=timezone.utc)),
        ("router_logs_raw", "insertId", "another"),
        ("router_logs", "timestamp", datetime(2020, 1, 1, tzinfo=timezone.utc)),
        ("router_logs", "trace", "another"),
    ],
)
def test_a_changed_value_shows_in_the_facts(facts_only: Path, right: Tables, table: str, column: str, value: Any) -> None:
    row = right[table].num_rows - 1
    assert right[table][column].to_pylist()[row] is not None
    wrong = changed(right, table, with_value(right[table], column, row, value))
    difference = only(check(facts_only, wrong.__getitem__))
    assert (difference.table, difference.kind) == (table, "facts")
    assert difference.message.startswith(f"column {column} holds other values than expected")


def test_a_value_that_became_null_shows_in_the_facts(facts_only: Path, right: Tables) -> None:
    wrong = changed(right, "survey_sent", with_value(right["survey_sent"], "survey_id", 0, None))
    total = right["survey_sent"].num_rows
    difference = only(check(facts_only, wrong.__getitem__))
    assert difference.message == f"column survey_id has {total - 1} values that are not NULL, expected {total}"


def test_doubled_and_lost_rows_are_shown(sample: Path, right: Tables) -> None:
    sent = right["survey_sent"]
    doubled = check(sample, changed(right, "survey_sent", pa.concat_tables([sent, sent.slice(0, 1)])).__getitem__)
    assert [d.kind for d in doubled] == ["row_count", "unexpected_row"]
    lost = check(sample, changed(right, "survey_sent", sent.slice(5)).__getitem__)
    assert [d.kind for d in lost] == ["row_count", "missing_row"]
    assert lost[0].message == f"{sent.num_rows - 5} rows, expected {sent.num_rows}"
    assert lost[1].message.startswith("5 expected row(s) missing (the first 3)\n")


def test_an_event_in_the_wrong_partition_is_shown(sample: Path, right: Tables) -> None:
    wrong = changed(right, "router_logs", with_value(right["router_logs"], "event_type", 0, "cache_miss"))
    found = check(sample, wrong.__getitem__)
    assert [d.kind for d in found] == ["facts", "facts"]
    assert "2 group(s) of another size\n  event_date=2026-03-01, event_type='cache_miss'" in found[1].message


def test_missing_tables_and_columns_wrong_types_and_extra_columns(sample: Path, right: Tables) -> None:
    wrong = {name: table for name, table in right.items() if name != "survey_sent"}
    wrong["message_failed"] = right["message_failed"].drop_columns(["exception_class"])
    ratings = right["survey_answered"]
    place = ratings.schema.get_field_index("rating")
    wrong["survey_answered"] = ratings.set_column(place, "rating", ratings["rating"].cast(pa.int32()))
    wrong["agent_daily"] = right["agent_daily"].append_column("mood", pa.nulls(right["agent_daily"].num_rows, pa.string()))
    wrong["router_logs"] = right["router_logs"].append_column("more", pa.nulls(right["router_logs"].num_rows, pa.string()))
    assert [str(difference) for difference in check(sample, wrong.__getitem__)] == [
        "message_failed: column exception_class STRING is missing",
        "survey_sent: the table is missing",
        "survey_answered: column rating has type int32, expected BIGINT",
        "agent_daily: column mood is not in the contract",
    ]


def test_rescued_rows_count_unless_the_field_was_inferred_as_text(sample: Path, right: Tables) -> None:
    counts = expected_counts(sample)
    assert counts.rescued_rows > counts.broken_lines
    raw = right["router_logs_raw"]
    place = raw.schema.get_field_index("_rescued_data")
    only_broken = pc.if_else(pc.is_null(raw["insertId"]), "{}", pa.scalar(None, pa.string()))
    wrong = raw.set_column(place, "_rescued_data", only_broken)
    found = only(check(sample, changed(right, "router_logs_raw", wrong).__getitem__))
    assert found.message == f"column _rescued_data has {counts.broken_lines} values that are not NULL, expected {counts.rescued_rows}"
    drifting = next(iter(counts.rescued_values))
    payload = [None if broken else {drifting: "n/a"} for broken in pc.is_null(raw["insertId"]).to_pylist()]
    as_text = wrong.set_column(raw.schema.get_field_index("jsonPayload"), "jsonPayload", pa.array(payload))
    assert check(sample, changed(right, "router_logs_raw", as_text).__getitem__) == []


def test_errors_other_than_an_unknown_table_are_not_swallowed(sample: Path) -> None:
    def unknown(name: str) -> pa.Table:
        raise FileNotFoundError(name)

    def broken(name: str) -> pa.Table:
        raise RuntimeError(f"cannot read {name}")

    assert {difference.kind for difference in check(sample, unknown)} == {"missing_table"}
    with pytest.raises(RuntimeError, match="cannot read"):
        check(sample, broken)


# --- expectation counts


def test_right_counts_show_no_difference(sample: Path) -> None:
    counts = expected_counts(sample)
    assert check_expectations(sample, counts.rules, counts.dropped) == []
    occurring: Mapping[tuple[str, str], tuple[int, int]] = {key: count for key, count in counts.rules.items() if count != (0, 0)}
    assert check_expectations(sample, occurring, {table: n for table, n in counts.dropped.items() if n}) == []
    assert check_expectations(sample, {**counts.rules, ("elsewhere", "rule"): (1, 1)}, {**counts.dropped, "elsewhere": 4}) == []


def test_wrong_counts_are_shown(sample: Path) -> None:
    counts = expected_counts(sample)
    passed, failed = counts.rules["message_sent", "has_event_id"]
    rules = {**counts.rules, ("message_sent", "has_event_id"): (passed + 1, failed), ("survey_answered", "rating_in_rang"): (1, 0)}
    dropped = {**counts.dropped, "router_logs": 0}
    assert [str(difference) for difference in check_expectations(sample, rules, dropped)] == [
        f"message_sent: rule has_event_id: {passed + 1} passed and {failed} failed, expected {passed} passed and {failed} failed",
        "survey_answered: rule rating_in_rang is not in the contract; did you mean rating_in_range?",
        f"router_logs: 0 rows dropped, expected {counts.dropped['router_logs']}",
    ]
    assert len(check_expectations(sample, counts.rules, counts.dropped, drop=1)) > 20


def test_a_drop_without_expected_results_is_refused(sample: Path) -> None:
    with pytest.raises(SampleError, match="no expected results after drop 7"):
        check(sample, {}.__getitem__, drop=7)


# --- the two commands


def command(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(ROOT / "examples/contact-center" / name), *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def test_the_commands_write_a_sample_and_compare_stored_tables_with_it(tmp_path: Path) -> None:
    written = command(tmp_path, "generate.py", "sample", "--rows", "400", "--drops", "2")
    assert written.stdout.splitlines() == [
        "drop 1: 200 lines in 2 files",
        "drop 2: 200 lines in 2 files",
        "Wrote sample/landing and sample/expected.",
    ]
    missing = command(tmp_path, "check.py", "sample")
    assert missing.returncode == 1
    assert missing.stdout.splitlines() == [f"{name}: the table is missing" for name in TABLES]
    assert missing.stderr == f"{len(TABLES)} tables below .lakelet differ from sample.\n"
    again = command(tmp_path, "generate.py", "sample")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr.splitlines()[0] == "sample is not empty"
