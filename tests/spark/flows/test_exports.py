"""The pipeline of docs/export.md: changes of silver and gold tables, and nothing else, leave the house."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT
from tests.spark.conftest import Project

BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MANY = range(10_000, 25_000)  # orders that make files too large to be written at once


def order(id: int, seq: int, country: str = "DE", amount: int = 0, gone: bool = False) -> dict[str, object]:
    return {"id": id, "seq": seq, "country": country, "amount": amount, "gone": gone}


def csv_changes(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    """The changes in the order in which they were made; those of one commit by id."""
    read = spark.read.option("header", "true").option("inferSchema", "true").csv(str(folder))
    few = read.where(f"id < {MANY[0]}").orderBy("_commit_version", "id")
    return [tuple(row) for row in few.select("_change_type", "id", "country", "amount").collect()]


@contextmanager
def reader(folder: Path) -> Iterator[dict[str, set[bytes]]]:
    """Reads every file that a receiver would take, again and again meanwhile; yields all contents that each had."""
    seen: dict[str, set[bytes]] = {}
    done = threading.Event()

    def read() -> None:
        while not done.wait(0.002):
            for file in folder.glob("[!._]*.csv"):
                seen.setdefault(file.name, set()).add(file.read_bytes())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def busy(p: Project) -> set[str]:
    """Flows of the last update that had something to do."""
    return {name for name, status in p.statuses().items() if status != "IDLE"}


@pytest.mark.slow
def test_the_exports_of_the_page_send_changes_only_and_are_idle_without_any(project: Any, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs/export.md").read_text(encoding="utf-8"))
    assert len(blocks) == 4
    p: Project = project(blocks[0][1])
    for name, body in blocks[1:]:
        p.write(body, name)
    export = tmp_path / "export"
    p.parameters["export"] = str(export)

    p.arrive("a.json", order(1, 1, "DE", 10), order(2, 1, "FR", 20), order(3, 1, "DE", 5), order(4, 1, "IT", 7))
    p.run()
    first = [("insert", 1, "DE", 10), ("insert", 2, "FR", 20), ("insert", 3, "DE", 5), ("insert", 4, "IT", 7)]
    assert csv_changes(p.spark, export / "orders") == first
    p.run()
    assert busy(p) == {"revenue_rows"}  # a snapshot is compared in every update

    p.arrive("b.json", order(2, 2, "FR", 25), order(3, 2, gone=True), order(1, 0, "DE", 99), *(order(id, 1, "US") for id in MANY))
    with reader(export / "orders") as seen:
        p.run()
    assert {name: len(contents) for name, contents in seen.items() if contents != {(export / "orders" / name).read_bytes()}} == {}
    assert csv_changes(p.spark, export / "orders") == [*first, ("update_postimage", 2, "FR", 25), ("delete", 3, "DE", 5)]
    gold = p.spark.read.format("delta").load(str(export / "revenue")).orderBy("_commit_version", "country")
    assert [tuple(row) for row in gold.select("_change_type", "country", "amount").collect()] == [
        *[("insert", "DE", 15), ("insert", "FR", 20), ("insert", "IT", 7)],
        *[("update_postimage", "DE", 10), ("update_postimage", "FR", 25), ("insert", "US", 0)],
    ]
    copy = p.spark.read.format("delta").load(str(export / "orders_copy")).where(f"id < {MANY[0]}").orderBy("id").collect()
    assert [tuple(row) for row in copy] == [(1, "DE", 10), (2, "FR", 25), (4, "IT", 7)]

    files = sorted(file.name for file in (export / "orders").iterdir())
    p.run()
    assert busy(p) == {"revenue_rows"}  # a snapshot is compared in every update
    assert sorted(file.name for file in (export / "orders").iterdir()) == files
    assert not [name for name in files if name.startswith((".", "_lakelet"))]
