"""diff --remote: local Delta tables and those of a workspace, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.cdc.identity import MADE_WITH
from lakelet.cli.main import main
from lakelet.storage.eventlog import writer
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import EventType
from lakelet.storage.root import INTERNAL, Storage, StorageRegistry, StoredDataset
from tests.deploy.deployed import Deployed
from tests.workspace_double import Workspace, dataset, flow

ORDERS, HOSTED = "main.default.orders", "main.sales.orders"
NOON = datetime(2026, 8, 1, 12, 0, 0, 5001, tzinfo=timezone.utc)


def orders(**changed: Any) -> pa.Table:
    columns: dict[str, Any] = {
        "id": pa.array([1, 2, 3], pa.int64()),
        "amount": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(10, 2)),
        "seen": pa.array([NOON, NOON, None], pa.timestamp("us", tz="UTC")),
        "weight": pa.array([0.1, 1.0, None], pa.float64()),
        "raw": pa.array([b"\x00\xff", b"", None], pa.binary()),
        "place": pa.array([{"city": "Bern"}, None, {"city": "Basel"}], pa.struct([("city", pa.string())])),
    }
    return pa.table({**columns, **changed})


class Both:
    """A storage and a deployed pipeline."""

    def __init__(self, deployed: Deployed) -> None:
        self.deployed, self.workspace = deployed, deployed.workspace
        self.storage = Storage(deployed.root / ".lakelet")
        self._datasets: dict[str, StoredDataset] = {}

    def here(self, name: str, table: pa.Table) -> None:
        """Put a local table."""
        path = f"tables/{name.replace('.', '/')}"
        write_deltalake(str(self.storage.root / path), table, mode="overwrite", schema_mode="overwrite")
        self._datasets[name] = StoredDataset(name, "streaming_table", path)  # type: ignore[arg-type]
        self.storage.save(StorageRegistry(datasets=self._datasets))

    def counted(self, name: str, rules: Mapping[str, tuple[int, int]], **more: str) -> None:
        """Log a local update whose expectations have these counts."""
        told = [{"name": r, "dataset": name, "passed_records": p, "failed_records": f} for r, (p, f) in rules.items()]
        body = {"status": "RUNNING", "data_quality": {"dropped_records": 0, "expectations": told, **more}}
        origin = Origin("p", "shop", "u1", name, name)
        writer.append(self.storage.events, [Event(EventType.FLOW_PROGRESS, "counted", origin, {"flow_progress": body}, sequence=1)])

    def there(self, rules: Mapping[str, tuple[int, int]] | None = None, **tables: Any) -> None:
        """Put tables of the workspace, made by an update of the pipeline."""
        for name, table in tables.items():
            self.workspace.tables[f"main.sales.{name}"] = table
        script = [dataset(f"main.sales.{name}") for name in tables]
        self.workspace.script("*", [*script, *(flow(f"main.sales.{name}", rows=3, expectations=rules) for name in tables)])
        self.deployed.start("sales")
        self.workspace.finish(self.deployed.ids["sales"])


@pytest.fixture
def both(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    found = Deployed(workspace, tmp_path / "shop")
    found.pipeline("sales")
    found.enter(monkeypatch)
    return Both(found)


def diff(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["diff", "--remote", "-t", "prod", "--json", *options])
    return code, json.loads(capsys.readouterr().out)


def test_equal_tables_are_equal_to_the_microsecond_and_the_last_digit(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here(ORDERS, orders())
    both.there(orders=orders())
    code, found = diff(capsys)
    assert code == 0
    (one,) = found["datasets"]
    assert (one["dataset"], one["hosted"], one["equal"]) == (ORDERS, HOSTED, True)
    assert one["rows"] == {"local": 3, "hosted": 3}
    assert (one["keys"]["compared_rows"], one["keys"]["complete"], one["keys"]["left_out"]) == (3, True, [])
    assert main(["diff", "--remote", "-t", "prod"]) == 0
    assert f"equal      {ORDERS} and {HOSTED}: 3 rows" in capsys.readouterr().out


def test_differing_values_rows_and_types_are_told(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here(ORDERS, orders())
    late = NOON.replace(microsecond=5002)
    there = orders(
        id=pa.array([1, 2, 4], pa.int64()),
        seen=pa.array([late, NOON, None], pa.timestamp("us", tz="UTC")),
        weight=pa.array([0.1, 1.0, None], pa.float32()),
        extra=["a", "b", "c"],
    )
    both.there(orders=there)
    code, found = diff(capsys, "--key", "id")
    assert code == 1
    (one,) = found["datasets"]
    assert one["columns"] == {"weight": {"local": "double", "hosted": "float"}, "extra": {"local": None, "hosted": "string"}}
    assert [(k["key"]["id"], k["local_rows"], k["hosted_rows"]) for k in one["keys"]["sample"]] == [("1", 1, 1), ("3", 1, 0), ("4", 0, 1)]
    assert one["keys"]["sample"][0]["columns"] == {
        "seen": {"local": "2026-08-01T12:00:00.005001Z", "hosted": "2026-08-01T12:00:00.005002Z"}
    }
    assert one["keys"]["left_out"] == ["weight", "extra"]
    assert main(["diff", "--remote", "-t", "prod", "--key", "id", "orders"]) == 1
    out, err = capsys.readouterr()
    assert "3 differing keys" in out
    assert "id=4: only in the workspace" in out
    assert "1 of them different" in err


def test_counts_of_expectations_are_compared_by_rule(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here(ORDERS, orders())
    both.counted(ORDERS, {"valid_id": (3, 0), "cheap": (2, 1)})
    both.counted(ORDERS, {"valid_id": (7, 1)}, scope="FAILED_BATCH")  # which the hosted side does not count
    both.there({"valid_id": (3, 0), "cheap": (1, 2)}, orders=orders())
    code, found = diff(capsys)
    assert code == 1
    (one,) = found["datasets"]
    assert one["expectations"] == {"cheap": {"local": [2, 1], "hosted": [1, 2]}}
    assert one["expectations_compared"] == 2
    both.there({"valid_id": (3, 0), "cheap": (2, 1)}, orders=orders())
    assert diff(capsys)[0] == 0


def test_datasets_of_one_side_only(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here("main.default.mine", orders())
    both.there(theirs=orders())
    code, found = diff(capsys)
    assert code == 1
    assert [(one["dataset"], one["only"]) for one in found["datasets"]] == [("main.default.mine", "local"), ("main.sales.theirs", "hosted")]
    assert main(["diff", "--remote", "-t", "prod", "thiers"]) == 2
    assert 'Did you mean "main.sales.theirs"?' in capsys.readouterr().err


def test_more_rows_than_asked_for_are_compared_as_a_sample_by_key(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = list(range(500))
    both.here(ORDERS, pa.table({"id": numbers, "v": [str(n) for n in numbers]}))
    both.there(orders=pa.table({"id": numbers, "v": ["?" if n == 3 else str(n) for n in numbers]}))
    both.workspace.rows_per_chunk = 7
    code, found = diff(capsys, "--rows", "20", "--key", "id")
    keys = found["datasets"][0]["keys"]
    assert (code, keys["compared_rows"], keys["complete"], keys["differing"]) == (1, 20, False, 1)
    assert keys["sample"][0]["columns"] == {"v": {"local": "3", "hosted": "?"}}
    assert diff(capsys, "--rows", "3", "--key", "id")[0] == 0
    both.there(orders=pa.table({"id": [-5, *numbers[1:]], "v": ["new", *map(str, numbers[1:])]}))
    sample = diff(capsys, "--rows", "20", "--key", "id")[1]["datasets"][0]["keys"]["sample"]
    assert [(k["key"]["id"], k["local_rows"], k["hosted_rows"]) for k in sample] == [("0", 1, 0), ("-5", 0, 1)]
    both.there(orders=pa.table({"id": numbers, "v": [str(n) for n in numbers]}))
    code, found = diff(capsys, "--rows", "0")
    assert (code, found["datasets"][0]["keys"]) == (0, None)


def test_a_sample_is_sorted_by_the_columns_of_the_key_as_they_were_given(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"a": [n % 7 for n in range(100)], "b": [str(n) for n in range(100)]})
    both.here(ORDERS, table)
    both.there(orders=table)
    code, found = diff(capsys, "--rows", "10", "--key", "b,a")
    assert (code, found["datasets"][0]["keys"]["columns"], found["datasets"][0]["keys"]["complete"]) == (0, ["b", "a"], False)


def test_the_key_of_a_change_table_is_its_own(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here(ORDERS, orders())
    both.there(orders=orders(weight=pa.array([0.1, 7.0, None], pa.float64())))
    inner = both.storage.root / "tables/main/default/orders" / INTERNAL
    write_deltalake(str(inner), pa.table({"id": [1]}))
    first = inner / "_delta_log" / "00000000000000000000.json"
    made = json.dumps({MADE_WITH: json.dumps([["id"], 1, "bigint"])})
    first.write_text(first.read_text().replace('"configuration":{}', f'"configuration":{made}'))
    keys = diff(capsys)[1]["datasets"][0]["keys"]
    assert keys["columns"] == ["id"]
    assert keys["sample"][0]["columns"] == {"weight": {"local": "1.0", "hosted": "7.0"}}


def test_a_warehouse_is_chosen_by_id_or_name_where_there_are_several(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here(ORDERS, orders())
    both.there(orders=orders())
    second = both.workspace.warehouse_routes.add("big one")
    assert main(["diff", "--remote", "-t", "prod"]) == 2
    assert f"{second} (big one)" in capsys.readouterr().err
    assert main(["diff", "--remote", "-t", "prod", "--warehouse", second]) == 0
    assert main(["diff", "--remote", "-t", "prod", "--warehouse", "big one"]) == 0
    assert main(["diff", "--remote", "-t", "prod", "--warehouse", "none"]) == 2


def test_a_slow_warehouse_is_waited_for_and_a_missing_table_is_told(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here(ORDERS, orders())
    both.there(orders=orders())
    both.workspace.looks_per_statement = 2
    assert diff(capsys, "--rows", "0")[0] == 0
    both.workspace.looks_per_statement = 0
    del both.workspace.tables[HOSTED]
    code, found = diff(capsys)
    assert (code, found["datasets"][0]["only"]) == (1, "local")


def test_wrong_requests_are_refused(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.here(ORDERS, orders())
    assert main(["diff", "--warehouse", "w"]) == 2
    assert "--warehouse only goes with --remote" in capsys.readouterr().err
    assert main(["diff", "--remote", "--select", "orders"]) == 2
    assert "--select does not go with --remote" in capsys.readouterr().err
    assert main(["diff", "--remote", "-t", "prod"]) == 2
    assert "has no finished update" in capsys.readouterr().err
    both.there(orders=orders())
    assert main(["diff", "--remote", "-t", "prod", "orders", "--key", "idd"]) == 2
    assert 'Did you mean "id"?' in capsys.readouterr().err
