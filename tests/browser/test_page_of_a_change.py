"""What changed code would do, on the page: the view of a result of `lakelet diff`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelet.dashboard.documents import Site
from lakelet.inspection.pipeline_diff import PipelineDiff
from tests.browser.test_page import texts, violations
from tests.event_logs import HOSTILE, shop, shop_tables, site
from tests.unit.cli.test_diff_texts import FAILED, ORDERS, ROWS, SAME, SKIPPED

PAIR = ({"order_id": 7, "amount": "1.50", "note": None}, {"order_id": 7, "amount": "1.65", "note": None})
NEW = replace(ORDERS, name="main.gold.brand_new", change=replace(ORDERS.change, new=True), rows=replace(ROWS, before=0, after=20), rules=())
KEPT = replace(SAME, name="main.bronze.payments_raw", notes=("values not compared, by --ignore: at",))


def changed_shop(updates_since: int = 0, *, note: str = "a note", column: str = "amount") -> Site:
    """The page of the shop with a difference: one dataset of each state, and an equal one with a note."""
    log = shop()
    pair = tuple({column if name == "amount" else name: value for name, value in row.items()} for row in PAIR)
    orders = replace(ORDERS, name="main.silver.orders", rows=replace(ROWS, changed_rows=(pair,)), notes=(note,))
    failed, skipped = replace(FAILED, name="main.gold.daily_sales"), replace(SKIPPED, name="main.gold.refund_rate")
    found = PipelineDiff(
        (failed, skipped, orders, NEW, replace(SAME, name="main.bronze.orders_raw"), KEPT), log.updates[-1 - updates_since].id
    )
    return replace(site(log, tables=shop_tables()), diff=found.as_json())


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (390, "light"), (390, "dark")])
def test_the_change_fits_the_screen_and_axe_finds_nothing(opened, written, width, theme) -> None:
    page = opened(f"{written(changed_shop(note='long_' * 60))}#/change", width=width, theme=theme)
    page.wait_for_selector("[data-part='main.silver.orders'] .edit")
    for summary in page.locator("main summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:
        assert page.locator(".scroll").evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length") == 0
    assert violations(page) == []


def test_datasets_that_differ_come_first_and_the_base_is_named(opened, written) -> None:
    page = opened(f"{written(changed_shop())}#/change")
    assert texts(page, ".sum") == ["6 datasets compared: 1 failed, 1 skipped, 1 different, 1 new, 2 equal."]
    rows = texts(page, "[aria-label='Datasets of the change'] tbody tr")
    assert rows == [
        "gold.daily_sales failed code – – – – –",
        "gold.refund_rate skipped nothing of its own – – – – –",
        "silver.orders different code, rules 1,001 2 1 5 2 columns",
        "main.gold.brand_new new new 20 2 1 5 –",
        "bronze.orders_raw equal code, rules 1 – – – –",
        "bronze.payments_raw equal code, rules 1 – – – –",
    ]
    assert texts(page, "nav.main [aria-current]") == ["Change"]
    assert page.locator(".error").count() == 0
    page.click(".sub a")
    page.wait_for_selector("h1:has-text('update')")


def test_a_dataset_shows_all_that_differs_in_it(opened, written) -> None:
    page = opened(f"{written(changed_shop())}#/change/main.silver.orders")
    part = "[data-part='main.silver.orders']"
    page.wait_for_selector(part)
    assert page.evaluate("scrollY") > 0
    assert texts(page, f"{part} [aria-label='Changed in its definition'] li") == ["code orders (silver/orders.py)", "rules positive"]
    tiles = [text.split("\n")[:3] for text in page.locator(f"{part} .tile").all_inner_texts()]
    assert tiles == [
        ["Rows", "1,000 → 1,001", "by order_id (check unique_order_id)"],
        ["Added", "2", "0.20% of the rows after"],
        ["Removed", "1", "0.10% of the rows before"],
        ["Changed", "5", "0.50% of the rows on both sides"],
        ["Rows dropped by rules", "1 → 4", "before and after"],
    ]
    name = "of silver.orders"
    assert texts(page, f"[aria-label='Schema {name}'] tbody tr") == ["discount – decimal(10,2)", "currency string –"]
    assert texts(page, f"[aria-label='Columns {name}'] tbody tr")[0] == "amount 5 0.50% order_id=7: 1.50 → 1.65 order_id=9: NULL → 2.20"
    assert texts(page, f"[aria-label='Sample rows {name}'] tbody tr:first-child .edit") == ["1.50 → 1.65"]
    assert texts(page, f"[aria-label='Sample rows {name}'] tbody th") == ["changed", "removed", "added"]
    assert texts(page, f"[aria-label='Rules {name}'] tbody tr") == ["positive drop 1 4"]
    assert texts(page, f"{part} .texts li") == ["a note"]
    assert texts(page, "[data-part='main.gold.daily_sales'] .failure .sentence") == ["the flow failed"]
    assert texts(page, "[data-part='main.bronze.payments_raw'] .texts li") == ["values not compared, by --ignore: at"]
    assert page.locator("[data-part='main.bronze.orders_raw']").count() == 0


def test_a_click_leads_from_the_list_to_the_details_and_on_to_the_dataset(opened, written) -> None:
    page = opened(f"{written(changed_shop())}#/change")
    page.click("[aria-label='Datasets of the change'] >> text=silver.orders")
    page.evaluate("() => scrollY > 0 || new Promise(done => addEventListener('scroll', () => done(true), {once: true}))")
    page.click("[data-part='main.silver.orders'] h2 a")
    page.wait_for_selector("h1:has-text('silver.orders')")


def test_a_difference_from_before_the_newest_update_says_so(opened, written) -> None:
    page = opened(f"{written(changed_shop(2))}#/change")
    assert texts(page, ".sub .error") == ["2 updates ran since: compare again with lakelet diff --json."]


def test_names_and_values_do_not_become_markup(opened, written) -> None:
    page = opened(f"{written(changed_shop(note=HOSTILE, column=HOSTILE))}#/change")
    page.wait_for_selector(f"text={HOSTILE[:10]}")
    assert page.title() == "What the change would do · Lakelet"
    assert page.locator("main img").count() == 0


def test_a_page_without_a_difference_has_no_tab_and_says_how_to_make_one(opened, written) -> None:
    page = opened(f"{written(site(shop(3)))}#/change")
    assert texts(page, "nav.main a") == ["Datasets", "Quality", "Updates"]
    assert "lakelet report --diff change.json" in page.inner_text(".empty")
