"""The site of the documentation: links that lead out of `docs/`, and a build that warns of nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.docs_site import linked


@pytest.mark.parametrize(
    ("source", "written", "expected"),
    [
        ("README.md", "[start](docs/quick-start.md#times)", "[start](quick-start.md#times)"),
        ("docs/reference/cli.md", "[codes](../error-codes.md)", "[codes](../error-codes.md)"),
        ("docs/quick-start.md", "[README](../README.md)", "[README](index.md)"),
        ("docs/transforms.md", "[the example](../examples/web)", "[the example](examples/web.md)"),
        ("examples/web/README.md", "[transforms](../../docs/transforms.md)", "[transforms](../transforms.md)"),
        (
            "docs/how-it-works.md",
            "[`failpoints.py`](../src/lakelet/base/failpoints.py)",
            "`failpoints.py` (`src/lakelet/base/failpoints.py`)",
        ),
        ("README.md", "![page](docs/images/page.png)", "![page](images/page.png)"),
        ("README.md", "[text](https://example.org) [here](#part)", "[text](https://example.org) [here](#part)"),
        ("README.md", "```sh\n[a](b)\n```\n", "```sh\n[a](b)\n```\n"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_name_the_code(source: str, written: str, expected: str) -> None:
    assert linked(written, source) == expected


@pytest.mark.long
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=pytestconfig.rootpath, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""
    site = tmp_path / "site"
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {"index.html", "reference/api.html", "error-codes.html", "examples/starter.html"} <= set(pages)
    assert "update_id" in pages["reference/api.html"]
    assert [name for name, page in pages.items() if '<script src="http' in page or '<link rel="stylesheet" href="http' in page] == []
