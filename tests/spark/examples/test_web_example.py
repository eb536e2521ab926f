"""examples/web as docs/web.md runs it: two deliveries, the second with late and doubled rows, against an oracle of another hand."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.paths import ROOT
from tests.web_example import KEY, check, copied, rows

SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```sh\n([^`]*)^```\n\n```text\n([^`]*)^```$", re.MULTILINE)


@pytest.mark.long
def test_the_page_of_the_web_example_gives_the_tables_of_the_oracle_and_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any
) -> None:
    project = copied(tmp_path / "web")
    monkeypatch.chdir(project)
    page = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
    _target, first_block, *others = SH.findall(page)
    assert [first_block] == SH.findall((project / "README.md").read_text(encoding="utf-8"))
    keys = [set[Any]()]
    for line in first_block.splitlines():
        first, *rest = shlex.split(line)
        if first == "export":
            name, _, key = rest[0].partition("=")
            assert key == KEY
            monkeypatch.setenv(name, key)
        elif first == "python":
            monkeypatch.setattr(sys, "argv", rest)
            runpy.run_path(rest[0], run_name="__main__")
        else:
            assert (first, main(rest)) == ("lakelet", 0), line
        if rest[0] == "run":
            keys.append({(row["event_id"], row["event_time"], row["user"], row["_key"]) for row in check(project)["purchases"]})
    assert len(keys) == 3
    assert keys[0] < keys[1] < keys[2], "a purchase has another key after the second delivery"

    shown = dict(SHOWN.findall(page))
    for block in others:
        capsys.readouterr()
        for line in block.splitlines():
            assert main(shlex.split(line)[1:]) == 0, line
        assert capsys.readouterr().out.replace(f"{project}/", "").split() == shown[block].split()

    stored = (path for path in (project / ".lakelet").rglob("*") if path.is_file())
    assert {date(2026, 3, 1), date(2026, 3, 6), None} <= {row["event_date"] for row in rows(project, "web_events")}
    secrets = [KEY.encode(), b"4111 1111 1111 1"]
    assert [path for path in stored if any(secret in path.read_bytes() for secret in secrets)] == []
