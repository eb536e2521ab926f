"""What an update that died did not tell is told in its name by the next one, once; read from the commit of a table, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq

from lakelet.flows.environment import Environment
from lakelet.storage.delta.batch_metrics import BatchMetrics, ComputedFrom
from lakelet.storage.eventlog.events import Reporter
from lakelet.storage.root import LastUpdate, Storage, StorageRegistry, StoredDataset
from lakelet.storage.rule_counts import RuleCount
from lakelet.update.recovery import repair

DIED, NOW = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"
VIEW = StoredDataset("main.shop.daily", "materialized_view", "tables/main/shop/daily", version=0)
RULES = (RuleCount("positive", "main.shop.daily", 5, 1),)
METRICS = BatchMetrics("e1", DIED, "main.shop.daily", "daily", None, 5, 1, RULES, view=ComputedFrom("new", {"main.shop.raw": 7}))


def storage_of_a_dead_update(folder: Path) -> Storage:
    """The view was committed; neither the registry nor the log knows of it."""
    storage = Storage(folder)
    log = folder / VIEW.path / "_delta_log"
    log.mkdir(parents=True)
    commit = {"commitInfo": {"operation": "WRITE", "userMetadata": json.dumps(METRICS.user_metadata())}}
    (log / f"{0:020d}.json").write_text(json.dumps(commit) + "\n")
    storage.save(
        StorageRegistry("p", datasets={"main.shop.daily": VIEW}, last_update=LastUpdate(DIED, "2026-03-01T08:00:00+00:00", clean=False))
    )
    return storage


def events(storage: Storage) -> list[dict[str, Any]]:
    rows = [row for file in Path(str(storage.events)).glob("*.parquet") for row in pq.read_table(file, partitioning=None).to_pylist()]
    return sorted(rows, key=lambda row: row["sequence"]["data_plane_id"]["seq_no"])


def test_a_commit_that_was_not_told_becomes_events_of_the_update_that_died_and_an_entry_once(tmp_path: Path) -> None:
    storage = storage_of_a_dead_update(tmp_path)
    catalog: Any = SimpleNamespace(datasets={})
    environment = Environment.of(SimpleNamespace(), catalog, Reporter("p", "shop", NOW, storage, frozenset(), print), {})  # type: ignore[arg-type]
    repaired = repair(environment, storage.registry(), [])
    stored = repaired.registry.datasets["main.shop.daily"]
    assert (stored.fingerprint, stored.input_versions, stored.version) == ("new", {"main.shop.raw": 7}, 0)
    assert (repaired.died, repaired.events_added) == (storage.registry().last_update, 2)
    batch, end = events(storage)
    assert {row["origin"]["update_id"] for row in (batch, end)} == {DIED}
    assert (batch["id"], batch["origin"]["dataset_name"], batch["origin"]["flow_name"]) == ("e1", "main.shop.daily", "daily")
    quality = {"dropped_records": 1, "expectations": [vars(rule) for rule in RULES]}
    assert json.loads(batch["details"]) == {
        "flow_progress": {"status": "COMPLETED", "metrics": {"num_output_rows": 5}, "data_quality": quality}
    }
    assert (end["level"], json.loads(end["details"])) == ("ERROR", {"update_progress": {"state": "FAILED"}})
    again = repair(environment, storage.registry(), [])
    assert (again.died, again.events_added, len(events(storage))) == (None, 0, 2)
