"""Whichever command is the first on a machine, it fetches the jars before Spark starts, and leaves a process that makes the archive.

The cache is empty; what Ivy leaves behind is written by this program, which leaves no process: it writes the command line of that one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.storage.root import Storage
from tests.terminals import on_terminal, screen
from tests.unit.cli.test_terminal import shown

PROGRAM = """
import os, sys, time
from pathlib import Path
from lakelet.base.errors import LakeletError
from lakelet.spark.launch import environment as env
from lakelet.spark.launch import first_preparation

fetched = []


def jars():
    if not fetched:
        raise LakeletError("JARS_MISSING", "none yet")
    return fetched[0]


def fetch(report):
    report(env.JAR_NAMES[0], 4_000_000)
    time.sleep(float(os.environ.get("SECONDS", "0")))
    fetched.append(env.Jars(Path("a.jar"), Path("b.jar")))
    return fetched[0]


def refuse(*arguments, **options):
    raise LakeletError("SPARK_START_FAILED", "Java starts")


env.jars, env.fetch_jars, env.ensure_jars = jars, fetch, jars
env.require_java = lambda: env.Java(Path("java"), "17.0.1", 17, has_vector=True, home="/jdk")
first_preparation.start_archive = lambda: True
from lakelet.spark.launch import session

session.start_session = refuse
from lakelet.inspection import pipeline_watch


def end(watch):
    raise KeyboardInterrupt


pipeline_watch.PipelineWatch.go_on = end
from lakelet.cli.main import main

sys.exit(main(sys.argv[1:]))
"""
LINES = (
    r"Fetching Delta's jars 0\.0/\d+\.\d MB",
    r"Fetching delta-spark_\S+\.jar 4\.0/\d+\.\d MB",
    r"Fetching Delta's jars (\d+\.\d)/\1 MB  \d+\.\d s",
    r"Later starts of Spark will be quicker: a process in the background .*",
)
USES_SPARK = "def test_uses_spark(spark):\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with one source and one test, and a storage without tables."""
    (tmp_path / "a.py").write_text("import dlt\n")
    (tmp_path / "test_a_table.py").write_text(USES_SPARK)
    (tmp_path / "s").mkdir()
    return tmp_path


def environ(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LAKELET_", "PYTEST_"))}
    return {**kept, "LAKELET_CACHE": str(folder / "cache"), "TERM": "xterm-256color", **more}


def told(folder: Path, *arguments: str) -> str:
    """All that a command writes, stdout first."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=folder, env=environ(folder), capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ("run", "a.py"),
        ("validate", "a.py"),
        ("preview", "orders", "a.py"),
        ("watch", "a.py"),
        ("sql", "SELECT regexp_substr('a', 'b') AS x", "--storage", "s"),
        ("test", "-x", "test_a_table.py"),
    ],
    ids=lambda command: command[0],
)
def test_the_first_command_on_a_machine_fetches_the_jars_and_has_the_archive_made_at_its_end(
    folder: Path, command: tuple[str, ...]
) -> None:
    Storage(folder / "s").registry()
    lines = told(folder, *command).splitlines()
    found = [line for line in lines if line.startswith(("Fetching", "Later"))]
    assert len(found) == len(LINES), lines
    assert all(re.fullmatch(form, line) for form, line in zip(LINES, found, strict=True)), found
    started = next(number for number, line in enumerate(lines) if "Java starts" in line)
    assert lines.index(found[2]) < started < lines.index(found[3])


@pytest.mark.long
def test_tests_without_spark_prepare_nothing(folder: Path) -> None:
    (folder / "test_a_table.py").write_text("def test_uses_nothing():\n    pass\n")
    text = told(folder, "test", "test_a_table.py")
    assert "1 passed" in text
    assert "Fetching" not in text


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("command", [("preview", "orders", "a.py"), ("test", "test_a_table.py")], ids=lambda command: command[0])
def test_the_jars_have_a_bar_on_a_terminal_and_a_line_when_they_are_there(folder: Path, command: tuple[str, ...]) -> None:
    text = on_terminal(([sys.executable, "-c", PROGRAM, *command], environ(folder, SECONDS="4")), folder=folder)
    lines = shown(text)
    assert any(re.match(r"Fetching delta-spark_\S+\.jar 4\.0/\d+\.\d MB ━+", line) for line in lines), lines
    left = [line for drawn in screen(text) for line in shown(drawn)]
    assert sum(bool(re.fullmatch(LINES[2], line)) for line in left) == 1, left
    assert sum(bool(re.fullmatch(LINES[3], line)) for line in left) == 1, left
    assert not any("━" in line for line in left)
