"""The files of a table, added up from the commits of its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelet.storage.delta import known_files
from lakelet.storage.delta.known_files import LiveFiles


def add(name: str, size: int = 10, **more: Any) -> dict[str, Any]:
    return {"add": {"path": name, "size": size, "partitionValues": {}, "dataChange": True, **more}}


def remove(name: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": name, "dataChange": True, **more}}


class Table:
    def __init__(self, folder: Path) -> None:
        self.folder, self.version = folder, -1
        (folder / "_delta_log").mkdir(parents=True)

    def commit(self, *actions: dict[str, Any]) -> int:
        self.version += 1
        lines = [{"commitInfo": {"operation": "WRITE"}}, *actions]
        (self.folder / "_delta_log" / f"{self.version:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return self.version


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


def names(lines: list[str] | None) -> list[str] | None:
    return None if lines is None else sorted(json.loads(line)["add"]["path"] for line in lines)


def test_commits_are_added_up_as_they_come(table: Table) -> None:
    live = LiveFiles(table.folder)
    assert live.of(-1) is None
    assert names(live.of(table.commit({"metaData": {}}, add("a")))) == ["a"]
    table.commit(add("b"))
    assert names(live.of(table.commit(remove("a"), add("c")))) == ["b", "c"]
    assert names(live.of(2)) == ["b", "c"]
    assert live.of(table.commit(remove("b"), remove("c"))) is None


@pytest.mark.parametrize(
    "actions",
    [[remove("never")], [add("a", deletionVector={"storageType": "u"})], [remove("a", deletionVector={"storageType": "u"})]],
    ids=["unknown file", "rows marked as deleted", "marks taken away"],
)
def test_a_log_that_does_not_tell_the_files_is_left_to_delta_from_then_on(table: Table, actions: list[dict[str, Any]]) -> None:
    live = LiveFiles(table.folder)
    table.commit(add("a"))
    assert live.of(table.commit(*actions)) is None
    assert live.of(table.commit(add("b"))) is None


def test_large_tables_and_logs_without_their_beginning_are_left_to_delta(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.commit(add("a", size=known_files.MOST_BYTES + 1))
    assert LiveFiles(table.folder).of(0) is None
    table.commit(remove("a"), add("b"), add("c"))
    assert names(LiveFiles(table.folder).of(1)) == ["b", "c"]
    monkeypatch.setattr(known_files, "MOST_FILES", 1)
    assert LiveFiles(table.folder).of(1) is None
    monkeypatch.setattr(known_files, "MOST_FILES", 9)
    monkeypatch.setattr(known_files, "MOST_COMMITS", 1)
    assert LiveFiles(table.folder).of(1) is None
    monkeypatch.setattr(known_files, "MOST_COMMITS", 9)
    (table.folder / "_delta_log" / f"{0:020d}.json").unlink()
    assert LiveFiles(table.folder).of(1) is None


def test_a_table_that_was_made_again_begins_again(table: Table, tmp_path: Path) -> None:
    live = LiveFiles(table.folder)
    table.commit(add("a"))
    assert names(live.of(table.commit(add("b")))) == ["a", "b"]
    table.version = -1
    assert names(live.of(table.commit(add("c")))) == ["c"]
