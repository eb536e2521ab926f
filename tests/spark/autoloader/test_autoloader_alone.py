"""Auto Loader in a Spark application of its own: `register(spark)`, then `format("cloudFiles")` as on Databricks."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from lakelet.autoloader import register
from lakelet.autoloader.schema_growth import note_of
from lakelet.base.errors import LakeletError

OPTIONS = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}


@pytest.fixture
def application(spark: Any) -> Iterator[Any]:
    """The session with Auto Loader registered as a stand-alone program does it."""
    with register(spark), register(spark):
        yield spark


@pytest.fixture
def bare(spark: Any) -> Any:
    """The session with the data source only, as a program in another language uses it."""
    register(spark, wrap=False)
    return spark


@pytest.fixture
def land(tmp_path: Path) -> Callable[[str, str], Path]:
    clock = [1_700_000_000]

    def put(name: str, text: str) -> Path:
        file = tmp_path / "in" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        clock[0] += 1
        os.utime(file, (clock[0], clock[0]))
        return file.parent

    return put


def stream(spark: Any, folder: Path, options: dict[str, str], schema: str | None = None) -> DataFrame:
    reader = spark.readStream.format("cloudFiles").options(**OPTIONS).options(**options)
    return (reader if schema is None else reader.schema(schema)).load(str(folder))


def write(frame: DataFrame, root: Path) -> None:
    """One start of the program: everything that is there goes to a Delta table."""
    writer = frame.writeStream.format("delta").option("checkpointLocation", str(root / "checkpoint")).option("mergeSchema", "true")
    writer.trigger(availableNow=True).start(str(root / "table")).awaitTermination()


def rows(spark: Any, root: Path, *columns: str) -> list[Any]:
    return sorted(map(tuple, spark.read.format("delta").load(str(root / "table")).select(*columns).collect()), key=repr)


def versions(location: Path) -> list[str]:
    return sorted(file.name for file in (location / "_schemas").iterdir())


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("way", ["application", "bare"])
def test_E01_a_program_that_is_started_again_goes_on_with_the_new_column(way: str, request: Any, land: Any, tmp_path: Path) -> None:
    spark = request.getfixturevalue(way)
    log = tmp_path / "log"
    folder = land("a.json", '{"id":1}\n')
    options = {"cloudFiles.schemaLocation": str(log)}
    write(stream(spark, folder, options), tmp_path)

    land("b.json", '{"id":2,"c":{"v":"1"}}\n')
    land("c.json", '{"id":3,"d":true}\n')
    with pytest.raises(StreamingQueryException) as caught:
        write(stream(spark, folder, options), tmp_path)
    note = note_of(caught.value)
    assert note is not None, "the failure says that a retry helps"
    assert note.file.endswith(("/b.json", "/c.json"))
    assert rows(spark, tmp_path, "id") == [(1,)]
    assert versions(log) == ["0", "1"], "one version for the whole micro-batch"

    write(stream(spark, folder, options), tmp_path)
    write(stream(spark, folder, options), tmp_path)
    assert rows(spark, tmp_path, "id", "c.v", "d", "_rescued_data") == [(1, None, None, None), (2, "1", None, None), (3, None, True, None)]
    assert versions(log) == ["0", "1"]


@pytest.mark.long
@pytest.mark.parametrize("way", ["application", "bare"])
def test_SO9_files_state_and_checkpoint_that_are_copied_or_renamed_together_go_on(way: str, request: Any, tmp_path: Path) -> None:
    spark, app, copy = request.getfixturevalue(way), tmp_path / "app", tmp_path / "copy"

    def start(app: Path, name: str) -> list[Any]:
        (app / "in").mkdir(parents=True, exist_ok=True)
        (app / "in" / f"{name}.json").write_text(json.dumps({"name": name}))
        write(stream(spark, app / "in", {"cloudFiles.schemaLocation": str(app / "log")}), app)
        return rows(spark, app, "name")

    assert start(app, "a") == [("a",)]
    shutil.copytree(app, copy)
    assert start(copy, "b") == [("a",), ("b",)]
    app.rename(tmp_path / "renamed")
    assert start(tmp_path / "renamed", "c") == [("a",), ("c",)]


def test_D14_metadata_is_hidden_and_can_be_selected(application: Any, land: Any, tmp_path: Path) -> None:
    folder = land("a.json", '{"id":1}\n')
    frame = stream(application, folder, {"lakelet.state": str(tmp_path / "state")})
    assert frame.columns == ["id", "_rescued_data"]
    write(frame.selectExpr("id", "_metadata.file_name AS file", "_metadata.file_size AS size"), tmp_path)
    assert rows(application, tmp_path, "id", "file", "size") == [(1, "a.json", 9)]
    assert (tmp_path / "state" / "_schemas" / "0").exists()


def test_a_variant_column_is_made_by_spark(application: Any, land: Any, tmp_path: Path) -> None:
    folder = land("a.json", '{"v":{"a":{"b":[1,2]}}}\n')
    frame = stream(application, folder, {"lakelet.state": str(tmp_path / "state")}, "v VARIANT")
    write(frame.selectExpr("v:a.b[1]::int AS b"), tmp_path)
    assert rows(application, tmp_path, "b") == [(2,)]


def test_a_declared_schema_needs_a_place_for_the_state_and_names_the_option(application: Any, land: Any, tmp_path: Path) -> None:
    folder = land("a.json", '{"id":1,"x":2}\n')
    with pytest.raises(LakeletError, match="CF_INCORRECT_STREAM_USAGE") as caught:
        stream(application, folder, {}, "id INT")
    assert "lakelet.state" in str(caught.value)
    write(stream(application, folder, {"lakelet.state": str(tmp_path / "state"), "rescuedDataColumn": "_bad"}, "id INT"), tmp_path)
    ((id, bad),) = rows(application, tmp_path, "id", "_bad")
    assert (id, json.loads(bad)["x"]) == (1, 2)


def test_the_bare_source_takes_a_declared_schema_as_it_is(bare: Any, land: Any, tmp_path: Path) -> None:
    folder = land("a.json", '{"id":1,"x":2}\n')
    state = {"lakelet.state": str(tmp_path / "state")}
    with pytest.raises(Exception, match="CF_INCONSISTENT_OPTIONS"):
        write(stream(bare, folder, {**state, "rescuedDataColumn": "_bad"}, "id INT"), tmp_path / "never")
    write(stream(bare, folder, {**state, "rescuedDataColumn": "_bad"}, "id INT, _bad STRING"), tmp_path)
    ((id, bad),) = rows(bare, tmp_path, "id", "_bad")
    assert (id, json.loads(bad)["x"]) == (1, 2)


@pytest.mark.parametrize("way", ["application", "bare"])
def test_I15_without_schema_and_schema_location_the_missing_option_is_named(way: str, request: Any, land: Any) -> None:
    folder = land("a.json", '{"id":1}\n')
    with pytest.raises(Exception, match=r"CF_FAILED_TO_INFER_SCHEMA\.OTHER") as caught:
        stream(request.getfixturevalue(way), folder, {})
    assert "cloudFiles.schemaLocation" in str(caught.value)


def test_S10_a_batch_read_of_cloudFiles_is_refused(application: Any, land: Any) -> None:
    folder = land("a.json", '{"id":1}\n')
    with pytest.raises(LakeletError, match="CF_INCORRECT_BATCH_USAGE"):
        application.read.format("cloudFiles").option("cloudFiles.format", "json").load(str(folder))


def test_S10_a_batch_read_of_the_bare_source_is_refused(bare: Any, land: Any) -> None:
    folder = land("a.json", '{"id":1}\n')
    with pytest.raises(Exception, match="CF_INCORRECT_BATCH_USAGE"):
        bare.read.format("cloudFiles").schema("id INT").option("cloudFiles.format", "json").load(str(folder)).collect()


def test_D17_options_without_effect_make_one_warning_without_their_values(application: Any, land: Any, tmp_path: Path) -> None:
    folder = land("a.json", '{"id":1}\n')
    cloud = {"cloudFiles.useNotifications": "true", "cloudFiles.region": "x", "cloudFiles.awsSecretKey": "s3cr3t"}
    with pytest.warns(UserWarning, match="cloudFiles") as caught:
        stream(application, folder, {"cloudFiles.schemaLocation": str(tmp_path / "log"), **cloud})
    (message,) = [str(w.message) for w in caught if "cloudFiles" in str(w.message)]
    assert [key for key in cloud if key not in message] == []
    assert "s3cr3t" not in message


def test_a_stream_adds_no_key_to_the_environment_that_all_streams_of_a_session_share(spark, tmp_path):
    """Spark writes into it when a stream starts; were it to grow, a task of another stream could not be serialized at that moment."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
    own = set(spark.sparkContext.environment)
    register(spark, wrap=False)
    assert set(spark.sparkContext.environment) == own
    shared = spark._jsparkSession.sessionState().dataSourceManager().lookupDataSource("cloudFiles").dataSourceCls().envVars()
    before = set(shared)
    reader = (
        spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.schemaLocation", str(tmp_path / "s"))
    )
    writer = reader.load(str(tmp_path / "in")).writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.format("delta").start(str(tmp_path / "t")).awaitTermination()
    assert set(shared) == before
