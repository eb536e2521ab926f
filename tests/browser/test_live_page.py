"""The dashboard: served on loopback, follows an event log that grows while the page is open."""

from __future__ import annotations

import http.client

import pytest

from tests.browser.conftest import served
from tests.event_logs import Log, store, store_table


def orders(log: Log, **flow: object) -> None:
    update = log.update()
    update.define("main.s.orders", rules={"has_id": ("id IS NOT NULL", "drop")})
    update.flow("main.s.orders", 1, **flow)  # type: ignore[arg-type]


def test_a_page_that_is_open_follows_an_update(opened, tmp_path) -> None:
    import pyarrow as pa

    log = Log()
    orders(log, status="RUNNING")
    store(tmp_path, log.rows)
    with served(tmp_path) as dashboard:
        page = opened(dashboard.url)
        page.wait_for_selector(".written.live")
        page.wait_for_selector(".node.running")
        page.locator(".node").focus()
        known = len(log.rows)
        store_table(tmp_path, "main.s.orders", pa.table({"id": list(range(7))}))
        log.updates[0].flow("main.s.orders", 1, 3, rows=7, dropped=2, rules={"has_id": (7, 2)})
        log.updates[0].state("COMPLETED", 4)
        store(tmp_path, log.rows[known:])
        page.wait_for_selector(".node.ok")
        assert "7 rows" in page.inner_text(".node")
        assert "2 dropped" in page.inner_text(".node")
        assert "completed" in page.inner_text("h1")
        assert page.evaluate("document.activeElement.title") == "main.s.orders"
        page.click(".node")
        page.wait_for_selector("[data-part=rules] tbody tr")
        known = len(log.rows)
        orders(log, end=2, rows=3, dropped=0, rules={"has_id": (3, 0)})
        store(tmp_path, log.rows[known:])
        page.wait_for_selector("[data-part=runs] tbody tr:nth-child(2)")


def test_the_dashboard_of_a_storage_without_updates_waits_for_the_first_one(opened, tmp_path) -> None:
    with served(tmp_path / "later") as dashboard:
        page = opened(dashboard.url)
        assert "No updates yet" in page.inner_text("h1")
        log = Log()
        orders(log, status="RUNNING")
        store(tmp_path / "later", log.rows)
        page.wait_for_selector(".node")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 200),
        ("/data/overview.js", {}, 200),
        ("/data/overview.js", {"Host": "evil.example:80"}, 403),
        ("/data/overview.js", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("/data/../page.py", {}, 404),
        ("/../../etc/passwd", {}, 404),
        ("/data/dataset-99.js", {}, 404),
        ("/data/dataset--1.js", {}, 404),
        ("/data/update-x.js", {}, 404),
    ],
)
def test_the_server_answers_its_own_page_only(tmp_path, path, headers, status) -> None:
    with served(tmp_path) as dashboard:
        port = int(dashboard.url.rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        assert answer.status == status
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        connection.close()
