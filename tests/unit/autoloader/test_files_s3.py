"""Files, listing, planning, reading, ledger and schema log on S3, without Spark (AL-13; decision 0011)."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.discovery.files import LocalFiles, RemoteFiles, files_for
from lakelet.autoloader.discovery.listing import Filters, list_files
from lakelet.autoloader.micro_batches import Planner
from lakelet.autoloader.part_reader import FilesPartition, PartReader
from lakelet.autoloader.source_schema import SchemaLog
from lakelet.autoloader.state.ledger import Limits
from lakelet.base.errors import LakeletError
from lakelet.files.paths import RemotePath, any_path
from lakelet.files.remote import RemoteStore, open_store
from lakelet.files.stores import S3, AzureSettings, GoogleSettings, HadoopSettings, S3Settings
from lakelet.spark.names.cloud_files_state import checkpoint_states
from tests.s3 import S3Server


@pytest.fixture
def files(s3: S3Server) -> tuple[RemoteFiles, str]:
    """The files of the test's bucket, and its path."""
    found, path = files_for(s3.uri())
    assert isinstance(found, RemoteFiles)
    return found, path


def source(s3: S3Server, landing: str = "landing", **options: str) -> AutoLoaderSource:
    keys = {"cloudFiles." + key: value for key, value in {"format": "json", **options}.items()}
    return AutoLoaderSource.open(SourceSpec(s3.uri(landing), keys), state=s3.uri("state"))


def read_all(found: AutoLoaderSource, after: int = -1) -> list[dict[str, Any]]:
    """Plan and read what is there, as Spark's processes do."""
    spec = found.reader_spec()
    plans = Planner(type(spec).from_json(spec.to_json()))
    up_to = plans.plan(after, Limits())
    tasks = plans.parts(after, up_to)
    batches = [batch for task in tasks for batch in PartReader(spec, FilesPartition(task, after, up_to)).batches()]
    return [row for batch in batches for row in batch.to_pylist()]


# --- the methods of the seam ----------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_back_and_shows_up_in_the_folder(files: tuple[RemoteFiles, str]) -> None:
    store, root = files
    store.write(f"{root}/a/one.json", b"first\nsecond\n")
    store.write(f"{root}/a/one.json", b"again\nsecond\n")
    store.write(f"{root}/a/below/two ü.json", b"")
    assert store.read(f"{root}/a/one.json") == b"again\nsecond\n"
    assert store.read(f"{root}/a/below/two ü.json") == b""
    assert store.names(f"{root}/a") == ["below", "one.json"]
    assert store.names(f"{root}/nowhere") == []
    assert (store.is_file(f"{root}/a/one.json"), store.is_file(f"{root}/a"), store.is_folder(f"{root}/a")) == (True, False, True)
    size, modified = store.status(f"{root}/a/one.json") or (0, 0)
    assert size == 13
    assert modified > 1_600_000_000_000_000
    assert store.status(f"{root}/a") is None


def test_a_file_opens_for_reading_at_any_place(files: tuple[RemoteFiles, str]) -> None:
    store, root = files
    store.write(f"{root}/x", b"0123456789\nabc\n" * 200_000)
    with store.open(f"{root}/x") as stream:
        assert stream.readline() == b"0123456789\n"
        stream.seek(15 * 150_000 + 11)
        assert stream.readline() == b"abc\n"
        assert len(stream.read()) == 15 * 49_999
    with pytest.raises(FileNotFoundError):
        store.open(f"{root}/y")
    with pytest.raises(FileNotFoundError):
        store.read(f"{root}/y")


def test_removing_and_moving(files: tuple[RemoteFiles, str]) -> None:
    store, root = files
    for name in ("a", "b"):
        store.write(f"{root}/in/{name}", name.encode())
    store.remove(f"{root}/in/a")
    store.remove(f"{root}/in/a")
    store.move(f"{root}/in/b", f"{root}/archive/2024/b")
    assert store.names(f"{root}/in") == []
    assert store.read(f"{root}/archive/2024/b") == b"b"
    store.write(f"{root}/in/b", b"other")
    with pytest.raises(FileExistsError):
        store.move(f"{root}/in/b", f"{root}/archive/2024/b")


def test_only_one_of_many_creates_a_file(files: tuple[RemoteFiles, str]) -> None:
    store, root = files
    won: list[str] = []

    def create(name: str, gate: threading.Barrier, path: str) -> None:
        gate.wait()
        if store.create(path, name.encode()):
            won.append(name)

    for attempt in range(3):
        won.clear()
        gate = threading.Barrier(6)
        path = f"{root}/log/{attempt}"
        threads = [threading.Thread(target=create, args=(str(n), gate, path)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert store.read(path) == won[0].encode()
    assert store.names(f"{root}/log") == ["0", "1", "2"]


def test_the_claim_of_a_dead_process_does_not_stand_in_the_way(files: tuple[RemoteFiles, str], monkeypatch: pytest.MonkeyPatch) -> None:
    store, root = files
    store.write(f"{root}/log/.claim-0-00000000", b"")
    monkeypatch.setattr("lakelet.files.remote._CLAIM_SECONDS", -1)
    claims = RemoteStore._claims

    def aged(self: RemoteStore, folder: str, prefix: str) -> dict[str, int]:
        return {name: moment - 5 * 10**9 * name.endswith("-00000000") for name, moment in claims(self, folder, prefix).items()}

    monkeypatch.setattr("lakelet.files.remote._CLAIM_SECONDS", 2)
    monkeypatch.setattr(RemoteStore, "_claims", aged)
    assert store.create(f"{root}/log/0", b"mine")
    assert store.names(f"{root}/log") == ["0"]


def test_uris_show_the_scheme_as_written_and_mean_the_same_file(s3: S3Server) -> None:
    s3.put("a%20b%23c/x.json", "{}")
    for scheme in ("s3", "s3a", "s3n"):
        store, path = files_for(s3.uri("a b#c//", scheme))
        assert path == f"{s3.bucket}/a b#c"
        assert store.names(path) == ["x.json"]
        assert store.uri(f"{path}/x.json") == f"{scheme}://{s3.bucket}/a%20b%23c/x.json"


@pytest.mark.parametrize("location", ["s3a:///x", "s3a:x", "ftp://host/x", "wasb://x@y/z"])
def test_what_is_no_known_place_is_refused(location: str) -> None:
    with pytest.raises(LakeletError, match="CF_SOURCE_UNSUPPORTED"):
        files_for(location)


def test_other_schemes_go_to_their_file_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[Any] = []
    monkeypatch.setattr("lakelet.files.remote._file_system", lambda settings, authority, _: made.append((type(settings), authority)))
    places = {
        "gs://bucket/a/b": "bucket/a/b",
        "abfss://box@account.dfs.core.windows.net/a/b": "box/a/b",
        "hdfs://host:8020/a/b": "/a/b",
    }
    for location, inside in places.items():
        store, path = open_store(location, RemoteStore)
        assert path == inside
        assert store.uri(f"{path}/c d") == f"{location}/c d".replace(" ", "%20")
    azure = (AzureSettings, "box@account.dfs.core.windows.net")
    assert made == [(GoogleSettings, "bucket"), azure, (HadoopSettings, "host:8020")]


def test_a_store_that_refuses_gives_a_coded_error(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LakeletError, match="STORE_FAILED") as caught:
        list_files("s3a://no-such-bucket/landing", Filters())
    assert "no-such-bucket" in caught.value.what

    class Refusing:
        def get_file_info(self, selector: object) -> object:
            raise OSError("AWS Error ACCESS_DENIED")

    with pytest.raises(LakeletError, match="STORE_FAILED") as caught:
        RemoteStore(Refusing(), "s3a://", "", S3).names("bucket/x")
    assert caught.value.why == "AWS Error ACCESS_DENIED"


def test_settings_come_from_the_environment_and_hold_no_secret() -> None:
    environ = {"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_S3": "http://b:2", "AWS_SECRET_ACCESS_KEY": "very-secret-word"}
    found = S3Settings.of(environ)
    assert found == S3Settings("http://b:2", "us-east-1")
    assert found.delta_options() == {"AWS_ENDPOINT_URL": "http://b:2", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
    settings = found.spark_settings()
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://b:2"
    assert settings["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert "secret" not in json.dumps(settings)
    plain = S3Settings.of({"AWS_DEFAULT_REGION": "eu-central-1"})
    assert plain.delta_options() == {"AWS_REGION": "eu-central-1"}
    assert "spark.hadoop.fs.s3a.endpoint" not in plain.spark_settings()


# --- listing --------------------------------------------------------------------------------------------------------------------------


def test_a_tree_costs_one_listing_and_the_same_files_count_as_on_disk(s3: S3Server, tmp_path: Path) -> None:
    names = ["a.json", "x/b.json", "x/y/c.json", "_hidden/d.json", "x/.e.json", "_k=1/f.json", "x/_k=1/.tmp/g.json", "z.csv"]
    for name in names:
        s3.put(f"landing/{name}", "{}")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    s3.put("landing2/other.json", "{}")
    for filters in (Filters(), Filters(name_glob="*.json"), Filters(hidden_segments="^[.]"), Filters(modified_after=1)):
        local = [p.removeprefix(f"{tmp_path}/") for p in list_files(str(tmp_path), filters).table["path"].to_pylist()]
        with s3.recorded() as requests:
            found = list_files(s3.uri("landing"), filters).table["path"].to_pylist()
        assert sorted(p.removeprefix(f"{s3.bucket}/landing/") for p in found) == sorted(local)
        assert sum("max-keys=1000" in url for _, url in requests) == 1
    assert len(list_files(s3.uri("nowhere"), Filters()).table) == 0


@pytest.mark.parametrize(("pattern", "expected"), [("2024-*/x", ["2024-01/x/a"]), ("*/x", ["2024-01/x/a", "2025-01/x/b"])])
def test_d09_patterns_match_below_the_bucket(s3: S3Server, pattern: str, expected: list[str]) -> None:
    for name in ("2024-01/x/a", "2025-01/x/b", "2024-01/y/c"):
        s3.put(f"in/{name}", "{}")
    found = list_files(s3.uri(f"in/{pattern}"), Filters()).table["path"].to_pylist()
    assert sorted(p.removeprefix(f"{s3.bucket}/in/") for p in found) == expected


def test_a_single_object_is_no_folder(s3: S3Server) -> None:
    s3.put("landing/a.json", "{}")
    with pytest.raises(LakeletError, match="CF_PATH_IS_NOT_A_DIRECTORY"):
        list_files(s3.uri("landing/a.json"), Filters())


# --- a source with all its state on S3 -----------------------------------------------------------------------------------------------


def test_files_are_inferred_planned_and_read_once_and_new_columns_are_remembered(s3: S3Server) -> None:
    s3.put("landing/day=1/a.json", '{"id": 1, "text": "x"}\n{"id": 2}\n')
    s3.put("landing/day=1/b.json.gz", gzip.compress(b'{"id": 3, "text": "y"}\n'))
    found = source(s3, inferColumnTypes="true")
    assert found.schema().simpleString() == "struct<id:bigint,text:string,day:int,_rescued_data:string>"
    rows = read_all(found)
    assert sorted((r["id"], r["text"], r["day"]) for r in rows) == [(1, "x", 1), (2, None, 1), (3, "y", 1)]
    paths = {r["__lakelet_metadata"]["file_path"] for r in rows}
    assert paths == {s3.uri("landing/day%3D1/a.json").replace("%3D", "="), s3.uri("landing/day=1/b.json.gz")}
    assert source(s3).pending('{"v": 1, "batch": 0}').files == 0
    s3.put("landing/day=2/c.json", '{"id": 4}\n')
    again = source(s3, inferColumnTypes="true")
    assert again.pending('{"v": 1, "batch": 0}').files == 1
    assert [r["id"] for r in read_all(again, after=0)] == [4]
    log = SchemaLog(s3.uri("state"))
    stored = log.append(1, t.StructType().add("id", t.LongType()), t.StructType(), {})
    lost = log.append(1, t.StructType().add("other", t.StringType()), t.StructType(), {})
    assert stored.data == lost.data
    assert [v.number for v in log.history()] == [0, 1]
    assert not [key for key in s3.objects() if "claim" in key]


def test_the_state_of_a_stream_on_s3_can_be_looked_at(s3: S3Server) -> None:
    s3.put("landing/a.json", '{"id": 1}\n')
    read_all(source(s3))
    found = checkpoint_states(s3.uri("state"), None)
    assert [path.rpartition("/")[2] for path in found["path"].to_pylist()] == ["a.json"]
    with pytest.raises(LakeletError, match="CF_STATE_INVALID_CHECKPOINT_PATH"):
        checkpoint_states(s3.uri("lake/checkpoints/main/default/raw/main.default.raw/0"), None)


def test_a_reader_is_told_no_secret(s3: S3Server) -> None:
    s3.put("landing/a.json", '{"id": 1}\n')
    assert "secret" not in source(s3).reader_spec().to_json()


def test_broken_records_go_to_a_folder_on_s3(s3: S3Server) -> None:
    s3.put("landing/a.json", '{"id": 1}\n{"id": \n')
    keys = {"cloudFiles.format": "json", "badRecordsPath": s3.uri("bad")}
    found = AutoLoaderSource.open(SourceSpec(s3.uri("landing"), keys, t.StructType().add("id", t.LongType())), state=s3.uri("state"))
    assert [r["id"] for r in read_all(found)] == [1]
    bad = [key for key in s3.objects() if key.startswith("bad/") and not key.endswith("/")]
    assert len(bad) == 1
    assert json.loads((any_path(s3.uri()) / bad[0]).read_text())["path"] == s3.uri("landing/a.json")


# --- places ---------------------------------------------------------------------------------------------------------------------------


def test_a_place_on_s3_answers_like_a_path(s3: S3Server) -> None:
    root = any_path(s3.uri("lake/", "s3"))
    assert isinstance(root, RemotePath)
    assert str(root) == s3.uri("lake")
    assert not root.exists()
    assert list(root.iterdir()) == []
    for name in ("tables/main/a/x/_delta_log/0.json", "tables/main/b/y/_delta_log/0.json", "tables/main/b/z/data", "system/lease-1.json"):
        (root / name).write_whole("{}")
    assert root.is_dir()
    assert [str(p).removeprefix(f"{root}/") for p in root.glob("tables/*/*/*/_delta_log")] == [
        "tables/main/a/x/_delta_log",
        "tables/main/b/y/_delta_log",
    ]
    assert [p.name for p in (root / "system").glob("lease-*.json")] == ["lease-1.json"]
    lease = root / "system" / "lease-1.json"
    assert (lease.parent, lease.read_text(), lease.is_dir(), lease.exists()) == (root / "system", "{}", False, True)
    size, written = lease.written() or (0, 0.0)
    assert (size, abs(written - time.time()) < 60) == (2, True)
    assert (root / "system").written() is (root / "nothing").written() is None
    lease.unlink(missing_ok=True)
    lease.unlink(missing_ok=True)
    assert not lease.exists()
    with pytest.raises(FileNotFoundError):
        lease.read_text()


def test_a_place_of_this_machine_is_a_path(tmp_path: Path) -> None:
    assert any_path(str(tmp_path)) == tmp_path
    assert isinstance(files_for(str(tmp_path))[0], LocalFiles)


def test_the_input_of_an_update_is_guessed_from_the_landing_zone(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelet.config.update_config import load_config
    from lakelet.storage.root import LastUpdate, StorageRegistry
    from lakelet.update.input_size import expected_bytes

    (tmp_path / "a.py").write_text("import dlt\n")
    s3.put("landing/x/a.json", "x" * 1000)
    params = {"landing": s3.uri("landing"), "other": "s3a://no-such-bucket/x"}
    remote = load_config(["a.py"], params=params, storage=s3.uri("lake"), cwd=tmp_path, environ={})
    local = load_config(["a.py"], params=params, cwd=tmp_path, environ={})
    assert expected_bytes(local, StorageRegistry(), pipeline_id="") == 1000
    assert expected_bytes(local, StorageRegistry(last_update=LastUpdate("a", "2199-01-01T00:00:00+00:00", True)), pipeline_id="") == 0
    assert expected_bytes(remote, StorageRegistry(), pipeline_id="") is None  # how much its tables hold is not known
    monkeypatch.setattr("lakelet.spark.launch.java_process.FULL_COMPILER_BYTES", 1000)
    assert expected_bytes(remote, StorageRegistry(), pipeline_id="") == 1000
