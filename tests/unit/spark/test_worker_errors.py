"""What a message of a Python worker says of the function that raised, whatever the class of the error."""

from __future__ import annotations

import pytest

from lakelet.base.errors import Location
from lakelet.spark.errors.diagnosis import essence, first_line, run_failure

FRAMES = """\
  File "/home/user/pipeline.py", line 9, in clean
    raise BadRow(x)
"""


def message(*raised: str) -> str:
    """As Spark words it, with one traceback per error, the causes first."""
    tracebacks = "\nDuring handling of the above exception, another exception occurred:\n\n".join(
        f"Traceback (most recent call last):\n{FRAMES}{line}\n" for line in raised
    )
    head = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: org.apache.spark.api.python.PythonException: "
    return f"{head}\n{tracebacks}\n\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)\nDriver stacktrace:"


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("SystemExit: bye", "SystemExit: bye"),
        ("SystemExit", "SystemExit"),
        ("KeyboardInterrupt: by code", "KeyboardInterrupt: by code"),
        ("asyncio.exceptions.CancelledError", "CancelledError"),
        ("__main__.make.<locals>.BadRow: no number", "BadRow: no number"),
        ("ValueError: a: b", "ValueError: a: b"),
        ("lakelet.base.errors.LakeletError: [CF_X] the file is gone", "[CF_X] the file is gone"),
    ],
)
def test_the_class_and_text_of_what_was_raised_are_named(raised: str, told: str) -> None:
    assert essence(message(raised)) == told


def test_an_error_of_ours_is_told_once_without_its_class() -> None:
    text = message("lakelet.base.errors.DefinitionError: [JSON_COLUMN_INVALID] from_json: its column is int32")
    assert essence(text) == "[JSON_COLUMN_INVALID] from_json: its column is int32"
    problem = run_failure(RuntimeError(text), dataset="t", where=Location("p.py", 1), what="the flow failed")
    assert (problem.code, problem.what, problem.why) == ("JSON_COLUMN_INVALID", "from_json: its column is int32", None)


def test_an_error_of_ours_keeps_its_cause_and_its_remedy() -> None:
    text = message(
        "lakelet.autoloader.discovery.files.UnreadableFile: [FAILED_READ_FILE] a.orc cannot be read\n  ValueError: x\n  Repair it."
    )
    problem = run_failure(RuntimeError(text), dataset="t", where=Location("p.py", 1), what="the flow failed")
    assert (problem.why, problem.todo) == ("ValueError: x", "Repair it.")


def test_of_several_errors_the_last_one_counts() -> None:
    assert essence(message("KeyError: 'a'", "Missing: no a")) == "Missing: no a"


def test_an_error_of_several_lines_is_told_by_its_first() -> None:
    assert essence(message("ValueError: first\nsecond")) == "ValueError: first"


def test_a_worker_that_does_not_start_is_told_by_the_last_line_that_it_printed() -> None:
    printed = "  sh: 0: getcwd() failed\n  Traceback (most recent call last):\n  FileNotFoundError: [Errno 2] No such file or directory"
    java = f"org.apache.spark.SparkException: \nError from python worker:\n{printed}\nPYTHONPATH was:\n  /lib\njava.io.EOFException: x"
    told = "a Python process of Spark ended at its start: FileNotFoundError: [Errno 2] No such file or directory"
    assert essence(java) == told
    assert first_line(RuntimeError(f"An error occurred while calling o1.load.\n: {java}")) == told
