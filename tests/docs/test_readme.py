"""Executes README.md, docs/quick-start.md, docs/coming-from.md and docs/from-databricks.md: every fenced block, in order.

`make` and what `.venv/bin/` holds are typed in a copy of the project with the sample data of `make run`, `lakelet` in a folder that was
empty, or where `cd` leads from there. A `python`, `sql`, `yaml` or `toml` block is the file that its first line names, there from the
next command on (a notebook of Databricks without that line); a `python` block that names none is executed, with a Spark session as
`spark`. A file block behind the words "what it wrote:" is compared with the file that a command has written. A `sh` block holds
commands; a `text` block behind it is what they print, where a line `…` stands for any lines. Times, ids of updates and the project's
folder may differ, numbers of rows may not.

A picture `images/….svg` behind a `sh` block is the terminal after its last command: what it shows must be printed. With
LAKELET_UPDATE_GOLDEN=1 (`make pictures`) the command is typed on a pseudo-terminal, and the picture is drawn again if words differ.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from lakelet.config.tool_settings import _KEYS
from tests.docs.pictures import COLUMNS, drawn, words
from tests.terminals import on_terminal, screen

BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$|^!\[[^\]]*\]\((?P<picture>\S*images/\S+\.svg)\)$", re.MULTILINE | re.DOTALL)
COPIED = ("Makefile", "pyproject.toml", "databricks.yml", "resources", "pipelines", "expectations", "examples/contact-center")
LAKELET = ".venv/bin/lakelet "
INSTALLED = "lakelet "
PYTHON = ".venv/bin/python "
TESTS = "lakelet test"
INSTALLATION = "pip install lakelet"
OF_SHELL = ("mkdir ", "echo ", "printf ", "rm ")
WROTE = "what it wrote:"
FILE_NAME = re.compile(r"(?:#|--) (\S+)\n")
NOTEBOOK = re.compile(r"(#|--) Databricks notebook source\n")
EXIT_CODE = '; echo "exit code $?"'


@dataclass
class Project:
    """A copy of the project, and an empty folder. `make run` is executed once for all pages, `lakelet` in this process, on its session."""

    folder: Path
    spark: Any
    begun: Path  # where `lakelet` is typed
    said: Callable[[], str]  # what was printed since the last call
    enter: Callable[[Path], None]
    made: dict[str, str]
    files: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start = self.begun

    def write(self, body: str) -> None:
        """Keep the block for the next command. In the copy of the project it is a new file, in a project of the page's own any file."""
        name = FILE_NAME.match(body)
        assert name, f"a block does not start with its file name:\n{body}"
        file = self.folder / name[1]
        if self.begun != self.start or self.begun.joinpath("databricks.yml").exists():
            file = self.begun / name[1]
        else:
            assert file in self.files or not file.exists(), f"{name[1]} is there already"
        rest = body.partition("\n")[2]
        self.files[file] = rest if NOTEBOOK.match(rest) else body

    def check_written(self, body: str) -> None:
        """A command of the page has written the file of the block, with this text."""
        name = FILE_NAME.match(body)
        assert name, f"a block does not start with its file name:\n{body}"
        assert (self.begun / name[1]).read_text(encoding="utf-8") == body.partition("\n")[2], f"{name[1]} is another one"

    def call(self, body: str) -> str:
        """What a program prints that has a session of its own."""
        self.enter(self.folder)
        self.said()
        exec(body, {"spark": self.spark})
        return self.said()

    def execute(self, command: str) -> str:
        """What the command printed. It must succeed, unless the line goes on with a look at the exit code."""
        if command.startswith("make "):
            return self._make(command)
        if command == INSTALLATION:
            return ""  # it is what this environment is
        if command.startswith("cd "):
            self.begun /= command.removeprefix("cd ")
            return ""
        if command.startswith(OF_SHELL):
            self._keep(self.begun)
            subprocess.run(["sh", "-ec", command], cwd=self.begun, check=True)
            self.files = {file: body for file, body in self.files.items() if file.exists() or not file.is_relative_to(self.begun)}
            return ""
        if command.startswith(PYTHON):
            line = [sys.executable, *shlex.split(command.removeprefix(PYTHON))]
            return subprocess.run(line, cwd=self.folder, capture_output=True, text=True, check=True).stdout
        place = self.folder if command.startswith(LAKELET) else self.begun
        self._keep(place)
        if command == TESTS:
            return self._test()
        prefix = next(prefix for prefix in (LAKELET, INSTALLED) if command.startswith(prefix))
        self.enter(place)
        line, look, _ = command.partition(EXIT_CODE)
        self.said()
        code = main(shlex.split(line.removeprefix(prefix)))
        printed = self.said() + (f"exit code {code}\n" if look else "")
        assert look or code == 0, printed
        return printed

    def _keep(self, place: Path) -> None:
        """Write the blocks that are files below the place."""
        for file, body in self.files.items():
            if file.is_relative_to(place):
                file.write_text(body, encoding="utf-8")

    def draw(self, command: str, picture: Path) -> str:
        """What a terminal shows after the command, in words; the picture of it is drawn anew if these are others."""
        self._keep(self.begun)
        environ = {**os.environ, "TERM": "xterm-256color", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        text = on_terminal((["sh", "-c", command], environ), columns=COLUMNS, folder=self.begun)
        svg = drawn(command, screen(text.replace(str(self.begun.parent), "/tmp")))
        if not picture.exists() or normalised("\n".join(words(picture.read_text()))) != normalised("\n".join(words(svg))):
            picture.write_text(svg, encoding="utf-8")
        return "\n".join(words(svg))

    def _test(self) -> str:
        """The tests of the page's project, in a process of their own: pytest does not run twice in one."""
        command = [sys.executable, "-m", "lakelet", "test"]
        done = subprocess.run(command, cwd=self.begun, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def take_away(self) -> None:
        """Delete the page's files; an update notes that their tables are no longer defined, so that the next page is not told."""
        found = [file for file in self.files if file.exists() and file.is_relative_to(self.folder)]
        for file in found:
            file.unlink()
        self.files.clear()
        if found:
            self.execute(f"{LAKELET}run")

    def _make(self, command: str) -> str:
        """`make run` without the set-up, which is this environment; the tests do not run the tests."""
        options = ["-o", "setup", "-o", "ready", f"LAKELET={Path(sys.executable).with_name('lakelet')}", f"PYTHON={sys.executable}"]
        dry = [] if command == "make run" else ["-n"]
        if command not in self.made:
            clean = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
            line = [*shlex.split(command), *options, *dry]
            done = subprocess.run(line, cwd=self.folder, env=clean, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert done.returncode == 0, done.stdout
            self.made[command] = done.stdout
        return self.made[command]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    copy = tmp_path_factory.mktemp("readme") / "lakelet"
    copy.mkdir()
    for name in COPIED:
        origin = pytestconfig.rootpath / name
        if origin.is_dir():
            shutil.copytree(origin, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, copy / name)
    return copy


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return {}


@pytest.fixture
def project(
    folder: Path,
    made: dict[str, str],
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Project:
    """The project as the current folder, settings of this shell and modules of this checkout out of the way."""
    monkeypatch.chdir(folder)
    for name in [n for n in os.environ if re.match(r"LAKELET_(STORAGE|MASTER|CATALOG|SCHEMA|TARGET|PARAM_)|BUNDLE_VAR_", n)]:
        monkeypatch.delenv(name)
    for name in [n for n in sys.modules if n.split(".")[0] in ("pipelines", "expectations")]:
        monkeypatch.delitem(sys.modules, name)
    return Project(folder, spark, tmp_path, lambda: "".join(reversed(capsys.readouterr())), monkeypatch.chdir, made)


def normalised(text: str) -> list[str]:
    """The lines without what differs from run to run."""
    text = re.sub(r"(file:)?/\S*?/(?=\.lakelet\b|sample/|pipelines/|expectations/)", "DIR/", text)
    text = re.sub(r"(\d+ passed) in [\d.]+s", r"\1", text)
    text = re.sub(r"\S*/bin/lakelet\b", "lakelet", text)  # spelled as it was typed
    text = re.sub(r"\b([Uu]pdate) [0-9a-f]{6}\b", r"\1 ID", text)
    text = re.sub(r"\d+ min \d+ s\b|\b\d+\.\d ?s\b", "TIME", text)
    return [re.sub(r" {2,}", "  ", line.rstrip()) for line in text.strip("\n").splitlines()]


def pieces(text: str) -> list[list[str]]:
    """What stands between the lines `…`."""
    return [list(lines) for gap, lines in groupby(normalised(text), lambda line: line == "…") if not gap]


def position(piece: Sequence[str], lines: Sequence[str], start: int) -> int | None:
    """Where the piece begins in the lines from `start` on."""
    return next((i for i in range(start, len(lines) - len(piece) + 1) if list(lines[i : i + len(piece)]) == list(piece)), None)


def check_output(printed: str, shown: str) -> None:
    """All pieces of `shown` occur in `printed`, in order; where no `…` stands, nothing may lie before, between or behind them."""
    lines, at = normalised(printed), 0
    for piece in pieces(shown):
        found = position(piece, lines, at)
        assert found is not None, "not printed:\n" + "\n".join(piece) + "\n\nprinted:\n" + "\n".join(lines[at:])
        at = found + len(piece)
    if "…" not in normalised(shown):
        assert lines == normalised(shown)


def check_picture(picture: Path, printed: str) -> None:
    """Every line that the picture shows is printed, with the names of datasets in full or short."""
    text = "\n".join(words(picture.read_text(encoding="utf-8"))[1:])
    shown, there = (normalised(re.sub(r"\bmain\.\w+\.", "", one)) for one in (text, printed))
    missing = [line for line in shown if not any(line in other for other in there)]
    assert not missing, f"{picture} shows what is not printed; `make pictures` draws it again:\n" + "\n".join(missing)


@pytest.mark.long
@pytest.mark.in_ci("README.md")
@pytest.mark.parametrize("page", ["README.md", "docs/quick-start.md", "docs/coming-from.md", "docs/from-databricks.md"])
def test_every_block_does_what_the_page_says(page: str, project: Project, pytestconfig: pytest.Config) -> None:
    path = pytestconfig.rootpath / page
    text = path.read_text(encoding="utf-8")
    parts = list(BLOCK.finditer(text))
    printed = None
    try:
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            language, body, picture = part["language"], part["body"], following and following["picture"]
            if part["picture"]:
                assert printed is not None, f"no command in front of {part['picture']}"
                check_picture(path.parent / part["picture"], printed)
            elif language == "python" and not body.startswith("#"):
                printed = project.call(body)
            elif language in ("python", "sql", "yaml", "toml") and text[: part.start()].rstrip().endswith(WROTE):
                project.check_written(body)
            elif language in ("python", "sql", "yaml", "toml"):
                project.write(body)
                printed = None
            elif language == "sh":
                *before, last = body.splitlines()
                printed = "".join(project.execute(command) for command in before)
                drawing = picture and os.environ.get("LAKELET_UPDATE_GOLDEN")
                printed += project.draw(last, path.parent / picture) if drawing else project.execute(last)
            else:
                assert language == "text", f"a block of {language or 'no language'}"
                assert printed is not None, f"no command in front of:\n{body}"
                check_output(printed, body)
                printed = None
    finally:
        project.take_away()


def test_the_pages_link_to_what_exists(pytestconfig: pytest.Config) -> None:
    pages = [pytestconfig.rootpath / "README.md", pytestconfig.rootpath / "CONTRIBUTING.md", *pytestconfig.rootpath.glob("docs/**/*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert "://" in link or (page.parent / link).exists(), f"{page}: {link}"


@pytest.mark.long
def test_the_event_log_page_names_every_event_and_field(project: Project, pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs/reference/event-log.md").read_text(encoding="utf-8")
    project.execute("make run")
    events = [json.loads(line) for line in project.execute(".venv/bin/lakelet events --all --json").splitlines()]
    assert {"flow_progress", "source_records"} <= {event["event_type"] for event in events}
    for event in events:
        kind = event["event_type"]
        (row,) = re.findall(rf"^\| `{kind}` \|.*$", page, re.MULTILINE)
        missing = [name for name in event["details"][kind] if f"`{name}`" not in row]
        assert not missing, f"{kind}: {missing}"


def test_the_configuration_page_has_a_row_for_every_key(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs/reference/configuration.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", page, flags=re.MULTILINE)[1]
    named = [name for row in re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(_KEYS)
