"""Compares what a pipeline made of a sample with what the oracle expects. Reads tables only through the caller's function."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sampledata.compare import Difference, comparable, compare_columns, compare_facts, compare_rows, facts_of, rows_of
from sampledata.contract import LOGS, PRESENCE_ONLY, RAW, TABLES, Columns
from sampledata.layout import EXPECTATIONS_FILE, FACTS_FILE, expected_of

# A reader instead of a table lets the caller hand in a table that does not fit into memory.
ReadTable = Callable[[str], "pa.Table | pa.RecordBatchReader"]


@dataclass(frozen=True)
class ExpectedCounts:
    """Counts over all drops up to one.

    Attributes:
        rules: (table, rule) to (passed, failed); rows before dropping, a NULL counts as failed.
        dropped: table to rows that broke a rule whose action is drop.
        lines: landed lines.
        broken_lines: lines that are not JSON.
        rescued_rows: rows of `router_logs_raw` with `_rescued_data`, broken lines included.
        rescued_values: payload field to values of another JSON type than its column.
        duplicates: redelivered entries left out of `router_logs`.
        watermark_dropped: entries left out of `router_logs` because they lie behind the watermark.
    """

    rules: Mapping[tuple[str, str], tuple[int, int]]
    dropped: Mapping[str, int]
    lines: int
    broken_lines: int
    rescued_rows: int
    rescued_values: Mapping[str, int]
    duplicates: int
    watermark_dropped: int


def expected_counts(sample: Path, drop: int | None = None) -> ExpectedCounts:
    """The counts that a pipeline must report after `drop`; None means the newest landed one.

    Raises:
        SampleError: if the sample has no expected results for that drop.
    """
    stored = _read_json(expected_of(sample, drop) / EXPECTATIONS_FILE)
    rules = {
        (table, rule): (counts["passed"], counts["failed"]) for table, judged in stored["rules"].items() for rule, counts in judged.items()
    }
    plain = ("dropped", "lines", "broken_lines", "rescued_rows", "rescued_values", "duplicates", "watermark_dropped")
    return ExpectedCounts(rules, **{name: stored[name] for name in plain})


def check(sample: Path, read_table: ReadTable, *, drop: int | None = None) -> list[Difference]:
    """Compare every table of the contract with the expected one.

    Args:
        sample: the sample's folder, with expected results.
        read_table: unqualified table name to its content. A missing table raises KeyError or FileNotFoundError.
        drop: compare with the result after this drop; None means the newest landed one.

    Returns:
        All differences, in the order of the contract's tables; empty if everything is as expected.

    Raises:
        SampleError: if the sample has no expected results for that drop.
    """
    folder = expected_of(sample, drop)
    facts = _read_json(folder / FACTS_FILE)["tables"]
    counts = expected_counts(sample, drop)
    differences: list[Difference] = []
    for table, columns in TABLES.items():
        actual = _read(read_table, table)
        if actual is None:
            differences.append(Difference(table, "missing_table", "the table is missing"))
            continue
        rows = folder / f"{table}.parquet"
        if rows.is_file():
            differences.extend(_check_rows(table, columns, pq.read_table(rows), actual))
        else:
            differences.extend(_check_facts(table, facts[table], counts, actual))
    return differences


def check_expectations(
    sample: Path,
    counts: Mapping[tuple[str, str], tuple[int, int]],
    dropped: Mapping[str, int],
    drop: int | None = None,
) -> list[Difference]:
    """Compare the counts of the event log with the expected ones.

    Args:
        sample: the sample's folder, with expected results.
        counts: (unqualified table, rule) to (passed, failed), over all updates so far. A rule without entry counts as (0, 0).
        dropped: unqualified table to dropped rows, over all updates so far. A table without entry counts as 0.
        drop: compare with the counts after this drop; None means the newest landed one.

    Returns:
        All differences. Tables that the contract does not know are left alone.
    """
    expected = expected_counts(sample, drop)
    differences = []
    for (table, rule), wanted in expected.rules.items():
        found = tuple(counts.get((table, rule), (0, 0)))
        if found != wanted:
            message = f"rule {rule}: {found[0]} passed and {found[1]} failed, expected {wanted[0]} passed and {wanted[1]} failed"
            differences.append(Difference(table, "expectation", message))
    for table, rule in counts:
        if table in TABLES and (table, rule) not in expected.rules:
            near = difflib.get_close_matches(rule, [name for of, name in expected.rules if of == table])
            hint = f"; did you mean {near[0]}?" if near else ""
            differences.append(Difference(table, "expectation", f"rule {rule} is not in the contract{hint}"))
    for table, wanted_rows in expected.dropped.items():
        if dropped.get(table, 0) != wanted_rows:
            message = f"{dropped.get(table, 0)} rows dropped, expected {wanted_rows}"
            differences.append(Difference(table, "dropped", message))
    return differences


def _read(read_table: ReadTable, table: str) -> pa.Table | pa.RecordBatchReader | None:
    try:
        return read_table(table)
    except (KeyError, FileNotFoundError):
        return None


def _batches(table: pa.Table | pa.RecordBatchReader) -> Iterable[pa.RecordBatch]:
    batches: Iterable[pa.RecordBatch] = table.to_batches() if isinstance(table, pa.Table) else table
    return batches


def _check_rows(table: str, columns: Columns, expected: pa.Table, actual: pa.Table | pa.RecordBatchReader) -> Iterator[Difference]:
    yield from compare_columns(table, columns, actual.schema)
    shared = comparable(columns, actual.schema)
    yield from compare_rows(table, shared, rows_of(shared, expected.to_batches()), rows_of(shared, _batches(actual)))


def _check_facts(
    table: str, expected: dict[str, Any], counts: ExpectedCounts, actual: pa.Table | pa.RecordBatchReader
) -> Iterator[Difference]:
    columns: Columns = {name: facts["type"] for name, facts in expected["columns"].items()}
    if table in (RAW, LOGS):
        # a column that has not landed yet need not be there
        columns = {name: kind for name, kind in columns.items() if name in actual.schema.names or expected["columns"][name]["non_null"]}
    yield from compare_columns(table, columns, actual.schema)
    shared = comparable(columns, actual.schema)
    if table in (RAW, LOGS) and not _types_from_first_drop(actual.schema, counts):
        shared.pop(PRESENCE_ONLY, None)
    groups = [name for name in expected["group_by"] if name in shared]
    found = facts_of(shared, groups if groups == expected["group_by"] else (), _batches(actual))
    yield from compare_facts(table, expected, found)


def _types_from_first_drop(schema: pa.Schema, counts: ExpectedCounts) -> bool:
    """Whether every field that drifts later still has the type that the first drop showed.

    If several drops were ingested at once, such a field was inferred as STRING, and its drifted values needed no rescue.
    """
    payload = schema.field("jsonPayload").type if "jsonPayload" in schema.names else None
    if payload is None or not pa.types.is_struct(payload):
        return not counts.rescued_values
    fields = {payload.field(i).name: payload.field(i).type for i in range(payload.num_fields)}
    return not any(pa.types.is_string(fields[name]) for name in counts.rescued_values if name in fields)


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content
