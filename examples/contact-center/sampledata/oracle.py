"""The right content of every table after each drop, computed from the landed files in plain Python.

Written from docs/system-a.md alone: it shares nothing with the pipeline, and reads lines like any other consumer.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sampledata.agents import AgentState
from sampledata.contract import (
    BRONZE,
    LOGS,
    NOT_COMPARED,
    QUARANTINE,
    RAW,
    RULES,
    SILVER,
    SILVER_OWN,
    TABLES,
    WATERMARK_MICROS,
    Columns,
    Row,
    arrow_schema,
)
from sampledata.facts import TableFacts
from sampledata.gold import DAY_MICROS, GoldState
from sampledata.layout import EXPECTATIONS_FILE, FACTS_FILE, agent_path, expected_folder, landed_drops
from sampledata.parsing import as_micros, as_text, drifted_fields, own_values, parse_line

FORMAT = 1
SILVER_ROWS_KEPT = 200_000
_BUFFER = 1_000


def write_expected(sample: Path, *, silver_rows_kept: int = SILVER_ROWS_KEPT) -> tuple[Path, ...]:
    """Compute the right answer after every landed drop and write it below `sample/expected`, replacing what is there.

    Args:
        sample: folder that holds `landing/router_logs`.
        silver_rows_kept: silver tables are written row by row up to so many rows in total, else as facts only.

    Returns:
        The folders written, one per drop.

    Raises:
        SampleError: if no file has landed.
    """
    oracle = Oracle(silver_rows_kept)
    folders = []
    for drop, files in landed_drops(sample).items():
        oracle.read_drop(files)
        if (changes := agent_path(sample, drop)).is_file():
            oracle.agents.read(changes)
        folders.append(oracle.write(expected_folder(sample, drop), drop))
    return tuple(folders)


class Oracle:
    """Everything the tables hold after the drops read so far."""

    def __init__(self, silver_rows_kept: int = SILVER_ROWS_KEPT) -> None:
        self._silver_rows, self._silver_rows_kept = 0, silver_rows_kept
        self._raw = _StreamingTable(RAW, BRONZE[RAW])
        self._quarantine = _StreamingTable(QUARANTINE, BRONZE[QUARANTINE], keeps_rows=True)
        log_columns = {name: kind for name, kind in BRONZE[LOGS].items() if name not in NOT_COMPARED[LOGS]}
        self._logs = _StreamingTable(LOGS, log_columns, groups=("event_date", "event_type"))
        self._silver = {table: _StreamingTable(table, columns, keeps_rows=True) for table, columns in SILVER.items()}
        self._gold = GoldState()
        self.agents = AgentState()
        self._seen = _SeenIds()
        self._newest: int | None = None
        self._watermark: int | None = None
        self._counts: Counter[str] = Counter(broken_lines=0, rescued_rows=0, duplicates=0, watermark_dropped=0)
        self._rescued: Counter[str] = Counter()

    def read_drop(self, files: Iterable[Path]) -> None:
        """Take in one drop, as one update would: the watermark stands where the drops before left it."""
        if self._newest is not None:
            self._watermark = self._newest - WATERMARK_MICROS
            self._seen.next_drop(self._watermark)
        for path in files:
            with path.open("rb") as lines:
                for line in lines:
                    if line.strip():
                        self._read_line(line.rstrip(b"\r\n"), path.name)
        for table in self._streaming_tables():
            table.flush()

    def write(self, folder: Path, drop: int) -> Path:
        """Write the state after the drop as files of `folder`; an existing folder is replaced as a whole."""
        hidden = folder.with_name(f".{folder.name}")
        shutil.rmtree(hidden, ignore_errors=True)
        hidden.mkdir(parents=True)
        for table in self._streaming_tables():
            if table.chunks is not None:
                _write_table(hidden, table.name, pa.Table.from_batches(table.chunks, arrow_schema(table.columns)))
        gold = self._gold.tables()
        for name, rows in {**gold, **self.agents.tables(gold["agent_daily"])}.items():
            _write_table(hidden, name, _arrow_rows(rows, TABLES[name]))
        _write_json(hidden / FACTS_FILE, {"format": FORMAT, "drop": drop, "tables": self._facts()})
        _write_json(hidden / EXPECTATIONS_FILE, {"format": FORMAT, "drop": drop, **self._expectations()})
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(hidden, folder)
        return folder

    # --- one line on its way through bronze and silver

    def _read_line(self, line: bytes, source_file: str) -> None:
        entry = parse_line(line)
        payload = None if entry is None else entry.get("jsonPayload")
        payload = payload if isinstance(payload, dict) else None
        drifted = drifted_fields(payload) if payload else []
        row = _landed_row(entry or {}, payload, source_file, rescued=entry is None or bool(drifted))
        self._counts["broken_lines"] += entry is None
        self._counts["rescued_rows"] += row["_rescued_data"] is not None
        self._rescued.update(drifted)
        self._raw.offer(row)
        if row["insertId"] is None or row["timestamp"] is None:
            raw_line = line.decode(errors="replace") if entry is None else None
            self._quarantine.offer({"source_file": source_file, "raw_line": raw_line})
            return
        self._read_parsed(row, payload or {})

    def _read_parsed(self, row: dict[str, Any], payload: dict[str, Any]) -> None:
        timestamp = row["timestamp"]
        self._newest = timestamp if self._newest is None else max(self._newest, timestamp)
        if self._watermark is not None and timestamp <= self._watermark:
            self._counts["watermark_dropped"] += 1
            return
        if not self._seen.add(row["insertId"], timestamp):
            self._counts["duplicates"] += 1
            return
        event_type = as_text(payload.get("event_type"))
        row["event_type"], row["event_date"] = event_type, timestamp // DAY_MICROS
        if self._logs.offer(row) and event_type in self._silver:
            self._read_event(event_type, row, payload)

    def _read_event(self, table: str, row: Row, payload: dict[str, Any]) -> None:
        silver = {
            "event_id": as_text(payload.get("event_id")),
            "event_at": as_micros(payload.get("event_datetime")),
            "event_date": row["event_date"],
            "insert_id": row["insertId"],
            **own_values(payload, SILVER_OWN[table]),
        }
        if self._silver[table].offer(silver):
            self._gold.take(table, silver)
            self._count_silver_row()

    def _count_silver_row(self) -> None:
        self._silver_rows += 1
        if self._silver_rows == self._silver_rows_kept + 1:
            for table in self._silver.values():
                table.chunks = None

    # --- results

    def _streaming_tables(self) -> tuple[_StreamingTable, ...]:
        return (self._raw, self._quarantine, self._logs, *self._silver.values())

    def _facts(self) -> dict[str, Any]:
        return {table.name: table.facts.as_json() for table in self._streaming_tables()}

    def _expectations(self) -> dict[str, Any]:
        tables = self._streaming_tables()
        return {
            "rules": {table.name: table.judged() for table in tables},
            "dropped": {table.name: table.dropped for table in tables},
            "lines": self._raw.facts.rows,
            **self._counts,
            "rescued_values": dict(sorted(self._rescued.items())),
        }


class _StreamingTable:
    """One streaming table: judges rows by its rules, keeps facts about those it keeps, and the rows too if asked to."""

    def __init__(self, name: str, columns: Columns, *, keeps_rows: bool = False, groups: Sequence[str] = ()) -> None:
        self.name, self.columns = name, columns
        self.facts = TableFacts(columns, groups)
        self.chunks: list[pa.RecordBatch] | None = [] if keeps_rows else None
        self.offered = self.dropped = 0
        self._rules = RULES[name]
        self._failed = dict.fromkeys((rule.name for rule in self._rules), 0)
        self._buffer: list[Row] = []

    def offer(self, row: Row) -> bool:
        """Count the row under every rule; keep it unless it breaks one that drops. Returns whether it was kept."""
        self.offered += 1
        kept = True
        for rule in self._rules:
            if not rule.holds(row):
                self._failed[rule.name] += 1
                kept = kept and not rule.drops
        if not kept:
            self.dropped += 1
            return False
        self._buffer.append(row)
        if len(self._buffer) >= _BUFFER:
            self.flush()
        return True

    def flush(self) -> None:
        values = {name: [row[name] for row in self._buffer] for name in self.columns}
        self.facts.add(len(self._buffer), values)
        if self.chunks is not None and self._buffer:
            self.chunks.append(pa.RecordBatch.from_pydict(values, schema=arrow_schema(self.columns)))
        self._buffer.clear()

    def judged(self) -> dict[str, Any]:
        """Per rule what happens to violating rows, and how many rows passed and failed."""
        return {
            rule.name: {
                "action": "drop" if rule.drops else "warn",
                "passed": self.offered - self._failed[rule.name],
                "failed": self._failed[rule.name],
            }
            for rule in self._rules
        }


class _SeenIds:
    """The ids seen so far, forgotten drop by drop once the watermark has passed everything the drop brought."""

    def __init__(self) -> None:
        self._drops: list[tuple[int, set[str]]] = []
        self._newest, self._ids = 0, set[str]()

    def add(self, insert_id: str, timestamp: int) -> bool:
        """Whether the id is new."""
        if insert_id in self._ids or any(insert_id in ids for _, ids in self._drops):
            return False
        self._ids.add(insert_id)
        self._newest = max(self._newest, timestamp)
        return True

    def next_drop(self, watermark: int) -> None:
        self._drops.append((self._newest, self._ids))
        self._drops = [(newest, ids) for newest, ids in self._drops if newest > watermark]
        self._newest, self._ids = 0, set()


def _landed_row(entry: dict[str, Any], payload: dict[str, Any] | None, source_file: str, *, rescued: bool) -> dict[str, Any]:
    """The row of `router_logs_raw`. Of what is only compared by presence, True stands for the value."""
    return {
        "insertId": as_text(entry.get("insertId")),
        "timestamp": as_micros(entry.get("timestamp")),
        "receiveTimestamp": as_micros(entry.get("receiveTimestamp")),
        "logName": as_text(entry.get("logName")),
        "severity": as_text(entry.get("severity")),
        "resource": _present(entry.get("resource")),
        "labels": _present(entry.get("labels")),
        "jsonPayload": _present(payload),
        "trace": as_text(entry.get("trace")),
        "_rescued_data": True if rescued else None,
        "source_file": source_file,
    }


def _present(value: Any) -> bool | None:
    return True if isinstance(value, dict) else None


def _arrow_rows(rows: Sequence[tuple[Any, ...]], columns: Columns) -> pa.Table:
    schema = arrow_schema(columns)
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    return pa.table([pa.array(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema)


def _write_table(folder: Path, name: str, table: pa.Table) -> None:
    pq.write_table(table, folder / f"{name}.parquet", compression="zstd")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")
