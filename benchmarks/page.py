"""The page of many datasets and updates in Chromium: what the first view, the search and the list of updates take, and load.

    .venv/bin/python benchmarks/page.py --datasets 500 --updates 1000 --rounds 5

The event log is made up: layers of datasets, one flow in eight has something to do in an update; only the newest two name the others too.
The page is written to disk once, as `lakelet report` writes it, and opened in a new browser context each round; a step ends when what it
asks for is there to be read. Prints the machine and its load, the size of the page, then for each step the bytes loaded, the elements on
the page, and the seconds with quartiles.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from figures import quartiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lakelet.dashboard.page import write_folder

logs: Any = import_module("tests.event_logs")  # tests are not checked for types
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def first_view(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(".node")


def search(page: Any, _: str) -> None:
    page.keyboard.press("/")
    page.keyboard.type("table_4")
    page.wait_for_selector(".hits li b")


def list_of_updates(page: Any, _: str) -> None:
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#/updates'")
    page.wait_for_selector("main tbody tr")


def one_update(page: Any, _: str) -> None:
    page.locator("main tbody th a").first.click()
    page.wait_for_selector(".timeline li")


STEPS: dict[str, Callable[[Any, str], None]] = {
    "first view": first_view,
    "search": search,
    "list of updates": list_of_updates,
    "newest update": one_update,
}


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"])
        yield started
        started.close()


def measure(folder: Path, rounds: int) -> dict[str, tuple[list[float], int, int]]:
    """By step: seconds of each round, bytes loaded, elements on the page afterwards."""
    found: dict[str, tuple[list[float], int, int]] = {}
    with browser() as started:
        for _ in range(rounds):
            context = started.new_context(viewport={"width": 1280, "height": 900})
            page, loaded = context.new_page(), list[str]()
            page.on(
                "request", lambda request, loaded=loaded: loaded.append(request.url.rpartition(f"/{folder.name}/")[2].partition("#")[0])
            )
            for name, step in STEPS.items():
                loaded.clear()
                began = time.perf_counter()
                step(page, (folder / "index.html").as_uri())
                seconds = time.perf_counter() - began
                size = sum((folder / one).stat().st_size for one in loaded)
                elements = page.evaluate("document.querySelectorAll('*').length")
                found[name] = ([*found.get(name, ([], 0, 0))[0], seconds], size, elements)
            context.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=500)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    log = logs.many(given.datasets, given.updates, whole=2)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "report"
        began = time.perf_counter()
        write_folder(logs.site(log), folder)
        seconds = time.perf_counter() - began
        files = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
        print(f"{given.datasets:,} datasets, {given.updates:,} updates, {len(log.rows):,} events")
        print(f"page: {len(files):,} files, {sum(files) / 1e6:.1f} MB, written in {seconds:.1f} s")
        del log
        for name, (times, size, elements) in measure(folder, given.rounds).items():
            print(f"{name:<16} {quartiles(times)} s, {size / 1000:,.0f} kB loaded, {elements:,} elements")


if __name__ == "__main__":
    main()
