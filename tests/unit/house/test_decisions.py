"""The index of the decisions by subject (docs/decisions/README.md). No Spark."""

from __future__ import annotations

import re

from tests.paths import ROOT

FOLDER = ROOT / "docs" / "decisions"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("[0-9]*.md"))}
STATUS = re.compile(r"^\*\*Status\.\*\* (.*)$", re.MULTILINE)


def of_status(name: str) -> set[str]:
    """The decisions that a page's status names."""
    found = STATUS.search(PAGES[name])
    return set(re.findall(r"\]\((\d{4}-[^)]+\.md)\)", found[1])) if found else set()


def test_every_decision_has_one_row_below_a_subject() -> None:
    rows = re.findall(r"^\| \d+ \| \[.*?\]\((\d{4}-[^)]+\.md)\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(PAGES)


def test_a_decision_that_a_later_one_changes_says_so_and_the_index_too() -> None:
    changed = {(before, after) for after in PAGES for before in of_status(after) if before < after}
    assert len(changed) >= 3
    index = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    silent = [(before, after) for before, after in changed if after not in of_status(before)]
    unlisted = [(before, after) for before, after in changed if not any(f"]({before})" in row and f"]({after})" in row for row in index)]
    assert (silent, unlisted) == ([], [])
