"""The command line as a terminal sees it: exit codes, what goes to stdout and what to stderr, Ctrl-C. Each run is a process of its own."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess

import pytest

from tests.spark.cli.installed import LAKELET, NEEDS_LAKELET

pytestmark = [pytest.mark.spark, NEEDS_LAKELET]

PIPELINE = """\
import time

import dlt
from pyspark.sql import functions as F


def files(folder):
    options = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    return spark.readStream.format("cloudFiles").options(**options).load(spark.conf.get("landing") + "/" + folder)


@dlt.table
@dlt.expect("positive", "id > 0")
def good():
    return files("good")


@dlt.table
def bad():
    return files("bad")


@dlt.table
def below_bad():
    return dlt.read("bad")


def inverse(x):
    return 1 // x


@dlt.table
def divided():
    return dlt.read("good").select(F.udf(inverse, "long")("id").alias("x"))
"""
SLOW = """

@dlt.table
def slow():
    return dlt.read("good").select(F.udf(lambda x: time.sleep(300) or x, "long")("id").alias("x"))
"""


@pytest.fixture
def folder(tmp_path):
    """A project folder with a pipeline, one good file with a broken line, and one file that cannot be read."""
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "landing" / "good").mkdir(parents=True)
    (tmp_path / "landing" / "bad").mkdir()
    (tmp_path / "landing" / "good" / "a.json").write_text('{"id": 1}\n{"id": 0}\nnot json\n')
    (tmp_path / "landing" / "bad" / "a.json.gz").write_bytes(b"not gzip")
    return tmp_path


def lakelet(folder, *arguments):
    command = [str(LAKELET), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert "Traceback" not in done.stderr
    assert "\x1b[" not in done.stdout + done.stderr  # colour only on a terminal
    return done


def run(folder, *arguments):
    return lakelet(folder, "run", "pipeline.py", *arguments, "--param", "landing=landing", "--storage", "storage")


@pytest.mark.slow
def test_mistakes_of_all_files_are_told_together_with_exit_code_2_and_nothing_is_written(folder):
    (folder / "broken.py").write_text("import dlt\n\n@dlt.table\ndef four(:\n    return 1\n")
    (folder / "other.py").write_text(
        'import dlt\n\n\n@dlt.table\n@dlt.expect("rule", "amout > 0")\ndef one():\n    return spark.range(3).toDF("amount")\n\n\n'
        '@dlt.table\ndef two():\n    dlt.read("one")\n\n\n@dlt.table\ndef bad():\n    return dlt.read("one").select("amuont")\n'
    )
    done = run(folder, "broken.py", "other.py")
    assert (done.returncode, done.stdout) == (2, "")
    codes = [line[1:].split("]")[0] for line in done.stderr.splitlines() if line.startswith("[")]
    wrong = ["EXPECTATION_INVALID", "QUERY_FAILED_ANALYSIS", "QUERY_RETURNED_NO_DATAFRAME", "SOURCE_FAILED"]
    assert sorted(codes) == ["DUPLICATE_DATASET", *wrong], done.stderr
    for place in ("broken.py, line 4", "other.py, line 5", "other.py, line 10", "other.py, line 15"):
        assert f"\n  {place}" in done.stderr
    assert 'Did you mean "amount"?' in done.stderr
    assert not (folder / "storage").exists()
    assert not (folder / ".lakelet").exists()


@pytest.mark.long
def test_a_failed_branch_gives_exit_code_1_and_says_what_failed_where(folder):
    done = run(folder, "--json")
    assert done.returncode == 1
    events = [json.loads(line) for line in done.stdout.splitlines()]
    states = [e["details"]["update_progress"]["state"] for e in events if e["event_type"] == "update_progress"]
    assert (states[0], states[-1]) == ("QUEUED", "FAILED")
    for text in (
        "[FAILED_READ_FILE] main.default.bad",
        f"pipeline.py, line {PIPELINE[: PIPELINE.index('1 // x')].count(chr(10)) + 1}",  # where the worker failed
        "ZeroDivisionError",
        "kept 1 broken line (first: ",
        "good/a.json, line 3)",
        "SKIPPED",
        "lakelet events --update ",
    ):
        assert text in done.stderr, done.stderr


@pytest.mark.slow
def test_the_next_run_repairs_a_failed_branch(folder):
    assert run(folder).returncode == 1
    (folder / "landing" / "bad" / "a.json.gz").write_bytes(gzip.compress(b'{"id": 7}\n'))
    (folder / "pipeline.py").write_text(PIPELINE.replace("1 // x", "1 // (x or 1)"))
    done = run(folder)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "COMPLETED" in done.stderr
    shown = lakelet(folder, "show", "below_bad", "--json", "--storage", "storage")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert [row["id"] for row in json.loads(shown.stdout)] == [7]


@pytest.mark.long
def test_ctrl_c_ends_with_130_and_keeps_what_was_finished(folder):
    (folder / "pipeline.py").write_text(PIPELINE.replace("1 // x", "x") + SLOW)
    (folder / "landing" / "bad" / "a.json.gz").write_bytes(gzip.compress(b'{"id": 7}\n'))
    command = [str(LAKELET), "run", "pipeline.py", "--json", "--param", "landing=landing", "--storage", "storage"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        waiting = {"main.default.good", "main.default.bad", "main.default.below_bad", "main.default.divided"}
        for line in process.stdout:
            event = json.loads(line)
            if event["details"].get("flow_progress", {}).get("status") == "COMPLETED":
                waiting.discard(event["origin"]["dataset_name"])
            if not waiting:
                break
        assert not waiting
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Interrupted. What was finished is kept." in err
    states = [json.loads(line)["details"].get("update_progress", {}).get("state") for line in out.splitlines()]
    assert "CANCELED" in states
    shown = lakelet(folder, "show", "--json", "--storage", "storage")
    rows = {table["name"]: table["rows"] for table in json.loads(shown.stdout)}
    assert rows["main.default.good"] == 3
    assert rows["main.default.below_bad"] == 1
