"""Timestamps far from today, in tables of an older Lakelet, whose files hold them as INT96 (docs/semantics/storage.md, ST-12)."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from lakelet.inspection.inspector import read_arrow, read_rows
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

MOMENTS = [
    datetime(1, 1, 1, tzinfo=timezone.utc),
    datetime(2024, 2, 3, 4, 5, 6, 789012, timezone.utc),
    datetime(9999, 12, 31, tzinfo=timezone.utc),
]


def test_int96_timestamps_are_read_over_the_whole_calendar(tmp_path):
    path = tmp_path / "tables/main/default/t"
    path.mkdir(parents=True)
    rows = pa.table(
        {"at": pa.array(MOMENTS, pa.timestamp("us", "UTC")), "all": pa.array([[m] for m in MOMENTS], pa.list_(pa.timestamp("us", "UTC")))}
    )
    write_deltalake(str(path), rows)
    (file,) = path.glob("*.parquet")
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)  # as Spark writes by default
    (log,) = path.glob("_delta_log/*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = file.stat().st_size
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    storage = Storage(tmp_path)
    storage.save(StorageRegistry(datasets={"main.default.t": StoredDataset("main.default.t", "streaming_table", "tables/main/default/t")}))
    shown = ["0001-01-01T00:00:00Z", "2024-02-03T04:05:06.789012Z", "9999-12-31T00:00:00Z"]
    assert sorted(row["at"] for row in read_rows(tmp_path, "t").rows) == shown
    assert sorted(row["all"][0] for row in read_rows(tmp_path, "t").rows) == shown
    assert sorted(m.year for m in read_arrow(tmp_path, "t").read_all()["at"].to_pylist()) == [1, 2024, 9999]
