"""What maintenance reports to the event log (MT-13, EL-24); the tables themselves are in `tests/spark/maintenance`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from lakelet.base.errors import LakeletError
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.language.model import Kind
from lakelet.maintenance.maintain import append_events
from lakelet.maintenance.results import Amount, MaintenanceResult
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

FAILED = MaintenanceResult(
    "main.shop.orders", Kind.STREAMING_TABLE, "file:///x", error=LakeletError("MAINTENANCE_FAILED", "its maintenance failed", why="no disk")
)
EMPTIED = MaintenanceResult("main.shop.old", Kind.STREAMING_TABLE, "file:///y", Amount(1, 9), Amount(1, 9), removed=Amount(3, 70))
LEFT = MaintenanceResult("main.shop.new", Kind.STREAMING_TABLE, "file:///z", Amount(1, 9), Amount(1, 9), why="there is one file")


def storage_of_two_pipelines(folder: Path) -> Storage:
    storage = Storage(folder)
    orders = StoredDataset("main.shop.orders", "streaming_table", "tables/main/shop/orders", owner="p-1")
    registry = StorageRegistry(
        "p-2", datasets={"main.shop.orders": orders}, pipelines={"p-1": PipelineIdentity("shop"), "p-2": PipelineIdentity("old")}
    )
    storage.save(registry)
    return storage


def test_each_table_that_was_changed_or_failed_is_told_of_with_its_pipeline_and_what_was_left_is_not(tmp_path: Path) -> None:
    storage = storage_of_two_pipelines(tmp_path)
    assert append_events(storage, [FAILED, LEFT, EMPTIED], "m-1") is None
    rows = [row for file in Path(str(storage.events)).glob("*.parquet") for row in pq.read_table(file, partitioning=None).to_pylist()]
    assert [(row["origin"]["dataset_name"], row["origin"]["pipeline_name"], row["level"], row["event_type"]) for row in rows] == [
        ("main.shop.orders", "shop", "ERROR", "maintenance_progress"),
        ("main.shop.old", "old", "INFO", "maintenance_progress"),
    ]
    assert [(row["origin"]["maintenance_id"], row["origin"]["update_id"]) for row in rows] == [("m-1", None)] * 2
    failed, emptied = (json.loads(row["details"])["maintenance_progress"] for row in rows)
    assert (failed["state"], rows[0]["error"]["exceptions"][0]["class_name"]) == ("FAILED", "MAINTENANCE_FAILED")
    assert (emptied["state"], emptied["optimize"], emptied["removed"]) == ("COMPLETED", None, {"files": 3, "bytes": 70})


def test_maintenance_that_changed_nothing_writes_nothing(tmp_path: Path) -> None:
    storage = storage_of_two_pipelines(tmp_path)
    assert append_events(storage, [LEFT], "m-1") is None
    assert not Path(str(storage.events)).exists()


def test_a_log_that_cannot_be_written_is_a_word_and_undoes_nothing(tmp_path: Path) -> None:
    storage = storage_of_two_pipelines(tmp_path)
    Path(str(storage.events)).write_text("no table")
    problem = append_events(storage, [EMPTIED], "m-1")
    assert problem is not None
    assert problem.code in ("EVENT_LOG_FAILED", "STORAGE_FAILED")
