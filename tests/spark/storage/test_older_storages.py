"""A storage that an older Lakelet wrote opens, has nothing to do, and goes on (docs/semantics/storage.md)."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

DATA = ROOT / "tests" / "spark" / "storage" / "data"
LANDING = Path("/tmp/lakelet-older-storage/landing")
"""Files are known by their whole paths: the landing folder stays where it was, the storage may move."""


@pytest.fixture
def older(project: Any) -> Iterator[Any]:
    """The storage after two updates by the Lakelet of before the rooms, with rows of one file each."""
    made = project((DATA / "older_pipeline.py").read_text())
    with tarfile.open(DATA / "storage-of-november-2026.tar.gz") as archive:
        archive.extractall(made.folder, filter="data")
    (made.folder / "old").rename(made.storage.root)
    LANDING.parent.mkdir()  # fails while another run of this test has it
    try:
        shutil.copytree(made.folder / "landing", LANDING, dirs_exist_ok=True)
        made.landing, made.parameters["landing"] = LANDING, str(LANDING)
        yield made
    finally:
        shutil.rmtree(LANDING.parent)


@pytest.mark.long
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
