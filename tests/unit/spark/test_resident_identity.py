"""A command uses a resident session only where everything that Spark's process depends on is equal (decision 49)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.terminals import VOLATILE
from lakelet.base.variables import COUNTED, read_at_start
from lakelet.spark.launch.resident.protocol import Machine, command_facts, compared, difference, foreign_code, handed_over, refusal_text

KEY = b"secret"
COMMAND = [
    "java",
    "-cp",
    os.pathsep.join(("/cache/delta-storage-4.4.0.jar", "/packages/pyspark/jars/*", "/cache/s3-2.35.4.jar")),
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
    "another zone": (variables(TZ="Asia/Tokyo"), "the environment variable TZ"),
    "another language": (variables(LC_ALL="de_DE.UTF-8"), "the environment variable LC_ALL"),
    "a proxy": (variables(https_proxy="http://localhost:1"), "the environment variable https_proxy"),
    "another home": (variables(HOME="/home/other"), "the environment variable HOME"),
    "a library": (variables(LD_PRELOAD="/lib/a.so"), "the environment variable LD_PRELOAD"),
    "modules for Python": (variables(PYTHONPATH="/modules"), "the environment variable PYTHONPATH"),
    "another program of the shell": (variables(PATH="/nothing/here"), "the program "),
    "threads of a library": (variables(OMP_NUM_THREADS="1"), "the environment variable OMP_NUM_THREADS"),
    "Arrow": (variables(ARROW_STRUCT_CONFLICT_POLICY="CONFLICT_REPLACE"), "the environment variable ARROW_STRUCT_CONFLICT_POLICY"),
    "pandas": (variables(PANDAS_COPY_ON_WRITE="1"), "the environment variable PANDAS_COPY_ON_WRITE"),
    "NumPy": (variables(NPY_PROMOTION_STATE="weak"), "the environment variable NPY_PROMOTION_STATE"),
    "Delta": (variables(DELTA_TESTING="1"), "the environment variable DELTA_TESTING"),
    "a value that is not text": (variables(SHOP="\udcff"), "the environment variable SHOP, which is not UTF-8"),
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
    before = compared(machine.facts(KEY), None)
    after = compared(make(machine, tmp_path).facts(KEY), None)
    found = difference(before, after)
    assert found is not None
    assert found.startswith(named)
    assert difference(after, before) is not None


@pytest.mark.parametrize(
    "change",
    [
        variables(TERM="dumb", COLUMNS="80", NO_COLOR="1"),
        variables(VSCODE_IPC_HOOK_CLI="/run/a", VSCODE_GIT_ASKPASS_NODE="/node", GIT_ASKPASS="/a", PYTHONSTARTUP="/rc.py", EDITOR="vi"),
        variables(ZDOTDIR="/z", HISTFILE="/h", PS1="$", STARSHIP_SESSION_KEY="1", FZF_DEFAULT_OPTS="-x", PROMPT_COMMAND="a", MANPATH="/m"),
        variables(SSH_CLIENT="1 2", SSH_AUTH_SOCK="/a", LC_TERMINAL="iTerm2", LC_TERMINAL_VERSION="3", MOTD_SHOWN="pam"),
        variables(
            DIRENV_DIR="/work", DIRENV_DIFF="x", DIRENV_WATCHES="y", VIRTUAL_ENV="/work/.venv", VIRTUAL_ENV_PROMPT="(a)", CONDA_SHLVL="0"
        ),
        variables(CI="true", GITHUB_ACTIONS="true", GITHUB_SHA="1", RUNNER_TEMP="/r", GITLAB_CI="1", BUILD_ID="7"),
        variables(DATABRICKS_HOST="https://a", SHOP="berlin", API_TOKEN="secret", LAKELET_IDLE_ANSWER="off", MALLOC_ARENA_MAX="2"),
        variables(LAKELET_SESSION_IDLE="5"),
        write("code/cli/__pycache__/main.pyc"),
        linked("packages/one-1.0.dist-info/RECORD"),
    ],
    ids=[
        "terminal",
        "editor",
        "shell",
        "ssh",
        "direnv",
        "CI",
        "code",
        "idle time",
        "compiled code",
        "another environment with the same file",
    ],
)
def test_what_says_nothing_about_spark_is_not_compared(machine, tmp_path, change):
    before = compared(machine.facts(KEY), None)
    assert difference(before, compared(change(machine, tmp_path).facts(KEY), None)) is None


FOREIGN: dict[str, tuple[dict[str, str], list[str], str]] = {
    "packages": ({}, ["--conf", "spark.jars.packages=a:b:1"], "the Spark setting spark.jars.packages"),
    "a listener": ({}, ["--conf", "spark.extraListeners=a.B"], "the Spark setting spark.extraListeners"),
    "an agent": ({}, ["-javaagent:a.jar"], "-javaagent:a.jar"),
    "options of all Java processes": ({"JAVA_TOOL_OPTIONS": "-javaagent:a.jar"}, [], "JAVA_TOOL_OPTIONS"),
    "a module": ({}, ["--patch-module=java.base=a"], "--patch-module=java.base=a"),
    "configuration of Spark": ({"SPARK_CONF_DIR": "/etc/spark"}, [], "SPARK_CONF_DIR"),
}


@pytest.mark.parametrize(("variable", "arguments", "named"), FOREIGN.values(), ids=FOREIGN)
def test_where_java_has_other_code_all_variables_count_but_those_of_terminals(machine, tmp_path, variable, arguments, named):
    (tmp_path / "packages/pyspark-4.2.dist-info").mkdir()
    (tmp_path / "packages/pyspark-4.2.dist-info/RECORD").write_text("pyspark/jars/a.jar,sha256=x,1\n")
    assert foreign_code(machine, COMMAND) is None
    found = foreign_code(replace(machine, environ={**machine.environ, **variable}), [*COMMAND, *arguments])
    assert found == named
    before = compared(machine.facts(KEY), found)
    after = compared(variables(SHOP="berlin", TERM="dumb")(machine, tmp_path).facts(KEY), found)
    name = difference(before, after)
    assert name == "the environment variable SHOP"
    assert refusal_text(name, before, after, found) == f"{name} is set here only, and every variable counts because of {named}"


def test_other_classes_on_the_class_path_are_other_code(machine, tmp_path):
    (tmp_path / "packages/pyspark/jars/a.jar").unlink()
    classes = [argument.replace("/packages", "/etc/conf:/packages") if "pyspark" in argument else argument for argument in COMMAND]
    assert (foreign_code(machine, COMMAND), foreign_code(machine, classes)) == (None, "the classes in /etc/conf")


def test_a_jar_that_did_not_come_with_spark_is_other_code(machine, tmp_path):
    jar = tmp_path / "packages/pyspark/jars/a.jar"
    assert foreign_code(machine, COMMAND) == f"the jar {jar}"


@pytest.mark.parametrize(
    ("here", "there", "how"),
    [
        ({"TZ": "UTC"}, {}, "is set here only"),
        ({}, {"TZ": "UTC"}, "is not set here"),
        ({"TZ": "UTC"}, {"TZ": "CET"}, "has another value here"),
    ],
)
def test_a_refusal_says_how_a_variable_differs_and_which_ones_count(machine, here, there, how):
    served, asked = (compared(replace(machine, environ=environ).facts(KEY), None) for environ in (there, here))
    name = difference(served, asked)
    assert refusal_text(name, served, asked, None) == f"the environment variable TZ {how}. These count: {COUNTED}"
    assert refusal_text("the umask", served, asked, None) == "the umask is not what it was started with"


def test_java_gets_every_variable_that_is_not_read_when_a_process_starts():
    environ = {"SHOP": "berlin", "PATH": "/bin", "TERM": "xterm", "TZ": "UTC", "AWS_PROFILE": "a", "PYSPARK_PYTHON": "/p", "ODD": "\udcff"}
    assert handed_over(environ) == {"SHOP": "berlin", "PATH": "/bin", "TERM": "xterm"}


def test_no_variable_of_terminals_is_one_that_is_read_when_a_process_starts():
    assert [name for name in VOLATILE if read_at_start(name)] == []


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
    monkeypatch.setenv("HADOOP_SOMETHING_NEW", "1")
    assert difference(facts, Machine.here(os.devnull).facts(KEY)) == "the environment variable HADOOP_SOMETHING_NEW"
