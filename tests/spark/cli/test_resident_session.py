"""Commands that use the Spark of `lakelet watch` do what they do without it, and nobody's end harms the others (decision 49)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakelet.base.variables import COUNTED
from tests.spark.cli.installed import LAKELET, NEEDS_LAKELET

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    NEEDS_LAKELET,
]

PIPELINE = """\
import os
import sys
import time

import dlt
from pyspark.sql import functions as F

import helper

print("Spark", spark.sparkContext.applicationId, helper.VALUE, file=sys.stderr, flush=True)
while os.path.exists("wait"):
    open("waiting", "w").close()
    time.sleep(0.05)


@F.udf("string")
def in_a_worker(number):
    import helper

    return f"{helper.VALUE} {number}"


@dlt.table
@dlt.expect("few", "id < 2")
def raw():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(os.path.abspath("landing"))


@dlt.table
def made():
    return dlt.read("raw").select(in_a_worker("id").alias("text"))
"""


TESTS = """\
from pathlib import Path


def test_session(spark):
    assert spark.range(3).count() == 3
    Path("used").write_text(spark.sparkContext.applicationId)


def test_that_fails(spark):
    assert spark.range(3).count() == 4
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended: which Spark it used, the value of the helper module that it saw, and what it said besides."""

    code: int
    spark: str
    value: str
    out: str
    said: str


def done(process: subprocess.Popen[str]) -> Done:
    out, err = process.communicate(timeout=120)
    used = re.search(r"^Spark (\S+) (\S+)\n", err, re.MULTILINE)
    assert used, err
    said = re.sub(r" *[\d.]+ ?s\b|\b[0-9a-f]{6}\b|storage \S+| +", " ", err.replace(used[0], "", 1))
    return Done(process.returncode, used[1], used[2], out, said)


@dataclass
class Project:
    """A pipeline in a folder, and its watch."""

    folder: Path
    watch: subprocess.Popen[bytes]

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        environment = {**os.environ, **environ}
        return subprocess.Popen([str(LAKELET), *arguments], cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True)

    def command(self, *arguments: str, **environ: str) -> Done:
        return done(self.start(*arguments, **environ))

    def told(self) -> str:
        return (self.folder / "watch.err").read_text()

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(1200):
            if condition():
                return
            assert self.watch.poll() is None, self.told()
            time.sleep(0.1)
        raise AssertionError(self.told())

    def ready(self, times: int) -> None:
        self.until(lambda: self.told().count("Watching;") == times)

    def started_and_waiting(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that waits while its pipeline is loaded."""
        (self.folder / "wait").touch()
        (self.folder / "waiting").unlink(missing_ok=True)
        process = self.start(*arguments)
        self.until((self.folder / "waiting").exists)
        return process

    def save(self, name: str, text: str) -> None:
        """Save a file, and wait until the watch has looked."""
        looks = self.told().count("is valid")
        (self.folder / name).write_text(text)
        self.until(lambda: self.told().count("is valid") > looks)

    def go_on(self) -> None:
        (self.folder / "wait").unlink()

    @property
    def spark(self) -> str:
        """The Spark that the watch has now."""
        return re.findall(r"^Spark (\S+) ", self.told(), re.MULTILINE)[-1]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pipeline.py").write_text(PIPELINE)
    (folder / "helper.py").write_text("VALUE = 'first'\n")
    (folder / "landing").mkdir()
    (folder / "landing" / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    with (folder / "watch.err").open("w") as said:
        watch = subprocess.Popen([str(LAKELET), "watch", "pipeline.py"], cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
    found = Project(folder, watch)
    try:
        found.ready(1)
        yield found
    finally:
        watch.kill()
        watch.wait()


def test_an_update_through_the_session_is_the_one_without_it(project):
    warm = project.command("run", "pipeline.py", "--storage", ".warm")
    cold = project.command("run", "pipeline.py", "--storage", ".cold", KRB5CCNAME="else")
    why = f"the environment variable KRB5CCNAME is set here only. These count: {COUNTED}"
    note = f"The session of lakelet watch is not used: {why}.\n"
    assert note in cold.said
    assert (warm.code, warm.out, warm.said) == (cold.code, cold.out, cold.said.replace(note, ""))
    assert (warm.code, warm.spark) == (0, project.spark)
    assert cold.spark != project.spark


SHOPS = """\
import os
import sys

import dlt
from pyspark.sql import functions as F

print("Spark", spark.sparkContext.applicationId, "shops", file=sys.stderr, flush=True)


@F.udf("string")
def in_a_worker():
    return os.environ.get("SHOP")


@dlt.table
def shops():
    java = "reflect('java.lang.System', 'getenv', 'SHOP')"
    found = spark.range(1).select(F.lit(os.environ.get("SHOP")).alias("driver"), in_a_worker().alias("worker"), F.expr(java).alias("java"))
    text = "'${env:SHOP}'" if "SHOP" in os.environ else "CAST(NULL AS STRING)"
    return found.withColumn("text", F.expr(text))
"""
OTHER_TERMINALS = {
    "TERM": "dumb",
    "SSH_CLIENT": "::1 1 2",
    "VSCODE_IPC_HOOK_CLI": "/a",
    "DIRENV_DIR": "/b",
    "CI": "true",
    "GITHUB_SHA": "1",
}


def test_commands_of_other_terminals_use_the_session_and_their_code_reads_their_own_variables(project):
    """Also those that the command before it had, and this one has not."""
    (project.folder / "shops.py").write_text(SHOPS)
    for at, environ in enumerate(({"SHOP": "berlin"}, {"SHOP": "münchen", **OTHER_TERMINALS}, {})):
        command = project.command("run", "shops.py", "--storage", f".shops{at}", **environ)
        assert (command.code, command.spark) == (0, project.spark), command.said
        rows = project.start("sql", "SELECT * FROM shops", "--json", "--storage", f".shops{at}").communicate(timeout=120)[0]
        shop = environ.get("SHOP")
        assert json.loads(rows) == [{"driver": shop, "worker": shop, "java": shop or "null", "text": shop}]


@pytest.mark.slow
def test_validate_plan_and_preview_use_the_session_and_a_changed_module_is_seen_everywhere(project):
    valid = project.command("validate", "pipeline.py")
    assert (valid.code, valid.spark) == (0, project.spark)
    assert "is valid: 2 datasets, 2 flows, 1 expectation" in valid.said
    planned = project.command("plan", "pipeline.py", "--json", "--storage", ".warm")
    assert sorted(step["strategy"] for step in json.loads(planned.out)["steps"]) == ["full", "skip"]  # Python functions are called again
    project.save("helper.py", "VALUE = 'second'\n")
    seen = project.command("preview", "made", "pipeline.py", "--storage", ".warm", "--json")
    assert (seen.code, seen.spark, seen.value) == (0, project.spark, "second")
    assert sorted(row["text"] for row in json.loads(seen.out)["rows"]) == ["second 1", "second 2"]


@pytest.mark.slow
def test_the_tests_of_the_project_run_on_the_session(project):
    (project.folder / "test_raw.py").write_text(TESTS)
    passed = project.start("test", "-k", "session").communicate(timeout=120)
    assert "1 passed" in passed[0], passed
    assert (project.folder / "used").read_text() == project.spark
    failing = project.start("test")
    out, _ = failing.communicate(timeout=120)
    assert (failing.returncode, "1 failed, 1 passed" in out) == (1, True), out
    assert project.command("validate", "pipeline.py").spark == project.spark


@pytest.mark.slow
def test_an_invalid_pipeline_has_the_same_exit_code_and_ctrl_c_leaves_the_session_as_it_was(project):
    project.save("broken.py", PIPELINE.replace('dlt.read("raw")', 'dlt.read("rwa")'))
    broken = project.command("validate", "broken.py")
    assert (broken.code, broken.spark) == (2, project.spark)
    assert "[UNKNOWN_DATASET]" in broken.said
    process = project.started_and_waiting("run", "pipeline.py", "--storage", ".warm")
    process.send_signal(signal.SIGINT)
    stopped = done(process)
    assert (stopped.code, stopped.spark) == (130, project.spark)
    project.go_on()
    assert project.command("validate", "pipeline.py").spark == project.spark


@pytest.mark.slow
def test_a_command_that_is_killed_ends_the_session_which_starts_again(project):
    before = project.spark
    process = project.started_and_waiting("run", "pipeline.py", "--storage", ".warm")
    process.kill()
    process.communicate()
    project.go_on()
    project.ready(2)
    assert "The session ended: a command that used it was killed. Starting again" in project.told()
    assert project.spark != before
    assert project.command("validate", "pipeline.py").spark == project.spark


def test_a_command_whose_session_is_killed_fails_with_a_code_and_the_next_one_works(project):
    process = project.started_and_waiting("run", "pipeline.py", "--storage", ".warm")
    project.watch.kill()
    project.watch.wait()
    time.sleep(1)  # until Java has noticed
    project.go_on()
    ended = done(process)
    assert ended.code == 3
    assert "[SESSION_ENDED]" in ended.said
    after = project.command("run", "pipeline.py", "--storage", ".warm")
    assert (after.code, after.spark != ended.spark) == (0, True)
