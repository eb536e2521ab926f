"""A source file as cells: plain files have one, notebooks several."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import display_path

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
class Source:
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
