"""Executes docs/environments.md: its pipeline, the change that it describes, each command, and what the list prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from lakelet.storage.root import Storage
from tests.docs.test_reference_blocks import blocks


@pytest.mark.long
def test_every_block_of_the_page_does_what_it_says(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (pipeline,), (listed,) = blocks("environments.md", "python"), blocks("environments.md", "text")
    (tmp_path / "pipeline.py").write_text(pipeline)
    (tmp_path / "pyproject.toml").write_text("[tool.lakelet]\nsources = ['pipeline.py']\n")
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "1.json").write_text('{"id": 1, "customer": "a", "amount": 2}\n{"id": 2, "customer": "a", "amount": 3}\n')
    assert main(["run"]) == 0
    (tmp_path / "pipeline.py").write_text(pipeline.replace("F.sum", "F.max"))
    printed = []
    for block in blocks("environments.md", "sh"):
        for line in block.splitlines():
            capsys.readouterr()
            assert main(shlex.split(line)[1:]) == 0, line
            printed.append(capsys.readouterr().out)
    _, shown, list_of_tables, *_ = printed
    assert re.search(r"a +3", shown), shown
    date = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.sub(date, "", list_of_tables) == re.sub(date, "", listed)
    capsys.readouterr()
    assert main(["show", "totals", "--json"]) == 0
    assert '"total": 3' in capsys.readouterr().out
    assert Storage(tmp_path / ".lakelet").registry().datasets["main.default.totals"].version == 1
