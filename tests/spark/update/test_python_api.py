"""docs/reference/python.md: its block runs a project with the caller's session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "python.md"
PIPELINE = """
import dlt

@dlt.table
def orders():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "orders.py").write_text(PIPELINE)
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "1.json").write_text(json.dumps({"id": 1}) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def block() -> str:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_the_page_s_block_runs_an_update_on_a_session_of_the_caller(project: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    exec(block(), {"spark": spark})
    assert capsys.readouterr().out == "COMPLETED main.default.orders\n"


def test_the_page_s_block_prints_a_wrong_definition(project: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "project" / "orders.py").write_text(PIPELINE.replace("orders():", "orders(:"))
    exec(block(), {"spark": spark})
    assert capsys.readouterr().out.startswith("[SOURCE_FAILED]")
