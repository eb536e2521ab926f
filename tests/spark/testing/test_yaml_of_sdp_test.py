"""Unit tests in YAML get the verdicts of sdp-test 0.4, whose format they have: the cases of `tests/yaml_test_cases.py`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.yaml_test_cases import CASES, ERROR, PASSED

DIFFERS = re.compile(r" missing| unexpected")
CELLS = re.compile(r"^  (?P<sign>[-+]) (?:expected|found) +(?P<cells>.*)$", re.MULTILINE)


class Reports:
    """The report of each test, and of each file that could not be collected, by the folder of its project."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.found: dict[str, list[tuple[str, str]]] = {}

    def _add(self, report: Any) -> None:
        folder = report.nodeid.partition("/")[0]
        self.found.setdefault(folder, []).append((report.outcome, report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome == "failed":
            self._add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome == "failed":
            self._add(report)


def verdict(outcome: str, text: str) -> str:
    """Passed, an error, or the rows that differ as `CASES` writes them."""
    if outcome == "passed":
        return PASSED
    if not DIFFERS.search("".join(text.splitlines()[1:2])):
        return ERROR
    rows = [f"{found['sign']} {re.sub(r' {2,}', '  ', found['cells']).strip()}" for found in CELLS.finditer(text)]
    return "\n".join(sorted(rows, key=lambda row: (row[0] == "+", row)))


@pytest.mark.slow
def test_every_case_gets_the_verdict_of_sdp_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    folders = {f"case{number}": name for number, name in enumerate(CASES)}
    for folder, name in folders.items():
        CASES[name].write(tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    reports = Reports(tmp_path)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:timeout", "-p", "no:sdp_test", "--continue-on-collection-errors", "--rootdir=."]
    pytest.main(options, plugins=[reports])
    found = {name: [verdict(*report) for report in reports.found.get(folder, [])] for folder, name in folders.items()}
    expected = {name: [case.here or case.verdict] for name, case in CASES.items()}
    wrong = {name: reports.found.get(folder) for folder, name in folders.items() if found[name] != expected[name]}
    assert {name: found[name] for name in wrong} == {}, wrong
