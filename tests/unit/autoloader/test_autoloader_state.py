"""Schema log and blocks of lines, without Spark (FS-21, AL-21)."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from pyspark.sql import types as t

from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.discovery.files import LocalFiles
from lakelet.autoloader.formats.text_blocks import count_lines, read_blocks
from lakelet.autoloader.source_schema import SchemaLog
from lakelet.base.errors import LakeletError


def source(tmp_path: Path, **options: str) -> AutoLoaderSource:
    (tmp_path / "in").mkdir(exist_ok=True)
    keys = {"cloudFiles." + key: value for key, value in {"format": "json", **options}.items()}
    return AutoLoaderSource.open(SourceSpec(str(tmp_path / "in"), keys), state=str(tmp_path / "state"))


def test_pending_and_a_dry_run_write_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text('{"id":1}\n')
    spec = SourceSpec(str(folder), {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"})
    dry = AutoLoaderSource.open(spec, state=None)
    assert dry.schema().simpleString() == "struct<id:bigint,_rescued_data:string>"
    assert dry.pending(None).files == 1
    wet = AutoLoaderSource.open(spec, state=str(tmp_path / "state"))
    assert (wet.pending(None).files, wet.pending(None).bytes, wet.pending(None).listed) == (1, 9, 1)
    assert not (tmp_path / "state").exists()
    wet.schema()
    assert sorted(p.name for p in (tmp_path / "state" / "_schemas").iterdir()) == ["0"]


def test_the_schema_log_tolerates_edits_and_refuses_other_formats(tmp_path: Path) -> None:
    log = SchemaLog(str(tmp_path))
    assert log.latest() is None
    schema = t.StructType([t.StructField("id", t.LongType())])
    log.append(0, schema, t.StructType([]), {"reason": "test"})
    other = log.append(0, t.StructType([]), t.StructType([]), {})
    assert other.data == schema  # the first writer of a version wins
    path = tmp_path / "_schemas" / "0"
    path.write_text("\n" + path.read_text().replace("{", "{\n ", 1) + "\n\n")
    latest = log.latest()
    assert latest is not None
    assert latest.data == schema
    (tmp_path / "_schemas" / "1").write_text("v2\n{}")
    with pytest.raises(LakeletError, match="FORMAT_UNKNOWN"):
        log.latest()
    (tmp_path / "_schemas" / "1").write_text("v1\n{oops")
    with pytest.raises(LakeletError, match="CF_STATE_DAMAGED"):
        log.latest()


def test_changed_hints_write_a_new_version(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id":1}\n')
    assert source(tmp_path, inferColumnTypes="true").columns().data.simpleString() == "struct<id:bigint>"
    again = source(tmp_path, inferColumnTypes="true", schemaHints="id STRING, extra DATE")
    assert again.columns().data.simpleString() == "struct<id:string,extra:date>"
    assert sorted(p.name for p in (tmp_path / "state" / "_schemas").iterdir()) == ["0", "1"]


@pytest.mark.parametrize("text", ["", "\n\n\n", "\n\n  \n"])
def test_a_folder_without_records_has_no_schema(tmp_path: Path, text: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(text)
    with pytest.raises(LakeletError, match="CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE"):
        source(tmp_path).schema()


def test_a_pattern_that_matches_no_file_says_where_files_lie(tmp_path: Path) -> None:
    for name in ("in/east/a.json", "in/east/b.json", "in/north/c.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"id": 1}\n')
    spec = SourceSpec(str(tmp_path / "in" / "w*st" / "*.json"), {"cloudFiles.format": "json"})
    with pytest.raises(LakeletError) as error:
        AutoLoaderSource.open(spec, state=str(tmp_path / "state")).schema()
    assert f"{tmp_path}/in/w*st/*.json has no file" in str(error.value)
    assert f"files lie in {tmp_path}/in/east/ (2 files), {tmp_path}/in/north/ (1 file)" in str(error.value)


def test_byte_ranges_of_a_file_cover_each_line_once(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = tmp_path / "f"
    for end in (b"\n", b""):
        lines = [bytes(rng.choices(b"abc", k=rng.choice([0, 1, 5, 40]))) for _ in range(200)]
        content = b"\n".join(lines) + end
        path.write_bytes(content)
        for step in (1, 2, 7, 50, 1000, 100_000):
            parts = [
                b"".join(read_blocks(LocalFiles(), str(path), at, min(step, len(content) - at))) for at in range(0, len(content), step)
            ]
            assert b"".join(parts) == content, step
        at = content.index(b"\n", 500) + 1
        assert count_lines(LocalFiles(), str(path), at) == content[:at].count(b"\n")
        zipped = tmp_path / "f.gz"
        zipped.write_bytes(gzip.compress(content))
        assert b"".join(read_blocks(LocalFiles(), str(zipped))) == content


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.json.gz").write_bytes(b"no gzip at all")
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b'{"id":1}\n' * 1000)[:-20])
    for name in ("broken.json.gz", "cut.json.gz", "absent.json"):
        with pytest.raises(LakeletError, match="FAILED_READ_FILE") as caught:
            list(read_blocks(LocalFiles(), str(tmp_path / name)))
        assert name in str(caught.value)
