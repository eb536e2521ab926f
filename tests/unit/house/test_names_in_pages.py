"""What pages name in code font is in the tree: files, modules, what modules define, values that pass from hop to hop. No Spark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from tests.paths import ROOT
from tests.unit.house.test_citations import tracked
from tests.unit.house.test_named_modules import ENDINGS, MODULES, PACKAGE, SHARED, defines, exists, known, paths_in, tables

PAGES = [page.relative_to(ROOT).as_posix() for page in tracked("*.md") if page.name != "CHANGELOG.md"]
WALKS = ["docs/one-row.md", "docs/how-it-works.md"]
"""The pages that follow data through the code."""
INSIDE = [page for page in PAGES if page.startswith("docs/decisions/0") or page in WALKS]
"""The pages about Lakelet's own code."""
CHECKED_TO_THE_WORD = [*WALKS, *(page for page in INSIDE if re.search(r"/00(?:01|13|20)-", page))]
"""Pages whose names with an underscore are functions, not columns of an example."""
USERS_CODE = {"setup.py", "gold/dim_customers.py", "pipelines/bronze/events.py", "pipelines/silver/orders.py"}
"""Files of imagined projects."""
FOLDERS_ELSEWHERE = {"tables/", "system/", "_changes/", "typings/", "steps/"}
"""Folders of a storage, of an editor and of a user's copy of the transforms."""
OTHER_PROGRAMS = {
    "PythonGatewayServer",
    "RawLocalFileSystem",
    "OptimisticTransaction",
    "SQLConf",
    "textContent",
    "functionExists",
    "lastProgress",
}
"""Names in Spark, Delta, Hadoop and browsers that Lakelet's code does not spell."""
OTHER_PREFIXES = {"actions", "deployment", "environment", "orc", "scala"}
"""Packages of Java and fields of bundles that have the name of a module."""
HISTORY: dict[str, set[str]] = {}
"""Names that a decision mentions although they are gone, by page: what a superseded decision said."""


def in_code_font(page: str) -> set[str]:
    """What single backticks hold, outside of blocks of code."""
    text = re.sub(r"^\s*```.*?^\s*```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"(?<!`)`([^`\n]+)`", text)) - HISTORY.get(page, set())


@cache
def files_of_the_repository() -> tuple[str, ...]:
    return tuple(f"/{path.relative_to(ROOT).as_posix()}" for path in tracked("*"))


def is_in_the_tree(name: str) -> bool:
    """Whether the path of some file ends with `name`, or has it as a folder where it ends with a slash."""
    if any((folder / name).exists() for folder in (ROOT, PACKAGE)):
        return True
    return any(path.endswith(f"/{name}") or (name.endswith("/") and f"/{name}" in path) for path in files_of_the_repository())


def paths(page: str) -> Iterator[str]:
    """Files of Python, folders and files of rooms, and on a page about the code all folders, that a page names."""
    for code in in_code_font(page):
        folders = re.fullmatch(r"([a-z_]+)/(?:[\w./]*)", code)
        of_a_room = folders is not None and (PACKAGE / folders[1]).is_dir()
        if of_a_room or re.fullmatch(r"(?:[\w.-]+/)*\w+\.py", code) or (page in INSIDE and re.fullmatch(r"(?:\w+/)+", code)):
            yield code
    yield from re.findall(r"\bsrc/lakelet/[\w/]+(?:\.\w+)?", (ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_of_code_that_a_page_names_exists(page: str) -> None:
    assert sorted({path for path in paths(page) if path not in USERS_CODE | FOLDERS_ELSEWHERE and not is_in_the_tree(path)}) == []


@cache
def words_of_code() -> frozenset[str]:
    """The words of all code without docstrings and comments."""
    code = [path.read_text(encoding="utf-8") for path in tracked("*") if path.suffix in {".py", ".toml", ".yml", ".sql"}]
    code.append((ROOT / "Makefile").read_text(encoding="utf-8"))
    here = Path(__file__).read_text(encoding="utf-8")
    text = re.sub(r'"""(?:.|\n)*?"""|(?<!\S)#.*', "", "\n".join(text for text in code if text != here))
    return frozenset(re.findall(r"\w+", text))


def dotted_name(code: str) -> str | None:
    """What code font says as `module.name` or `room.module.name`, without arguments; None where it says anything else."""
    name = code.partition("(")[0]
    first = name.partition(".")[0]
    if not re.fullmatch(r"[a-z_]+(?:\.[A-Za-z_]\w*)+", name) or name.endswith((*ENDINGS, ".json")):
        return None
    return name if known(first) and first not in SHARED | OTHER_PREFIXES else None


@cache
def properties() -> frozenset[str]:
    """Names that begin with `lakelet.` in texts of the package: settings, properties of tables, files."""
    return frozenset(name for path in MODULES.values() for name in re.findall(r"\blakelet\.\w+", path.read_text(encoding="utf-8")))


def imports(path: Path, name: str) -> bool:
    return re.search(rf"^(?:from .*)?import .*\b{name}\b|^    {name},$", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def is_a_dotted_name(name: str) -> bool:
    """Whether `lakelet.x.y` is a module, or what one defines or imports, or else a setting, a property of tables or a file."""
    module, _, attribute = name.rpartition(".")
    first = ".".join(name.split(".")[:2])
    setting = first in properties() and first not in MODULES
    return exists(name) or setting or any(imports(path, attribute) for path in known(module))


@pytest.mark.parametrize("page", PAGES)
def test_every_dotted_name_that_a_page_mentions_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    full = re.findall(r"(?<![\w./-])lakelet(?:\.[a-zA-Z_]\w*)+", text)
    short = [name for code in in_code_font(page) if (name := dotted_name(code)) and page in INSIDE]
    gone = {name for name in full if not is_a_dotted_name(name)}
    gone |= {name for name in short if not exists(name)}
    assert sorted(gone) == []


@pytest.mark.parametrize("page", INSIDE)
def test_every_name_on_a_page_about_the_code_is_in_the_code(page: str) -> None:
    looks_like_code = r"([A-Z][a-z]+\w*|\w+(?=\(\)))" if page not in CHECKED_TO_THE_WORD else r"([A-Z][a-z]+\w*|\w+(?=\(\))|\w+_\w+)"
    names = {match[1] for code in in_code_font(page) if (match := re.fullmatch(rf"{looks_like_code}(?:\(\))?", code))}
    assert sorted(names - words_of_code() - OTHER_PROGRAMS) == []


@pytest.mark.parametrize("page", INSIDE)
def test_what_a_page_places_in_a_module_is_defined_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    placed = re.findall(r"`([\w/]+\.py)` \(`(\w+)`", text)
    placed += [(path, name) for name, path in re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.py)`", text)]
    elsewhere = [
        (path, name) for path, name in placed if not any(defines_deep(folder / path, name) for folder in (PACKAGE, ROOT, ROOT / "tests"))
    ]
    assert elsewhere == []


def defines_deep(path: Path, name: str) -> bool:
    """Whether a file defines a name, methods included."""
    if not path.exists():
        return False
    return defines(path, name) or f"    def {name}(" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", WALKS)
def test_the_modules_of_a_hop_use_the_value_that_it_passes_on(page: str) -> None:
    rows = [cells for _, cells in tables((ROOT / page).read_text(encoding="utf-8"))]
    hops = 0
    wrong = []
    for cells in rows:
        row = " | ".join(cells)
        values = set(re.findall(r"`([A-Z][a-z]\w*)`", row))
        modules = [path for name in paths_in(row) for path in modules_of(name)]
        if not values or not modules:
            continue
        hops += 1
        code = "\n".join(path.read_text(encoding="utf-8") for path in modules)
        wrong += [f"{value}: {cells[0]}" for value in sorted(values) if not re.search(rf"\b{value}\b", code) or not is_defined(value)]
    assert hops > 3
    assert wrong == []


def modules_of(name: str) -> list[Path]:
    """The module that a path names, or those of a folder."""
    path = PACKAGE / name
    return sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []


@cache
def definitions() -> frozenset[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in MODULES.values())
    return frozenset(re.findall(r"^class (\w+)\b", text, re.MULTILINE))


def is_defined(value: str) -> bool:
    """Whether the package has a class of that name: an alias for a signature is no value that is passed on."""
    return value in definitions()


def test_a_name_that_is_not_in_the_tree_is_found() -> None:
    assert is_in_the_tree("update/tasks.py")
    assert not is_in_the_tree("update/works.py")
    assert not is_in_the_tree("starting/")
    assert is_a_dotted_name("lakelet.base.errors.CODES")
    assert not is_a_dotted_name("lakelet.base.errors.KODES")
    assert not is_a_dotted_name("lakelet.update.works")
    assert is_defined("FlowTask")
    assert not is_defined("Work")


EXAMPLES = frozenset(
    ("StreamingQueryManager", "a/b.py", "user_name_first", "orders_items", "orders_items_value", "dev_ada_", "catalog.schema.f")
)
"""What docstrings of the package name as an example, or of Spark."""


def names_in_docstrings(module: Path) -> Iterator[str]:
    """What docstrings of a module name in code font: classes, functions, names with an underscore, `module.name`, files of Python."""
    texts = [node.value.value for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))) if is_a_docstring(node)]
    yield from (code for text in texts for code in re.findall(r"`([^`\n]+)`", text))


def is_a_docstring(node: ast.AST) -> TypeGuard[Any]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_gone(code: str) -> bool:
    name = re.fullmatch(r"([A-Z][a-z]+\w*|\w+(?=\(\))|[a-z]+_\w+)(?:\(\))?", code)
    dotted = dotted_name(code)
    if name is not None:
        return name[1] not in words_of_code() | OTHER_PROGRAMS | EXAMPLES
    if dotted is not None:
        return dotted not in EXAMPLES and not exists(dotted)
    return re.fullmatch(r"(?:[\w.-]+/)*\w+\.py", code) is not None and code not in EXAMPLES and not is_in_the_tree(code)


def test_what_docstrings_of_the_package_name_exists() -> None:
    assert {(path.name, code) for path in MODULES.values() for code in names_in_docstrings(path) if is_gone(code)} == set()
