"""The pipeline of docs/export.md: changes of silver and gold tables, and nothing else, leave the house."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT
from tests.spark.conftest import Project

BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def order(id: int, seq: int, country: str = "DE", amount: int = 0, gone: bool = False) -> dict[str, object]:
    return {"id": id, "seq": seq, "country": country, "amount": amount, "gone": gone}


def csv_changes(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    """The changes in the order in which they were made; those of one commit by id."""
    read = spark.read.option("header", "true").option("inferSchema", "true").csv(str(folder))
    return [tuple(row) for row in read.orderBy("_commit_version", "id").select("_change_type", "id", "country", "amount").collect()]


def busy(p: Project) -> set[str]:
    """Flows of the last update that had something to do."""
    return {name for name, status in p.statuses().items() if status != "IDLE"}


@pytest.mark.long
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

    p.arrive("b.json", order(2, 2, "FR", 25), order(3, 2, gone=True), order(1, 0, "DE", 99))
    p.run()
    assert csv_changes(p.spark, export / "orders") == [*first, ("update_postimage", 2, "FR", 25), ("delete", 3, "DE", 5)]
    gold = p.spark.read.format("delta").load(str(export / "revenue")).orderBy("_commit_version", "country")
    assert [tuple(row) for row in gold.select("_change_type", "country", "amount").collect()] == [
        *[("insert", "DE", 15), ("insert", "FR", 20), ("insert", "IT", 7)],
        *[("update_postimage", "DE", 10), ("update_postimage", "FR", 25)],
    ]
    copy = p.spark.read.format("delta").load(str(export / "orders_copy")).orderBy("id").collect()
    assert [tuple(row) for row in copy] == [(1, "DE", 10), (2, "FR", 25), (4, "IT", 7)]

    files = sorted(file.name for file in (export / "orders").iterdir())
    p.run()
    assert busy(p) == {"revenue_rows"}  # a snapshot is compared in every update
    assert sorted(file.name for file in (export / "orders").iterdir()) == files
    assert not [name for name in files if name.startswith((".", "_lakelet"))]
