"""A command uses a resident session only where everything that Spark's process depends on is equal (decision 49)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.spark.launch.resident.protocol import Machine, command_facts, difference

KEY = b"secret"
COMMAND = [
    "java",
    "-cp",
    "a.jar",
    "-Xmx2048m",
    "-Djava.io.tmpdir=/tmp/a",
    "--conf",
    "spark.master=local[2]",
    "--conf",
    "spark.app.name=a",
    "x",
]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine of files below `tmp_path`."""
    for name in ("packages/one-1.0.dist-info", "packages/one", "packages/pyspark/jars", "code/cli/__pycache__", "spark"):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "packages/one-1.0.dist-info/RECORD",
        "packages/pyspark/jars/a.jar",
        "packages/a.pth",
        "code/cli/main.py",
        "spark/log4j2",
        "java",
    ):
        (tmp_path / name).write_text("a")
    environ = {"HOME": "/home/jo", "AWS_PROFILE": "one", "TERM": "xterm"}
    packages, code = (str(tmp_path / "packages"),), str(tmp_path / "code")
    return Machine(environ, "/work", ("3.11",), packages, code, (str(tmp_path / "java"),), (str(tmp_path / "spark"),), 0o022, (1, 2))


def write(file: str) -> Callable[[Machine, Path], Machine]:
    def change(machine: Machine, folder: Path) -> Machine:
        (folder / file).write_text("bb")
        return machine

    return change


def moved(before: str, after: str) -> Callable[[Machine, Path], Machine]:
    def change(machine: Machine, folder: Path) -> Machine:
        (folder / before).rename(folder / after)
        return machine

    return change


def linked(file: str) -> Callable[[Machine, Path], Machine]:
    def change(machine: Machine, folder: Path) -> Machine:
        (folder / "link").hardlink_to(folder / file)
        return machine

    return change


def with_(**fields: object) -> Callable[[Machine, Path], Machine]:
    return lambda machine, _: replace(machine, **fields)


def variables(**values: str | None) -> Callable[[Machine, Path], Machine]:
    def change(machine: Machine, _: Path) -> Machine:
        found = {**machine.environ, **values}
        return replace(machine, environ={name: value for name, value in found.items() if value is not None})

    return change


CHANGES = {
    "another value of a variable": (variables(AWS_PROFILE="two"), "the environment variable AWS_PROFILE"),
    "a new variable": (variables(JAVA_TOOL_OPTIONS="-ea"), "the environment variable JAVA_TOOL_OPTIONS"),
    "a variable less": (variables(AWS_PROFILE=None), "the environment variable AWS_PROFILE"),
    "another folder": (with_(folder="/elsewhere"), "the working folder"),
    "another umask": (with_(umask=0o077), "the umask"),
    "another group": (with_(groups=(1, 3)), "the user"),
    "another interpreter": (with_(interpreter=("3.12",)), "the Python interpreter"),
    "a package of another version": (moved("packages/one-1.0.dist-info", "packages/one-1.1.dist-info"), "the packages in"),
    "a package that was installed again": (write("packages/one-1.0.dist-info/RECORD"), "the packages in"),
    "a path file": (write("packages/a.pth"), "the packages in"),
    "a new package": (write("packages/new.py"), "the packages in"),
    "another jar of Spark": (write("packages/pyspark/jars/a.jar"), "the packages in"),
    "a new jar of Spark": (write("packages/pyspark/jars/b.jar"), "the packages in"),
    "Lakelet's code": (write("code/cli/main.py"), "Lakelet itself"),
    "a new module of Lakelet": (write("code/cli/new.py"), "Lakelet itself"),
    "another Java": (write("java"), "the file"),
    "configuration of Spark": (write("spark/log4j2"), "the files in"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_is_noticed_and_named(machine, tmp_path, change):
    make, named = change
    before = machine.facts(KEY)
    after = make(machine, tmp_path).facts(KEY)
    found = difference(before, after)
    assert found is not None
    assert found.startswith(named)
    assert difference(after, before) is not None


@pytest.mark.parametrize(
    "change",
    [
        variables(TERM="dumb", COLUMNS="80", NO_COLOR="1"),
        variables(LAKELET_SESSION_IDLE="5"),
        write("code/cli/__pycache__/main.pyc"),
        linked("packages/one-1.0.dist-info/RECORD"),
    ],
    ids=["terminal", "idle time", "compiled code", "another environment with the same file"],
)
def test_what_says_nothing_about_spark_is_not_compared(machine, tmp_path, change):
    before = machine.facts(KEY)
    assert difference(before, change(machine, tmp_path).facts(KEY)) is None


def test_values_of_variables_do_not_stand_in_the_facts_and_their_digests_need_the_key(machine):
    facts = machine.facts(KEY)
    assert "one" not in facts.values()
    assert facts["the environment variable AWS_PROFILE"] != machine.facts(b"other")["the environment variable AWS_PROFILE"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--conf", "spark.master=local[4]"], "the Spark setting spark.master"),
        (["--conf", "spark.jars.packages=a:b:1"], "the Spark setting spark.jars.packages"),
        (["-XX:+UseParallelGC"], "the options of Java"),
    ],
)
def test_another_setting_of_spark_or_option_of_java_is_noticed_and_named(arguments, named):
    assert difference(command_facts(COMMAND, KEY), command_facts([*COMMAND, *arguments], KEY)) == named


def test_folders_of_a_process_and_settings_of_a_session_are_not_compared():
    other = [text.replace("/tmp/a", "/tmp/b").replace("app.name=a", "app.name=b") for text in COMMAND]
    more = ["--conf", "spark.sql.adaptive.enabled=false", "-XX:SharedArchiveFile=b.jsa", "-Xlog:disable"]
    assert difference(command_facts(COMMAND, KEY), command_facts([*other, *more], KEY)) is None


def test_this_machine_is_equal_to_itself(monkeypatch):
    facts = Machine.here(os.devnull).facts(KEY)
    assert difference(facts, Machine.here(os.devnull).facts(KEY)) is None
    monkeypatch.setenv("SOMETHING_NEW", "1")
    assert difference(facts, Machine.here(os.devnull).facts(KEY)) == "the environment variable SOMETHING_NEW"
