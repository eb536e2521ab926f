"""The parts of the page about what waits, who is affected and which input was bad."""

from __future__ import annotations

import pytest

from tests.event_logs import Log, shop, site
from tests.unit.storage.test_freshness import chain, complete, faulty_input


def cells(page, label: str) -> list[list[str]]:
    rows = page.locator(f"[aria-label='{label}'] tbody tr").all()
    return [[" ".join(cell.split()) for cell in row.locator("th, td").all_inner_texts()] for row in rows]


def test_a_failed_dataset_stands_first_with_all_that_is_downstream_and_whose_it_is(opened, written) -> None:
    page = opened(written(site(shop())))
    first = cells(page, "Who is affected")[0]
    assert first[0] == "silver.payments owner orders@example.com"
    assert first[1].endswith("failed")
    assert first[3] == "gold.daily_sales (finance@example.com)"
    page.click("[aria-label='Who is affected'] >> text=gold.daily_sales")
    page.wait_for_selector("h1:has-text('daily_sales')")


def test_tables_that_are_behind_stand_before_the_others_with_the_rows_that_wait(opened, written) -> None:
    page = opened(written(site(shop())))
    rows = cells(page, "Freshness")
    assert rows[0][0].startswith("gold.daily_sales")
    assert rows[0][1] == "behind by 6 h 00 min"
    assert rows[0][4:] == ["76,256", "bronze.orders_raw, bronze.payments_raw, silver.orders"]
    assert rows[-1][1] == "up to date"


def test_where_nothing_failed_and_nothing_waits_nobody_is_affected(opened, written) -> None:
    log = Log()
    complete(chain(log))
    page = opened(written(site(log)))
    assert page.locator("[aria-label='Who is affected']").count() == 0
    assert [row[1] for row in cells(page, "Freshness")] == ["up to date"]


def test_on_a_phone_long_names_of_what_is_downstream_wrap_in_their_cards(opened, written) -> None:
    log, long = Log(), [f"main.warehouse.{'a_table_with_a_long_name_' * 3}{number}" for number in range(15)]
    for failed in (False, True):
        update = log.update()
        for number, name in enumerate(long):
            update.define(name, reads=long[:number][-1:], owner="somebody.with.a.long.name@department.example.com")
        for number, name in enumerate(long):
            if failed and number:
                update.flow(name, None, status="SKIPPED")
            else:
                update.flow(name, 1, 2, status="FAILED" if failed else "COMPLETED", rows=3, error=("FLOW_FAILED", "no") if failed else None)
        update.state("FAILED" if failed else "COMPLETED", 3)
    page = opened(written(site(log)), width=390)
    for label in ("Who is affected", "Freshness"):
        box = page.locator(f"[aria-label='{label}']")
        assert box.locator("tbody tr").count() >= 1
        assert box.evaluate("e => e.scrollWidth <= e.clientWidth")
        assert box.locator("td").first.evaluate("e => getComputedStyle(e, '::before').content") in ('"Problem"', '"State"')
    assert cells(page, "Who is affected")[0][3].endswith("and 2 more")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [1400, 390])
def test_bad_input_of_a_dataset_has_kind_number_trend_place_and_what_to_do(opened, written, width) -> None:
    address = written(site(faulty_input()))
    page = opened(f"{address}#/dataset/main.s.raw", width=width)
    rows = {row[0].split(" ")[0]: row for row in cells(page, "Bad input")}
    assert list(rows) == ["broken", "left", "rescued", "unread", "undecodable"]
    assert rows["broken"][1] == "3"
    assert rows["broken"][3].startswith("more than before (2)")
    assert rows["broken"][4].startswith("/in/a.json, line 6")
    assert '{"id": 3' in rows["broken"][4]
    assert rows["undecodable"][4].endswith("byte 0xFF at 3: latin-1?")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def broken_rules() -> Log:
    """Two updates of one dataset; the second has the rows that broke its rule, the first sounder numbers."""
    log = Log()
    for failed, rows in ((1, []), (3, [{"id": "404", "amount": "-5.0", "note": "x" * 200}, {"id": "405", "amount": None, "note": "***"}])):
        update = log.update()
        update.define("main.s.orders", rules={"positive": ("amount > 0", "WARN"), "known": ("customer IS NOT NULL", "DROP")})
        update.flow("main.s.orders", 1, 2, rows=10, rules={"positive": (10 - failed, failed), "known": (10, 0)}, samples={"positive": rows})
        update.state("COMPLETED", 3)
    return log


@pytest.mark.parametrize("width", [1400, 390])
def test_rows_that_broke_a_rule_stand_below_it_with_their_update(opened, written, width) -> None:
    log = broken_rules()
    page = opened(f"{written(site(log))}#/dataset/main.s.orders", width=width)
    (name, _), others = [cells(page, "Rules")[0][:2], cells(page, "Rules")[1:]]
    assert f"rows that broke it, of update {log.updates[1].id[:6]}" in name
    assert "amount = -5.0" in name
    assert "amount = NULL" in name
    assert all("rows that broke it" not in row[0] for row in others)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
