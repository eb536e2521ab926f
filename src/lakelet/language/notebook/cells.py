"""A source file cut into cells (what is Python, what is SQL, what is neither), and the magic commands within them.

Plain files have one cell, notebooks several: those of Databricks in text files, and Jupyter notebooks (nbformat 4). The language of a
notebook is what its first line says, whatever its extension; without that line the extension decides.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import display_path

PYTHON, SQL = "python", "sql"
_COMMENTS = {PYTHON: "#", SQL: "--", "scala": "//"}
_LANGUAGES = {"py": PYTHON, "python": PYTHON, "sql": SQL, "scala": "scala", "r": "r"}
_WHOLE_CELL = frozenset({*_LANGUAGES, "md", "md-sandbox", "sh", "bash", "fs", "environment", "html", "javascript", "writefile", "skip"})
_OF_PYTHON = frozenset({"time", "timeit", "capture", "prun"})  # cell commands whose cell is Python all the same
_MAGIC = re.compile(r"^(?P<sign>%{1,2})(?P<name>[A-Za-z][\w-]*)(?P<rest>.*)$")


@dataclass(frozen=True)
class NotebookCell:
    """A part of a source.

    Attributes:
        language: `python` and `sql`; else the name of the magic command that the cell is: `md`, `sh`, `fs` …
        text: what stands in it, without its magic command and without comment marks.
        line: line of the file on which the text begins; of the cell, in a Jupyter notebook.
        number: position among all cells of a Jupyter notebook, from 1; None in text files.
        uncommented: the text stood after `# MAGIC`, so the file's own line is a comment.
    """

    language: str
    text: str
    line: int = 1
    number: int | None = None
    uncommented: bool = False


@dataclass(frozen=True)
class SourceCells:
    """One source file: `language` is that of the cells that are executed, `notebook` whether it is cut into cells at all."""

    file: Path
    language: str
    cells: tuple[NotebookCell, ...]
    notebook: bool = False

    def where(self, cell: NotebookCell, line: int | None = None) -> Location:
        """Where a cell begins, or one of its lines is."""
        return Location(display_path(str(self.file)), line or cell.line, cell=cell.number)

    def own(self) -> tuple[NotebookCell, ...]:
        """The cells in the language of the source."""
        return tuple(cell for cell in self.cells if cell.language == self.language)


def other_language(file: Path, language: str) -> LakeletError:
    """The error for a notebook in a language that pipelines do not have."""
    return LakeletError(
        "SOURCE_KIND",
        f"the notebook is written in {language}",
        where=Location(display_path(str(file)), 1),
        todo="Pipelines are written in Python or SQL.",
    )


def magic_cell(text: str, language: str, line: int, *, number: int | None = None, uncommented: bool = False) -> NotebookCell:
    """The cell with this text, whose language a magic command on its first line of code may change."""
    lines = text.split("\n")
    comment = _COMMENTS[language]
    first = next((i for i, code in enumerate(lines) if code.strip() and not code.lstrip().startswith(comment)), None)
    found = _MAGIC.match(lines[first].strip()) if first is not None else None
    if first is None or not found or (language == PYTHON and not _takes_cell(found["sign"], found["name"].lower())):
        return NotebookCell(language, text, line, number, uncommented)
    name = found["name"].lower()
    rest = found["rest"].strip() if name in _LANGUAGES else ""
    return NotebookCell(_LANGUAGES.get(name, name), "\n".join([rest, *lines[first + 1 :]]), line + first, number, uncommented)


def _takes_cell(sign: str, name: str) -> bool:
    """Whether a command of a Python notebook concerns its whole cell, and not its line only."""
    return name in _WHOLE_CELL or (sign == "%%" and name not in _OF_PYTHON)


_HEADER = re.compile(r"^(#|--|//) Databricks notebook source\s*$")


def read_source(file: Path) -> SourceCells:
    """Cut a file into cells.

    Raises SOURCE_KIND for a file that is not a source, SOURCE_FAILED for one that cannot be read, SyntaxError for a wrong encoding.
    """
    if file.suffix == ".ipynb":
        return read_jupyter(file)
    language = {".py": PYTHON, ".sql": SQL}.get(file.suffix)
    if language is None:
        raise _no_source(file)
    text = _text(file, language)
    lines = text.split("\n")
    header = next((found for line in lines[: _first_code(lines)] if (found := _HEADER.match(line))), None)
    if header:
        language = next(name for name, comment in _COMMENTS.items() if comment == header[1])
        if language not in (PYTHON, SQL):
            raise other_language(file, language)
    elif language == PYTHON or not any(_separates(line, SQL) for line in lines):
        return SourceCells(file, language, (NotebookCell(language, text),))
    return SourceCells(file, language, tuple(_text_cells(lines, language)), notebook=True)


def _no_source(file: Path) -> LakeletError:
    return LakeletError(
        "SOURCE_KIND",
        f"{file.name} is not a pipeline source" + ("" if file.suffix else ": it has no extension"),
        where=Location(display_path(str(file)), 1),
        todo="Sources are Python files (.py), SQL files (.sql) and notebooks (.py, .sql, .ipynb).",
    )


def _text(file: Path, language: str) -> str:
    """The file's text with line ends `\\n`; Python files may name their encoding, all others are UTF-8."""
    try:
        content = file.read_bytes()
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0] if language == PYTHON else "utf-8-sig"
        return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        where = Location(display_path(str(file)), 1)
        raise LakeletError("SOURCE_FAILED", "the file cannot be read", where=where, why=str(error), todo="Save it as UTF-8.") from error


def _first_code(lines: list[str]) -> int:
    """Index of the first line that is neither blank nor a comment."""
    return next((i for i, line in enumerate(lines) if line.strip() and not line.startswith(tuple(_COMMENTS.values()))), len(lines))


def _separates(line: str, language: str) -> bool:
    return bool(re.match(rf"^{_COMMENTS[language]} COMMAND -{{5,}}\s*$", line))


def _text_cells(lines: list[str], language: str) -> Iterator[NotebookCell]:
    start = 0
    for end in [*(i for i, line in enumerate(lines) if _separates(line, language)), len(lines)]:
        yield _text_cell(lines[start:end], start + 1, language)
        start = end + 1


def _text_cell(lines: list[str], first: int, language: str) -> NotebookCell:
    """The cell whose lines these are. All of it is a magic cell if its first line of code is one."""
    comment = _COMMENTS[language]
    magic = re.compile(rf"^{comment} MAGIC ?")
    first_code = next((i for i, line in enumerate(lines) if line.strip() and not _is_title(line, comment)), None)
    if first_code is None or not magic.match(lines[first_code]):
        # Single lines after the mark stay comments, unless they are commands themselves: those are found as in a Jupyter notebook.
        shown = [magic.sub("", line) if re.match(rf"^{comment} MAGIC %", line) else line for line in lines]
        return NotebookCell(language, "\n".join(shown), first, uncommented=shown != lines)
    plain = "\n".join(magic.sub("", line) for line in lines[first_code:])
    if not plain.lstrip().startswith("%"):
        return NotebookCell("md", plain, first + first_code)
    return magic_cell(plain, language, first + first_code, uncommented=True)


def _is_title(line: str, comment: str) -> bool:
    return line.startswith((f"{comment} DBTITLE", f"{comment} Databricks notebook source"))


_KERNEL_LANGUAGES = {"python": PYTHON, "ipython": PYTHON, "python3": PYTHON, "sql": SQL}


def read_jupyter(file: Path) -> SourceCells:
    """Cut a Jupyter notebook into cells; each counts its lines from 1.

    Raises SOURCE_FAILED if the file holds no notebook of nbformat 4, SOURCE_KIND for another language.
    """
    where = Location(display_path(str(file)), 1)
    text = ""
    try:
        text = file.read_text(encoding="utf-8-sig")
        content = json.loads(text) if text.strip() else {"cells": [], "nbformat": 4}
    except json.JSONDecodeError as error:
        raise _invalid_notebook("it is not valid JSON", Location(where.file, error.lineno), error.msg) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid_notebook("it cannot be read", where, str(error)) from error
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        old = isinstance(content, dict) and "worksheets" in content
        raise _invalid_notebook("it was saved in an old format" if old else "it holds no list of cells", where, None)
    language = _kernel_language(content.get("metadata"))
    if language not in (PYTHON, SQL):
        raise other_language(file, language)
    cells = [_jupyter_cell(cell, number, language, where) for number, cell in enumerate(content["cells"], 1)]
    return SourceCells(file, language, tuple(cells), notebook=True)


def _invalid_notebook(what: str, where: Location, why: str | None) -> LakeletError:
    todo = "Open it in Jupyter, VS Code or Databricks and save it again (nbformat 4)."
    return LakeletError("SOURCE_FAILED", f"the notebook cannot be loaded: {what}", where=where, why=why, todo=todo)


def _kernel_language(metadata: Any) -> str:
    """What Databricks, the kernel or the editor noted, in this order; Python where nothing is noted."""
    keys = (("application/vnd.databricks.v1+notebook", "language"), ("kernelspec", "language"), ("language_info", "name"))
    for section, key in keys:
        noted = _mapping(_mapping(metadata).get(section)).get(key)
        if isinstance(noted, str) and noted:
            return _KERNEL_LANGUAGES.get(noted.lower(), noted)
    return PYTHON


def _jupyter_cell(cell: Any, number: int, language: str, where: Location) -> NotebookCell:
    source = cell.get("source") if isinstance(cell, dict) else None
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _invalid_notebook(f"cell {number} has no text", where, None)
    if cell.get("cell_type") != "code":
        return NotebookCell("md", source, number=number)
    text = source.replace("\r\n", "\n")
    return magic_cell(text, _KERNEL_LANGUAGES.get(_of_editor(cell), language), 1, number=number)


def _of_editor(cell: Mapping[str, Any]) -> str:
    """The language that VS Code keeps per cell."""
    return str(_mapping(_mapping(cell.get("metadata")).get("vscode")).get("languageId", "")).lower()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_COMMAND = re.compile(r"^\s*(?:%{1,2}(?P<name>[A-Za-z]\w*)|(?P<bare>pip)(?= install )|!)(?P<rest>.*)$", re.DOTALL)
_RUN_TARGET = re.compile(r"""^\s*(?P<path>"[^"]*"|'[^']*'|[^\s$"']+)\s*(?P<arguments>.*)$""", re.DOTALL)
_ARGUMENT = re.compile(r"""\$(?P<name>[\w.-]+)\s*=\s*(?P<value>"[^"]*"|'[^']*'|\S+)""")
NOTEBOOK_SUFFIXES = (".py", ".ipynb", ".sql")
_OPTION_VALUES = frozenset({"-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"})


@dataclass(frozen=True)
class MagicCommand:
    """One command: `name` without `%` (`!` for a shell line), the rest of its line, and that line's number within the cell, from 1."""

    name: str
    rest: str
    line: int


@dataclass(frozen=True)
class PythonCode:
    """Python between two commands that interrupt it; `line` is its first line within the cell."""

    text: str
    line: int

    def numbered(self, cell: NotebookCell) -> str:
        """The text with so many empty lines above it that its line numbers are those of the file, or of the cell of a Jupyter notebook."""
        return "\n" * (cell.line + self.line - 2) + self.text


def pieces_of(source: SourceCells, cell: NotebookCell, filename: str) -> Iterator[PythonCode | MagicCommand]:
    """The pieces of a Python cell of a source; plain Python files have no magic commands. Raises SyntaxError with a line of the file."""
    if not source.notebook:
        yield PythonCode(cell.text, 1)
        return
    try:
        yield from pieces(cell.text, filename)
    except SyntaxError as error:
        lines = cell.text.split("\n")
        error.text = lines[min(error.lineno or 1, len(lines)) - 1]  # Python looks into the file, whose lines are others
        error.lineno = (error.lineno or 1) + cell.line - 1
        raise


def pieces(text: str, filename: str) -> Iterator[PythonCode | MagicCommand]:
    """Cut the text of a Python cell where commands stand, in order. Only `%run` interrupts the code; the others take no part in it.

    A line is a command where Python cannot read it: `%` and `!` within expressions and strings stay what they are. `pip install` needs no
    `%`, as on Databricks. Raises SyntaxError.
    """
    lines = text.split("\n")
    found: list[MagicCommand] = []
    while True:
        try:
            compile("\n".join(lines), filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            break
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            magic = _magic_at(lines, at)
            if magic is None:
                raise
            found.append(magic)
    start = 0
    for magic in sorted(found, key=lambda one: one.line):
        if magic.name == "run":
            yield PythonCode("\n".join(lines[start : magic.line - 1]), start + 1)
            start = magic.line
        yield magic
    yield PythonCode("\n".join(lines[start:]), start + 1)


def _magic_at(lines: list[str], at: int) -> MagicCommand | None:
    """Take the command on line `at` out of the code; None if there is none. Line ends after a backslash belong to it."""
    if not 0 <= at < len(lines) or not (match := _COMMAND.match(lines[at])):
        return None
    rest, last = match["rest"], at
    while rest.endswith("\\") and last + 1 < len(lines):
        last += 1
        rest = rest[:-1] + lines[last]
        lines[last] = ""
    lines[at] = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + "pass"
    return MagicCommand(match["name"] or match["bare"] or "!", rest.strip(), at + 1)


def packages(rest: str) -> list[str]:
    """The packages that `%pip install …` names, without options. None for other uses of pip."""
    words = re.split(r"\s#", rest, maxsplit=1)[0].split()
    if not words or words[0] != "install":
        return []
    taken = zip(words[1:], words, strict=False)
    return [word.strip("\"'") for word, before in taken if not word.startswith("-") and before not in _OPTION_VALUES]


def notebook_file(beside: Path, path: str) -> Path | None:
    """The notebook that `%run path` in the file `beside` means, with or without extension; None where there is none."""
    base = Path(os.path.normpath(beside.parent / path))
    choices = [*(base.with_name(base.name + suffix) for suffix in NOTEBOOK_SUFFIXES), base] if path and base.name else []
    return next((one for one in choices if one.is_file()), None)


def run_target(rest: str) -> tuple[str, dict[str, str]]:
    """Path and arguments of `%run path $name="value"`. The path is empty if none is written."""
    match = _RUN_TARGET.match(rest)
    if not match:
        return "", {}
    given = {found["name"]: found["value"].strip("\"'") for found in _ARGUMENT.finditer(match["arguments"])}
    return match["path"].strip("\"'"), given
