"""examples/factory as its README runs it: two deliveries, the second with late and doubled lines; then a factory that is one more file."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import signal
import sys
import threading
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.factory_example import FactoryExample
from tests.paths import ROOT

SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DALE = """
csv: {sep: "\\t"}
columns: {when: moved_at, where: station, which: box_id, what: direction, belt: line}
direction: {"+": enter, "-": leave}
time: yyyyMMddHHmmss
zone: Asia/Tokyo
"""
SECONDS_TO_CATCH_UP = 120  # a few are enough on a machine with nothing else to do
DALE_LINES = ["20260301150000\twash\td1\t+\tBelt 1", "20260301150130\twash\td1\t-\tBelt 1", "soon\twash\td2\t+\tBelt 1"]


@pytest.mark.slow
def test_the_readme_of_the_factory_example_gives_the_tables_of_the_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any
) -> None:
    example = FactoryExample(tmp_path / "factory")
    monkeypatch.chdir(example.folder)
    commands, *_ = SH.findall((example.folder / "README.md").read_text(encoding="utf-8"))
    updates = 0
    for line in commands.splitlines():
        first, *rest = shlex.split(line)
        if first == "python":
            monkeypatch.setattr(sys, "argv", rest)
            runpy.run_path(rest[0], run_name="__main__")
            continue
        if rest[0] == "run" and updates == 1:
            add_dale(example)
        assert (first, main(rest)) == ("lakelet", 0), line
        if rest[0] == "run":
            example.check()
            updates += 1
    assert updates == 2
    check_dale(example, capsys)
    follow_changes_only(example)


def follow_changes_only(example: FactoryExample) -> None:
    """The variant of docs/factory.md for much history, in place of `movements`, gives the same tables, also after one more delivery."""
    (block,) = PYTHON.findall((ROOT / "docs" / "factory.md").read_text(encoding="utf-8"))
    file = example.folder / "pipelines" / "movements.py"
    before, mark, _ = file.read_text(encoding="utf-8").partition('@dlt.table(comment="Each movement once')
    assert mark
    file.write_text(before + block, encoding="utf-8")
    for number, command in ((16, ["run", "--full-refresh", "movements"]), (17, ["run"])):
        example.drop(number)
        assert main(command) == 0
        example.check()


def add_dale(example: FactoryExample) -> None:
    """A fourth factory, whose layout is a new file and nothing else."""
    (example.folder / "factories" / "dale.yml").write_text(DALE)
    folder = example.landing / "dale" / "20260301"
    folder.mkdir(parents=True)
    (folder / "0600.csv").write_text("\n".join([*DALE_LINES, ""]))
    (folder / "0615.csv").write_text("\n".join([DALE_LINES[0], ""]))
    example.others = ("dale",)


def check_dale(example: FactoryExample, capsys: pytest.CaptureFixture[str]) -> None:
    def of(table: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in example.rows(table) if row["factory"] == "dale"]

    entered, left = (datetime(2026, 3, 1, 6, minute, second, tzinfo=timezone.utc) for minute, second in ((0, 0), (1, 30)))
    assert of("station_visits") == [("dale", "Belt 1", "d1", "wash", entered, left, 90)]
    assert of("bottlenecks") == [("dale", "Belt 1", entered, "wash", 1, 90.0, 90, 1)]
    assert len(of("movements")) == 2
    capsys.readouterr()
    query = "SELECT _values['when'] AS said, moved_at, box_id, _file FROM broken_lines WHERE factory = 'dale'"
    assert main(["sql", query, "--json"]) == 0
    (broken,) = json.loads(capsys.readouterr().out)
    assert (broken["said"], broken["moved_at"], broken["box_id"]) == ("soon", None, "d2")
    assert Path(broken["_file"]).name == "0600.csv"
    assert Counter(row["is_quarantined"] for row in example.rows("movements_raw") if row["factory"] == "dale") == {False: 3, True: 1}


@pytest.mark.slow
def test_the_factory_example_run_continuously_follows_drops_until_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    example = FactoryExample(tmp_path / "factory")
    monkeypatch.chdir(example.folder)
    example.drop(0, 6)
    ended, seen, late = threading.Event(), list[int](), list[str]()

    def watch() -> None:
        """Drop the second delivery when the tables have the first one; stop the update when they have both, or are late."""
        while len(seen) < 2 and not late:
            wanted = example.expected()
            give_up = time.monotonic() + SECONDS_TO_CATCH_UP
            while not example.has_caught_up(wanted) and not late:
                if ended.wait(0.2):
                    return
                if time.monotonic() > give_up:
                    late.append(f"delivery {len(seen) + 1} was not in all tables after {SECONDS_TO_CATCH_UP} s")
            seen.append(len(wanted["movements"]))
            if len(seen) == 1:
                example.drop(6, 2)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        assert main(["run", "--continuous"]) == 130
    finally:
        ended.set()
        watcher.join()
    assert late == []
    example.check()
    assert 0 < seen[0] < seen[1] == len(example.expected()["movements"])
