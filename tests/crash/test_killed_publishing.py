"""A process that dies while it publishes: the next one registers each table once and removes what is gone (PB-3, PB-5).

`tests/cloud/test_hive_metastore.py` does the same with whole updates and a metastore.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.language.model import Kind
from lakelet.storage.root import Storage, StoredDataset
from tests.unity import UnityServer, unity_server

PUBLISH = """
import sys
from pathlib import Path
from lakelet.storage.catalogs.publishing import catalogs, publish
from lakelet.storage.root import Storage
for catalog in catalogs({"uc": sys.argv[2]}, spark=None):
    print(*(f"{one.name} {one.action.value} {one.error or ''}" for one in publish(Storage(Path(sys.argv[1])), catalog)), sep="\\n")
"""


def published(storage: Storage, unity: UnityServer, failpoint: str = "") -> list[str]:
    """What a process did that publishes the storage, and dies at the failpoint if there is one."""
    environment = {**os.environ, "LAKELET_FAILPOINT": failpoint}
    command = [sys.executable, "-c", PUBLISH, str(storage.root), unity.address]
    done = subprocess.run(command, env=environment, start_new_session=True, capture_output=True, text=True)
    assert done.returncode == (-signal.SIGKILL if failpoint else 0), done.stderr
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def write(storage: Storage, name: str, *columns: str) -> None:
    path = f"tables/main/shop/{name}"
    write_deltalake(str(storage.root / path), pa.table({column: [1] for column in columns}), mode="overwrite", schema_mode="overwrite")
    storage.remember(StoredDataset(f"main.shop.{name}", Kind.STREAMING_TABLE, path, owner="me"))


@pytest.mark.parametrize("failpoint", ["publish.begun", "publish.registered"])
def test_tables_are_registered_once_and_removed_once_after_a_death(failpoint: str, tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    with unity_server() as unity:
        for name in ("changing", "leaving"):
            write(storage, name, "id")
        published(storage, unity, failpoint)
        assert sorted(unity.tables) == ([] if failpoint == "publish.begun" else ["main.shop.changing", "main.shop.leaving"])
        published(storage, unity)
        assert sorted(unity.tables) == ["main.shop.changing", "main.shop.leaving"]

        write(storage, "changing", "id", "note")
        write(storage, "coming", "id")
        leaving = storage.registry().datasets["main.shop.leaving"]
        storage.remember(replace(leaving, active=False))
        published(storage, unity, failpoint)
        published(storage, unity)
        assert {name: [one["name"] for one in table["columns"]] for name, table in unity.tables.items()} == {
            "main.shop.changing": ["id", "note"],
            "main.shop.coming": ["id"],
        }
        assert published(storage, unity) == []
