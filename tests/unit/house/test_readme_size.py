"""README.md is a way in: 120 lines, three doors, and no table that a page of the documentation has. No Spark."""

from __future__ import annotations

from tests.paths import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_120_lines_and_one_picture() -> None:
    assert len(TEXT.splitlines()) <= 120
    assert TEXT.count("![") == 1


def test_the_readme_leads_analysts_platform_teams_and_readers_of_quality_to_their_pages() -> None:
    doors = TEXT.partition("## Three doors")[2].partition("\n## ")[0]
    assert [line.split("|")[1].strip() for line in doors.splitlines() if line.startswith("| ")][1:] == [
        "an analyst with SQL or Python",
        "in a platform team",
        "a reader of quality",
    ]
