"""What an update is going to read, as it is guessed before Spark starts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakelet.config.update_config import PipelineConfig, load_config
from lakelet.language.model import Kind
from lakelet.spark.launch.java_process import FULL_COMPILER_BYTES
from lakelet.storage.root import LastUpdate, StorageRegistry, StoredDataset
from lakelet.update.input_size import expected_bytes

LATER = LastUpdate("a", "2199-01-01T00:00:00+00:00", True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "pipeline.py").write_text("import dlt\n")
    for name, size in (("raw/a.json", 1000), ("t/a.csv", 100), ("other/a.json", 10)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x" * size)
    return tmp_path


def config(folder: Path, **flags: Any) -> PipelineConfig:
    return load_config(["pipeline.py"], cwd=folder, environ={}, **flags)


def stored(*datasets: StoredDataset) -> StorageRegistry:
    return StorageRegistry(last_update=LATER, datasets={dataset.name: dataset for dataset in datasets})


def table(folder: Path, name: str, size: int, kind: Kind = Kind.MATERIALIZED_VIEW, **more: Any) -> StoredDataset:
    file = folder / ".lakelet" / "tables" / "main" / "default" / name / "part.parquet"
    file.parent.mkdir(parents=True)
    file.write_text("x" * size)
    return StoredDataset(name, kind, f"tables/main/default/{name}", **more)


def committed(folder: Path, name: str, size: int) -> Path:
    """A table of one file that its log names; the folder of the log."""
    table(folder, name, size)
    log = folder / ".lakelet" / "tables" / "main" / "default" / name / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text(f'{{"commitInfo": {{}}}}\n{{"add": {{"path": "part.parquet", "size": {size}}}}}')
    return log


def test_files_below_mapped_folders_parameters_and_tables_from_outside_count(folder: Path) -> None:
    maps = [("/Volumes/raw", "raw"), ("/mnt/none", "none")]
    with_tables = config(folder, maps=maps, tables=[("t", "t")])
    assert expected_bytes(with_tables, StorageRegistry(), pipeline_id="") == 1100
    assert expected_bytes(with_tables, StorageRegistry(last_update=LATER), pipeline_id="") == 100
    assert expected_bytes(with_tables, StorageRegistry(last_update=LATER), pipeline_id="", again=True) == 1100
    assert expected_bytes(config(folder, params={"landing": "dbfs:/Volumes/raw"}, maps=maps), StorageRegistry(), pipeline_id="") == 1000
    asked = config(folder, params={"landing": "other", "mode": "none", "empty": ""})
    assert expected_bytes(asked, StorageRegistry(), pipeline_id="") == 10
    (folder / "other" / "b.json.gz").write_bytes(b"x" * 20)
    assert expected_bytes(asked, StorageRegistry(), pipeline_id="") == 10 + 8 * 20


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("spark.readStream.json('/Volumes/raw')", 1000),
        ('SELECT * FROM STREAM read_files("raw/sub/*.json")', 30),
        ("spark.read.json('./raw'), spark.read.json('raw/sub')", 1000),
        ("spark.read.json(f'{base}/raw'), 'see raw/ and other/'", None),
        ("spark.read.format('delta').load('t/delta/')", None),
        ("spark.read.json('../')", None),
    ],
)
def test_folders_that_code_names_count_once(folder: Path, code: str, size: int | None) -> None:
    (folder / "raw" / "sub").mkdir()
    (folder / "raw" / "a.json").write_text("x" * 970)
    (folder / "raw" / "sub" / "b.json").write_text("x" * 30)
    (folder / "t" / "delta" / "_delta_log").mkdir(parents=True)
    (folder / "pipeline.py").write_text(code)
    maps = [("/Volumes/raw", "raw")] if "Volumes" in code else []
    assert expected_bytes(config(folder, maps=maps), StorageRegistry(), pipeline_id="") == size


def test_a_folder_of_very_many_files_that_code_names_is_not_looked_through(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pipeline.py").write_text("spark.read.json('./raw')")
    monkeypatch.setattr("lakelet.update.input_size._MOST_FILES", 1)
    assert expected_bytes(config(folder), StorageRegistry(), pipeline_id="") == 1000
    (folder / "raw" / "b.json").touch()
    assert expected_bytes(config(folder), StorageRegistry(), pipeline_id="") is None


def test_a_folder_beside_the_storage_with_a_longer_name_counts(folder: Path) -> None:
    (folder / ".lakelet_raw").mkdir()
    (folder / ".lakelet_raw" / "a.json").write_text("x" * 7)
    (folder / "pipeline.py").write_text(f"spark.read.json('{folder}/.lakelet_raw')")
    assert expected_bytes(config(folder), StorageRegistry(), pipeline_id="") == 7


def test_of_the_stored_tables_what_views_read_the_last_time_counts_and_change_tables(folder: Path) -> None:
    asked = config(folder, params={"landing": "other"})
    stream = table(folder, "stream", 500, Kind.STREAMING_TABLE)
    views = table(folder, "by_day", 40, read_bytes=7), table(folder, "left", 30, read_bytes=90, active=False)
    assert expected_bytes(asked, stored(stream, *views), pipeline_id="") == 8 * 7
    changes = table(folder, "changes", 20, Kind.STREAMING_TABLE)
    log = committed(folder, "changes/_changes", 60)
    assert expected_bytes(asked, stored(stream, changes, *views), pipeline_id="") == 8 * (7 + 60)
    actions = ['{"commitInfo": {}}', '{"add": {"path": "new.parquet", "size": 4}}', '{"remove": {"path": "part.parquet"}}']
    (log / f"{1:020d}.json").write_text("\n".join(actions))
    (log / f"{2:020d}.json").write_text('{"commitInfo": {}}\n{"metaData": {}}')
    assert expected_bytes(asked, stored(stream, changes, *views), pipeline_id="") == 8 * (7 + 4), "what the last batch wrote"


def test_files_that_a_table_no_longer_has_do_not_count(folder: Path) -> None:
    asked, unknown = config(folder, params={"landing": "other"}), table(folder, "unknown", 5)
    known = table(folder, "known", 40, read_bytes=7)
    log = committed(folder, "rewritten", 60)
    (log / f"{0:020d}.crc").write_text('{"tableSizeBytes": 20}')
    assert expected_bytes(asked, stored(known, unknown), pipeline_id="") == 8 * (40 + 5 + 20)


def test_all_stored_tables_count_for_a_full_refresh_and_where_a_view_does_not_say_what_it_read(folder: Path) -> None:
    asked = config(folder, params={"landing": "other"})
    stream, known = table(folder, "stream", 500, Kind.STREAMING_TABLE), table(folder, "known", 40, read_bytes=7)
    assert expected_bytes(asked, stored(stream, known), pipeline_id="", again=True) == 10 + 8 * 540
    assert expected_bytes(asked, stored(stream, known, table(folder, "unknown", 5)), pipeline_id="") == 8 * 545


@pytest.mark.parametrize("how", ["after another pipeline", "after an update that did not complete", "with other code"])
def test_all_stored_tables_count_where_the_last_update_says_little_about_the_next(folder: Path, how: str) -> None:
    asked, registry = config(folder, params={"landing": "other"}), stored(table(folder, "known", 40, read_bytes=7))
    new = 0
    if how == "after another pipeline":
        registry, new = replace(registry, pipeline_id="another"), 10
    elif how == "with other code":
        os.utime(folder / "pipeline.py", (8_000_000_000, 8_000_000_000))
    else:
        registry = replace(registry, last_update=replace(LATER, clean=False))
    assert expected_bytes(asked, registry, pipeline_id="") == new + 8 * 40


def test_tables_of_other_pipelines_do_not_count(folder: Path) -> None:
    other = table(folder, "theirs", 40, read_bytes=7, owner="another")
    assert expected_bytes(config(folder, params={"landing": "other"}), stored(other), pipeline_id="") == 0


def test_a_guess_never_fails(folder: Path) -> None:
    (folder / "other" / "gone").symlink_to(folder / "nowhere")
    parameters = {"landing": "other", "columns": ",".join(f"column_{i}" for i in range(80)), "long": "/" + "x" * 300, "odd": "a\0b"}
    assert expected_bytes(config(folder, params=parameters), StorageRegistry(), pipeline_id="") == 10


def test_a_pipeline_of_much_code_is_sized_like_a_large_input(folder: Path) -> None:
    small = config(folder)
    assert expected_bytes(small, StorageRegistry(), pipeline_id="") is None
    small.files[0].write_text("# a comment\n" * 10_000)
    assert expected_bytes(small, StorageRegistry(), pipeline_id="") == FULL_COMPILER_BYTES
