"""What a person sees: `lakelet run` and `validate` on a real pseudo-terminal, and what a pipe gets. The pipeline is a small double."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminals import on_terminal

PROGRAM = """
import sys, time, types
from lakelet.base.phases import report
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import UpdateState
from tests.unit.cli.test_cli import NODE, Checked, FakePipeline, Graph, Result

LONG = "main.shop.a_dataset_with_a_name_that_is_much_too_long_for_a_terminal_of_eighty_columns_of_text"


class Slow(FakePipeline):
    def check(self, request, *, new_process):
        print("printed by the pipeline's code")
        report("Analysing", 14, 25)
        time.sleep(1.6)
        return Checked(Graph((NODE,)), ())

    def run(self, request, *, listeners, new_process=False):
        report("Analysing", 14, 25)
        time.sleep(0.4)
        for number, (name, status) in enumerate([
            ("main.shop.raw", "QUEUED"), (LONG, "QUEUED"), ("main.shop.raw", "STARTING"), ("main.shop.raw", "RUNNING"),
            ("main.shop.raw", "COMPLETED"), (LONG, "STARTING"), (LONG, "FAILED"),
        ]):
            metrics = {"backlog_files": 3, "backlog_bytes": 38_100_000} if status == "RUNNING" else {}
            body = {"flow_progress": {"status": status, "metrics": metrics}}
            event = Event("flow_progress", f"{status}.", Origin("p", "shop", "abcdef12", name, name), body, sequence=number)
            for listener in listeners:
                listener(event)
            time.sleep(0.4 if status in ("RUNNING", "STARTING") else 0)
        return Result(state=UpdateState.FAILED)


fake = types.ModuleType("lakelet.pipeline")
fake.Pipeline = Slow
sys.modules["lakelet.pipeline"] = fake
from lakelet.cli.main import main
from lakelet.inspection import pipeline_watch, preview


def slow_preview(pipeline, name, rows):
    report("Computing main.shop.raw")
    time.sleep(1.6)
    return preview.Preview("main.shop.raw", "streaming_table", (("id", "bigint"),), None, ({"id": 1},), 1, 0, (), ())


class SlowWatch(pipeline_watch.PipelineWatch):
    def begin(self):
        report("Analysing", 14, 25)
        time.sleep(1.6)
        self.report(pipeline_watch.ValidDefinitions(None, 25, 1.6))

    def go_on(self):
        raise KeyboardInterrupt


preview.preview, pipeline_watch.PipelineWatch = slow_preview, SlowWatch
sys.exit(main(sys.argv[1:]))
"""
ROOT = Path(__file__).parents[3]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., tuple[list[str], dict[str, str]]]:
    (tmp_path / "a.py").write_text("import dlt\n")

    def make(*arguments: str, **environ: str) -> tuple[list[str], dict[str, str]]:
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE")}
        return [sys.executable, "-c", PROGRAM, *arguments, str(tmp_path / "a.py"), "--storage", str(tmp_path / "s")], {
            **kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environ,
        }  # fmt: skip

    return make


def shown(text: str) -> list[str]:
    """The lines without control sequences."""
    return [line.rstrip() for line in _CONTROL.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def left_on_screen(text: str) -> list[str]:
    """The lines after the last picture was taken away."""
    return shown(text[text.rindex("\x1b[2K") :])


@pytest.mark.long
def test_an_update_shows_its_phase_what_works_and_how_far_it_is_and_ends_with_the_headline(program):
    text = on_terminal(program("run"))
    lines = shown(text)
    assert any(re.match(r"Analysing 14/25 ━+", line) for line in lines)
    assert any(re.match(r"raw +RUNNING +0 rows of 3 files, 38.1 MB", line) for line in lines)
    assert any(re.match(r"\w* ?\w+ 1/2 ━+", line) for line in lines), "the bar of datasets"
    assert all(len(line) <= 80 for line in lines if "/s" not in line and not line.startswith("FAILED")), "what is drawn fits"
    assert any(re.match(r"a_dataset\S+…\S+ +STARTING", line) for line in lines), "a long name leaves room for the state"
    assert _COLOUR.search(text)
    ended = [line for line in lines if line.startswith(("COMPLETED  ", "FAILED "))]
    assert ended[0].startswith("COMPLETED  raw")
    *_, headline, counts, following, last = left_on_screen(text)
    assert headline.startswith("Update abcdef of shop FAILED")
    assert counts.startswith("  2 datasets: 1 completed, 1 failed")
    assert following.startswith("Next: ")
    assert last == ""


@pytest.mark.long
def test_validate_says_what_it_does_after_a_second_and_takes_it_away(program):
    text = on_terminal(program("validate"))
    assert any(line.startswith("Analysing 14/25 ━") for line in shown(text))
    assert left_on_screen(text)[-2:] == ["a is valid: 1 dataset, 1 flow, 0 expectations", ""]
    assert "printed by the pipeline's code" in shown(text)


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "phase", "left"),
    [
        (
            ("preview", "raw"),
            r"Computing main\.shop\.raw  \d\.\d s",
            ["main.shop.raw (streaming table)", "  1 column; nothing is stored yet"],
        ),
        (
            ("watch",),
            r"Analysing 14/25 ━+.*",
            ["  the pipeline with 25 datasets is valid  (1.60 s)", "Watching; save a file. Ctrl-C ends it."],
        ),
        (("watch", "--json"), r"Analysing 14/25 ━+.*", ['{"event": "valid", "dataset": null, "datasets": 25, "seconds": 1.6}']),
    ],
)
def test_preview_and_watch_say_what_they_do_after_a_second_and_take_it_away(program, command, phase, left):
    text = on_terminal(program(*command))
    assert any(re.fullmatch(phase, line) for line in shown(text)), text
    assert left_on_screen(text)[: len(left)] == left


@pytest.mark.parametrize(("name", "value", "coloured"), [("NO_COLOR", "1", False), ("FORCE_COLOR", "1", True), ("TERM", "dumb", False)])
def test_colours_are_switched_by_the_environment(name, value, coloured, tmp_path):
    code = "import sys; from lakelet.cli.lines import Line, write_lines; "
    code += "write_lines([Line('bad news', 'bad')], sys.stderr)"
    command = [sys.executable, "-c", code], {**{k: v for k, v in os.environ.items() if "COLOR" not in k}, "TERM": "xterm", name: value}
    assert bool(_COLOUR.search(on_terminal(command))) is coloured
    piped = subprocess.run(command[0], env=command[1], capture_output=True, text=True, check=True).stderr
    assert bool(_COLOUR.search(piped)) is (name == "FORCE_COLOR")


@pytest.mark.long
def test_a_pipe_gets_plain_lines_without_control_characters(program):
    command, environ = program("run")
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "\x1b" not in done.stderr
    assert "\r" not in done.stderr
    assert "main.shop.a_dataset_with_a_name_that_is_much_too_long_for_a_terminal_of_eighty_columns_of_text" in done.stderr
    command, environ = program("validate")
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "printed by the pipeline's code\n")
    assert done.stderr == "a is valid: 1 dataset, 1 flow, 0 expectations\n"


@pytest.mark.parametrize(
    ("shell", "environ", "answer"),
    [
        ("bash", {"COMP_WORDS": "lakelet va", "COMP_CWORD": "1"}, "validate"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "lakelet va"}, '"validate"'),
        ("fish", {"_TYPER_COMPLETE_ARGS": "lakelet va", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "validate"),
    ],
)
def test_shells_complete_commands_and_completion_is_installed(shell, environ, answer, tmp_path):
    run = [sys.executable, "-c", "from lakelet.cli.main import entry; entry()"]
    asked = {**os.environ, "_LAKELET_COMPLETE": f"complete_{shell}", **environ}
    assert answer in subprocess.run(run, env=asked, capture_output=True, text=True, check=True).stdout
    home = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run([*run, "--install-completion", shell], env=home, capture_output=True, check=True)
    written = [file.read_text() for file in tmp_path.rglob("*lakelet*") if file.is_file()]
    assert any("_LAKELET_COMPLETE" in text for text in written)
