"""A failing test of somebody who installed the wheel shows no frames of Lakelet, which lies in `site-packages` there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lakelet

TESTS = """
import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lakelet as package
from lakelet.storage.root import StorageRegistry, Storage, StoredDataset


@pytest.fixture(scope="session")
def spark():
    return None  # none of these tests needs it


@pytest.fixture
def p(lakelet):
    p = lakelet("pipeline.py")
    stored = StoredDataset("main.default.orders", "streaming_table", "tables/main/default/orders")
    (p.storage.root / stored.path).mkdir(parents=True)
    write_deltalake(str(p.storage.root / stored.path), pa.table({"id": [1, 2]}))
    Storage(p.storage.root).save(StorageRegistry(datasets={stored.name: stored}))
    return p


def test_place():
    assert "/site-packages/" in package.__file__


def test_rows(p):
    assert p.rows("orders") == [{"id": 1}, {"id": 3}]


def test_snapshot(p):
    p.matches_snapshot("orders")


def test_unknown_table(p):
    p.rows("oders")


def test_unknown_column(p):
    p.rows("orders", "di")


def test_insert(p):
    p.insert("raw", {"id": 1}, schema={"id": "no type"})


def test_update(lakelet):
    lakelet("missing.py").update()
"""
BROKEN = "tests: [{modle: a.sql}]"


@pytest.mark.slow
def test_failing_tests_show_no_frames_of_an_installed_lakelet(tmp_path: Path) -> None:
    packages, project = tmp_path / "venv/lib/python3/site-packages", tmp_path / "project"
    for folder in (packages, project):
        folder.mkdir(parents=True)
    (packages / "lakelet").symlink_to(Path(lakelet.__file__).parent)
    (project / "pipeline.py").write_text("import dlt\n")
    (project / "test_orders.py").write_text(TESTS)
    (project / "a.unit_tests.yml").write_text(BROKEN)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--rootdir",
        ".",
        "--continue-on-collection-errors",
    ]
    environ = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(command, cwd=project, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert "7 failed, 1 passed" in done.stdout, done.stdout
    for shown in (
        "orders: 1 missing and 1 unexpected, 1 row as expected",
        'Did you mean "main.default.orders"',
        "orders has no column 'di'",
        "a test has no model",
    ):
        assert shown in done.stdout, done.stdout
    assert [line for line in done.stdout.splitlines() if "site-packages" in line or "lakelet/testing" in line] == []
