"""What a table got and lost between two versions, as its log says it (IV-20 to IV-22)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelet.files.delta_log import TableLog
from lakelet.plan.refreshes import Issue, TableChange
from lakelet.storage.delta import changed_rows
from lakelet.storage.delta.changed_rows import ChangedFiles, changed_files

Action = dict[str, Any]


def add(name: str, rows: int | None = 4, size: int = 40, **more: Any) -> Action:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {"add": {"path": name, "size": size, "partitionValues": {}, "dataChange": True, **stats, **more}}


def remove(name: str, size: int | None = 40, **more: Any) -> Action:
    known = {} if size is None else {"size": size, "partitionValues": {}, "stats": json.dumps({"numRecords": 4})}
    return {"remove": {"path": name, "dataChange": True, **known, **more}}


def described(id: str = "t", *partitions: str) -> Action:
    return {"metaData": {"id": id, "partitionColumns": list(partitions), "schemaString": "{}"}}


def marked(number: int, count: int) -> dict[str, Any]:
    return {"deletionVector": {"storageType": "i", "pathOrInlineDv": f"marks{number}", "sizeInBytes": 1, "cardinality": count}}


class Table:
    """A folder with a log; the files that it adds exist until `vacuum` takes them away."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.version = folder, -1
        (folder / "_delta_log").mkdir(parents=True)

    def commit(self, *actions: Action) -> int:
        self.version += 1
        lines = [{"commitInfo": {"operation": "WRITE"}}, *actions]
        self.file(self.version).write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        for action in actions:
            if "add" in action:
                (self.folder / action["add"]["path"]).touch()
        return self.version

    def file(self, version: int) -> Path:
        return self.folder / "_delta_log" / f"{version:020d}.json"

    def changes(self, before: int, after: int | None = None) -> ChangedFiles | Issue:
        return changed_files(TableLog(self.folder), "t", before, self.version if after is None else after)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(tmp_path / "t")
    made.commit(described(), add("a"), add("b"))
    return made


def names(lines: tuple[str, ...]) -> list[str]:
    return sorted(json.loads(line)["add"]["path"] for line in lines)


def found(changes: ChangedFiles | Issue) -> tuple[list[str], list[str]]:
    assert isinstance(changes, ChangedFiles), changes
    return names(changes.added), names(changes.removed)


def test_files_that_came_and_files_that_left_are_the_change(table: Table) -> None:
    table.commit(add("c", rows=7, size=70))
    table.commit(remove("a"), add("d", rows=3, size=30))
    changes = table.changes(0)
    assert found(changes) == (["c", "d"], ["a"])
    assert isinstance(changes, ChangedFiles)
    assert changes.change == TableChange("t", 0, 2, added=100, removed=40, rows=14, size=None, searched=140)
    assert found(table.changes(1)) == (["d"], ["a"])
    assert found(table.changes(0, 1)) == (["c"], [])
    (table.folder / "_delta_log" / f"{2:020d}.crc").write_text('{"tableSizeBytes":140}')
    assert changed_files(TableLog(table.folder), "t", 1, 2).change.size == 140  # type: ignore[union-attr]


def test_what_came_and_left_again_and_what_left_and_came_back_is_no_change(table: Table) -> None:
    table.commit(add("c"), remove("a"))
    table.commit(remove("c"), add("a"))
    changes = table.changes(0)
    assert found(changes) == ([], [])
    assert isinstance(changes, ChangedFiles)
    assert changes.change.is_empty


def test_moving_rows_to_other_files_is_no_change_and_new_rows_are_read_where_they_were(table: Table) -> None:
    table.commit(add("c"))
    table.commit(remove("a", dataChange=False), remove("c", dataChange=False), add("all", dataChange=False))
    assert found(table.changes(1)) == ([], [])
    assert found(table.changes(0)) == (["c"], [])
    table.commit(remove("all"), add("rest"))
    assert found(table.changes(0)) == (["c", "rest"], ["all"])


@pytest.mark.parametrize("gone", ["a", "c"], ids=["that left", "whose rows were moved"])
def test_a_deleted_file_cannot_be_read(table: Table, gone: str) -> None:
    table.commit(add("c"))
    table.commit(remove("a"), remove("c", dataChange=False), add("all", dataChange=False))
    (table.folder / gone).unlink()
    changes = table.changes(0)
    assert changes == Issue("DATA_FILE_MISSING", "1 file with earlier rows of t is deleted")


def test_marks_in_a_file_are_a_change_of_the_rows_that_they_take_away(table: Table) -> None:
    table.commit(remove("a"), add("a", **marked(1, 1)))
    changes = table.changes(0)
    assert found(changes) == (["a"], ["a"])
    assert isinstance(changes, ChangedFiles)
    assert [json.loads(line)["add"].get("deletionVector", {}).get("cardinality") for line in changes.added + changes.removed] == [1, None]
    assert (changes.change.added, changes.change.removed, changes.change.rows) == (0, 10, 1)
    table.commit(remove("a", **marked(1, 1)), add("a"))
    assert found(table.changes(0)) == ([], [])
    table.commit(remove("a"), add("a", **marked(2, 1)))
    between = table.changes(1)
    assert isinstance(between, ChangedFiles)  # as many rows are marked, but others
    assert not between.change.is_empty
    assert not between.change.appends


def test_marks_that_are_deleted_are_missing(table: Table) -> None:
    marks = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 8, "cardinality": 1}
    table.commit(remove("a"), add("a", deletionVector=marks))
    table.commit(remove("a", deletionVector=marks), add("c"))
    assert isinstance(table.changes(1), Issue)
    file = table.folder / "ab" / "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    file.parent.mkdir()
    file.touch()
    assert found(table.changes(1)) == (["c"], ["a"])


@pytest.mark.parametrize(
    ("actions", "type"),
    [
        ([described("other"), add("c")], "DATA_HAS_CHANGED"),
        ([described("t", "day"), add("c")], "PARTITION_SCHEMA_CHANGED"),
        ([remove("a", size=None)], "PRIOR_TIMESTAMP_MISSING"),
        ([add("c"), add("c")], "PRIOR_TIMESTAMP_MISSING"),
    ],
    ids=["another table", "other partitions", "a file without a size", "a file that came twice"],
)
def test_versions_that_cannot_be_compared_have_a_reason(table: Table, actions: list[Action], type: str) -> None:
    table.commit(*actions)
    changes = table.changes(0)
    assert isinstance(changes, Issue)
    assert changes.type == type


def test_other_columns_are_no_hindrance(table: Table) -> None:
    table.commit(described(), add("c"))
    assert found(table.changes(0)) == (["c"], [])


def test_commits_that_were_cleaned_up_and_tables_that_went_back_cannot_be_compared(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.commit(add("c"))
    table.commit(add("d"))
    assert isinstance(table.changes(5), Issue)
    monkeypatch.setattr(changed_rows, "MOST_FILES", 1)
    assert table.changes(0) == Issue("TOO_MANY_FILE_ACTIONS", "more than 1 files of t changed")
    table.file(1).unlink()
    assert table.changes(0) == Issue("PRIOR_TIMESTAMP_MISSING", "the commits of t since version 0 were cleaned up")
    assert found(table.changes(1)) == (["d"], [])


def test_files_without_statistics_have_unknown_rows(table: Table) -> None:
    table.commit(add("c", rows=None))
    changes = table.changes(0)
    assert isinstance(changes, ChangedFiles)
    assert changes.change.rows is None
    assert changes.change.added == 40
