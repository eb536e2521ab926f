"""Executes docs/reviewing.md: its pipeline, the change that it describes, each command, and what the first ones print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.docs.test_reference_blocks import blocks

ORDERS = ((1, "a", 2), (2, "a", 3), (3, "b", 5), (4, "b", -1))
DIFFERENT = 4


@pytest.mark.long
def test_every_block_of_the_page_does_what_it_says(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (pipeline,), texts = blocks("reviewing.md", "python"), blocks("reviewing.md", "text")
    (tmp_path / "pipeline.py").write_text(pipeline)
    (tmp_path / "pyproject.toml").write_text("[tool.lakelet]\nsources = ['pipeline.py']\n")
    (tmp_path / "landing").mkdir()
    lines = [f'{{"id": {id}, "customer": "{customer}", "amount": {amount}}}\n' for id, customer, amount in ORDERS]
    (tmp_path / "landing" / "1.json").write_text("".join(lines))
    assert main(["run"]) == 0
    changed = pipeline.replace("amount > 0", "amount > 2").replace('.alias("total")', '.alias("total"), F.count("*").alias("orders")')
    (tmp_path / "pipeline.py").write_text(changed)
    printed = []
    for block in blocks("reviewing.md", "sh"):
        for line in block.splitlines():
            capsys.readouterr()
            command, _, file = line.partition(" > ")
            assert main(shlex.split(command)[1:]) == (DIFFERENT if " diff" in command else 0), line
            printed.append(capsys.readouterr().out)
            if file:
                (tmp_path / file).write_text(printed[-1])
    assert texts[0] in printed[0]
    assert texts[1] == printed[1]
    assert "| `totals` | different | 2 | 0 | 0 | 1 | `+ orders bigint` | code: totals (pipeline.py) |" in printed[4]
    shown = (tmp_path / "change" / "data" / "change.js").read_text()
    assert '"rules":[["paid","drop",1,2]]' in shown
    assert '"samples":{"columns":["customer","total"],"rows":[["changed",["a",["5","3"]]]]}' in shown
