"""Modules and files that docstrings and CONTRIBUTING.md name exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.paths import ROOT

PACKAGE = ROOT / "src" / "lakelet"
ENDINGS = (".py", ".yml", ".toml")
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in PACKAGE.rglob("*.py")
}
PACKAGES = {path.parent.name for path in PACKAGE.rglob("__init__.py")}
SHARED = {"lakelet", "spark", "sql", "dbutils", "delta"}
"""Packages whose names are also those of an object or a prefix of settings in the code of users, as in `spark.conf`."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring of a file, those that follow a name included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def known(name: str) -> list[Path]:
    """The modules whose full names end with the dotted `name`."""
    return [path for module, path in MODULES.items() if f".{module}".endswith(f".{name}")]


def defines(path: Path, name: str) -> bool:
    return re.search(rf"^(?:(?:async )?def|class) {name}\b|^{name}\b.*=", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def names_a_module(name: str, beside: Path) -> bool:
    """Whether a dotted name begins with a package, or is of a module beside the file that says it."""
    first, second, *more = name.split(".")
    if first in SHARED:
        return known(f"{first}.{second}") != []
    return first in PACKAGES or (not more and beside.with_name(f"{first}.py").exists())


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or what a module defines."""
    module, _, attribute = name.rpartition(".")
    return known(name) != [] or any(defines(path, attribute) for path in known(module))


def file_exists(name: str, beside: Path) -> bool:
    folders = (beside.parent, PACKAGE, ROOT, ROOT / "tests", ROOT / "scripts")
    return any((folder / name).exists() for folder in folders)


def test_every_module_that_a_docstring_names_exists() -> None:
    missing = []
    for path in sorted(MODULES.values()):
        for line, text in docstrings(path):
            files = [name for name in re.findall(r"`([a-z_]{2,}(?:/\w+)*\.py)\b", text) if not file_exists(name, path)]
            dotted = re.findall(r"`([a-z_]\w*(?:\.[a-z_]\w*)+)[`(]", text)
            gone = [name for name in dotted if not name.endswith(ENDINGS) and names_a_module(name, path) and not exists(name)]
            missing += [f"{path.relative_to(ROOT)}:{line}: {name}" for name in (*files, *gone)]
    assert missing == []


def tables(text: str) -> Iterator[tuple[str, list[str]]]:
    """Title of the first column and the cells of each row, of all tables of a page."""
    title = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            title = None
        elif title is None:
            title = cells[0]
        elif not set(cells[0]) <= {"-"}:
            yield title, cells


def paths_in(text: str) -> list[str]:
    return re.findall(r"`([\w.]+(?:/[\w.]*)+|\w+\.py)`", text)


def test_contributing_names_rooms_folders_and_benchmarks_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    about = {"room": PACKAGE, "folder": ROOT, "file": ROOT / "benchmarks"}
    missing = []
    for title, (first, *others) in tables(text):
        named = paths_in(first)
        missing += [f"{title} {name}" for name in named if not (about[title] / name).exists()]
        parts = [name for cell in others for name in paths_in(cell)]
        folders = [ROOT, PACKAGE, *(about[title] / name for name in named)]
        missing += [f"{title} {', '.join(named)}: {part}" for part in parts if not any((folder / part).exists() for folder in folders)]
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    missing += [name for name in paths_in(prose) if not any((folder / name).exists() for folder in (ROOT, PACKAGE))]
    assert missing == []


def test_contributing_has_every_room_and_every_benchmark() -> None:
    rows = list(tables((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    rooms = {name.removesuffix("/") for title, cells in rows if title == "room" for name in paths_in(cells[0])}
    benchmarks = {name for title, cells in rows if title == "file" for name in paths_in(cells[0])}
    assert rooms == {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {"pipeline.py"}
    assert benchmarks == {path.name for path in (ROOT / "benchmarks").glob("*.py")}
