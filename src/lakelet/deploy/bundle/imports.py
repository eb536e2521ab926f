"""Finds the imports of source files and their local files. Nothing is executed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_RUN = re.compile(r"^\s*(?:# MAGIC\s+)?%run\s+[\"']?([^\s\"']+)", re.MULTILINE)
_PIP_LAKELET = re.compile(r"^\s*(?:# MAGIC\s+)?%pip\s+install\b.*\blakelet\b", re.MULTILINE)
_MAGIC = re.compile(r"^\s*[%!]")


@dataclass(frozen=True)
class ModuleImport:
    """One import. `level`: leading dots; `names`: what comes from the module; `optional`: the code goes on without it."""

    module: str
    line: int
    level: int = 0
    names: tuple[str, ...] = ()
    optional: bool = False

    def __str__(self) -> str:
        return "." * self.level + self.module

    @property
    def top(self) -> str:
        """The first part of the module's name."""
        return self.module.partition(".")[0]


@dataclass(frozen=True)
class SourceFacts:
    """Facts about one source file.

    Attributes:
        imports: of the whole file, those in functions included, those for type checking not.
        notebooks: what `%run` names, with the line.
        uses_file: the file looks for others beside itself (`__file__`).
        changes_path: it adds to `sys.path`.
        installs_lakelet: it is a notebook that installs Lakelet by `%pip`.
    """

    imports: tuple[ModuleImport, ...] = ()
    notebooks: tuple[tuple[str, int], ...] = ()
    uses_file: bool = False
    changes_path: bool = False
    installs_lakelet: bool = False


def parsed(file: Path) -> SourceFacts:
    """Read a Python file or notebook. SQL, and what cannot be parsed, imports nothing: running it reports the syntax error."""
    return _parsed(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=8192)
def _parsed(file: Path, changed: int) -> SourceFacts:
    if file.suffix not in (".py", ".ipynb"):
        return SourceFacts()
    text = file.read_text(encoding="utf-8", errors="replace")
    code = _cells(text) if file.suffix == ".ipynb" else text
    notebooks = tuple((match[1], code.count("\n", 0, match.start(1)) + 1) for match in _RUN.finditer(code))
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return SourceFacts(notebooks=notebooks)
    imports, installs = tuple(_imports(tree.body, optional=False)), _PIP_LAKELET.search(code) is not None
    return SourceFacts(imports, notebooks, "__file__" in code, "sys.path" in code, installs)


def _cells(text: str) -> str:
    """The code of a Jupyter notebook; lines of magic commands become comments, so that line numbers stay."""
    try:
        cells = json.loads(text).get("cells", [])
    except (ValueError, AttributeError):
        return ""
    code = [line for cell in cells if cell.get("cell_type") == "code" for line in "".join(cell.get("source", "")).splitlines()]
    return "\n".join(f"# MAGIC {line.strip()}" if _MAGIC.match(line) else line for line in code)


def _imports(body: Sequence[ast.AST], *, optional: bool) -> Iterator[ModuleImport]:
    for node in body:
        match node:
            case ast.Import():
                yield from (ModuleImport(alias.name, node.lineno, optional=optional) for alias in node.names)
            case ast.ImportFrom():
                yield ModuleImport(node.module or "", node.lineno, node.level, tuple(alias.name for alias in node.names), optional)
            case ast.Try():
                yield from _imports(node.body, optional=optional or _survives(node))
                yield from _imports([*node.handlers, *node.orelse, *node.finalbody], optional=optional)
            case ast.If() if "TYPE_CHECKING" in ast.dump(node.test):
                yield from _imports(node.orelse, optional=optional)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str() as name), *_]):
                yield ModuleImport(name, node.lineno, optional=optional)
            case _:
                yield from _imports(list(ast.iter_child_nodes(node)), optional=optional)


def _survives(node: ast.Try) -> bool:
    """Whether the code goes on when an import in the block fails."""
    caught = " ".join(ast.dump(handler.type) if handler.type else "ImportError" for handler in node.handlers)
    return any(name in caught for name in ("ImportError", "ModuleNotFoundError", "'Exception'"))


@dataclass(frozen=True)
class Located:
    """Where an import is found: the folder that it is searched from, and the files that it loads."""

    root: Path
    files: tuple[Path, ...]


def located(one: ModuleImport, importer: Path, roots: Sequence[Path]) -> Located | None:
    """The local files of an import; None for one that no root has.

    Args:
        importer: the file that holds it.
        roots: folders that modules are searched in, in order.
    """
    if one.level:
        base = importer.parents[one.level - 1] if one.level <= len(importer.parents) else importer.parent
        files = _files(base, [part for part in one.module.split(".") if part], one.names)
        return Located(base, files) if files is not None else None
    parts = one.module.split(".")
    for root in roots:
        if _exists(root, parts[0]):
            files = _files(root, parts, one.names)
            if files is not None:
                return Located(root, files)
    return None


def _exists(folder: Path, name: str) -> bool:
    return _file(folder / f"{name}.py") or _is_package(folder / name)


def _files(root: Path, parts: Sequence[str], names: Sequence[str]) -> tuple[Path, ...] | None:
    """The files that importing `names` from a module loads; None if there is no such module below the root."""
    found: list[Path] = []
    folder = root
    for at, part in enumerate(parts):
        module = folder / f"{part}.py"
        if _is_package(folder / part):
            folder = folder / part
            found += [folder / "__init__.py"] if _file(folder / "__init__.py") else []
        elif _file(module):
            return (*found, module) if at == len(parts) - 1 else None
        else:
            return None
    for name in names:
        if _file(folder / f"{name}.py"):
            found.append(folder / f"{name}.py")
        elif name != "*" and _file(folder / name / "__init__.py"):
            found.append(folder / name / "__init__.py")
    return tuple(found)


@lru_cache(maxsize=16384)
def _file(path: Path) -> bool:
    return path.is_file()


@lru_cache(maxsize=16384)
def _is_package(folder: Path) -> bool:
    return folder.is_dir() and (_file(folder / "__init__.py") or any(folder.glob("*.py")) or any(folder.glob("*/*.py")))


def forget() -> None:
    """Look at the files again: they may have changed since the last deployment of this process."""
    _file.cache_clear()
    _is_package.cache_clear()
