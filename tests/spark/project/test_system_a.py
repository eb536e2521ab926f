"""The pipeline of system A against the oracle, drop by drop (docs/system-a.md)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.config.update_config import load_config
from lakelet.pipeline import Pipeline
from lakelet.storage.root import Storage
from sampledata import check, check_expectations, generate, write_expected
from tests.paths import ROOT

PROJECT = ROOT


class SystemA:
    """The repository's own pipeline on a sample of its own."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.sample, self.folder, self.spark = folder / "sample", folder, spark
        self.events: list[Any] = []

    def land(self, **options: Any) -> None:
        generate(self.sample, **{"rows": 1500, "seed": 7, **options})
        write_expected(self.sample)

    def run(self) -> None:
        params = {"landing": str(self.sample / "landing")}
        config = load_config([], params=params, storage=str(self.folder / "storage"), cwd=PROJECT, environ={})
        self.events = []
        result = Pipeline(config, spark=self.spark).run(listeners=[self.events.append])
        assert result.state == "COMPLETED", [str(e) for e in result.errors]

    def matches_the_oracle(self) -> None:
        """Tables, expectation counts and dropped rows equal the expected ones of the newest drop."""
        assert [d.message for d in check(self.sample, self._table)] == []
        counts: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
        dropped: dict[str, int] = defaultdict(int)
        for row in DeltaTable(str(self.storage.events)).to_pyarrow_table().to_pylist():
            quality = json.loads(row["details"]).get("flow_progress", {}).get("data_quality")
            if quality:
                dropped[row["origin"]["dataset_name"].rsplit(".", 1)[-1]] += quality["dropped_records"]
            for e in (quality or {}).get("expectations", []):
                key = (e["dataset"].rsplit(".", 1)[-1], e["name"])
                passed, failed = counts[key]
                counts[key] = (passed + e["passed_records"], failed + e["failed_records"])
        assert [d.message for d in check_expectations(self.sample, counts, dropped)] == []

    @property
    def storage(self) -> Storage:
        return Storage(self.folder / "storage")

    def _table(self, name: str) -> Any:
        return DeltaTable(str(self.storage.root / "tables" / "main" / "comms" / name)).to_pyarrow_table()

    def versions(self) -> dict[str, int]:
        return {k: DeltaTable(str(self.storage.root / d.path)).version() for k, d in self.storage.registry().datasets.items()}

    def statuses(self) -> set[str]:
        last = {e.origin.flow_name: e.body["status"] for e in self.events if e.event_type == "flow_progress"}
        return set(last.values())


@pytest.fixture
def system_a(tmp_path: Path, spark: Any) -> Callable[[], SystemA]:
    return lambda: SystemA(tmp_path, spark)


@pytest.mark.slow
@pytest.mark.long
def test_three_drops_give_the_tables_and_counts_of_the_oracle_and_a_run_in_between_touches_nothing(system_a):
    a = system_a()
    a.land()
    a.run()
    a.matches_the_oracle()
    before = a.versions()

    a.run()
    assert a.statuses() == {"IDLE"}
    assert a.versions() == before
    a.matches_the_oracle()

    a.land(append=True)
    a.run()
    a.matches_the_oracle()
    listed = [e.body for e in a.events if e.event_type == "operation_progress" and e.body["status"] == "COMPLETED"]
    assert sum(e["auto_loader_details"]["num_files_new"] for e in listed) == len(list((a.sample / "landing").rglob("drop_002*")))
    changes = [e.body for e in a.events if e.event_type == "schema_change"]
    assert {c["name"] for change in changes for c in change["added"]} >= {"trace", "jsonPayload.sentiment_score"}
    assert all("drop_002" in change["first_file"] for change in changes)

    a.land(append=True, beyond_watermark=True)
    a.run()
    a.matches_the_oracle()
    late = [e for e in a.events if e.event_type == "late_records"]
    assert [e.origin.dataset_name for e in late] == ["main.comms.router_logs"]
    assert late[0].body["dropped_by_watermark"] > 0


@pytest.mark.long
def test_all_drops_at_once_give_the_tables_of_the_oracle(system_a):
    a = system_a()
    a.land(rows=3000, drops=2, seed=11)
    a.run()
    assert [d.message for d in check(a.sample, a._table)] == []
