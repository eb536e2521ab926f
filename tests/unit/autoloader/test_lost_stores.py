"""A disk or store that is full, or goes away in the middle of a step: a named error, nothing lost, and the next start goes on (SO-8)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from lakelet.autoloader.discovery.files import LocalFiles, RemoteFiles
from lakelet.files.stores import S3
from tests.autoloading import Program

IGNORING = {"ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"}
SCHEMA = "id BIGINT"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "in").mkdir()
    made = Program(tmp_path / "in", tmp_path, {"cloudFiles.maxFilesPerTrigger": "2"}, SCHEMA)
    for number in range(5):
        made.put(f"{number}.json", f'{{"id": {number}}}\n')
    return made


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_full_disk_while_state_is_written_loses_nothing(program: Program, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.base.failpoints._hits", {"files.written": 0})
    monkeypatch.setenv("LAKELET_FAILPOINT", f"files.written@{nth}:ENOSPC")
    try:
        program.run()
    except Exception as problem:
        assert "[STORAGE_FAILED]" in str(problem)  # noqa: PT017 - the last of the writes may not come
        assert "No space left on device" in str(problem)  # noqa: PT017
    else:
        pytest.fail("the state was written with fewer steps") if nth <= 3 else None
    assert not list(program.root.rglob(".tmp-*"))
    monkeypatch.delenv("LAKELET_FAILPOINT")
    assert program.run().rows("id") == [0, 1, 2, 3, 4]


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, kind: int) -> Iterator[None]:
    """Source files cannot be opened meanwhile."""
    whole = LocalFiles.open

    def opened(self: LocalFiles, path: str) -> BinaryIO:
        if path.endswith("1.json"):
            raise OSError(kind, os.strerror(kind), path)
        return whole(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "open", opened)
        yield


@pytest.mark.parametrize("kind", [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOTCONN])
def test_a_disk_that_does_not_answer_is_no_corrupt_file(program: Program, kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program.options |= {**IGNORING, "badRecordsPath": str(program.root / "bad")}
    with failing(monkeypatch, kind):
        program.fails("FAILED_READ_FILE", "1.json", os.strerror(kind))
    assert program.run().rows("id") == [0, 1, 2, 3, 4]
    assert not (program.root / "bad").exists()


def test_a_landing_folder_that_goes_away_for_a_while_loses_nothing(program: Program) -> None:
    folder = Path(program.folder)
    away = folder.with_name("away")
    program.options |= IGNORING
    program.run(planned=lambda: folder.exists() and folder.rename(away) and None)  # the files are gone when they are to be read
    assert program.rows("id") == []
    away.rename(folder)
    program.fails("FAILED_READ_FILE", spread=lambda: folder.exists() and folder.rename(away) and None)
    away.rename(folder)
    assert program.run().rows("id") == [0, 1, 2, 3, 4]


class Leaving:
    """A file of a store that stops answering after some bytes."""

    def __init__(self, stream: Any, room: int) -> None:
        self._stream, self._room = stream, room

    def readinto(self, buffer: Any) -> int:
        if self._stream.tell() >= self._room:
            raise OSError("When reading: AWS Error NETWORK_CONNECTION during GetObject operation")
        piece = self._stream.read(min(len(buffer), self._room))
        buffer[: len(piece)] = piece
        return len(piece)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class System:
    """The file system of this machine as a store that goes away while a file is read."""

    def __init__(self, system: Any, room: int) -> None:
        self._system, self._room = system, room

    def open_input_file(self, path: str) -> Any:
        return Leaving(self._system.open_input_file(path), self._room)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)


def test_a_store_that_goes_away_while_a_file_is_read_is_no_corrupt_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    (tmp_path / "in").mkdir()
    program = Program(tmp_path / "in", tmp_path, IGNORING, SCHEMA)
    program.put("a.json", b"".join(b'{"id": %d}\n' % i for i in range(20_000)))

    def remote(room: int) -> Any:
        return lambda location: (RemoteFiles(System(fs.LocalFileSystem(), room), "store:/", "", S3), location)

    with monkeypatch.context() as patched:
        patched.setattr("lakelet.autoloader.part_reader.files_for", remote(100_000))
        program.fails("STORE_FAILED", "a.json", "NETWORK_CONNECTION")
    with monkeypatch.context() as patched:
        patched.setattr("lakelet.autoloader.part_reader.files_for", remote(1 << 30))
        program.run()
    assert len(program.rows("id")) == 20_000
