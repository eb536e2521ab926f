"""Executes docs/testing.md: a block that begins with a file's name is that file, `sh` blocks run, `text` blocks are what they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?:#|--) (\S+)\n")


@pytest.mark.slow
def test_every_block_of_the_page_about_testing_does_what_it_says(
    tmp_path: Path, pytestconfig: pytest.Config, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider -p no:timeout")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    for kind, body in BLOCK.findall((pytestconfig.rootpath / "docs" / "testing.md").read_text(encoding="utf-8")):
        name = NAME.match(body)
        if kind == "text":
            printed = capsys.readouterr().out
            assert body.strip("\n") in printed, printed
        elif kind == "sh":
            main(shlex.split(body.removeprefix("lakelet ")))
        else:
            assert name, body
            (tmp_path / name[1]).parent.mkdir(exist_ok=True)
            (tmp_path / name[1]).write_text(body)
