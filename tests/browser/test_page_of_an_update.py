"""From a real update to the page: rows that are held, checks of tables, and the rules of a view, as `lakelet report` writes them."""

from __future__ import annotations

import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelet.cli.main import main
from tests.browser.conftest import served
from tests.spark.conftest import Project

PIPELINE = """
    import dlt
    from lakelet.transforms import filter_rows, keyed_hash

    @dlt.view
    @dlt.expect("paid", "amount > 0")
    def read():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", 1)
        return files.schema("id BIGINT, amount DOUBLE, day DATE").load(spark.conf.get("landing"))

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


FILES: dict[str, list[tuple[int | None, float]]] = {
    "a.json": [(1, 5.0), (1, 6.0), (2, -1.0)],
    "b.json": [(3, 400.0), (4, 7.0), (None, 500.0)],
}
DAILY = """\
-- What was paid on a day.
CREATE MATERIALIZED VIEW daily AS
SELECT day, sum(amount) AS paid FROM orders GROUP BY day;
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Project:
    made = Project(tmp_path_factory.mktemp("update") / "project", spark).write(PIPELINE).write(DAILY, "daily.sql")
    (made.folder / "expectations").mkdir()
    (made.folder / "expectations" / "orders.yml").write_text(textwrap.dedent(CHECKS), encoding="utf-8")
    for name, rows in FILES.items():
        made.arrive(name, *({"id": id, "amount": amount, "day": "2020-01-01"} for id, amount in rows))
    return made


@pytest.fixture(scope="module")
def report(project: Project, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of the project's one update."""
    if project.result is None:
        project.run()
    out = tmp_path_factory.mktemp("written") / "report"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        assert main(["report", "--storage", str(project.storage.root), "--out", str(out)]) == 0
    return (out / "index.html").as_uri()


def texts(page, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def test_an_open_page_follows_an_update_from_its_first_event_to_its_end(opened, project) -> None:
    with served(project.storage.root) as dashboard, ThreadPoolExecutor(1) as pool:
        page = opened(dashboard.url)
        assert "No updates yet" in page.inner_text("h1")
        update = pool.submit(project.run)
        page.wait_for_selector("h1 .badge.running", timeout=60_000)
        page.wait_for_selector("h1 .badge.ok", timeout=60_000)
        update.result(60)
        assert sorted(node.split("\n")[0] for node in page.locator(".node.ok").all_inner_texts()) == ["daily", "hashed", "orders"]


def test_held_rows_and_checks_of_an_update_are_on_the_page(opened, report) -> None:
    page = opened(report)
    tiles = {text.split("\n")[0]: text.split("\n")[1:] for text in page.locator(".tile").all_inner_texts()}
    assert tiles["Rows dropped"] == ["2", "by this update"]
    assert tiles["Rows in quarantine now"] == ["2", "of every update"]
    assert tiles["Table checks"] == ["2 failed", "2 checks, by this update"]
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


@pytest.mark.parametrize("address", ["update/99", "update/-1", "update/last"])
def test_an_address_of_no_update_says_so_and_leads_to_those_there_are(opened, report, address) -> None:
    page = opened(f"{report}#/{address}")
    page.wait_for_selector("h1:has-text('No such update')")
    page.locator("main a", has_text="All updates").click()
    page.wait_for_selector("h1:has-text('Updates')")
    assert len(texts(page, "main tbody tr")) == 1


def test_an_unknown_page_of_the_updates_is_the_newest(opened, report) -> None:
    page = opened(f"{report}#/updates/latest")
    page.wait_for_selector("h1:has-text('Updates')")
    assert len(texts(page, "main tbody tr")) == 1


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
    assert "not for the page" not in page.inner_text("[data-part=transforms]")


def test_versions_and_the_columns_above_and_below_are_on_the_page_of_a_dataset(opened, report) -> None:
    page = opened(report)
    page.locator(".node", has_text="orders").first.click()
    page.wait_for_selector("[data-part=versions] tbody tr")
    versions = [(text.split()[0], text.split()[-2]) for text in texts(page, "[data-part=versions] tbody tr")]
    assert versions == [("1", "write"), ("0", "write")]
    assert "amount double – daily.paid hashed.amount" in texts(page, "[data-part=columns] tbody tr")
    page.locator("[data-part=columns] a", has_text="daily").first.click()
    page.wait_for_selector("h1:has-text('daily')")
    assert "paid double orders.amount –" in texts(page, "[data-part=columns] tbody tr")


def test_the_text_of_a_sql_dataset_is_on_the_page_at_its_line(opened, report) -> None:
    page = opened(report)
    page.locator(".node", has_text="daily").first.click()
    page.wait_for_selector("pre.source")
    assert "daily.sql:2" in page.inner_text("[data-part=source] .sub")
    assert page.inner_text(".source .at").strip() == "2CREATE MATERIALIZED VIEW daily AS"


def test_the_timeline_says_what_a_flow_waited_for_and_how_much_its_source_had(opened, report, project) -> None:
    page = opened(f"{report}#/update/0")
    page.wait_for_selector(".timeline li")
    waited = {text.split()[0]: "waited for orders" in text for text in texts(page, ".timeline li")}
    assert waited == {"orders": False, "daily": True, "hashed": True}
    (backlog,) = texts(page, "section[aria-labelledby=s-backlog-of-sources] tbody tr")
    size = sum((project.landing / name).stat().st_size for name in FILES)
    assert backlog == f"orders 2 2 2 {size} B 0 0 B 4"
