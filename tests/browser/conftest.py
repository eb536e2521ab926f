"""A browser for the tests of the page: Debian's Chromium, cut off from every network but loopback."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelet.dashboard.page import Page as PageOfStorage
from lakelet.dashboard.page import write_folder
from lakelet.dashboard.server import Dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from lakelet.dashboard.documents import Site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OWN = ("file://", "http://127.0.0.1:", "data:", "about:", "blob:")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages; afterwards none of them may have had an error, or asked for anything that is not its own."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_page(url: str, *, width: int = 1280, height: int = 900, theme: str = "light", **more: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce", **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("console", lambda said: problems.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("request", lambda request: problems.append(f"request: {request.url}") if not request.url.startswith(OWN) else None)
        page.goto(url)
        page.wait_for_selector("main h1")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Site], str]:
    """Writes a site to disk and gives its address."""

    def write(site: Site) -> str:
        write_folder(site, tmp_path / "report")
        return (tmp_path / "report" / "index.html").as_uri()

    return write


@contextmanager
def served(storage: Path) -> Iterator[Dashboard]:
    """A dashboard of a storage on a free port of this machine."""
    dashboard = Dashboard(PageOfStorage(storage, storage, live=True), port=0)
    thread = threading.Thread(target=dashboard.serve)
    thread.start()
    try:
        yield dashboard
    finally:
        dashboard.close()
        thread.join(10)
    assert not thread.is_alive()
