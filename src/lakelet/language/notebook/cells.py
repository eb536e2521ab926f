"""A source file cut into cells: what is Python, what is SQL, what is neither.

The language of a notebook is what its first line says, whatever its extension; without that line the extension decides.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import display_path
from lakelet.language.notebook.source import _COMMENTS, PYTHON, SQL, NotebookCell, Source, magic_cell, other_language

_HEADER = re.compile(r"^(#|--|//) Databricks notebook source\s*$")


def read_source(file: Path) -> Source:
    """Cut a file into cells.

    Raises SOURCE_KIND for a file that is not a source, SOURCE_FAILED for one that cannot be read, SyntaxError for a wrong encoding.
    """
    if file.suffix == ".ipynb":
        from lakelet.language.notebook.jupyter import read_jupyter

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
        return Source(file, language, (NotebookCell(language, text),))
    return Source(file, language, tuple(_cells(lines, language)), notebook=True)


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


def _cells(lines: list[str], language: str) -> Iterator[NotebookCell]:
    start = 0
    for end in [*(i for i, line in enumerate(lines) if _separates(line, language)), len(lines)]:
        yield _cell(lines[start:end], start + 1, language)
        start = end + 1


def _cell(lines: list[str], first: int, language: str) -> NotebookCell:
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
