"""The page from disk, in a real browser: what a reader clicks, searches, and sees."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.event_logs import FAILURE, HOSTILE, Log, facts, many, shop, shop_tables, site

ORDERS = "main.silver.orders"


@pytest.fixture
def shop_page(opened, written):
    def open_shop(part: str = "", **options):
        address = written(site(shop(), tables=shop_tables()))
        return opened(f"{address}#/{part}", **options)

    return open_shop


def texts(page, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def test_the_first_view_says_how_the_newest_update_went_and_what_it_changed(shop_page) -> None:
    page = shop_page()
    assert "failed" in page.inner_text("h1")
    assert texts(page, ".changes li")[0].startswith("failure silver.payments failed: 3 rows broke expectations")
    tiles = {text.split("\n")[0]: text.split("\n")[1] for text in page.locator(".tile").all_inner_texts()}
    assert tiles["Datasets up to date now"] == "8 of 10"
    assert tiles["Table checks"] == "1 failed"
    assert (tiles["Violations"], tiles["Rows dropped"], tiles["Rows in quarantine now"]) == ("2,268", "2,142", "3,120")
    assert texts(page, ".sum") == ["This update: 2,268 violations of 5 rules, 2,142 rows dropped (2,142 quarantined)."]


@pytest.mark.parametrize(
    ("results", "tile"),
    [
        ((None, None), ["not run", "2 checks, by this update"]),
        ((True, None), ["1 pass", "2 checks, 1 not run, by this update"]),
        ((False, None), ["1 failed", "2 checks, 1 not run, by this update"]),
        ((True, True), ["all pass", "2 checks, by this update"]),
    ],
)
def test_checks_that_were_not_run_are_neither_passed_nor_failed(opened, written, results, tile) -> None:
    log = Log()
    update = log.update()
    update.define("main.s.orders")
    update.flow("main.s.orders", 1, 2, rows=3)
    for number, success in enumerate(results):
        update.check("main.s.orders", f"check_{number}", success)
    page = opened(written(site(log)))
    assert page.locator(".tile", has_text="Table checks").inner_text().split("\n")[1:] == tile
    page.evaluate("location.hash = '#/quality'")
    page.wait_for_selector("[aria-label='Table checks'] tbody tr")
    words = {None: "not run", True: "passes", False: "failed"}
    shown = texts(page, "[aria-label='Table checks'] tbody td:nth-child(2)")
    assert sorted(text.split(" warning")[0].lstrip("✓✕ ") for text in shown) == sorted(words[result] for result in results)


def test_a_fail_rule_that_stopped_its_flow_is_the_worst_rule(opened, written) -> None:
    log = Log()
    update = log.update()
    update.define("main.s.orders", rules={"half": ("paid", "warn"), "stops": ("id > 0", "fail"), "kept": ("id < 9", "fail")})
    update.flow("main.s.orders", 1, 2, status="FAILED", rules={"half": (500, 500), "stops": (999, 1), "kept": (1000, 0)})
    page = opened(written(site(log)) + "#/quality")
    page.wait_for_selector("[aria-label='Rules'] tbody tr")
    shown = texts(page, "[aria-label='Rules'] tbody th code.rule")
    assert [text.strip() for text in shown] == ["stops", "half", "kept"]


def test_the_graph_shows_layers_and_a_click_leads_to_the_dataset_and_back(shop_page) -> None:
    page = shop_page()
    assert page.locator("text.band").all_text_contents() == ["bronze", "silver", "gold"]
    assert page.locator(".node").count() == 10
    node = page.locator(".node", has_text="silver.orders").first
    assert "2,142 dropped" in node.inner_text()
    node.click()
    page.wait_for_selector("text=Quality over time")
    assert page.inner_text("h1").startswith("silver.orders")
    page.keyboard.press("Escape")
    page.wait_for_selector(".node")


def test_zooming_and_moving_change_the_graph_and_a_move_is_no_click(shop_page) -> None:
    page = shop_page()
    at = lambda: page.locator(".plane").evaluate("e => e.style.transform")  # noqa: E731
    before = at()
    page.click("[aria-label='Zoom in']")
    zoomed = at()
    page.locator(".graph").scroll_into_view_if_needed()
    node = page.locator(".node", has_text="silver.orders").bounding_box()
    page.mouse.move(node["x"] + 40, node["y"] + 20)
    page.mouse.down()
    page.mouse.move(node["x"] + 140, node["y"] + 60, steps=4)
    page.mouse.up()
    assert len({before, zoomed, at()}) == 3
    assert page.url.endswith("#/")
    page.click("[aria-label='Show the whole graph']")
    assert at() == before


def test_filters_by_state_and_name_work_in_graph_and_list(shop_page) -> None:
    page = shop_page()
    page.click(".chip.failed")
    assert page.locator(".node:not(.dim)").count() == 1
    page.click("[data-key=shape-list]")
    assert texts(page, ".sets tbody th > a") == ["silver.payments"]
    page.click(".chip.failed")
    page.fill("[aria-label='Filter datasets']", "gold")
    assert texts(page, ".sets tbody th > a") == ["gold.daily_sales", "gold.refund_rate", "gold.customer_value"]


def test_a_dataset_shows_rules_quarantine_lineage_rows_and_versions(shop_page) -> None:
    page = shop_page(f"dataset/{ORDERS}")
    rules = texts(page, "[data-part=rules] table.rules tbody tr")
    assert any(text.startswith("known_currency currency IN") and "drop 96.14% ▼ 2.89 2,142 55,520" in text for text in rules)
    assert texts(page, "[data-part=quarantine] .reason") == ["known_currency", "known_currency"]
    amount = next(text for text in texts(page, "[data-part=columns] tbody tr") if text.startswith("amount"))
    assert "bronze.orders_raw.amount" in amount
    assert "gold.daily_sales.amount" in amount
    assert "NULL" in page.inner_text("[data-part=rows]")
    assert len(texts(page, "[data-part=versions] tbody tr")) == 4
    assert page.locator(".plot canvas").count() == 3


def test_the_source_is_shown_at_its_line(opened, written, tmp_path) -> None:
    file = tmp_path / "pipelines" / "silver" / "orders.py"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"line_{n} = {n}\n" for n in range(1, 40)))
    page = opened(f"{written(site(shop(2), root=tmp_path))}#/dataset/{ORDERS}/source")
    assert page.inner_text(".source .at").strip().endswith("line_12 = 12")


def test_an_update_shows_failures_as_the_terminal_does_its_timeline_and_what_came_in(shop_page) -> None:
    page = shop_page("update/13")
    assert texts(page, ".failure .sentence") == ["3 rows broke expectations whose action is fail"]
    assert page.locator(".failure pre").count() == 0
    page.click(".failure summary")
    assert page.inner_text(".failure pre") == FAILURE
    row = page.locator(".timeline li", has_text="gold.refund_rate")
    row.hover()
    assert "waited for silver.orders" in row.inner_text()
    assert texts(page, ".timeline li.waited .name") == ["silver.orders"]
    assert "gift_note STRING" in page.inner_text("ul.schema")
    assert "landing/orders/0302-06.json" in page.inner_text("ul.schema")
    assert texts(page, "section[aria-labelledby=s-backlog-of-sources] tbody tr")[0].startswith("bronze.orders_raw 53 3 – – – –")


def test_search_finds_datasets_columns_rules_and_updates_by_keys_alone(shop_page) -> None:
    page = shop_page()
    page.keyboard.press("/")
    page.keyboard.type("known")
    page.wait_for_selector(".hits li b")
    assert texts(page, ".hits li") == ["known_currency rule of silver.orders", "reason_known rule of silver.refunds"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('silver.refunds')")
    page.keyboard.press("/")
    page.keyboard.type("gift")
    page.wait_for_selector(".hits li small:has-text('column of silver.orders')")
    page.keyboard.press("Escape")
    assert page.locator(".hits").is_hidden()
    assert page.inner_text("h1").startswith("silver.refunds")


def edited_and_stopped() -> Log:
    log = Log()
    for text in ("id > 0", "id > 0", "id > 5", "id > 5"):
        update = log.update()
        update.define("main.s.orders", rules={"paid": ("paid > 0", "fail"), "high": (text, "warn")})
        if text == "id > 0":
            update.flow("main.s.orders", 1, 2, rows=10, rules={"paid": (10, 0), "high": (10, 0)})
        else:
            counts, first = {"paid": (9, 1), "high": (4, 6)}, {"paid": "-3.0"}
            update.stopped("main.s.orders", 1, 2, rule="paid", rules=counts, values=first)
        update.state("COMPLETED" if text == "id > 0" else "FAILED", 3)
    return log


def test_a_stopping_rule_comes_first_with_its_values_and_an_edited_one_shows_its_old_text(opened, written) -> None:
    log = edited_and_stopped()
    since = f"failing since update {log.updates[2].id[:6]}, 2 updates, 6 hours"
    page = opened(written(site(log)) + "#/quality")
    page.wait_for_selector("[aria-label='Rules'] tbody tr")
    first, second = texts(page, "[aria-label='Rules'] tbody th")
    assert first.startswith("orders paid")
    assert f"stopped its flow: the first such row has paid = -3.0 {since}" in first
    assert f"{since} ✎ changed, text: id > 0 → id > 5" in second
    assert page.locator("tr.stopped").count() == 1
    assert "changed from id > 0" in (
        page.locator("[aria-label='Rules'] tbody tr").nth(1).locator("canvas").get_attribute("aria-label") or ""
    )
    page.evaluate("location.hash = '#/dataset/main.s.orders'")
    page.wait_for_selector(".edits")
    assert texts(page, ".edits code") == ["high: text: id > 0 → id > 5"]
    assert since in page.inner_text("main")


def test_a_fall_by_a_new_text_is_shown_as_an_edit(opened, written) -> None:
    log = edited_and_stopped()
    kept = {update.id for update in log.updates[:3]}
    log.rows = [row for row in log.rows if row["origin"]["update_id"] in kept]
    page = opened(written(site(log)) + "#/quality")
    page.wait_for_selector("[aria-label='Rules'] tbody tr")
    changes = dict(zip(texts(page, "[aria-label='Rules'] code.rule"), texts(page, "[aria-label='Rules'] td:nth-child(4)"), strict=True))
    assert changes == {"paid": "▼ 10.00", "high": "✎ new text"}


def test_an_owner_finds_what_is_theirs(shop_page) -> None:
    page = shop_page("quality")
    page.wait_for_selector("[aria-label='Rules'] tbody tr")
    page.select_option("[data-key=owner-rules]", "finance@example.com")
    mine = texts(page, "[aria-label='Rules'] tbody th code.rule")
    assert sorted(mine) == ["known_currency", "paid_not_negative", "rate_below_one", "sales_not_negative"]
    assert page.locator("[aria-label='Table checks']").count() == 0
    said = next(text for text in texts(page, "[aria-label='Rules'] tbody th") if "known_currency" in text)
    assert said.endswith("Sales are added up in four currencies. owner finance@example.com money")
    page.evaluate("location.hash = '#/quality/' + encodeURIComponent('orders@example.com')")
    page.wait_for_selector("[aria-label='Table checks'] tbody tr")
    assert page.input_value("[data-key=owner-rules]") == "orders@example.com"
    page.fill("[aria-label='Filter rules and datasets']", "keys")
    assert texts(page, "[aria-label='Table checks'] code.rule") == ["order_id is unique"]
    page.fill("[aria-label='Filter rules and datasets']", "")
    page.select_option("[data-key=owner-rules]", "")
    page.focus("[data-key=owner-rules]")
    page.keyboard.press("/")
    page.keyboard.type("finance@")
    page.wait_for_selector(".hits li b")
    assert texts(page, ".hits li")[0] == "finance@example.com owner: rules and checks"
    page.keyboard.press("Escape")
    page.evaluate(f"location.hash = '#/dataset/{ORDERS}'")
    page.wait_for_selector(".whose")
    assert texts(page, ".whose") == ["owner orders@example.com"]
    assert "amount In the currency of the order." in texts(page, "[data-part=columns] tbody th")


def test_the_graph_is_walked_with_the_keyboard(shop_page) -> None:
    page = shop_page()
    page.focus("[data-key=shape-list]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.title") == "main.silver.payments"  # where it failed
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.title") == "main.bronze.payments_raw"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Zoom in"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.title") == "main.bronze.orders_raw"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.title") == ORDERS
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('silver.orders')")


def test_controls_cover_no_part_of_the_graph(shop_page) -> None:
    page = shop_page()
    canvas, controls = (page.locator(name).bounding_box() for name in (".canvas", ".zoom"))
    assert canvas["x"] + canvas["width"] <= controls["x"] + 1


def test_an_update_has_an_address_by_its_id_that_stays_when_older_updates_are_gone(opened, written) -> None:
    log = shop()
    update = log.updates[12]
    page = opened(f"{written(site(log))}#/updates")
    page.locator("main tbody th a", has_text=update.id[:6]).click()
    page.wait_for_selector(f"h1:has-text('{update.id[:6]}')")
    address = page.evaluate("location.hash")
    assert address == f"#/update/{update.id[:12]}"
    gone = {one.id for one in log.updates[:5]}
    log.rows = [row for row in log.rows if row["origin"]["update_id"] not in gone]
    for asked in (address, f"#/update/{update.id}", f"#/update/{update.id[:6]}"):
        later = opened(written(site(log)) + asked)
        assert update.id[:6] in later.inner_text("h1")
    assert "No such update" in opened(f"{written(site(log))}#/update/ffffffffffff").inner_text("h1")


def test_the_theme_follows_the_system_and_the_switch_is_remembered(shop_page) -> None:
    page = shop_page(theme="dark")
    colour = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    assert colour() == "rgb(15, 20, 21)"
    page.click("[aria-label='Light theme']")
    assert colour() == "rgb(247, 248, 248)"
    page.reload()
    page.wait_for_selector("main h1")
    assert colour() == "rgb(247, 248, 248)"


AXE = {"preload": False}
"""Style sheets are read as the browser has them: a page from disk may not fetch its own."""
PARTS = ["", "quality", "updates", "update/13", f"dataset/{ORDERS}"]
PHONE = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}


def violations(page) -> list[str]:
    """What axe finds on a page. It belongs to the development packages: where there is a Chromium, a missing axe is an error."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options=AXE).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:160]} {v['nodes'][0]['failureSummary'][:200]}" for v in found]


@pytest.mark.parametrize("part", PARTS)
def test_on_a_phone_nothing_is_too_wide_and_axe_finds_nothing(shop_page, part) -> None:
    page = shop_page(part, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.wait_for_timeout(200)
    assert violations(page) == []


@pytest.mark.parametrize("part", PARTS)
def test_on_a_phone_every_table_is_shown_whole_as_cards_with_the_titles_of_its_columns(shop_page, part) -> None:
    page = shop_page(part, **PHONE)
    page.wait_for_selector(".data tbody td")
    cut = "found => found.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute('aria-label'))"
    assert page.locator(".scroll").evaluate_all(cut) == []
    titles = page.locator(".data tbody td").first.evaluate("e => getComputedStyle(e, '::before').content")
    assert titles.strip('"') in ("Problem", "result", "state", "action")


def test_on_a_phone_a_tap_on_a_node_opens_its_dataset(shop_page) -> None:
    page = shop_page(**PHONE)
    assert page.locator(".node").count() == 0
    page.locator("[data-key=shape-graph]").tap()
    page.locator(".node", has_text="bronze.orders_raw").tap()
    page.wait_for_selector("h1:has-text('bronze.orders_raw')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("part", PARTS)
def test_axe_finds_nothing(shop_page, part, theme) -> None:
    page = shop_page(part, theme=theme)
    page.wait_for_timeout(200)
    assert violations(page) == []


def test_axe_finds_nothing_in_the_list_the_search_and_an_empty_page(shop_page, opened, tmp_path) -> None:
    from lakelet.dashboard.page import write_folder

    page = shop_page(bypass_csp=True)
    page.click("[data-key=shape-list]")
    page.keyboard.press("/")
    page.keyboard.type("orders")
    page.wait_for_selector(".hits li b")
    write_folder(site(Log()), tmp_path / "empty")
    empty = opened((tmp_path / "empty" / "index.html").as_uri())
    assert "lakelet run" in empty.inner_text("main")
    for shown in (page, empty):
        assert violations(shown) == []


def hostile_log() -> Log:
    log = Log(HOSTILE)
    for broken in (0, 4):
        update = log.update()
        update.define(
            f"main.s.{HOSTILE}", rules={HOSTILE: (HOSTILE, "drop")}, columns=[(HOSTILE, HOSTILE)], source=(HOSTILE, 1), comment=HOSTILE
        )
        update.define("main.s.reader", reads=[f"main.s.{HOSTILE}", HOSTILE])
        column = {"name": HOSTILE, "inputs": [{"dataset": f"main.s.{HOSTILE}", "column": HOSTILE}]}
        update.emit("column_lineage", {"flow_name": "main.s.reader", "output_dataset": "main.s.reader", "columns": [column]})
        update.flow(f"main.s.{HOSTILE}", 1, 2, rows=5, dropped=broken, rules={HOSTILE: (5, broken)}, why=HOSTILE)
        update.flow("main.s.reader", 2, 3, status="FAILED", error=(HOSTILE, HOSTILE))
        update.emit("notice", {"text": HOSTILE}, HOSTILE, level="WARN")
        about = {"dataset": f"main.s.{HOSTILE}", "name": HOSTILE, "severity": HOSTILE, "success": False}
        update.emit("table_check", {**about, "observed": HOSTILE, "expected": HOSTILE, "message": HOSTILE})
        added = {"flow_name": "f", "source": HOSTILE, "added": [{"name": HOSTILE, "type": HOSTILE}], "first_file": HOSTILE}
        update.emit("schema_change", added, dataset=f"main.s.{HOSTILE}")
        update.state("FAILED", 5)
    return log


def test_names_and_values_that_look_like_markup_stay_text(opened, written) -> None:
    name = f"main.s.{HOSTILE}"
    table = facts(name, held=3)
    sample = type(table.sample)((HOSTILE,), ((HOSTILE,),))
    table = type(table)(
        name, 5, 1, 9, 1, ((HOSTILE, HOSTILE),), table.versions, sample, type(sample)(("_broken_rules",), ((f'["{HOSTILE}"]',),)), 3
    )
    page = opened(written(site(hostile_log(), tables={name: table})))
    for part in ("", "quality", "updates", "update/1", f"dataset/{quote(name)}", "dataset/main.s.reader"):
        page.evaluate("part => { location.hash = '#/' + part; }", part)
        page.wait_for_timeout(300)
        assert "cannot be shown" not in page.inner_text("main")
        assert HOSTILE in page.inner_text("main")
        assert page.locator("img").count() == 0
        assert not page.title().startswith("broken in")
    page.keyboard.press("/")
    page.keyboard.type("<img")
    page.wait_for_selector(".hits li b")
    assert page.locator("img").count() == 0


def test_five_hundred_datasets_are_drawn_and_used_without_lag(opened, written) -> None:
    page = opened(written(site(many(500, 12))))
    page.wait_for_selector(".node")
    assert page.locator(".node").count() == 500
    frames = page.evaluate(
        """async () => {
            const view = document.querySelector('.canvas'), took = [], at = { clientX: 400, clientY: 500, cancelable: true, bubbles: true };
            view.classList.add('active');
            for (let i = 0; i < 30; i++) {
                const began = performance.now();
                view.dispatchEvent(new WheelEvent('wheel', { ...at, deltaY: i % 2 ? 40 : -40 }));
                await new Promise(requestAnimationFrame);
                took.push(performance.now() - began);
            }
            return took.sort((a, b) => a - b);
        }"""
    )
    assert frames[15] < 100  # a frame while zooming; 17 ms on a machine at rest
    page.evaluate("location.hash = '#/quality'")
    page.wait_for_selector("table.rules tbody tr")
    assert page.locator("table.rules tbody tr").count() < 200
    page.keyboard.press("End")
    page.wait_for_selector("table.rules tbody tr:nth-child(100)", state="attached")


@pytest.mark.long
def test_of_a_thousand_updates_only_what_is_looked_at_is_loaded_and_drawn(opened, written, tmp_path) -> None:
    page = opened(written(site(many(500, 1000, busy=1 / 60, whole=2))))
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/report/")[2].partition("#")[0]))
    data = lambda: [name for name in loaded if name.startswith("data/")]  # noqa: E731
    size = lambda: sum((tmp_path / "report" / name).stat().st_size for name in loaded)  # noqa: E731
    elements = lambda: page.evaluate("document.querySelectorAll('*').length")  # noqa: E731
    page.reload()
    page.wait_for_selector(".node")
    assert data() == ["data/overview.js"]
    assert size() < 1_000_000
    assert elements() < 12_000
    loaded.clear()
    page.keyboard.press("/")
    page.keyboard.type("table_4")
    page.wait_for_selector(".hits li b")
    assert sorted(data()) == ["data/quality.js", "data/search.js"]
    assert size() < 2_000_000
    assert page.locator(".hits li").count() == 12
    loaded.clear()
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#/updates'")
    page.wait_for_selector("nav.pager:has-text('page 1 of 10')")
    assert data() == ["data/updates-9.js"]
    assert size() < 100_000
    assert page.locator("main tbody tr").count() == 100
    assert elements() < 3_000
    page.locator("nav.pager a", has_text="older").first.click()
    page.wait_for_selector("nav.pager:has-text('page 2 of 10')")
    assert data() == ["data/updates-9.js", "data/updates-8.js"]
    page.locator("main tbody th a").first.click()
    page.wait_for_selector(".timeline")
    assert data()[2:] == ["data/update-899.js"]
