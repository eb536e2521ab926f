"""What a person sees on a real terminal: all errors of an invalid pipeline together, and a whole update from its phases to its result."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.spark.cli.installed import LAKELET, NEEDS_LAKELET
from tests.terminals import on_terminal, screen

pytestmark = [pytest.mark.spark, pytest.mark.long, NEEDS_LAKELET]

WRONG = """\
import dlt
from pyspark.sql import functions as F

LIMIT = 3
@dlt.table
def numbers():
    return spark.range(3).withColumn("amount", F.col("id") * 2)


@dlt.table
def raises():
    return spark.createDataFrame([{"share": 1 // 0}])


@dlt.table
def name_of_python():
    return dlt.read("numbers").limit(LIMT)


@dlt.table
def name_of_a_dataset():
    return dlt.read("nubmers")


@dlt.table
def missing_import():
    import not_installed_here

    return not_installed_here.rows()


@dlt.table
def function():
    return dlt.read("numbers").select(F.col("id").alias("a"), F.col("amount").alias("an_amount"), F.lit("x").alias("b"), F.cuont("id"))


@dlt.table
def method():
    return dlt.read("numbers").selct("id")
"""
WRONG_SQL = """\
CREATE MATERIALIZED VIEW column_of_sql AS
SELECT id, amuont FROM numbers;
"""
WRONG_RULES = """\
datasets:
  numbers:
    drpo:
      positive: id > 0
"""
LOOKING = """\
import dlt
from pyspark.sql import functions as F


@dlt.table
def orders():
    return spark.createDataFrame([(1, 2.0)], "id INT, amount DOUBLE")


@dlt.table
def newest():
    latest = dlt.read("orders").orderBy(F.desc("id")).collect()[0]["amount"]
    return dlt.read("orders").where(F.col("amount") == latest)
"""
IMPORTING = """\
import dlt

import not_installed_at_all


@dlt.table
def never_declared():
    return not_installed_at_all.rows()
"""
COMMANDS = (
    (80, "wrong", "validate pipeline.py other.sql"),
    (120, "wrong", "validate pipeline.py other.sql"),
    (120, "wrong", "plan pipeline.py other.sql"),
    (120, "wrong", "graph pipeline.py other.sql"),
    (80, "rest", "validate importing.py looking.py"),
    (80, "rest", "validate looking.py"),
    (80, "rest", "plan looking.py"),
    (80, "rest", "graph looking.py"),
)
"""Columns of the terminal, folder, and command. They run one after the other in one process: Spark starts once."""
PROGRAM = """\
import fcntl, json, os, struct, sys, termios
from lakelet.cli.main import main

for columns, folder, command in json.loads(sys.argv[1]):
    os.chdir(os.path.join(sys.argv[2], folder))
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    code = main(command.split())
    print(f"exit code {code}", file=sys.stderr, flush=True)
"""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


MARKED = (
    ("expectations/numbers.yml, line 3", "", "drop"),
    ("pipeline.py, line 22, column 22", 'nubmers")', "main.default.numbers"),
    ("pipeline.py, line 39, column 32", "selct(", "select"),
    ("other.sql, line 2, column 12", "amuont ", "amount"),
    ("pipeline.py, line 12, column 45", "1 // 0", ""),
    ("pipeline.py, line 17, column 38", "LIMT)", "LIMIT"),
    ("pipeline.py, line 27, column 12", "not_installed_here", ""),
    ("pipeline.py, line 34, column 124", "cuont", "count"),
)
"""Where each error of the pipeline is, the text above its caret, and the name that is suggested."""


def environ(**more: str) -> dict[str, str]:
    without = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE")
    return {**{k: v for k, v in os.environ.items() if k not in without}, "TERM": "xterm-256color", **more}


def shown(text: str) -> list[str]:
    """The lines that are left on the screen, without colours."""
    return [_CONTROL.sub("", line).rstrip() for line in screen(text)]


Screen = tuple[str, str]
"""What a command leaves on the screen, and its exit code."""
Screens = Mapping[tuple[int, str], Screen]


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Screens:
    """The screen after each of `COMMANDS`, by columns and command. None may write anything."""
    folder = tmp_path_factory.mktemp("projects")
    files = {
        "wrong": {"pipeline.py": WRONG, "other.sql": WRONG_SQL, "expectations/numbers.yml": WRONG_RULES},
        "rest": {"looking.py": LOOKING, "importing.py": IMPORTING},
    }
    for name, texts in files.items():
        for file, text in texts.items():
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_text(text)
    text = on_terminal(([sys.executable, "-c", PROGRAM, json.dumps(COMMANDS), str(folder)], environ()))
    *parts, rest = re.split(r"^exit code (\d+)$", "\n".join(shown(text)), flags=re.MULTILINE)
    assert rest == ""
    assert not list(folder.rglob(".lakelet"))
    names = [(columns, command) for columns, _, command in COMMANDS]
    return dict(zip(names, zip(parts[::2], parts[1::2], strict=True), strict=True))


def test_validate_shows_all_errors_together_each_with_its_line_and_the_nearest_name(screens: Screens) -> None:
    screen = {columns: screens[columns, "validate pipeline.py other.sql"] for columns in (80, 120)}
    for columns, (found, code) in screen.items():
        *errors, counted = found.strip("\n").split("\n\n")
        assert (code, counted) == ("2", "8 errors")
        assert [error.splitlines()[0].partition("] ")[0][1:] for error in errors] == [
            "RULE_FILE_INVALID",
            *["QUERY_FAILED_ANALYSIS"] * 3,
            "UNKNOWN_DATASET",
            *["QUERY_FAILED_ANALYSIS"] * 3,
        ]
        for place, marked, suggested in MARKED:
            (error,) = [one for one in errors if f"\n  {place}\n" in one]
            if marked:
                lines = error.splitlines()  # the sentences above break between words
                at = next(number for number, line in enumerate(lines) if line.strip() == "^")
                source, caret = lines[at - 1 : at + 1]
                assert source[caret.index("^") :].startswith(marked)
                assert caret.strip() == "^"
                assert max(len(source), len(caret)) <= columns
            assert (f'\n  Did you mean "{suggested}"?' in error) is bool(suggested)
    long = {columns: next(line for line in found.splitlines() if "F.cuont" in line) for columns, (found, _) in screen.items()}
    assert len(long[80]) < 80 < len(long[120]) < 120  # cut around the caret
    assert "not_installed_here' in this environment" in screen[80][0]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "graph"])
def test_plan_and_graph_show_the_errors_of_validate(screens: Screens, command: str) -> None:
    assert screens[120, f"{command} pipeline.py other.sql"] == screens[120, "validate pipeline.py other.sql"]


@pytest.mark.slow
def test_a_missing_import_at_the_top_of_a_file_is_an_error_with_its_line(screens: Screens) -> None:
    found, code = screens[80, "validate importing.py looking.py"]
    warned, error = found.strip("\n").split("\n\n")
    assert "looking.py, line 12" in warned
    assert (code, error.splitlines()) == (
        "2",
        [
            "[SOURCE_FAILED] loading the file failed: ModuleNotFoundError: No module named 'not_installed_at_all'",
            "  importing.py, line 3, column 8",
            "  3 | import not_installed_at_all",
            "             ^",
            "  Install the package 'not_installed_at_all' in this environment, or put the module below the project folder.",
        ],
    )


@pytest.mark.in_ci(every=3)
@pytest.mark.parametrize("command", ["validate", "plan", "graph"])
def test_a_function_that_looks_at_rows_is_a_warning_with_its_line(screens: Screens, command: str) -> None:
    found, code = screens[80, f"{command} looking.py"]
    line = LOOKING[: LOOKING.index("collect")].count("\n") + 1
    warning, *rest = found.strip("\n").splitlines()
    assert (code, warning.partition(", column ")[0]) == ("0", f"looking.py, line {line}")
    assert "main.default.newest is not checked; only an update can check it: its function looks at rows, and there may be none" in warning
    size = "looking is valid: 2 datasets, 2 flows, 0 expectations, 1 not checked"
    assert rest == [size] if command == "validate" else [row for row in rest if "newest" in row.split()]


RUN = """\
import time

import dlt

time.sleep(0.6)


@dlt.table
def a_table_with_a_name_that_is_too_long_for_one_line_of_a_terminal_of_eighty_columns():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load("landing")


@dlt.table
def counted():
    time.sleep(0.6)
    return dlt.read("a_table_with_a_name_that_is_too_long_for_one_line_of_a_terminal_of_eighty_columns").groupBy().count()
"""
LONG = "a_table_with_a…_eighty_columns"
BAR = "[━╺╸]{20}"
PICTURES = (
    r"Starting Spark  \d+\.\d s",
    rf"Loading files [01]/1 {BAR} \d+\.\d s",
    rf"Analysing [012]/2 {BAR} \d+\.\d s",
    rf"{LONG}  RUNNING  0 rows of 1 file, 10 B  \d+\.\d s\nRUNNING 0/2 {BAR} \d+\.\d s  0 rows  1 running",
    rf"COMPLETED  {LONG}  1 row, \d+\.\d s\n.*",
    rf"counted  RUNNING  0 rows  \d+\.\d s\nRUNNING 1/2 {BAR} \d+\.\d s  1 row  1 completed, 1 running",
)
"""What is drawn one after the other: phases, then what runs at the bottom, below what has ended."""
DESCRIBING = ("dataset_definition", "flow_definition", "column_lineage", "planning_information", "stream_progress")


def test_a_run_shows_its_phases_and_what_runs_ends_with_the_result_and_events_lead_with_what_happened(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(RUN)
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.json").write_text('{"id": 1}\n')
    text = on_terminal(([str(LAKELET), "run", "pipeline.py"], environ()), folder=tmp_path)
    drawn = [_CONTROL.sub("", picture).replace("\r", "").strip() for picture in text.split("\x1b[2K")]
    firsts = [next((at for at, one in enumerate(drawn) if re.fullmatch(form, one, re.DOTALL)), form) for form in PICTURES]
    assert firsts == sorted(at for at in firsts if isinstance(at, int)), drawn
    left = [line.replace(str(tmp_path), "FOLDER").replace(str(LAKELET), "lakelet") for line in shown(text)]
    assert max(map(len, left)) <= 80
    assert re.match(r"Update [0-9a-f]{6} of pipeline COMPLETED in ", left[-3])
    assert left[-2:] == ["  2 datasets: 2 completed; 2 rows written", "Next: lakelet show counted  ·  lakelet events"]

    seen = [line.split()[3] for line in shown(on_terminal(([str(LAKELET), "events"], environ()), folder=tmp_path))]
    piped = subprocess.run([str(LAKELET), "events"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    logged = [line.split()[3] for line in piped.splitlines()]
    assert logged.index("dataset_definition") < logged.index("flow_progress")
    assert seen == sorted(logged, key=lambda kind: kind in DESCRIBING)
