"""The storage root: registry, whole-file writes, lease (no Spark)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.base.names import Namespace, TableName
from lakelet.storage.root import FORMAT, LastUpdate, Storage, StorageRegistry, StoredDataset, StoredFlow, new_table_path, write_atomically

UPDATE = "0b5e1f6a-0000-4000-8000-000000000001"


def lease_of(storage: Storage, **holder: object) -> Path:
    """Put a lease there as some other process would have written it."""
    update_id = str(holder.get("update_id", UPDATE))
    file = storage.system / f"lease-{update_id}.json"
    me = psutil.Process()
    facts = {
        "format": FORMAT,
        "update_id": UPDATE,
        "host": socket.gethostname(),
        "pid": me.pid,
        "process_started": me.create_time(),
        "since": "2026-03-01T10:00:00.000000+00:00",
    }
    write_atomically(file, json.dumps({**facts, **holder}))
    return file


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


# ---------------------------------------------------------------------------------------------------------------- registry


def test_a_registry_reads_back_as_it_was_written(tmp_path: Path) -> None:
    registry = StorageRegistry(
        pipeline_id="p",
        namespace=Namespace("main", "sales"),
        datasets={
            "main.sales.a": StoredDataset("main.sales.A", "streaming_table", "tables/main/sales/a", epoch=2, private=True, columns="{}"),
            "main.sales.v": StoredDataset(
                "main.sales.v",
                "materialized_view",
                "tables/x",
                active=False,
                fingerprint="f",
                input_versions={"main.sales.a": 7},
                version=3,
            ),
        },
        flows={"main.sales.a": StoredFlow("main.sales.a", "filter", {"main.sales.b": 4})},
        last_update=LastUpdate(UPDATE, "2026-03-01T10:00:00.000+00:00", clean=True),
    )
    Storage(tmp_path).save(registry)
    assert Storage(tmp_path).registry() == registry


def test_a_storage_without_registry_is_empty_and_reading_it_writes_nothing(tmp_path: Path) -> None:
    assert Storage(tmp_path / "new").registry() == StorageRegistry()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_a_registry_of_another_format_is_refused_and_stays(tmp_path: Path, other: int) -> None:
    storage = Storage(tmp_path)
    storage.save(StorageRegistry())
    file = storage.system / "registry.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": other}))
    before = file.read_text()
    with pytest.raises(LakeletError) as caught:
        Storage(tmp_path).registry()
    assert caught.value.code == "FORMAT_UNKNOWN"
    assert caught.value.what == f"{file} has format {other}; this Lakelet reads format {FORMAT}"
    assert caught.value.todo is not None
    assert caught.value.todo.startswith("Use the Lakelet version that wrote it, or start over")
    assert file.read_text() == before


def test_one_entry_is_remembered_and_the_others_stay(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.remember(StoredDataset("main.default.A", "streaming_table", "tables/a"))
    storage.remember(StoredDataset("main.default.b", "streaming_table", "tables/b"))
    storage.remember(StoredDataset("main.default.a", "streaming_table", "tables/a", epoch=1))
    assert {k: d.epoch for k, d in Storage(tmp_path).registry().datasets.items()} == {"main.default.a": 1, "main.default.b": 0}


def test_a_note_about_a_flow_is_kept_by_the_next_save(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.note_flow(StoredFlow("f", "", {"t": 3}))
    assert not storage.system.exists()
    storage.remember(StoredDataset("main.default.a", "streaming_table", "tables/a"))
    assert Storage(tmp_path).registry().flows["f"].examined == {"t": 3}


def test_entries_remembered_by_many_threads_are_all_there(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    threads = [
        threading.Thread(target=lambda i=i: storage.remember(StoredDataset(f"main.default.t{i}", "streaming_table", f"tables/{i}")))
        for i in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Storage(tmp_path).registry().datasets) == 20


def test_a_registered_table_keeps_its_folder_and_folder_names_are_safe(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.remember(StoredDataset("main.default.old", "streaming_table", "tables/elsewhere"))
    assert storage.table_path(TableName("main", "default", "old")) == tmp_path / "tables/elsewhere"
    assert new_table_path(TableName("Main", "default", "A/b c")) == "tables/main/default/a%2Fb c"
    assert new_table_path(TableName("main", "..", ".")) == "tables/main/%2E%2E/%2E"


# ------------------------------------------------------------------------------------------------------- whole-file writes


def test_a_failed_write_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "deep" / "file.json"
    write_atomically(file, "old")

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(file, "new")
    assert file.read_text() == "old"


def test_a_reader_sees_a_whole_file_at_any_time(tmp_path: Path) -> None:
    file = tmp_path / "file"
    contents = ["a" * 100_000, "b" * 100_000]
    write_atomically(file, contents[0])
    ended = threading.Event()

    def replace_often() -> None:
        for i in range(200):
            write_atomically(file, contents[i % 2])
        ended.set()

    thread = threading.Thread(target=replace_often)
    thread.start()
    while not ended.is_set():
        assert file.read_text() in contents
    thread.join()
    assert [f.name for f in tmp_path.iterdir()] == ["file"]


# -------------------------------------------------------------------------------------------------------------------- lease


def test_a_lease_is_there_for_the_time_of_the_update(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    file = storage.system / f"lease-{UPDATE}.json"
    with storage.lease(UPDATE):
        holder = json.loads(file.read_text())
        assert (holder["update_id"], holder["pid"], holder["format"]) == (UPDATE, os.getpid(), FORMAT)
    assert list(storage.system.iterdir()) == []
    with pytest.raises(RuntimeError), storage.lease(UPDATE):
        raise RuntimeError
    assert list(storage.system.iterdir()) == []


def test_a_second_update_is_refused_and_told_who_runs_since_when(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    file = lease_of(storage)
    before = file.read_text()
    with pytest.raises(LakeletError) as caught, Storage(tmp_path).lease("another"):
        pass
    assert caught.value.code == "LAKELET_STORAGE_BUSY"
    assert caught.value.exit_code is ExitCode.FAILED
    assert caught.value.why is not None
    assert f"process {os.getpid()} on {socket.gethostname()}" in caught.value.why
    assert "2026-03-01T10:00:00 UTC" in caught.value.why
    assert file.read_text() == before
    assert len(list(storage.system.iterdir())) == 1


@pytest.mark.parametrize("left", ["dead process", "reused pid", "no JSON", "nothing in it", "not a lease"])
def test_a_lease_that_nobody_holds_is_taken_over(left: str, tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    file = lease_of(storage)
    if left == "dead process":
        lease_of(storage, pid=dead_pid())
    elif left == "reused pid":
        lease_of(storage, process_started=psutil.Process().create_time() - 3600)
    else:
        file.write_text({"no JSON": "{", "nothing in it": "", "not a lease": "[]"}[left])
    storage.refuse_if_busy()
    with storage.lease("mine"):
        assert [f.name for f in storage.system.iterdir()] == ["lease-mine.json"]
    assert list(storage.system.iterdir()) == []


def test_the_lease_of_another_host_counts_as_held(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    lease_of(storage, host="elsewhere", pid=1)
    with pytest.raises(LakeletError, match="another update is running"):
        storage.refuse_if_busy()


def test_a_copied_lease_holds_nothing_and_that_of_a_renamed_storage_does(tmp_path: Path) -> None:
    storage, linked = Storage(tmp_path / "one" / "storage"), Storage(tmp_path / "link")
    with storage.lease(UPDATE):
        linked.root.symlink_to(storage.root)
        copied = Storage(shutil.copytree(tmp_path / "one", tmp_path / "copy") / "storage")
        with copied.lease("of the copy"):
            assert [file.name for file in copied.system.iterdir()] == ["lease-of the copy.json"]
        with pytest.raises(LakeletError, match="another update is running"):
            linked.refuse_if_busy()
        (tmp_path / "one").rename(tmp_path / "two")
        with pytest.raises(LakeletError, match="another update is running"), Storage(tmp_path / "two" / "storage").lease("another"):
            pass
        (tmp_path / "two").rename(tmp_path / "one")


def test_of_many_that_find_a_dead_lease_one_gets_it(tmp_path: Path) -> None:
    lease_of(Storage(tmp_path), pid=dead_pid(), update_id="dead")
    start, done = threading.Barrier(8), threading.Barrier(8)
    outcomes: list[str] = []

    def compete(number: int) -> None:
        start.wait()
        try:
            with Storage(tmp_path).lease(f"{number:08d}"):
                outcomes.append("held")
                done.wait()
        except LakeletError as refused:
            outcomes.append(refused.code)
            done.wait()

    threads = [threading.Thread(target=compete, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(outcomes) == ["LAKELET_STORAGE_BUSY"] * 7 + ["held"]
    assert list(Storage(tmp_path).system.iterdir()) == []
