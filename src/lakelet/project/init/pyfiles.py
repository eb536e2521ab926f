"""Python files of a repository as syntax trees with their names: cells, `%run`, modules of the repository. No Spark."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.folder_walk import FolderWalk
from lakelet.language.notebook import Source, read_source
from lakelet.language.notebook.cells import Code, notebook_file, pieces_of, run_target
from lakelet.project.init.findings import CodeLocation
from lakelet.project.init.texts import NameScope


@dataclass(frozen=True)
class Tree:
    """A piece of Python: its syntax tree, and the cell of a Jupyter notebook that it stands in."""

    module: ast.Module
    cell: int | None = None


@dataclass
class PyFile:
    """One file: its trees in order, what does not compile, the notebooks it runs by `%run`, and the names of its module."""

    path: Path
    trees: list[Tree] = field(default_factory=list)
    broken: tuple[str, int, int | None] | None = None
    runs: list[Path] = field(default_factory=list)
    scope: NameScope = field(default_factory=NameScope)


class Repository:
    """Finds and reads Python files below a folder, each once."""

    def __init__(self, folder: Path, roots: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._roots = tuple(roots) or (folder,)
        self._read: dict[Path, PyFile] = {}

    def location(self, file: Path, line: int, cell: int | None = None) -> CodeLocation:
        return CodeLocation(file.relative_to(self.folder).as_posix() if file.is_relative_to(self.folder) else str(file), line, cell)

    def roots(self, file: Path) -> Iterator[Path]:
        """Folders from which the file may import, the nearest first: its own, those above it, and `src` in each."""
        for folder in (file.parent, *file.parent.parents):
            if not any(folder.is_relative_to(root) for root in self._roots):
                return
            yield folder
            if (folder / "src").is_dir():
                yield folder / "src"

    def module(self, name: str, file: Path) -> tuple[Path, Path] | None:
        """The file or folder of the repository that `import name` means in `file`, and the folder it is found from."""
        inner = Path(*name.split("."))
        for root in self.roots(file):
            for found in (root / inner.with_suffix(".py"), root / inner / "__init__.py", root / inner):
                if found.is_file() and found.resolve() != file.resolve():
                    return found, root
            if (root / inner).is_dir() and any((root / inner).glob("*.py")):
                return root / inner, root
        return None

    def elsewhere(self, name: str) -> Path | None:
        """The one file of the repository that is a module of this name, wherever it lies; None if there is none, or several are."""
        found = self._by_name.get(name.split(".")[-1], ())
        fitting = [one for one in found if [*one.parent.parts, one.stem][-name.count(".") - 1 :] == name.split(".")]
        return fitting[0] if len(fitting) == 1 else None

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        names: dict[str, list[Path]] = {}
        for file in dict.fromkeys(file for root in self._roots for file in FolderWalk(root).files((".py",))):
            names.setdefault(file.stem, []).append(file)
        return names

    def read(self, file: Path) -> PyFile:
        """The file's trees and names; empty for what is not Python."""
        if file not in self._read:
            found = self._read[file] = PyFile(file)
            try:
                source = read_source(file)
            except (LakeletError, SyntaxError, OSError) as error:
                found.broken = (str(getattr(error, "what", error)), 1, None)
            else:
                self._parse(source, found)
                self._link(found)
        return self._read[file]

    def _parse(self, source: Source, found: PyFile) -> None:
        for cell in source.own() if source.language == "python" else ():
            try:
                for piece in pieces_of(source, cell, str(source.file)):
                    if isinstance(piece, Code):
                        found.trees.append(Tree(_tree(piece.numbered(cell)), cell.number))
                    elif piece.name == "run" and (run := notebook_file(source.file, run_target(piece.rest)[0])) is not None:
                        found.runs.append(run)
            except (SyntaxError, ValueError, RecursionError) as error:
                line = getattr(error, "lineno", None) or 1
                found.broken = (str(getattr(error, "msg", error)), line, cell.number)

    def _link(self, found: PyFile) -> None:
        """Fill the names of the file's module: its own, those of notebooks it runs, those of modules that it imports."""
        for other in found.runs:
            there = self.read(other).scope
            found.scope.modules.update(there.modules)
            found.scope.imported.update(there.imported)
            for name, values in there.values.items():
                found.scope.values.setdefault(name, []).extend(values)
        for tree in found.trees:
            found.scope.fill(tree.module.body)
            for node in ast.walk(tree.module):
                for name, module in imported_modules(node, found.path):
                    self._import(found, node, name, module)

    def _import(self, found: PyFile, node: ast.AST, name: str, module: str) -> None:
        there = self.module(module, found.path)
        if there is None or not there[0].is_file():
            return
        scope = self.read(there[0]).scope
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = self.module(f"{module}.{alias.name}", found.path)
                if inner is not None and inner[0].is_file():
                    found.scope.modules[alias.asname or alias.name] = self.read(inner[0]).scope
                else:
                    found.scope.imported[alias.asname or alias.name] = (scope, alias.name)
                if alias.name == "*":
                    found.scope.imported.update({known: (scope, known) for known in (*scope.values, *scope.imported)})
        else:
            found.scope.modules[name] = scope


def imported_modules(node: ast.AST, file: Path) -> Iterator[tuple[str, str]]:
    """(name in the file, module) of an import statement. A relative import is said by the folders above the file."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, alias.name
    elif isinstance(node, ast.ImportFrom):
        base = file.parent
        for _ in range(max(0, node.level - 1)):
            base = base.parent
        lead = base.name + "." if node.level else ""
        if node.module or node.level:
            yield "", (lead + (node.module or "")).strip(".")


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those about the user's escapes
        return ast.parse(text)
