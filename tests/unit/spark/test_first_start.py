"""What the first start makes by itself and reports, and what is left to the background. Shell scripts play Java and Python."""

from __future__ import annotations

import fcntl
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.phases import Phase, reported_to
from lakelet.cli.console import shown_phases
from lakelet.cli.spark_start import StepLines, make_later_starts_quick
from lakelet.spark.launch import archives
from lakelet.spark.launch import environment as env
from lakelet.spark.launch import first_preparation as preparation
from lakelet.spark.launch.first_preparation import StartStep, make_archive_in_background, prepare, start_archive
from tests.unit.spark.fake_java import MakeJava, put_jars


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, a Java, and Ivy replaced by what it leaves behind."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("LAKELET_CACHE", str(cache))
    monkeypatch.delenv("LAKELET_JARS", raising=False)
    monkeypatch.setattr(preparation, "_session_is_running", lambda: False)
    monkeypatch.setattr(env, "require_java", lambda: env.Java(tmp_path / "java", "17.0.1", 17, has_vector=True, home=str(tmp_path)))
    found: list[env.Jars] = []

    def jars() -> env.Jars:
        if not found:
            raise LakeletError("JARS_MISSING", "none yet")
        return found[0]

    def fetch(fetched: env.Fetched) -> env.Jars:
        fetched("a.jar", 4_000_000)
        found.append(env.Jars(tmp_path / "a.jar", tmp_path / "b.jar"))
        return found[0]

    monkeypatch.setattr(env, "jars", jars)
    monkeypatch.setattr(env, "fetch_jars", fetch)
    return cache


def reported() -> list[StartStep]:
    steps: list[StartStep] = []
    prepare(steps.append)
    return steps


def test_the_first_start_fetches_the_jars_and_the_second_one_reports_nothing(machine: Path) -> None:
    jars, total = "Fetching Delta's jars", env.JAR_BYTES
    arriving = StartStep(jars, 4_000_000, total, part="a.jar")
    assert reported() == [StartStep(jars, 0, total), arriving, StartStep(jars, total, total, ended=True)]
    assert reported() == []
    assert not (machine / "archives").exists()


def test_the_jars_of_a_package_are_fetched_with_their_size_and_only_for_a_project_that_names_it(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = env.PACKAGES["kafka"]

    def fetch(asked: env.JarPackage, fetched: env.Fetched) -> tuple[Path, ...]:
        fetched("b.jar", 5_000_000)
        (machine / "jars").mkdir(parents=True)
        for name in asked.jars:
            with zipfile.ZipFile(machine / "jars" / name, "w") as jar:
                jar.writestr("META-INF/MANIFEST.MF", "")
        return env.package_jars(asked)

    monkeypatch.setattr(env, "fetch_package", fetch)
    prepare(lambda step: None)
    assert not (machine / "jars").exists()
    steps: list[StartStep] = []
    prepare(steps.append, ["kafka"])
    text, total = "Fetching Spark's connector for Kafka", package.bytes
    assert steps == [StartStep(text, 0, total), StartStep(text, 5_000_000, total, part="b.jar"), StartStep(text, total, total, ended=True)]
    steps.clear()
    prepare(steps.append, ["kafka"])
    assert steps == []


@pytest.fixture
def archive(make_java: MakeJava, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the archive will lie, on a machine that has the jars; processes may go on after commands."""
    monkeypatch.delenv("LAKELET_ARCHIVE", raising=False)
    monkeypatch.delenv("CI", raising=False)
    make_java(own_archive=True)
    put_jars(cache / "jars")
    return archives.archive_path(env.find_java(), env.jars())


Script = Callable[[str], None]


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Replace Python in the processes that are started by a shell script."""

    def replace(script: str) -> None:
        fake = tmp_path / "python"
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(fake))

    return replace


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process, which is that of all tests, keeps its priority."""
    monkeypatch.setattr(preparation, "_give_way", lambda: None)


def test_a_command_leaves_a_process_in_a_session_of_its_own_and_says_so(
    archive: Path, maker: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tmp_path / "said"
    os.mkfifo(said)  # read until the process has ended
    maker(f"exec >{said}; echo $*; pwd; ps -o pid=,sid= -p $$")
    make_later_starts_quick(os.getpid())
    arguments, folder, numbers = said.read_text().splitlines()
    assert arguments == "-m lakelet.spark.launch.warmup --background"
    assert folder == str(archive.parent)
    assert len(set(numbers.split())) == 1
    assert "in the background" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("LAKELET_ARCHIVE", "off"), ("CI", "true"), (archives.RECORD_CLASSES, "file.jsa")])
def test_no_process_is_left_where_none_may_be(archive: Path, maker: Script, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    maker("exit 0")
    assert start_archive()
    monkeypatch.setenv(name, value)
    assert not start_archive()


def test_no_process_is_left_where_there_is_an_archive_or_another_process_makes_it(archive: Path, maker: Script) -> None:
    maker("exit 0")
    archive.parent.mkdir()
    with (archive.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not start_archive()
    assert start_archive()
    archive.touch()
    assert not start_archive()


def test_no_process_is_left_by_a_fork_or_where_the_cache_cannot_be_written(archive: Path, maker: Script, cache: Path) -> None:
    maker("exit 0")
    make_later_starts_quick(os.getpid() + 1)
    assert not archive.parent.exists()
    archive.parent.write_text("a file where the folder should be")
    assert not start_archive()


@pytest.mark.usefixtures("in_order")
def test_the_archive_is_made_by_one_process_and_is_whole_when_it_appears(archive: Path, maker: Script) -> None:
    left = archive.parent / ".make-of-a-killed-process"
    left.mkdir(parents=True)
    (left / archive.name).write_text("half of")
    maker('echo classes > "$LAKELET_RECORD_CLASSES"')
    with (archive.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_archive_in_background()
    assert not archive.exists()
    make_archive_in_background()
    assert archive.read_text() == "classes\n"
    assert {path.name for path in archive.parent.iterdir()} == {archive.name, ".lock"}


@pytest.mark.usefixtures("in_order")
def test_an_archive_that_cannot_be_made_is_tried_again_on_another_day(archive: Path, maker: Script) -> None:
    maker('echo half of >"$LAKELET_RECORD_CLASSES"; echo no space left; exit 1')
    make_archive_in_background()
    failure = archives.failure_file(archive)
    assert "no space left" in failure.read_text()
    assert {path.name for path in archive.parent.iterdir()} == {failure.name, ".lock"}
    assert not start_archive()
    os.utime(failure, (0, 0))
    assert start_archive()


def test_archives_that_other_environments_used_today_are_not_thrown_out(archive: Path, maker: Script) -> None:
    maker("exit 0")
    archive.parent.mkdir()
    others = [archive.parent / f"{number}.jsa" for number in range(archives.KEPT_ARCHIVES)]
    for other in others:
        other.touch()
    assert not start_archive()
    os.utime(others[0], (0, 0))
    assert start_archive()


def test_a_process_that_gives_way_has_the_lowest_priority() -> None:
    code = """
import os
from lakelet.spark.launch.first_preparation import _give_way
_give_way()
print(os.getpriority(os.PRIO_PROCESS, 0), getattr(os, "sched_getscheduler", lambda pid: None)(0) == getattr(os, "SCHED_IDLE", None))
"""
    done = subprocess.run([sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True, check=True)
    assert done.stdout == "19 True\n"


def test_steps_have_a_line_at_their_end_and_in_a_pipe_also_at_their_beginning_and_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    steps = [
        StartStep("Fetching jars", 0, 9_600_000),
        StartStep("Fetching jars", 4_000_000, 9_600_000, part="a.jar"),
        StartStep("Fetching jars", 5_000_000, 9_600_000, part="a.jar"),
        StartStep("Fetching jars", 9_600_000, 9_600_000, ended=True),
    ]
    monkeypatch.delenv("LAKELET_PROGRESS")
    pipe, terminal = io.StringIO(), Terminal()
    phases: list[Phase] = []
    for stream in (pipe, terminal):
        monkeypatch.setattr(sys, "stderr", stream)
        phases.clear()
        show = StepLines()
        with shown_phases(stream), reported_to(phases.append):
            for step in steps:
                show(step)
    end = "Fetching jars 9.6/9.6 MB  0.0 s\n"
    assert pipe.getvalue() == f"Fetching jars 0.0/9.6 MB\nFetching a.jar 4.0/9.6 MB\n{end}"
    assert terminal.getvalue() == end
    assert [str(phase) for phase in phases] == [*("Fetching jars 0.0/9.6 MB", "Fetching a.jar 4.0/9.6 MB", "Fetching a.jar 5.0/9.6 MB")]
    assert phases[1] == Phase("Fetching a.jar", 4_000_000, 9_600_000, in_bytes=True)
