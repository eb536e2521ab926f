"""`lakelet diff` against plain Python on random changes of code and data: no difference is missed, and none is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.inspection.pipeline_diff import DatasetDiff, DiffRequest, pipeline_diff
from tests.spark.conftest import Project
from tests.spark.inspection.random_changes import Change, Expected, Row, Table, expected, random_change, write_files

TABLES = 8
SEEDS = 25
"""200 changes."""


@pytest.mark.long
@pytest.mark.in_ci(every=13)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_difference_is_that_of_plain_python(project: Callable[..., Project], tmp_path: Path, seed: int) -> None:
    change, landing = random_change(seed, TABLES), tmp_path / "files"
    write_files(change.files_before, landing)
    made = project().write(Change.code(change.before, landing)).run()
    write_files(change.files_after, landing)
    made.write(Change.code(change.after, landing))
    before = made.snapshot()
    key = ("id",) if any(table.key and not table.grouped for table in change.after) else ()
    select = ("state:modified+", *(f"{name}+" for name in change.given))
    found = pipeline_diff(made.pipeline, DiffRequest(select=select, key=key))
    assert made.snapshot() == before
    datasets = {one.name.rsplit(".", 1)[-1]: one for one in found.datasets}
    named = change.edited | change.given
    assert datasets.keys() == named | {f"of_{name}" for name in named & {"t0"}}
    for old, new in zip(change.before, change.after, strict=True):
        if new.name in named:
            _check(datasets, change, old, new)


def _check(datasets: dict[str, DatasetDiff], change: Change, old: Table, new: Table) -> None:
    rows = old.rows(change.files_before[old.name]), new.rows(change.files_after[new.name])
    own = "k" if new.grouped else "id" if new.key else None
    schema = not new.grouped and old.columns.keys() != new.columns.keys()
    _compare(datasets[new.name], expected(*rows, own), rows, schema)
    if not new.is_read:
        return
    readers = Table.reader_rows(rows[0]), Table.reader_rows(rows[1])
    _compare(datasets[f"of_{new.name}"], expected(*readers, "k"), readers, False)


def _compare(found: DatasetDiff, right: Expected, rows: tuple[list[Row], list[Row]], schema: bool) -> None:
    assert found.rows is not None, found
    assert (found.rows.before, found.rows.after) == tuple(map(len, rows)), found.name
    assert (found.rows.added, found.rows.removed, found.rows.changed) == (right.added, right.removed, right.changed), (found, rows)
    assert bool(found.rows.schema) is schema, found
    if right.columns is not None:
        assert {column.name: column.changed for column in found.rows.columns} == right.columns, (found, rows)
    equal = not (schema or right.added or right.removed or right.changed)
    assert found.state == ("equal" if equal else "different"), found
