"""From a real update to the page: rows that are held, checks of tables, and the rules of a view, as `lakelet report` writes them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from lakelet.cli.main import main
from tests.spark.conftest import Project

PIPELINE = """
    import dlt
    from lakelet.transforms import filter_rows, keyed_hash

    @dlt.view
    @dlt.expect("paid", "amount > 0")
    def read():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, amount DOUBLE, day DATE")
        return files.load(spark.conf.get("landing"))

    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect_or_drop("has_id", "id IS NOT NULL")
    @dlt.expect_or_drop("small", "amount < 100")
    def orders():
        return dlt.read_stream("read")

    @dlt.table
    def hashed():
        paid = dlt.read_stream("orders").transform(filter_rows("amount > 0"))
        return paid.transform(keyed_hash("id", key="not for the page"))
"""
CHECKS = """
    datasets:
      orders:
        checks:
          one_row_each: {unique: id, severity: critical}
          recent: {fresh: {column: day, within: 2 days}}
"""


@pytest.fixture
def report(tmp_path: Path, spark: object) -> str:
    project = Project(tmp_path / "project", spark).write(textwrap.dedent(PIPELINE))
    (project.folder / "expectations").mkdir()
    (project.folder / "expectations" / "orders.yml").write_text(textwrap.dedent(CHECKS), encoding="utf-8")
    rows = [(1, 5.0), (1, 6.0), (2, -1.0), (3, 400.0), (None, 500.0)]
    project.arrive("a.json", *({"id": id, "amount": amount, "day": "2020-01-01"} for id, amount in rows))
    project.run()
    assert main(["report", "--storage", str(project.storage.root), "--out", str(tmp_path / "report")]) == 0
    return (tmp_path / "report" / "index.html").as_uri()


def texts(page, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def test_held_rows_and_checks_of_an_update_are_on_the_page(opened, report) -> None:
    page = opened(report)
    tiles = {text.split("\n")[0]: text.split("\n")[1:] for text in page.locator(".tile").all_inner_texts()}
    assert tiles["Dropped"] == ["2", "2 held in quarantine"]
    assert tiles["Table checks"] == ["2 failed", "2 checks"]
    page.locator(".node", has_text="orders").first.click()
    page.wait_for_selector("[data-part=quarantine] table")
    held = texts(page, "[data-part=quarantine] tbody tr")
    assert len(held) == 2
    assert any("400" in row and "small" in row for row in held)
    assert any("500" in row and "has_id" in row and "small" in row for row in held)
    checks = texts(page, "[data-part=rules] [aria-label='Table checks'] tbody tr")
    assert any("one_row_each" in row and "critical" in row for row in checks)
    assert any("recent" in row for row in checks)
    rules = texts(page, "[data-part=rules] tbody tr")
    assert any("has_id" in row and "id IS NOT NULL" in row for row in rules)


def test_the_rules_of_a_view_are_on_the_page_with_what_they_demand(opened, report) -> None:
    page = opened(f"{report}#/quality")
    page.wait_for_selector("text=paid")
    assert any("paid" in row and "amount > 0" in row for row in texts(page, "main tbody tr"))


def test_the_transforms_of_a_query_are_on_the_page_without_secrets(opened, report) -> None:
    page = opened(report)
    page.locator(".node", has_text="hashed").first.click()
    page.wait_for_selector("[data-part=transforms]")
    calls = texts(page, "[data-part=transforms] li")
    assert [call.split("(")[0] for call in calls] == ["filter_rows", "keyed_hash"]
    assert "amount > 0" in calls[0]
    assert "not for the page" not in page.content()
