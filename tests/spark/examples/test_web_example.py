"""examples/web as docs/web.md runs it: two deliveries, the second with late and doubled rows, against an oracle of another hand."""

from __future__ import annotations

import csv
import re
import runpy
import shlex
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakelet.cli.main import main
from tests.paths import ROOT
from tests.web_example import KEY, check, copied, rows

SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PERSONAL = ("user", "email", "phone", "ip", "card")
SHOWN = re.compile(r"^```sh\n([^`]*)^```\n\n```text\n([^`]*)^```$", re.MULTILINE)


@pytest.mark.slow
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

    assert {date(2026, 3, 1), date(2026, 3, 6), None} <= {row["event_date"] for row in rows(project, "web_events")}
    nothing_personal_is_stored(project, spark)


def nothing_personal_is_stored(project: Path, spark: Any) -> None:
    """No value of a masked column, and not the key, is in a table, in a log, in Spark's state or in any other file of the storage."""
    storage = project / ".lakelet"
    personal = set[str]()
    for path in (project / "landing").glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            personal |= {row[name] for row in csv.DictReader(file) for name in PERSONAL} - {""}
    assert {"u1", "no address"} < personal
    assert len(personal) > 500

    (state,) = {path.parents[1] for path in storage.rglob("state/0")}
    remembered = [str(row) for row in spark.read.format("statestore").load(str(state)).select("key.*").collect()]
    assert len(remembered) > 500
    tables = [str(row) for path in storage.rglob("*.parquet") for row in pq.read_table(path, partitioning=None).to_pylist()]
    logs = [path.read_text(encoding="utf-8") for path in storage.rglob("*.json")]
    assert len(logs) > 10
    words = set(re.findall(r"[\w@.+-]+", "\n".join([*remembered, *tables, *logs])))
    assert personal & words == set()
    long = [KEY, *(value for value in personal if len(value) > 4)]  # a few letters may be anywhere in a compressed file
    text = b"\n".join([*(path.read_bytes() for path in storage.rglob("*") if path.is_file()), *map(str.encode, [*remembered, *tables])])
    assert [value for value in long if value.encode() in text] == []
