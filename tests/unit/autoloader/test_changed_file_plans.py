"""Files that change while Auto Loader works on them: what is read is one version of each file, whole (docs/semantics/sources.md).

A batch is listed, planned, spread over tasks, read and committed; a file may change between any two of these steps.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.autoloader.data_source import FilesReader, open_files
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError
from tests.autoloading import Boom, Program, parquet, schema_of

LINES = 6_000  # 6 MB of JSON, which is read in several parts
OVERWRITES = {"cloudFiles.allowOverwrites": "true"}
SCHEMA = "id BIGINT, x STRING"


def records(count: int, *, first: str = "x", pad: int = 1_000) -> bytes:
    """JSON lines with ids from 0; the first record has another text, as a correction makes one."""
    text = "y" * pad
    lines = [json.dumps({"id": i, "x": text}) for i in range(count)]
    lines[0] = json.dumps({"id": 0, "x": first})
    return "".join(line + "\n" for line in lines).encode()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "in").mkdir()
    return Program(tmp_path / "in", tmp_path, {}, SCHEMA)


def dies() -> None:
    raise Boom


def test_a_planned_file_that_was_corrected_and_grew_is_read_to_its_end(program: Program) -> None:
    program.put("a.json", records(LINES))
    with pytest.raises(Boom):
        program.run(read=dies)  # as a rule refuses the batch
    program.put("a.json", records(LINES, first="corrected " * 500))
    program.run()
    assert program.rows("id") == sorted(range(LINES), key=repr)
    assert program.run().batches == program.batches[:1]  # it is not read again


CHANGES: dict[str, Callable[[], bytes]] = {
    "grown": lambda: records(LINES + 1_000),
    "corrected": lambda: records(LINES, first="z" * 9000),
    "shrunk": lambda: records(LINES // 2),
    "emptied": lambda: b"",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", ["planned", "spread", "part"])
def test_whenever_a_file_changes_one_version_of_it_is_read_and_once(program: Program, moment: str, change: str) -> None:
    program.put("a.json", records(LINES))
    content, done = CHANGES[change](), []

    def changes() -> None:
        if not done:
            done.append(program.put("a.json", content))

    if moment == "planned":
        program.run(planned=changes)
    else:
        program.fails("CF_FILE_CHANGED", "a.json", **{moment: changes})
        program.run()
    assert program.rows("id", "x") == sorted(((r["id"], r["x"]) for r in map(json.loads, content.splitlines())), key=repr)


@pytest.mark.parametrize("name", ["a.json.gz", "a.json.bz2"])
def test_a_compressed_file_that_was_replaced_is_read_in_its_new_version(program: Program, name: str) -> None:
    pack = gzip.compress if name.endswith("gz") else bz2.compress
    program.put(name, pack(records(1000)))
    program.fails("CF_FILE_CHANGED", spread=lambda: program.put(name, pack(records(2000))[:-50]) and None)  # still being written
    program.put(name, pack(records(2000)))
    program.run()
    assert len(program.rows("id")) == 2000


def test_a_parquet_file_that_was_replaced_is_read_in_its_new_version(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    program = Program(tmp_path / "in", tmp_path, {"cloudFiles.format": "parquet"}, "id BIGINT")
    program.put("a.parquet", parquet(id=[1, 2]))
    program.fails("CF_FILE_CHANGED", spread=lambda: program.put("a.parquet", parquet(id=[1, 2, 3])[:-9]) and None)
    program.put("a.parquet", parquet(id=[1, 2, 3]))
    assert program.run().rows("id") == [1, 2, 3]


def test_a_file_that_was_half_written_is_not_taken_for_a_damaged_one_or_for_a_new_schema(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    program = Program(tmp_path / "in", tmp_path, {"cloudFiles.inferColumnTypes": "true"})
    program.put("a.json", b'{"id": 1}\n')
    program.fails("CF_FILE_CHANGED", spread=lambda: program.put("a.json", b'{"id": 1}\n{"id": 2, "ne": 3}') and None)
    program.put("a.json", b'{"id": 1}\n{"id": 2}\n')
    assert program.run().rows("id") == [1, 2]
    assert program.log() == 0


def test_with_overwrites_the_version_that_was_read_is_not_read_again_and_a_later_one_is(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    program = Program(tmp_path / "in", tmp_path, OVERWRITES, SCHEMA)
    program.put("a.json", records(2))
    with pytest.raises(Boom):
        program.run(read=dies)
    program.put("a.json", records(3))
    program.run()
    program.run()
    assert program.rows("id") == [0, 1, 2]
    program.put("a.json", records(4))
    program.run()
    assert program.rows("id") == [0, 0, 1, 1, 2, 2, 3]


def test_a_batch_that_the_table_has_keeps_its_files_so_that_a_later_version_is_still_found(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    program = Program(tmp_path / "in", tmp_path, OVERWRITES, SCHEMA)
    program.put("a.json", records(2))
    with pytest.raises(Boom):
        program.run(read=dies)  # the table has the rows, and the process died before Spark noted it
    program.put("a.json", records(3))
    program.start = {"committed": 0}
    program.run()
    assert [len(batch) for batch in program.batches] == [3, 3]  # the first one is not written to the table again
    assert program.files == [["a.json"], ["a.json"]]


def test_a_file_that_keeps_growing_is_read_in_one_piece_as_it_is(program: Program) -> None:
    program.put("a.json", records(LINES))
    size = LINES

    def grows() -> None:
        nonlocal size
        size += 1000
        program.put("a.json", records(size))

    for _ in range(2):
        program.fails("CF_FILE_CHANGED", spread=grows)
    program.start = {"changing": True}
    program.run(spread=grows)
    assert program.rows("id") == sorted(range(size), key=repr)
    assert program.files == [["a.json"]]


def test_a_planned_file_that_is_gone_fails_with_the_option_that_lets_it_go(program: Program) -> None:
    program.put("a.json", records(2)).put("b.json", records(3))
    with pytest.raises(Boom):
        program.run(read=dies)
    program.remove("a.json")
    program.fails("FAILED_READ_FILE", "a.json", "is missing", "ignoreMissingFiles")
    program.options["ignoreMissingFiles"] = "true"
    program.run()
    assert program.rows("id") == [0, 1, 2]
    program.put("a.json", records(2))  # put back: it was never read
    program.run()
    assert program.rows("id") == [0, 0, 1, 1, 2]


def test_a_change_that_keeps_the_size_is_seen_by_the_time(program: Program) -> None:
    content = records(LINES)
    program.put("a.json", content)
    program.fails("CF_FILE_CHANGED", part=lambda: os.utime(Path(program.folder) / "a.json", (1, 1)))
    assert len(program.run().rows("id")) == LINES


@pytest.mark.parametrize(("count", "fails"), [(LINES - 1, True), (LINES + 1, False)])
def test_a_batch_read_takes_a_file_that_grows_and_refuses_one_that_was_replaced(tmp_path: Path, count: int, fails: bool) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_bytes(records(LINES))
    spec, _ = open_files(SourceSpec(str(folder), {"cloudFiles.format": "json"}, schema_of(SCHEMA)), {})
    reader = FilesReader(spec)
    parts = reader.partitions()
    assert len(parts) > 1
    (folder / "a.json").write_bytes(records(count))
    if fails:
        with pytest.raises(LakeletError, match="CF_FILE_CHANGED"):
            list(reader.read(parts[0]))
        return
    ids = [row["id"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert ids[:LINES] == list(range(LINES))


def test_a_batch_all_of_whose_files_are_gone_is_let_go(program: Program) -> None:
    program.options["ignoreMissingFiles"] = "true"
    program.put("a.json", records(2))
    with pytest.raises(Boom):
        program.run(read=dies)
    program.remove("a.json")
    assert program.run().rows("id") == []
    program.put("a.json", records(2))
    assert program.run().rows("id") == [0, 1]
