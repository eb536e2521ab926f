"""What the first start makes by itself, and what it reports meanwhile. A shell script plays Java."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.phases import Phase, reported_to
from lakelet.cli.spark_start import StepLines
from lakelet.spark.launch import archives
from lakelet.spark.launch import environment as env
from lakelet.spark.launch import first_preparation as preparation
from lakelet.spark.launch.first_preparation import StartStep, prepare


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, a Java, and Ivy and the warm-up replaced by what they leave behind."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("LAKELET_CACHE", str(cache))
    monkeypatch.delenv("LAKELET_JARS", raising=False)
    monkeypatch.setattr(preparation, "_session_is_running", lambda: False)
    monkeypatch.setattr(env, "require_java", lambda: env.Java(tmp_path / "java", "17.0.1", 17, has_vector=True, home=str(tmp_path)))
    monkeypatch.setattr(archives, "archive_path", lambda java, delta: cache / "archives" / "fitting.jsa")
    found: list[env.Jars] = []

    def jars() -> env.Jars:
        if not found:
            raise LakeletError("JARS_MISSING", "none yet")
        return found[0]

    def fetch(fetched: env.Fetched) -> env.Jars:
        fetched(4_000_000)
        found.append(env.Jars(tmp_path / "a.jar", tmp_path / "b.jar"))
        return found[0]

    monkeypatch.setattr(env, "jars", jars)
    monkeypatch.setattr(env, "fetch_jars", fetch)
    monkeypatch.setattr(archives, "make_archive", lambda: (cache / "archives" / "fitting.jsa").write_text("classes"))
    return cache


def reported() -> list[StartStep]:
    steps: list[StartStep] = []
    prepare(steps.append)
    return steps


def test_the_first_start_fetches_and_prepares_and_the_second_one_reports_nothing(machine: Path) -> None:
    jars, archive = "Fetching Delta's jars", "Preparing Spark for quick starts, once (up to a minute)"
    total = env.JAR_BYTES
    assert reported() == [
        StartStep(jars, 0, total),
        StartStep(jars, 4_000_000, total),
        StartStep(jars, total, total, ended=True),
        StartStep(archive),
        StartStep(archive, ended=True),
    ]
    assert reported() == []


def test_an_archive_that_cannot_be_made_is_not_tried_again_and_stops_nothing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise LakeletError("ARCHIVE_FAILED", "no space left")

    monkeypatch.setattr(archives, "make_archive", fail)
    assert len(reported()) == 5
    assert reported() == []
    assert "no space left" in (machine / "archives" / "fitting.failed").read_text()


def test_archives_that_other_environments_used_today_are_not_thrown_out(machine: Path) -> None:
    reported()
    folder = machine / "archives"
    (folder / "fitting.jsa").unlink()
    others = [folder / f"{number}.jsa" for number in range(archives.KEPT_ARCHIVES)]
    for other in others:
        other.touch()
    assert reported() == []
    os.utime(others[0], (0, 0))
    assert [step.ended for step in reported()] == [False, True]


def test_a_cache_that_cannot_be_written_stops_nothing(machine: Path) -> None:
    machine.mkdir()
    (machine / "archives").write_text("a file where the folder should be")
    assert len(reported()) == 3


def test_steps_are_lines_in_a_pipe_and_on_a_terminal_phases_with_a_line_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    steps = [
        StartStep("Fetching jars", 0, 9_600_000),
        StartStep("Fetching jars", 4_000_000, 9_600_000),
        StartStep("Fetching jars", 9_600_000, 9_600_000, True),
        StartStep("Preparing"),
    ]
    pipe, terminal = io.StringIO(), Terminal()
    phases: list[Phase] = []
    for stream in (pipe, terminal):
        monkeypatch.setattr(sys, "stderr", stream)
        phases.clear()
        show = StepLines()
        with reported_to(phases.append):
            for step in steps:
                show(step)
    assert pipe.getvalue() == "Fetching jars 0.0/9.6 MB\nFetching jars 9.6/9.6 MB  0.0 s\nPreparing\n"
    assert terminal.getvalue() == "Fetching jars 9.6/9.6 MB  0.0 s\n"
    assert [str(phase) for phase in phases] == [
        *("Fetching jars 0.0/9.6 MB", "Fetching jars 4.0/9.6 MB", "Fetching jars 9.6/9.6 MB", "Preparing")
    ]
    assert phases[1] == Phase("Fetching jars", 4_000_000, 9_600_000, in_bytes=True)
