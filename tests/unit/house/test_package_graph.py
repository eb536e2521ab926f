"""The chart of the packages in the docs is the one that the imports make."""

from __future__ import annotations

import os
import runpy

from tests.paths import ROOT

PAGE = ROOT / "docs" / "how-it-works.md"
START, END = "```mermaid\n", "```"


def test_the_chart_in_how_it_works_shows_the_imports_of_the_packages() -> None:
    chart = runpy.run_path(str(ROOT / "scripts" / "package_graph.py"))["mermaid"]()
    text = PAGE.read_text()
    before, _, rest = text.partition(START)
    shown, _, after = rest.partition(END)
    if os.environ.get("LAKELET_UPDATE_GOLDEN"):
        PAGE.write_text(before + START + chart + END + after)
        return
    assert shown == chart
