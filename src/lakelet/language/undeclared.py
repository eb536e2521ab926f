"""Functions of source files that look like datasets and that nothing declares: a decorator may be forgotten."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import display_path
from lakelet.files.reads import module_names
from lakelet.language.lost import root_name
from lakelet.language.notebook import PYTHON, read_source
from lakelet.language.registry import Notice

_FUNCTION = re.compile(r"^def (\w+)\(\s*\)", re.MULTILINE)
_SCRIPT = re.compile(r"^\s*spark\s*=|__main__", re.MULTILINE)
_READ = re.compile(r"""\b(?:table|read|read_stream)\(\s*["'][^"'\n]*["']""")
_READING = frozenset({"table", "sql", "read", "readStream", "read_stream", "range", "createDataFrame"})
_ROOTS = frozenset({"spark", "dlt", "dp"})


def undeclared(files: Sequence[Path]) -> Iterator[Notice]:
    """A notice for each function that takes nothing, returns a query, has no decorator and is named nowhere else.

    A name under which a table is read is no other use of the function: its reader misses the table.
    Looked at are the sources, and the modules that lie beside them in their folders.
    """
    texts = dict(_texts(files))
    whole = _READ.sub("", "\n".join(texts.values()))
    for file, text in texts.items():
        alone = {name for name in _FUNCTION.findall(text) if not name.startswith("_") and _occurs_once(name, whole)}
        with suppress(SyntaxError, ValueError, RecursionError):
            for node in ast.parse(text).body if alone else ():
                if isinstance(node, ast.FunctionDef) and node.name in alone and not node.decorator_list and _returns_query(node):
                    yield Notice(_text(node.name, text), Location(display_path(str(file)), node.lineno))


def _texts(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The Python files that are no notebooks, in which a function may be there for trying things, and no scripts and tests."""
    beside = {folder / name for folder in {file.parent for file in files} for name in module_names(folder)} - set(files)
    for file in (*files, *sorted(beside)):
        if file.suffix != ".py" or file.name.startswith(("test_", "conftest", "setup")):
            continue
        with suppress(OSError, LakeletError):
            source = read_source(file)
            text = source.cells[0].text if source.cells else ""
            if source.language == PYTHON and not source.notebook and (file in files or not _SCRIPT.search(text)):
                yield file, text


def _occurs_once(name: str, text: str) -> bool:
    return len(re.findall(rf"\b{re.escape(name)}\b", text)) == 1


def _returns_query(function: ast.FunctionDef) -> bool:
    """Whether a function reads by the session or the language, and returns something."""
    nodes = list(ast.walk(function))
    reads = any(isinstance(node, ast.Attribute) and node.attr in _READING and root_name(node) in _ROOTS for node in nodes)
    return reads and any(isinstance(node, ast.Return) and node.value is not None for node in nodes)


def _text(name: str, text: str) -> str:
    decorator = "@dp.materialized_view" if re.search(r"\bdp\b", text) else "@dlt.table"
    return f"{name}() returns a query, and nothing declares or calls it: write {decorator} above it if it is to be a table"


__all__ = ["undeclared"]
