"""The rows that a table got and lost, read from the files of its log (IV-20 to IV-23)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.files.delta_log import TableLog
from lakelet.storage.delta.changed_rows import ChangedFiles, ChangedRows, changed_files

ROWS = "SELECT id, CAST(id AS DOUBLE) AS x, CONCAT('n', id) AS name FROM RANGE"


class Table:
    """A Delta table of three columns in two files."""

    def __init__(self, spark: Any, path: Path, properties: str) -> None:
        self.spark, self.path, self.name = spark, path, f"delta.`{path}`"
        spark.sql(f"CREATE TABLE {self.name} (id BIGINT, x DOUBLE, name STRING) USING delta {properties}")
        spark.sql(f"INSERT INTO {self.name} {ROWS}(0, 6, 1, 1)")
        spark.sql(f"INSERT INTO {self.name} {ROWS}(6, 12, 1, 1)")

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("THIS", self.name))

    @property
    def version(self) -> int:
        return TableLog(self.path).version()

    def rows(self, version: int) -> Counter[Any]:
        return bag(self.spark.read.format("delta").option("versionAsOf", version).load(str(self.path)))

    def changes(self, before: int) -> ChangedRows:
        found = changed_files(TableLog(self.path), "t", before, self.version)
        assert isinstance(found, ChangedFiles), found
        return ChangedRows(self.path, found)


def bag(frame: Any) -> Counter[Any]:
    return Counter(str(row.asDict()) for row in frame.collect())


PLAIN = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
MARKED = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
PARTITIONED = "PARTITIONED BY (name)"


@pytest.fixture(params=[PLAIN, MARKED, MAPPED, PARTITIONED], ids=["plain", "marks", "mapping", "partitions"])
def table(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "t", request.param)


@pytest.mark.long
@pytest.mark.in_ci("marks", "partitions")
def test_rows_that_came_less_rows_that_left_are_the_difference_of_the_versions(table: Table) -> None:
    steps: list[tuple[str, set[int]]] = [
        ("INSERT INTO THIS VALUES (20, 7.0, 'new'), (21, double('NaN'), NULL)", {20, 21}),
        ("UPDATE THIS SET x = 0.0 WHERE id = 20", {20}),
        ("DELETE FROM THIS WHERE id IN (2, 7)", {2, 7}),
        ("OPTIMIZE THIS", set()),
        ("UPDATE THIS SET id = 30 WHERE id = 3", {3, 30}),
        ("INSERT OVERWRITE THIS SELECT id, x, name FROM THIS WHERE id < 100", set()),
        ("MERGE INTO THIS t USING (SELECT 5 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE", {5}),
    ]
    first = table.version
    for text, ids in steps:
        before = table.version
        table.sql(text)
        changes = table.changes(before)
        came, left = (bag(rows) for rows in (changes.added(table.spark), changes.removed(table.spark)))
        assert table.rows(before) + came - left == table.rows(table.version), text
        assert {row["id"] for row in changes.consolidated(table.spark).collect()} == ids, text
    changes = table.changes(first)
    came, left = (bag(rows) for rows in (changes.added(table.spark), changes.removed(table.spark)))
    assert table.rows(first) + came - left == table.rows(table.version)
    assert {row["id"] for row in changes.consolidated(table.spark).collect()} == {2, 3, 5, 7, 20, 21, 30}
    table.sql(f"RESTORE TABLE THIS TO VERSION AS OF {first}")
    assert table.changes(first).consolidated(table.spark).count() == 0


def test_rows_of_older_files_have_the_columns_of_the_later_version(table: Table) -> None:
    before = table.version
    table.sql("ALTER TABLE THIS ADD COLUMNS (extra MAP<STRING, INT>)")
    table.sql("UPDATE THIS SET extra = map('a', 1) WHERE id = 1")
    changes = table.changes(before)
    assert changes.removed(table.spark).columns == ["id", "x", "name", "extra"]
    assert changes.removed(table.spark).where("extra IS NOT NULL").isEmpty()
    found = {row["id"] for row in changes.consolidated(table.spark).collect()}
    assert found >= {1}  # maps do not compare: rows that were written again unchanged stay in


def test_the_changed_rows_are_those_of_a_renamed_column(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "t", MAPPED)
    before = table.version
    table.sql("DELETE FROM THIS WHERE id = 1")
    table.sql("ALTER TABLE THIS RENAME COLUMN name TO label")
    changes = table.changes(before)
    assert [row.asDict() for row in changes.consolidated(spark).collect()] == [{"id": 1, "x": 1.0, "label": "n1"}]


def test_a_zero_that_changes_its_sign_is_a_changed_row_with_both_signs(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "signs"
    for value in (0.0, -0.0):
        rows = spark.createDataFrame([(1, value, [value]), (2, 1.5, [2.5])], "id int, x double, more array<double>")
        rows.coalesce(1).write.format("delta").mode("overwrite").save(str(path))
    found = changed_files(TableLog(path), "signs", 0, 1)
    assert isinstance(found, ChangedFiles)
    changed = ChangedRows(path, found).consolidated(spark).selectExpr("id", "CAST(x AS STRING) AS x", "CAST(more AS STRING) AS more")
    assert sorted(map(tuple, changed.collect())) == [(1, "-0.0", "[-0.0]"), (1, "0.0", "[0.0]")]


def test_a_log_that_was_cleaned_up_says_which_table_it_is_and_another_table_has_another_id(spark: Any, tmp_path: Path) -> None:
    table, other = Table(spark, tmp_path / "t", PLAIN), Table(spark, tmp_path / "other", PLAIN)
    known = TableLog(table.path).table_id()
    for one in (table, other):
        DeltaTable(str(one.path)).create_checkpoint()
        for file in (one.path / "_delta_log").glob("*.json"):
            if int(file.stem) < one.version:
                file.unlink()
    assert known is not None
    assert TableLog(table.path).table_id() == known
    assert TableLog(other.path).table_id() not in (None, known)
    for file in (table.path / "_delta_log").glob("*.crc"):
        file.unlink()
    assert TableLog(table.path).table_id() == known, "from the checkpoint, as after a commit by a writer that leaves no checksum"
    assert TableLog(tmp_path / "none").table_id() is None
