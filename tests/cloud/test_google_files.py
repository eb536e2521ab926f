"""Small files on Google Cloud Storage, as registry, lease and schema log use them. No Spark."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from lakelet.files.paths import RemotePath
from lakelet.files.remote import RemoteStore, open_store
from lakelet.files.stores import delta_options
from tests.gcs import GoogleServer


def test_of_six_that_create_a_file_one_wins_and_its_text_is_there(google: GoogleServer) -> None:
    store, path = open_store(google.uri("lake/system/schema.json"), RemoteStore)
    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(lambda n: store.create(path, str(n).encode()), range(6)))
    assert won.count(True) == 1
    assert store.read(path) == str(won.index(True)).encode()
    assert google.objects() == ["lake/system/schema.json"]


def test_a_folder_holds_files_of_any_name_until_it_is_removed(google: GoogleServer) -> None:
    folder = RemotePath(google.uri("lake/a b"))
    names = ["x.json", "y+z?.json", "ü%20.json"]
    for name in names:
        (folder / name).write_whole(name)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, name) for name in names]
    (folder / "x.json").move(folder / "moved.json")
    assert not (folder / "x.json").exists()
    folder.remove_tree()
    assert not folder.is_dir()
    assert not list(folder.iterdir())


def test_a_folder_that_java_made_is_gone_with_its_files(google: GoogleServer) -> None:
    google.put("lake/table/", "")  # as Google's connector marks a folder
    google.put("lake/table/_delta_log/", "")
    google.put("lake/table/_delta_log/0.json", "{}")
    folder = RemotePath(google.uri("lake/table"))
    assert [path.name for path in folder.iterdir()] == ["_delta_log"]
    folder.remove_tree()
    assert not folder.is_dir()
    assert not (folder / "_delta_log").is_dir()


def test_a_commit_of_somebody_else_is_never_replaced(google: GoogleServer) -> None:
    uri, rows = google.uri(f"table-{uuid.uuid4().hex[:4]}"), pa.table({"id": [1]})
    write_deltalake(uri, rows, storage_options=delta_options(uri))
    mine = DeltaTable(uri, storage_options=delta_options(uri))
    write_deltalake(uri, rows, mode="overwrite", storage_options=delta_options(uri))
    with pytest.raises(CommitFailedError):
        mine.delete()
    assert DeltaTable(uri, storage_options=delta_options(uri)).version() == 1
