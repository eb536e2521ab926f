"""Batches that become files of a folder, each once, wherever the process dies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.base.errors import LakeletError
from lakelet.files.paths import AnyPath, any_path
from lakelet.flows import sinks
from lakelet.flows.sinks import Outbox, send
from tests.s3 import S3Server


class Died(Exception):
    """The process ended."""


class Points:
    """Ends the process at the n-th point that it reaches; never for n = 0."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise Died(name)


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Points:
    made = Points()
    monkeypatch.setattr(sinks, "reached", made)
    return made


_numbers = iter(range(1_000_000))


def writer(rows: list[str], files: int = 2) -> sinks.Write:
    """Writes rows as Spark does: other names each time, checksums, a mark at the end."""

    def write(folder: AnyPath) -> int:
        assert isinstance(folder, Path)
        folder.mkdir(parents=True)
        for number in range(files):
            name = f"part-{number:05}-{next(_numbers)}.csv"
            (folder / name).write_text("".join(f"{row}\n" for row in rows[number::files]))
            (folder / f".{name}.crc").write_text("sum")
        (folder / "_SUCCESS").write_text("")
        return len(rows)

    return write


def outbox(folder: Path, sender: str = "flow") -> Outbox:
    return Outbox(folder / "out", folder / f"checkpoint-{sender}" / "sent.json", sender)


def rows_in(folder: Path) -> list[str]:
    return sorted(line for file in (folder / "out").glob("*.csv") for line in file.read_text().splitlines())


def test_a_batch_is_written_once_and_leaves_nothing_else(tmp_path: Path) -> None:
    assert send(outbox(tmp_path), 0, writer(["a", "b", "c"]), id="q") == 3
    assert send(outbox(tmp_path), 0, writer(["a", "b", "c"]), id="q") is None
    assert send(outbox(tmp_path), 1, writer(["d"]), id="q") == 1
    assert rows_in(tmp_path) == ["a", "b", "c", "d"]
    names = [re.sub(r"\d+-\d+", "N", file.name) for file in (tmp_path / "out").iterdir()]
    assert sorted(names) == ["_SUCCESS", *["part-N.csv"] * 4]


def test_a_batch_without_rows_gives_no_file(tmp_path: Path) -> None:
    assert send(outbox(tmp_path), 0, writer([]), id="q") == 0
    assert list((tmp_path / "out").iterdir()) == []


def test_a_new_checkpoint_sends_its_batches_beside_those_that_are_there(tmp_path: Path) -> None:
    send(outbox(tmp_path), 0, writer(["a"]), id="q")
    assert send(outbox(tmp_path), 0, writer(["a"]), id="after the reset") == 1
    assert rows_in(tmp_path) == ["a", "a"]


def test_files_that_the_receiver_has_taken_away_are_not_missed(tmp_path: Path, points: Points) -> None:
    points.left = 3  # after the first file was moved
    with pytest.raises(Died):
        send(outbox(tmp_path), 0, writer(["a", "b"]), id="q")
    [file] = (tmp_path / "out").glob("*.csv")
    file.unlink()
    assert send(outbox(tmp_path), 0, writer(["a", "b"]), id="q") == 2
    assert rows_in(tmp_path) == ["b"]


def test_an_empty_staging_folder_is_removed_when_its_batch_is_there(tmp_path: Path) -> None:
    send(outbox(tmp_path), 0, writer(["a"]), id="q")
    staging = tmp_path / "out" / json.loads((tmp_path / "checkpoint-flow" / "sent.json").read_text())["staging"]
    staging.mkdir()  # as a process leaves it that died between the removal of the last file and of the folder
    assert send(outbox(tmp_path), 0, writer(["a"]), id="q") is None
    assert not staging.exists()
    assert rows_in(tmp_path) == ["a"]


def test_a_note_of_another_format_is_refused(tmp_path: Path) -> None:
    send(outbox(tmp_path), 0, writer(["a"]), id="q")
    note = outbox(tmp_path).note
    assert isinstance(note, Path)
    note.write_text(json.dumps({**json.loads(note.read_text()), "format": 2, "staging": None}))
    with pytest.raises(LakeletError) as refused:
        send(outbox(tmp_path), 1, writer(["b"]), id="q")
    assert refused.value.code == "FORMAT_UNKNOWN"
    assert rows_in(tmp_path) == ["a"]


def senders(points: Points, folder: Path, deaths: list[int]) -> Iterator[int | None]:
    """Send two batches by two flows in turn; each sending dies as often as `deaths` says, and is tried again with other files."""
    for number in range(2):
        for sender in ("x", "y"):
            rows = [f"{sender}{number}{letter}" for letter in "abcde"]
            while deaths:
                points.left = deaths.pop()
                try:
                    yield send(outbox(folder, sender), number, writer(rows, files=3), id=sender)
                    break
                except Died:
                    continue
            points.left = 0
            send(outbox(folder, sender), number, writer(rows, files=2), id=sender)


@settings(max_examples=40, deadline=None)
@given(deaths=st.lists(st.integers(0, 8), max_size=12))
def test_every_row_is_there_once_however_often_the_process_dies(tmp_path_factory: pytest.TempPathFactory, deaths: list[int]) -> None:
    folder = tmp_path_factory.mktemp("sent")
    with pytest.MonkeyPatch.context() as patched:
        points = Points()
        patched.setattr(sinks, "reached", points)
        list(senders(points, folder, deaths))
    assert rows_in(folder) == sorted(f"{sender}{number}{letter}" for sender in "xy" for number in "01" for letter in "abcde")
    assert not [file for file in (folder / "out").iterdir() if file.name.startswith("_lakelet")]


def test_a_folder_on_s3_gets_its_files_too(tmp_path: Path, s3: S3Server, points: Points) -> None:
    """A death between the copy and the removal of the first name leaves both; the next attempt makes one of them."""
    out = Outbox(any_path(s3.uri("out")), tmp_path / "sent.json", "flow")

    def write(folder: AnyPath) -> int:
        for name in ("part-0.csv", "part-1.csv", "_SUCCESS"):
            s3.put(f"{str(folder).removeprefix(s3.uri())}/{name}", name)
        return 2

    points.left = 2  # the note is there, no file is in its place
    with pytest.raises(Died):
        send(out, 0, write, id="q")
    s3.put("out/part-0.csv", "part-0.csv")
    assert send(out, 0, write, id="q") == 2
    assert send(out, 0, write, id="q") is None
    assert sorted(name for name in s3.objects() if not name.endswith("/")) == ["out/_SUCCESS", "out/part-0.csv", "out/part-1.csv"]
