"""The site of the documentation: links that lead out of `docs/`, and a build that warns of nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.base.errors import CODES
from scripts.docs_charts import drawn, read
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


def test_troubleshooting_names_codes_that_exist(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", page)) - {"JAVA_HOME", "LAKELET_MAVEN", "LAKELET_JARS"}
    assert len(named) > 20
    assert sorted(named - set(CODES)) == []


CHART = """
graph LR
    files[/"files/*.csv"/] --> raw
    subgraph bronze
        raw[("raw: each line, as text")]
    end
    raw --> clean & done
"""


def test_charts_of_pages_become_pictures() -> None:
    chart = read(CHART.replace("clean & done", "clean\n    raw --> daily([daily])\n    files --> daily"))
    assert chart.across
    assert chart.arrows == [("files", "raw"), ("raw", "clean"), ("raw", "daily"), ("files", "daily")]
    assert chart.shapes == {"files": "files", "raw": "table", "daily": "view"}
    assert chart.groups == {"raw": "bronze"}
    picture = drawn(CHART.replace(" & done", ""))
    assert picture.count("<rect") == 3
    assert ">raw</text>" in picture
    assert ">each line, as text</text>" in picture
    with pytest.raises(ValueError, match="raw --> clean & done"):
        drawn(CHART)


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
    loaded = re.compile(r"""<(?:script|img|link rel="stylesheet")[^>]* (?:src|href)="?(?:https?:)?//""")
    assert [name for name, page in pages.items() if loaded.search(page)] == []
    assert [name for name, page in pages.items() if 'class="mermaid"' in page] == []
    assert pages["how-it-works.html"].count("<svg xmlns") >= 2
