"""Small files on Azure's Blob Storage, as registry, lease and schema log use them, and Delta's commits there. No Spark."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError

from lakelet.base import sentences
from lakelet.base.errors import LakeletError
from lakelet.files.paths import RemotePath
from lakelet.files.remote import RemoteStore, open_store
from lakelet.files.stores import AZURE, delta_options
from lakelet.spark.launch import environment as env
from tests.azurite import AzureServer
from tests.servers import gateway_of, server_process
from tests.store_gate import Gate, store_gate


def test_of_six_that_create_a_file_one_wins_and_its_text_is_there(azure: AzureServer) -> None:
    store, path = open_store(azure.uri("lake/system/schema.json"), RemoteStore)
    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(lambda n: store.create(path, str(n).encode()), range(6)))
    assert won.count(True) == 1
    assert store.read(path) == str(won.index(True)).encode()
    assert azure.objects() == ["lake/system/schema.json"]


def test_a_file_that_is_replaced_is_never_seen_empty(azure: AzureServer) -> None:
    store, path = open_store(azure.uri("lake/system/registry.json"), RemoteStore)
    store.write(path, b"old")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [store.write(path, b"new") for _ in range(20)])
        seen = set()
        while not writing.done():
            seen.add(store.read(path))
        writing.result()
    assert seen <= {b"old", b"new"}
    assert store.read(path) == b"new"
    assert azure.objects() == ["lake/system/registry.json"]


def test_a_folder_holds_files_of_any_name_until_it_is_removed(azure: AzureServer) -> None:
    folder = RemotePath(azure.uri("lake/a b"))
    names = ["x.json", "y+z?.json", "ü%20.json"]
    for name in names:
        (folder / name).write_whole(name)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, name) for name in names]
    (folder / "x.json").move(folder / "moved.json")
    assert not (folder / "x.json").exists()
    assert (folder / "moved.json").read_text() == "x.json"
    folder.remove_tree()
    assert not folder.is_dir()
    assert not list(folder.iterdir())


def test_a_folder_that_java_made_is_gone_with_its_files(azure: AzureServer) -> None:
    azure.put_folder("lake/table")
    azure.put_folder("lake/table/_delta_log")
    azure.put("lake/table/_delta_log/0.json", "{}")
    folder = RemotePath(azure.uri("lake/table"))
    assert [path.name for path in folder.iterdir()] == ["_delta_log"]
    assert folder.is_dir()
    assert list(folder.sizes()) == [2]
    folder.remove_tree()
    assert not folder.is_dir()
    assert not (folder / "_delta_log").is_dir()


def test_an_empty_file_is_a_file_and_an_empty_folder_of_java_is_none(azure: AzureServer) -> None:
    azure.put_folder("landing/2024")
    azure.put("landing/empty.json", "")
    store, path = open_store(azure.uri("landing"), RemoteStore)
    assert [(info.base_name, info.is_file) for info in store.listed(path, recursive=True)] == [("2024", False), ("empty.json", True)]


def test_a_container_that_is_not_there_and_an_account_that_is_not_named_are_named_errors(azure: AzureServer) -> None:
    with pytest.raises(LakeletError, match="there is no bucket nowhere"):
        list(RemotePath(azure.uri("x").replace(azure.bucket, "nowhere")).iterdir())
    with pytest.raises(LakeletError, match=r"^\[STORE_FAILED\] abfss://lake: .*\n  it names no account") as found:
        RemotePath("abfss://lake/x").exists()
    assert "AZURE_STORAGE_ACCOUNT_KEY" in (found.value.todo or "")


def test_a_commit_of_somebody_else_is_never_replaced_by_python(azure: AzureServer) -> None:
    uri, rows = azure.uri(f"table-{uuid.uuid4().hex[:4]}"), pa.table({"id": [1]})
    write_deltalake(uri, rows, storage_options=delta_options(uri))
    mine = DeltaTable(uri, storage_options=delta_options(uri))
    write_deltalake(uri, rows, mode="overwrite", storage_options=delta_options(uri))
    with pytest.raises(CommitFailedError):
        mine.delete()
    assert DeltaTable(uri, storage_options=delta_options(uri)).version() == 1


FIRST, COMMIT = (f"table/_delta_log/{version:020}.json" for version in range(2))


@pytest.fixture
def gate(azure: AzureServer) -> Iterator[Gate]:
    with store_gate(azure.url) as gate:
        yield gate


@pytest.fixture
def java_commits(azure: AzureServer, gate: Gate, tmp_path: Path) -> Iterator[Callable[[str, str], None]]:
    """Delta's log store for Azure, in a Java process behind the gate: a function that commits a text under a name."""
    jars = [env.spark_home() / "jars" / "*", *env.ensure_jars().paths, *env.ensure_package(env.STORE_PACKAGES["azure"])]
    command = [str(env.require_java().executable), "-cp", os.pathsep.join(map(str, jars)), "py4j.GatewayServer", "0"]
    through, log = replace(azure, url=gate.url), tmp_path / "java.log"
    azure.put(FIRST, "first")
    environment = {**os.environ, **through.environment}
    with server_process(command, log, environment) as process, gateway_of(process, log) as java:
        settings = java.jvm.org.apache.hadoop.conf.Configuration()
        for key, value in AZURE.settings.of(environment).spark_settings().items():
            settings.set(key.removeprefix("spark.hadoop."), value)
        settings.set("fs.azure.io.retry.max.retries", "1")
        store = java.jvm.io.delta.storage.AzureLogStore(settings)

        def commit(name: str, text: str) -> None:
            lines = java.jvm.java.util.ArrayList()
            lines.add(text)
            store.write(java.jvm.org.apache.hadoop.fs.Path(azure.uri(name)), lines.iterator(), False, settings)

        yield commit


def test_java_refuses_to_commit_where_a_commit_is(azure: AzureServer, java_commits: Callable[[str, str], None]) -> None:
    java_commits(COMMIT, "mine")
    with pytest.raises(Py4JJavaError, match="FileAlreadyExists"):
        java_commits(COMMIT, "another")
    assert azure.content(COMMIT) == b"mine\n"
    assert azure.objects() == [FIRST, COMMIT]


def test_a_commit_that_appears_between_javas_look_and_its_copy_is_never_replaced(
    azure: AzureServer, gate: Gate, java_commits: Callable[[str, str], None]
) -> None:
    def meanwhile(line: str) -> None:
        if line.startswith("PUT") and line.partition("?")[0].endswith(COMMIT):
            gate.meanwhile = None
            azure.put(COMMIT, "theirs")

    gate.meanwhile = meanwhile
    with pytest.raises(Py4JJavaError, match="FileAlreadyExists"):
        java_commits(COMMIT, "mine")
    assert gate.meanwhile is None, "nothing was copied"
    assert azure.content(COMMIT) == b"theirs"


def test_the_words_of_java_for_a_store_that_does_not_answer_are_known(gate: Gate, java_commits: Callable[[str, str], None]) -> None:
    gate.is_shut = True
    with pytest.raises(Py4JJavaError) as found:
        java_commits(COMMIT, "mine")
    words = str(found.value.java_exception.toString())
    assert sentences.STORE_AWAY.find(words.replace("Unexpected end of file from server", "Connection refused")), words
