"""Real Windows event logs through a whole pipeline: one file per update, equal records once, one table per kind of event, nothing lost."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.testing.loading import load_file
from tests.paths import ROOT
from tests.spark.autoloader.test_autoloader_real_data import DATA, facts, text_of, unpack

PIPELINE = ROOT / "tests" / "spark" / "pipelines" / "windows_events.py"
ADDED = ("event_type", "record_hash")
pytestmark = [pytest.mark.real_data, pytest.mark.slow, pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not on this machine")]

Records = list[dict[str, Any]]


def records_of(path: Path) -> dict[str, Records]:
    """The distinct lines of a file, parsed, by kind of event."""
    found = defaultdict(list)
    for line in dict.fromkeys(path.read_text(encoding="utf-8").split("\n")):
        if line.strip():
            record = json.loads(line)
            found[f"{record['Channel'].lower()}/{record['EventID']}"].append(record)
    return found


def stored(folder: Path) -> pa.Table:
    """A Delta table that was only appended to, read without Spark or Delta: the log says which files and what their columns are called."""
    names: dict[str, str] = {}
    parts = []
    for log in sorted((folder / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for metadata in (a["metaData"] for a in actions if "metaData" in a):
            fields = json.loads(metadata["schemaString"])["fields"]
            names |= {f["metadata"].get("delta.columnMapping.physicalName", f["name"]): f["name"] for f in fields}
        for added in (a["add"] for a in actions if "add" in a):
            part = pq.read_table(folder / unquote(added["path"]), partitioning=None)
            part = part.rename_columns([names[name] for name in part.column_names])
            for name, value in added["partitionValues"].items():
                if names[name] not in part.column_names:  # files of a table with mapped columns hold it too
                    part = part.append_column(names[name], pa.array([value] * len(part)))
            parts.append(part)
    return pa.concat_tables(parts, promote_options="default")


def stored_records(table: pa.Table) -> Records:
    """The rows as records: values of columns, and what was rescued beside them."""
    columns = {name: table[name].to_pylist() for name in table.column_names if name not in ADDED}
    rescued = columns.pop("_rescued_data")
    return [
        {**{name: values[i] for name, values in columns.items() if values[i] is not None}, **json.loads(rescued[i] or "{}")}
        for i in range(len(table))
    ]


def per_key(records: Records) -> Counter[str]:
    return Counter(key for record in records for key, value in record.items() if value is not None)


def test_every_record_and_value_of_three_recordings_arrives_in_the_table_of_its_kind(project: Any, spark: Any, tmp_path: Path) -> None:
    tables = load_file(PIPELINE, spark=spark).module.TABLES  # table by kind of event
    assert len(set(tables.values())) == len(tables) >= 60
    staged = tmp_path / "staged"
    staged.mkdir()
    p = project()
    p.files = [PIPELINE]
    expected: dict[str, Records] = defaultdict(list)
    for path in unpack(staged):
        arrived = records_of(path)
        os.rename(path, p.landing / path.name)
        p.run()
        ran = {kind for kind, name in tables.items() if p.statuses()[name] == "COMPLETED"}
        assert ran == (set(arrived) & set(tables) if expected else set(tables))  # after its first start only files of its own kind start it
        for kind, records in arrived.items():
            expected[kind] += records

    assert len(stored(p.path("bronze"))) == 103_591
    events = stored_records(stored(p.path("events")))
    everything = [record for records in expected.values() for record in records]
    assert len(events) == len(everything) == 101_625
    assert Counter(facts(r.items()) for r in events) == Counter(facts(r.items()) for r in everything)
    for kind, name in tables.items():
        found = stored_records(stored(p.path(name)))
        assert per_key(found) == per_key(expected[kind]), kind
        assert {text_of(r["EventID"]) for r in found} == {kind.rsplit("/", 1)[1]}

    assert {"Default SD String:", "Sent UpdateServer"} <= set(per_key(events))  # they switched column mapping on
    # keys that differ by case alone: one is the column, the other was kept beside it
    columns, kept = set(stored(p.path("bronze")).column_names), per_key(events)
    for one, other in (("LogonId", "LogonID"), ("ProcessId", "ProcessID"), ("IpAddress", "Ipaddress"), ("port", "Port")):
        assert len(columns & {one, other}) == 1
        assert min(kept[one], kept[other]) > 0
