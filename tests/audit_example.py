"""examples/audit in a folder of its own, and its tables beside what the oracle computes from its files."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.oracles import audit as oracle
from tests.paths import ROOT

TABLES = ("events", "calls_daily", "denied_calls", "principals_daily", "sensitive_changes")
_JSON_TEXTS = {"request_parameters", "response_elements"}


def copied(folder: Path) -> Path:
    """The example without data."""
    shutil.copytree(ROOT / "examples" / "audit", folder, ignore=shutil.ignore_patterns("__pycache__", "landing", ".lakelet"))
    return folder


def table(project: Path, name: str) -> DeltaTable:
    return DeltaTable(str(project / ".lakelet" / "tables" / "main" / "audit" / name))


def _comparable(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return oracle.json_text(value) if name in _JSON_TEXTS else value


def sent(export: Path) -> Counter[tuple[Any, ...]]:
    """The sensitive changes in the files for others."""
    return _counted(pq.read_table(export / "sensitive_changes", coerce_int96_timestamp_unit="us"))


def _counted(found: pa.Table) -> Counter[tuple[Any, ...]]:
    names = [column for column in found.column_names if column != "source_file"]
    return Counter(tuple(_comparable(column, row[column]) for column in names) for row in found.to_pylist())


def check(project: Path) -> dict[str, Any]:
    """Every table equals what the oracle computes from all files that have arrived; returns that."""
    expected = oracle.expected(project / "landing")
    for name in TABLES:
        found, wanted = _counted(table(project, name).to_pyarrow_table()), Counter(map(tuple, expected[name]))
        assert found == wanted, f"{name}: too many {list((found - wanted).items())[:3]}, missing {list((wanted - found).items())[:3]}"
    apart = [row["record"] for row in table(project, "records_apart").to_pyarrow_table().to_pylist()]
    assert len([record for record in apart if record.endswith("}")]) == expected["rejected_records"]
    return expected
