"""Ledger, planning, schema log and blocks of lines, without Spark (spec 2.6, 5.1, 5.2, 5.4)."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.discovery import LISTING
from lakelet.autoloader.files import LocalFiles
from lakelet.autoloader.ledger import Ledger, Limits, take
from lakelet.autoloader.lines import count_lines, read_blocks
from lakelet.autoloader.options import parse_options
from lakelet.autoloader.planning import Planner, batch_of, offset_of
from lakelet.autoloader.schema_log import SchemaLog
from lakelet.errors import LakeletError


def listing(*names: str, size: int = 10) -> pa.Table:
    return pa.table([list(names), [size] * len(names), list(range(len(names)))], schema=LISTING)


def source(tmp_path: Path, **options: str) -> AutoLoaderSource:
    (tmp_path / "in").mkdir(exist_ok=True)
    keys = {"cloudFiles." + key: value for key, value in {"format": "json", **options}.items()}
    return AutoLoaderSource.open(SourceSpec(str(tmp_path / "in"), keys), state=str(tmp_path / "state"))


def planner(tmp_path: Path, **options: str) -> Planner:
    (tmp_path / "in").mkdir(exist_ok=True)
    keys = {"cloudFiles." + key: value for key, value in {"format": "json", **options}.items()}
    return Planner(replace(parse_options(SourceSpec(str(tmp_path / "in"), keys), {}).reader, state=str(tmp_path / "state")))


def test_a_batch_above_the_logged_offset_is_planned_anew(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.plan(0, listing("a", "b"))
    ledger.plan(1, listing("c"))
    assert ledger.unseen(listing("a", "b", "c", "d"), 0)["path"].to_pylist() == ["c", "d"]
    ledger.plan(1, listing("d"))
    assert ledger.planned(0, 1)["path"].to_pylist() == ["d"]
    assert ledger.unseen(listing("a", "b", "c", "d"), 1)["path"].to_pylist() == ["c"]


def test_compaction_keeps_every_batch_readable(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    for batch in range(100):
        ledger.plan(batch, listing(f"f{batch}"))
    assert len(list((tmp_path / "ledger").iterdir())) < 40
    assert sorted(ledger.seen(99).to_pylist()) == sorted(f"f{n}" for n in range(100))
    assert sorted(ledger.seen(50).to_pylist()) == sorted(f"f{n}" for n in range(51))
    assert ledger.planned(2, 4)["path"].to_pylist() == ["f3", "f4"]
    assert ledger.planned(97, 99)["path"].to_pylist() == ["f98", "f99"]
    with pytest.raises(LakeletError, match="CF_STATE_DAMAGED"):
        ledger.planned(99, 100)


def test_a_newer_format_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.plan(0, listing("a"))
    path = tmp_path / "ledger" / "0000000000.arrow"
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema.with_metadata({"lakelet.ledger.format": "2"})) as writer:
        writer.write_table(table.replace_schema_metadata({"lakelet.ledger.format": "2"}))
    with pytest.raises(LakeletError, match="FORMAT_NEWER"):
        ledger.seen(0)
    path.write_bytes(b"junk")
    with pytest.raises(LakeletError, match="CF_STATE_DAMAGED"):
        ledger.seen(0)


def test_d05_bytes_are_a_soft_cap_and_files_a_hard_one() -> None:
    rows = listing("a", "b", "c", "d", size=300)
    assert len(take(rows, Limits(1000, 1000))) == 4
    assert len(take(rows, Limits(1000, 500))) == 2
    assert len(take(rows, Limits(3, 1000))) == 3
    assert len(take(rows, Limits(1000, 1))) == 1
    assert len(take(rows, Limits())) == 4


def test_plans_are_deterministic_and_stop_when_nothing_is_left(tmp_path: Path) -> None:
    plans = planner(tmp_path, maxFilesPerTrigger="2")
    for name in "abc":
        (tmp_path / "in" / f"{name}.json").write_text("{}\n")
    plans.freeze()
    (tmp_path / "in" / "later.json").write_text("{}\n")
    limits = Limits(2, None)
    assert [plans.plan(-1, limits), plans.plan(0, limits), plans.plan(1, limits)] == [0, 1, 1]
    assert [len(task) for task in plans.parts(-1, 0)] == [2]
    again = planner(tmp_path)
    assert again.plan(1, limits) == 2
    assert [p.path[-10:] for task in again.parts(1, 2) for p in task] == ["later.json"]


def test_d16_a_new_checkpoint_reads_everything_again(tmp_path: Path) -> None:
    plans = planner(tmp_path)
    (tmp_path / "in" / "a.json").write_text("{}\n")
    assert plans.plan(-1, Limits()) == 0
    assert planner(tmp_path).plan(0, Limits()) == 0
    assert planner(tmp_path).plan(-1, Limits()) == 0


def test_d03_files_from_before_the_first_start_are_skipped_for_good(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("{}\n")
    first = source(tmp_path, includeExistingFiles="false")
    assert first.pending(None).files == 0
    (tmp_path / "in" / "b.json").write_text("{}\n")
    assert source(tmp_path, includeExistingFiles="false").pending(None).files == 1
    assert source(tmp_path, includeExistingFiles="true").pending(None).files == 1
    plans = planner(tmp_path, includeExistingFiles="true")
    assert plans.plan(-1, Limits()) == 0
    assert [p.path[-6:] for task in plans.parts(-1, 0) for p in task] == ["b.json"]


def test_offsets_carry_a_format() -> None:
    assert batch_of(offset_of(7)) == 7
    assert batch_of('{"v": 1, "batch": 3}') == 3
    assert batch_of(None) == -1
    with pytest.raises(LakeletError, match="FORMAT_NEWER"):
        batch_of('{"v": 2, "batch": 3}')
    with pytest.raises(LakeletError, match="CF_STATE_DAMAGED"):
        batch_of("junk")


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


def test_the_schema_log_tolerates_edits_and_refuses_newer_files(tmp_path: Path) -> None:
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
    with pytest.raises(LakeletError, match="FORMAT_NEWER"):
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
