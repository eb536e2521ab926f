"""`lakelet schema`: what the versions of a schema log say, and going back to one. No Spark session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructType

from lakelet.autoloader.source_schema import SchemaLog
from lakelet.autoloader.source_spec import LOCATION_FILE
from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.cli.main import main
from lakelet.inspection.schema_history import differences, read_history, roll_back
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

NAME = Namespace("main", "default").resolve("t")
EMPTY = StructType([])
AT = "2026-03-01T08:00:00.000+00:00"
ADDED = {"first_file": "file:/in/b.json", "added": [{"name": "c.v", "type": "string"}], "at": AT}


def columns(*fields: tuple[str, Any]) -> StructType:
    found = StructType([])
    for name, kind in fields:
        found = found.add(name, kind)
    return found


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """A storage whose dataset `t` has a source with two schema versions."""
    root = tmp_path / "storage"
    store = Storage(root)
    store.save(StorageRegistry("p", Namespace("main", "default"), {NAME.key: StoredDataset(str(NAME), "streaming_table", "tables/t")}))
    log = SchemaLog(str(store.source_state(NAME, str(NAME), 0)))
    log.append(0, columns(("id", StringType())), EMPTY, {"reason": "inferred"})
    log.append(1, columns(("id", LongType()), ("c", columns(("v", StringType())))), EMPTY, ADDED)
    return root


def test_each_version_tells_when_and_from_which_file_its_columns_came(storage: Path) -> None:
    (history,) = read_history(storage, "t")
    first, second = history.versions
    assert history.source == "main.default.t/0"
    assert (first.number, first.reason, [(c.name, c.before, c.after) for c in first.changes]) == (0, "inferred", [("id", None, "string")])
    assert (second.at, second.file) == (AT, "file:/in/b.json")
    assert [c.as_json() for c in second.changes] == [
        {"name": "id", "from": "string", "to": "bigint"},
        {"name": "c", "from": None, "to": "struct"},
        {"name": "c.v", "from": None, "to": "string"},
    ]


def test_differences_are_read_in_the_order_asked_for(storage: Path) -> None:
    assert [(c.name, c.before, c.after) for c in differences(storage, "t", 1, 0)] == [
        ("id", "bigint", "string"),
        ("c", "struct", None),
        ("c.v", "string", None),
    ]
    with pytest.raises(LakeletError, match="no schema version 7"):
        differences(storage, "t", 0, 7)


def test_going_back_adds_a_version_and_leaves_the_old_ones(storage: Path) -> None:
    done = roll_back(storage, "t", 0)
    (history,) = read_history(storage, "t")
    assert [v.number for v in history.versions] == [0, 1, 2]
    assert (done.number, history.versions[2].reason) == (2, "rolled back to version 0")
    assert differences(storage, "t", 0, 2) == ()
    with pytest.raises(LakeletError, match="nothing to go back to"):
        roll_back(storage, "t", 0)


def test_going_back_is_refused_while_an_update_holds_the_lease(storage: Path) -> None:
    with Storage(storage).lease("00000000-0000-0000-0000-00000000000a"), pytest.raises(LakeletError) as caught:
        roll_back(storage, "t", 0)
    assert caught.value.code == "LAKELET_STORAGE_BUSY"
    assert len(read_history(storage, "t")[0].versions) == 2


def test_a_schema_location_of_the_users_is_found(storage: Path, tmp_path: Path) -> None:
    state = Storage(storage).source_state(NAME, str(NAME), 1)
    elsewhere = tmp_path / "elsewhere"
    SchemaLog(str(elsewhere)).append(0, columns(("x", LongType())), EMPTY, {"reason": "inferred"})
    os.makedirs(str(state))
    (state / LOCATION_FILE).write_text(str(elsewhere))
    assert [(h.source, h.location) for h in read_history(storage, "t")][1] == ("main.default.t/1", str(elsewhere))
    with pytest.raises(LakeletError) as caught:
        roll_back(storage, "t", 0)
    assert caught.value.code == "USAGE"
    assert "main.default.t/0, main.default.t/1" in str(caught.value)
    assert differences(storage, "t", 0, 0, source="1") == ()


def test_the_command_shows_compares_and_goes_back(storage: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--storage", str(storage)]
    assert main(["schema", "t", *place]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3:] == [
        "  version 1  2026-03-01 08:00:00  new columns arrived  file:/in/b.json",
        "    ~  id   string → bigint",
        "    +  c    struct",
        "    +  c.v  string",
    ]
    assert main(["schema", "t", "--diff", "0", "1", "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out)[0] == {"name": "id", "from": "string", "to": "bigint"}
    assert main(["schema", "t", "--rollback", "0", *place]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "-  c.v  string"
    assert "the next update starts with it" in told.err
    assert "--full-refresh t" in told.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["nothing"], "UNKNOWN_TABLE"), (["t", "--diff", "0", "1", "--rollback", "0"], "USAGE"), (["t", "--rollback", "9"], "USAGE")],
)
def test_a_wrong_use_ends_with_exit_code_2(storage: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str) -> None:
    assert main(["schema", *arguments, "--storage", str(storage)]) == 2
    assert code in capsys.readouterr().err
