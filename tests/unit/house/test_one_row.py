"""The page that follows one row names modules that exist."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT

PAGES = ["docs/one-row.md", "docs/how-it-works.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_the_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`([a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+\.py)?|[a-z_]+\.py)`", (ROOT / page).read_text()))
    package = ROOT / "src" / "lakelet"
    others = (ROOT / "tests", ROOT, ROOT / "benchmarks")
    missing = sorted(path for path in named if not any((folder / path).exists() for folder in (package, *others)))
    assert named
    assert missing == []
