"""Jupyter notebooks, also those that Databricks exports (nbformat 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import display_path
from lakelet.language.notebook.source import PYTHON, SQL, NotebookCell, Source, magic_cell, other_language

_LANGUAGES = {"python": PYTHON, "ipython": PYTHON, "python3": PYTHON, "sql": SQL}


def read_jupyter(file: Path) -> Source:
    """Cut a Jupyter notebook into cells; each counts its lines from 1.

    Raises SOURCE_FAILED if the file holds no notebook of nbformat 4, SOURCE_KIND for another language.
    """
    where = Location(display_path(str(file)), 1)
    text = ""
    try:
        text = file.read_text(encoding="utf-8-sig")
        content = json.loads(text) if text.strip() else {"cells": [], "nbformat": 4}
    except json.JSONDecodeError as error:
        raise _broken("it is not valid JSON", Location(where.file, error.lineno), error.msg) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _broken("it cannot be read", where, str(error)) from error
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        old = isinstance(content, dict) and "worksheets" in content
        raise _broken("it was saved in an old format" if old else "it holds no list of cells", where, None)
    language = _language(content.get("metadata"))
    if language not in (PYTHON, SQL):
        raise other_language(file, language)
    cells = [_cell(cell, number, language, where) for number, cell in enumerate(content["cells"], 1)]
    return Source(file, language, tuple(cells), notebook=True)


def _broken(what: str, where: Location, why: str | None) -> LakeletError:
    todo = "Open it in Jupyter, VS Code or Databricks and save it again (nbformat 4)."
    return LakeletError("SOURCE_FAILED", f"the notebook cannot be loaded: {what}", where=where, why=why, todo=todo)


def _language(metadata: Any) -> str:
    """What Databricks, the kernel or the editor noted, in this order; Python where nothing is noted."""
    keys = (("application/vnd.databricks.v1+notebook", "language"), ("kernelspec", "language"), ("language_info", "name"))
    for section, key in keys:
        noted = _mapping(_mapping(metadata).get(section)).get(key)
        if isinstance(noted, str) and noted:
            return _LANGUAGES.get(noted.lower(), noted)
    return PYTHON


def _cell(cell: Any, number: int, language: str, where: Location) -> NotebookCell:
    source = cell.get("source") if isinstance(cell, dict) else None
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _broken(f"cell {number} has no text", where, None)
    if cell.get("cell_type") != "code":
        return NotebookCell("md", source, number=number)
    text = source.replace("\r\n", "\n")
    return magic_cell(text, _LANGUAGES.get(_of_editor(cell), language), 1, number=number)


def _of_editor(cell: Mapping[str, Any]) -> str:
    """The language that VS Code keeps per cell."""
    return str(_mapping(_mapping(cell.get("metadata")).get("vscode")).get("languageId", "")).lower()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
