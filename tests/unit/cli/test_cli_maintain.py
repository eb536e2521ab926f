"""`lakelet maintain` on tables that gain nothing: it needs no Java and says why it leaves them alone (MT-2, MT-5)."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.base.names import Namespace
from lakelet.cli.main import main
from lakelet.language.model import Kind
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset


@pytest.fixture
def storage(tmp_path):
    """Two small files of one table, a sink elsewhere, and a table that was not written yet."""
    folder = tmp_path / "store" / "tables" / "main" / "default" / "orders"
    folder.mkdir(parents=True)
    for number in range(2):
        write_deltalake(str(folder), pa.table({"id": [number]}), mode="append")
    tables = {
        "orders": (Kind.STREAMING_TABLE, "tables/main/default/orders"),
        "later": (Kind.MATERIALIZED_VIEW, "tables/main/default/later"),
        "sent": (Kind.SINK, str(tmp_path / "elsewhere")),
    }
    datasets = {f"main.default.{n}": StoredDataset(name=f"main.default.{n}", kind=kind, path=path) for n, (kind, path) in tables.items()}
    Storage(tmp_path / "store").save(StorageRegistry(namespace=Namespace("main", "default"), datasets=datasets))
    return tmp_path / "store"


def test_small_tables_and_what_lies_elsewhere_are_left_alone_with_the_reason(storage, capsys):
    assert main(["maintain", "--json", "--storage", str(storage)]) == 0
    found = {table["name"]: table for table in json.loads(capsys.readouterr().out)}
    assert [table["left_alone"] for table in found.values()] == [True] * 3
    orders = found["main.default.orders"]
    assert (orders["before"]["files"], orders["before"] == orders["after"], orders["retention_hours"]) == (2, True, 168)
    assert orders["removed"] == {"files": 0, "bytes": 0}
    assert {name.rpartition(".")[2]: table["why"] for name, table in found.items()} == {
        "orders": "OPTIMIZE would save 1 file; it is done from 8 on",
        "later": "nothing was written to it yet",
        "sent": "it lies outside of the storage, where others may write to it",
    }
    assert not [file.name for file in (storage / "system").iterdir() if file.name.startswith("lease")]


def test_without_json_one_line_per_table_and_a_sum(storage, capsys):
    assert main(["maintain", "orders", "--dry-run", "--storage", str(storage)]) == 0
    out, err = capsys.readouterr()
    assert "main.default.orders  2 (" in out
    assert "left alone: OPTIMIZE would save 1 file" in out
    assert err == "0 tables would be optimized, 0 old files (0 B) would be deleted; nothing was written\n"


def test_an_unknown_name_is_refused_with_the_nearest_one(storage, capsys):
    assert main(["maintain", "ordres", "--storage", str(storage)]) == 2
    assert "main.default.orders" in capsys.readouterr().err


def test_an_empty_storage_has_nothing_to_maintain(tmp_path, capsys):
    assert main(["maintain", "--storage", str(tmp_path)]) == 0
    assert "Nothing is stored" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
