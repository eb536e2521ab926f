"""A copy of examples/web, and the comparison of its tables with what the files that landed say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from lakelet.testing.row_comparison import rows_of
from tests.oracles.web import TABLES, differences
from tests.paths import ROOT

KEY = "only for the example: 32 bytes"
TYPES = {
    "event_time": "timestamp",
    "event_date": "date",
    "duration_ms": "integer",
    "amount": "decimal(10,2)",
    "person": "string",
}


def copied(folder: Path) -> Path:
    """The example without data."""
    shutil.copytree(ROOT / "examples" / "web", folder, ignore=shutil.ignore_patterns("__pycache__", "landing", ".lakelet"))
    return folder


def table(project: Path, name: str) -> DeltaTable:
    (place,) = {path.parent for path in (project / ".lakelet").rglob("_delta_log") if path.parent.name.split("-")[0] == name}
    return DeltaTable(str(place))


def rows(project: Path, name: str) -> list[dict[str, Any]]:
    return rows_of(table(project, name).to_pyarrow_table())


def check(project: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table equals what the files that have arrived say; returns their rows."""
    events = table(project, "web_events")
    assert events.metadata().partition_columns == ["event_date"]
    kinds = {field.name: getattr(field.type, "type", None) for field in events.schema().fields}
    assert {name: kinds[name] for name in TYPES} == TYPES
    found = {name: rows(project, name) for name in TABLES}
    assert all(found.values()), "a table is empty"
    assert differences(found, project / "landing", KEY) == []
    return found
