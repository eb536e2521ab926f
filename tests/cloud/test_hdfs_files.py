"""Small files on HDFS, as registry, lease and schema log use them, and commits of two writers. No Spark."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError

from lakelet.autoloader.discovery.files import RemoteFiles
from lakelet.base.errors import LakeletError
from lakelet.files.paths import RemotePath
from lakelet.files.remote import RemoteStore, open_store
from lakelet.files.stores import delta_options
from tests.hdfs import HdfsServer


def test_of_six_that_create_a_file_one_wins_and_its_text_is_there(hdfs: HdfsServer) -> None:
    store, path = open_store(hdfs.uri("lake/system/schema.json"), RemoteStore)
    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(lambda n: store.create(path, str(n).encode()), range(6)))
    assert won.count(True) == 1
    assert store.read(path) == str(won.index(True)).encode()
    assert hdfs.objects() == ["lake/system/schema.json"]


def test_a_file_is_replaced_as_a_whole(hdfs: HdfsServer) -> None:
    store, path = open_store(hdfs.uri("lake/system/registry.json"), RemoteStore)
    store.write(path, b"a long first text")
    store.write(path, b"second")
    assert hdfs.content("lake/system/registry.json") == b"second"
    assert hdfs.objects() == ["lake/system/registry.json"]
    with store.open(path) as file:
        assert (file.read(3), file.seek(-2, 2), file.read()) == (b"sec", 4, b"nd")


def test_a_folder_holds_files_of_any_name_until_it_is_removed(hdfs: HdfsServer) -> None:
    folder = RemotePath(hdfs.uri("lake/a b"))
    names = ["x.json", "y+z?.json", "ü%20.json"]
    for name in names:
        (folder / name).write_whole(name)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, name) for name in names]
    (folder / "x.json").move(folder / "moved.json")
    assert not (folder / "x.json").exists()
    assert sorted(folder.sizes()) == [6, 9, 10]
    folder.remove_tree()
    assert not folder.is_dir()
    assert not list(folder.iterdir())
    with pytest.raises(FileNotFoundError):
        (folder / "x.json").read_bytes()


def test_a_file_that_is_moved_keeps_its_time_and_replaces_none(hdfs: HdfsServer) -> None:
    for name in ("landing/a.json", "landing/b.json", "done/b.json"):
        hdfs.put(name, name)
    store, path = open_store(hdfs.uri("landing/a.json"), RemoteFiles)
    there = open_store(hdfs.uri("done/of/a.json"), RemoteFiles)[1]
    before = store.status(path)
    store.move(path, there)
    assert (store.status(path), store.status(there)) == (None, before)
    with pytest.raises(FileExistsError):
        store.move(open_store(hdfs.uri("landing/b.json"), RemoteFiles)[1], open_store(hdfs.uri("done/b.json"), RemoteFiles)[1])
    assert hdfs.objects() == ["done/b.json", "done/of/a.json", "landing/b.json"]
    assert hdfs.content("done/b.json") == b"done/b.json"


def test_a_name_node_that_does_not_answer_is_a_named_error(hdfs: HdfsServer) -> None:
    for uri, why in (("hdfs://127.0.0.1:1/lake", "refused"), ("hdfs://nowhere/lake", "write hdfs://<host>:<port>/")):
        with pytest.raises(LakeletError) as caught:
            RemotePath(uri).exists()
        assert caught.value.code == "STORE_FAILED"
        assert why in str(caught.value.why)


def test_a_name_that_hdfs_site_knows_stands_for_its_name_node(hdfs: HdfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hdfs.name_it("prod", tmp_path)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    folder = f"hdfs://prod/{hdfs.bucket}"
    RemotePath(f"{folder}/a.json").write_whole("text")
    assert hdfs.content("a.json") == b"text"
    write_deltalake(f"{folder}/table", pa.table({"id": [1]}), storage_options=delta_options(folder))
    assert DeltaTable(hdfs.uri("table"), storage_options=delta_options(folder)).version() == 0


def test_the_log_store_that_spark_takes_replaces_no_commit(hdfs: HdfsServer) -> None:
    name = "table/_delta_log/00000000000000000001.json"
    hdfs.put(name, "theirs")
    java, settings = hdfs.java, hdfs.client.getConf()
    store, path_of = java.io.delta.storage.HDFSLogStore(settings), java.org.apache.hadoop.fs.Path
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        store.write(path_of(hdfs.uri(name)), java.java.util.ArrayList(["mine"]).iterator(), False, settings)
    assert hdfs.content(name) == b"theirs"
    assert hdfs.objects() == [name]
    later = name.replace("1.json", "2.json")
    store.write(path_of(hdfs.uri(later)), java.java.util.ArrayList(["mine"]).iterator(), False, settings)
    assert hdfs.content(later) == b"mine\n"


def test_a_commit_of_somebody_else_is_never_replaced(hdfs: HdfsServer) -> None:
    uri, rows = hdfs.uri(f"table-{uuid.uuid4().hex[:4]}"), pa.table({"id": [1]})
    write_deltalake(uri, rows, storage_options=delta_options(uri))
    mine = DeltaTable(uri, storage_options=delta_options(uri))
    write_deltalake(uri, rows, mode="overwrite", storage_options=delta_options(uri))
    with pytest.raises(CommitFailedError):
        mine.delete()
    assert DeltaTable(uri, storage_options=delta_options(uri)).version() == 1
