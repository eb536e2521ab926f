"""A storage that an older Lakelet wrote opens, has nothing to do, and goes on (docs/semantics/storage.md)."""

from __future__ import annotations

import tarfile
from typing import Any

import pytest

from tests.paths import ROOT

DATA = ROOT / "tests" / "spark" / "storage" / "data"
PIPELINE = (DATA / "older_pipeline.py").read_text()


@pytest.fixture
def older(project: Any) -> Any:
    """Two updates of the pipeline by the last Lakelet before change tables had a state of their own format; moved here with its landing folder."""
    made = project(PIPELINE)
    with tarfile.open(DATA / "storage-of-november-2026.tar.gz") as archive:
        archive.extractall(made.folder, filter="data")
    (made.folder / "old").rename(made.storage.root)
    return made


def test_an_older_storage_has_nothing_to_do_and_goes_on_with_new_rows(older: Any) -> None:
    versions = older.versions()
    assert set(versions) == {"raw", "totals", "latest", "history"}
    older.run()
    assert older.versions() == versions
    older.arrive("c.json", {"id": 1, "name": "late", "at": 2, "op": "U"}, {"id": 2, "name": "stale", "at": 4, "op": "U"})
    older.run()
    assert older.rows("latest", "id", "name", "at") == [("1", "b", "3"), ("3", "c", "4")]
    assert older.rows("history", "id", "name", "__START_AT", "__END_AT") == [
        ("1", "a", "1", "2"),
        ("1", "b", "3", None),
        ("1", "late", "2", "3"),
        ("2", "a", "2", "4"),
        ("2", "stale", "4", "5"),
        ("3", "c", "4", None),
    ]
    assert older.rows("totals", "name", "rows") == [("a", 3), ("b", 1), ("c", 1), ("late", 1), ("stale", 1)]
