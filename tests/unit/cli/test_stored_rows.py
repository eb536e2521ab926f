"""Rows and names of stored tables as commands give them: Parquet, a terminal's width, completion. Nothing here starts Java."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from lakelet.base.names import Namespace
from lakelet.cli.main import main
from lakelet.cli.options import stored_datasets
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from tests.event_logs import shop, store, store_table
from tests.terminals import on_terminal

ORDERS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "note": ["a", None, ""], "tags": [["x"], [], None]})
WIDE = pa.table({f"column_{number:02}": ["some text"] for number in range(12)})
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a storage, which is the current one."""
    root, datasets = tmp_path / ".lakelet", {}
    for name, rows in {"main.shop.orders": ORDERS, "main.shop.team_daily": WIDE, "main.raw.teams": ORDERS}.items():
        dataset = StoredDataset(name, "streaming_table", f"tables/{name.replace('.', '/')}")
        (root / dataset.path).mkdir(parents=True)
        write_deltalake(str(root / dataset.path), rows)
        datasets[name] = dataset
    gone = StoredDataset("main.shop.tea", "streaming_table", "tables/main/shop/tea", active=False)
    Storage(root).save(StorageRegistry(namespace=Namespace("main", "shop"), datasets={**datasets, gone.name: gone}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kinds(table: pa.Table) -> list[tuple[str, str]]:
    """Names and types, whatever the layout in memory."""
    return [(field.name, str(field.type).replace("element", "item").replace("_view", "")) for field in table.schema]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("show", "orders"), ORDERS),
        (
            ("show", "orders", "--where", "id > 1", "--order-by", "id DESC", "--columns", "id"),
            pa.table({"id": pa.array([3, 2], pa.int32())}),
        ),
        (("show", "orders", "--order-by", "id", "--limit", "2"), ORDERS.slice(0, 2)),
        (("sql", "SELECT id, tags FROM orders ORDER BY id"), ORDERS.select(["id", "tags"])),
        (("sql", "SELECT * FROM orders WHERE id > 9"), ORDERS.slice(0, 0)),
        (("sql", "-- the orders\nSELECT * FROM orders ORDER BY id"), ORDERS),
        (("sql", "--all\nSELECT * FROM orders ORDER BY id"), ORDERS),
        (("sql", "--\nSELECT * FROM orders ORDER BY id"), ORDERS),
    ],
)
def test_show_and_sql_write_parquet_with_types_and_nulls(folder, capfdbinary, command, expected):
    assert main([*command, "--format", "parquet"]) == 0
    found = pq.read_table(io.BytesIO(capfdbinary.readouterr().out))
    assert found.to_pydict() == expected.to_pydict()
    assert kinds(found) == kinds(expected)


def test_chosen_rows_and_those_of_the_event_log_are_said_to_go_on(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store(tmp_path / ".lakelet", shop(21).rows)
    store_table(tmp_path / ".lakelet", "main.default.t", pa.table({"id": range(30)}))
    for command, said in {
        ("t", "--where", "id > 0"): "20 of 29 rows, more with --limit N\n",
        ("t", "--order-by", "id"): "20 of 30 rows, more with --limit N\n",
        ("t", "--columns", "id % 25 AS rest", "--where", "id < 28", "--limit", "5"): "5 of 28 rows\n",
        ("t", "--columns", "DISTINCT id % 25 AS rest"): "20 of 25 rows, more with --limit N\n",
        ("t", "--where", "id < 20"): "",
        ("t", "--where", "id < 5", "--limit", "5"): "",
        ("t", "--where", "id < 0"): "No rows.\n",
        ("updates",): "20 of 21 rows, more with --limit N\n",
    }.items():
        assert main(["show", *command]) == 0
        assert capsys.readouterr().err == said, command


def test_a_terminal_gets_no_parquet_and_the_columns_that_fit_with_a_note_of_the_others(folder):
    environ = {**{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}, "TERM": "xterm"}
    for columns, shown in ((60, 5), (200, 12)):
        command = [sys.executable, "-m", "lakelet", "show", "team_daily"]
        lines = _CONTROL.sub("", on_terminal((command, environ), columns=columns, folder=folder)).splitlines()
        lines = [line for line in lines if line and not line.startswith("Reading ")]  # shown, and removed again, where it takes a second
        assert lines[0].split()[:shown] == WIDE.column_names[:shown]
        assert max(map(len, lines)) <= columns
        assert lines[3:] == ([f"12 columns ({shown} shown), all with --format csv"] if shown < 12 else [])
    text = on_terminal(([sys.executable, "-m", "lakelet", "show", "orders", "--format", "parquet"], environ), folder=folder)
    assert "[USAGE] Parquet is not text for a terminal" in text
    assert "PAR1" not in text


def test_names_of_stored_datasets_are_completed_each_of_a_list_with_its_direction(folder):
    assert stored_datasets("") == ["main.raw.teams", "orders", "team_daily"]
    assert stored_datasets("TE") == ["team_daily"]
    assert stored_datasets("orders,+te") == ["orders,+team_daily"]
    assert stored_datasets("orders,main.") == ["orders,main.raw.teams"]
    assert stored_datasets("tea,x") == []
    for words, number, answer in (("lakelet show or", 2, "orders"), ("lakelet run --select orders,+te", 3, "orders,+team_daily")):
        asked = {**os.environ, "_LAKELET_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        run = [sys.executable, "-c", "from lakelet.cli.main import entry; entry()"]
        assert subprocess.run(run, env=asked, capture_output=True, text=True, check=True).stdout.split() == [answer]
    (folder / "pyproject.toml").write_text("[tool.lakelet\n")
    assert stored_datasets("or") == []
