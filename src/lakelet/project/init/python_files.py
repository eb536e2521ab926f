"""Python files of a repository without running them: syntax trees with their names, cells, `%run`, modules, and the texts of expressions.

Of a text, constants, f-strings and joined paths are known; parts that are not known become holes. No Spark.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.source_files import FolderWalk
from lakelet.language.notebook import SourceCells, read_source
from lakelet.language.notebook.cells import PythonCode, notebook_file, pieces_of, run_target
from lakelet.project.init.findings import CodeLocation, UnknownParts

_FIELD = re.compile(r"\{(\w*)\}")
_SAME_TEXT = frozenset({"strip", "rstrip", "lstrip", "lower", "as_posix", "removesuffix", "expanduser", "resolve"})
_PATH_CLASSES = frozenset({"Path", "PurePath", "PosixPath", "PurePosixPath"})
_DEEPEST = 25

Asked = Callable[[str, str | None, ast.AST], None]
"""Takes a parameter that the code asks for: key, default, where."""


@dataclass
class NameScope:
    """The names of a module or function, each with what is assigned to it; `modules` are those of the repository that it imports."""

    parent: NameScope | None = None
    values: dict[str, list[ast.expr | None]] = field(default_factory=dict)
    modules: dict[str, NameScope] = field(default_factory=dict)
    imported: dict[str, tuple[NameScope, str]] = field(default_factory=dict)

    def value(self, name: str) -> tuple[NameScope, ast.expr] | None:
        """What the name stands for and in which scope; None if that is not one known thing."""
        if name in self.values:
            found = {ast.dump(value) if value is not None else "": value for value in self.values[name]}
            only = next(iter(found.values())) if len(found) == 1 else None
            return (self, only) if only is not None else None
        if name in self.imported:
            scope, there = self.imported[name]
            return scope.value(there)
        return self.parent.value(name) if self.parent else None

    def module(self, name: str) -> NameScope | None:
        return self.modules.get(name) or (self.parent.module(name) if self.parent else None)

    def fill(self, body: Iterable[ast.stmt]) -> None:
        """Take the assignments of a body, also those below `if`, `for`, `try` and `with`, but not those of functions in it."""
        for statement in body:
            for name, value in assignments(statement):
                self.values.setdefault(name, []).append(value)
            for block in ("body", "orelse", "finalbody"):
                if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    self.fill(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                self.fill(handler.body)


def function_scope(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, parent: NameScope) -> NameScope:
    """The scope of a function's body: parameters are known by their defaults."""
    scope = NameScope(parent)
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
    for argument, default in [*zip(positional, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
        scope.values[argument.arg] = [default]
    for more in (given.vararg, given.kwarg):
        if more is not None:
            scope.values[more.arg] = [None]
    if not isinstance(function, ast.Lambda):
        scope.fill(function.body)
    return scope


def assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a statement assigns, each with its value; None for a value that is not written there."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _assignments_to(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _assignments_to(statement.target, statement.value)
    elif isinstance(statement, ast.AugAssign | ast.For | ast.AsyncFor):
        yield from _assignments_to(statement.target, None)
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from _assignments_to(item.optional_vars, None)


def _assignments_to(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else [None] * len(target.elts)
        for one, part in zip(target.elts, parts, strict=True):
            yield from _assignments_to(one, part)


@dataclass
class ExpressionReader:
    """Says what an expression is as a text."""

    holes: UnknownParts
    asked: Asked

    def text(self, node: ast.expr | None, scope: NameScope, depth: int = 0) -> str:
        """The text; a hole where it is not known."""
        if node is None or depth > _DEEPEST:
            return self.holes.token("…")
        known = self._known(node, scope, depth + 1)
        return self.holes.token(_short_source(node)) if known is None else known

    def constant(self, node: ast.expr | None, scope: NameScope) -> str | None:
        """The text if all of it is known, else None."""
        found = None if node is None else self._known(node, scope, 0)
        return None if found is None or self.holes.first_in(found) is not None else found

    def _known(self, node: ast.expr, scope: NameScope, depth: int) -> str | None:
        if isinstance(node, ast.Constant):
            return str(node.value) if isinstance(node.value, str | int | float) else None
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(piece, scope, depth) for piece in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.text(node.left, scope, depth) + self.text(node.right, scope, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._joined([node.left, node.right], scope, depth)
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            found = resolved(node, scope)
            return self.text(found[1], found[0], depth) if found else None
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            texts = [self.text(value, scope, depth) for value in node.values]
            return next((text for text in texts if self.holes.first_in(text) is None), None)
        return self._called(node, scope, depth) if isinstance(node, ast.Call) else None

    def _piece(self, piece: ast.expr, scope: NameScope, depth: int) -> str:
        if isinstance(piece, ast.FormattedValue):
            return self.text(piece.value, scope, depth)
        return str(piece.value) if isinstance(piece, ast.Constant) else ""

    def _joined(self, nodes: Sequence[ast.expr], scope: NameScope, depth: int) -> str:
        first, *more = [self.text(node, scope, depth) for node in nodes] or [""]
        return "/".join([first.rstrip("/") if more else first, *(text.strip("/") for text in more)])

    def _called(self, node: ast.Call, scope: NameScope, depth: int) -> str | None:
        parameter = asked_parameter(node)
        if parameter is not None:
            return self._parameter(node, *parameter, scope, depth)
        if isinstance(node.func, ast.Name) and node.func.id in (*_PATH_CLASSES, "str") and node.args:
            return self._joined(node.args, scope, depth)
        if not isinstance(node.func, ast.Attribute):
            return None
        called = node.func.attr
        if called == "join" and dotted(node.func.value) in ("os.path", "posixpath", "path"):
            return self._joined(node.args, scope, depth)
        if called == "joinpath":
            return self._joined([node.func.value, *node.args], scope, depth)
        if called in _SAME_TEXT:
            return self.text(node.func.value, scope, depth)
        return self._formatted(node, node.func.value, scope, depth) if called == "format" else None

    def _formatted(self, node: ast.Call, template: ast.expr, scope: NameScope, depth: int) -> str | None:
        text = self._known(template, scope, depth)
        if text is None:
            return None
        given = {str(at): argument for at, argument in enumerate(node.args)} | {k.arg: k.value for k in node.keywords if k.arg}
        numbers = iter(range(len(node.args)))

        def put(found: re.Match[str]) -> str:
            key = found[1] or str(next(numbers, ""))
            return self.text(given[key], scope, depth) if key in given else self.holes.token(key)

        return _FIELD.sub(put, text)

    def _parameter(self, node: ast.Call, key: ast.expr, default: ast.expr | None, scope: NameScope, depth: int) -> str | None:
        name = self.constant(key, scope)
        if name is None:
            return None
        empty = isinstance(default, ast.Constant) and default.value is None
        text = self.text(default, scope, depth) if default is not None and not empty else None
        known = text is not None and self.holes.first_in(text) is None
        self.asked(name, text if known else None, node)
        return text if text is not None else self.holes.token(name)


def asked_parameter(node: ast.Call) -> tuple[ast.expr, ast.expr | None] | None:
    """Key and default of a call that asks for a piece of the pipeline's configuration; None for other calls."""
    path = dotted(node.func)
    if path is None or not node.args:
        return None
    more = [*node.args[1:], *(k.value for k in node.keywords if k.arg in ("default", "defaultValue"))]
    if path.endswith("conf.get") and not path.startswith(("os.", "self.")):
        return node.args[0], more[0] if more else None
    if path.endswith(("widgets.get", "getArgument")):
        return node.args[0], None
    if path.endswith(("widgets.text", "widgets.dropdown", "widgets.combobox")):
        return node.args[0], more[0] if more else None
    return None


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` of an attribute; calls on the way (`a.b().c`) are left out. None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Call):
            node = node.func
            continue
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def resolved(node: ast.expr, scope: NameScope, depth: int = 0) -> tuple[NameScope, ast.expr] | None:
    """What a name, an attribute of a module or an entry of a dictionary stands for, and in which scope."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Name):
        found = scope.value(node.id)
        if found and isinstance(found[1], ast.Name | ast.Attribute | ast.Subscript) and ast.dump(found[1]) != ast.dump(node):
            return resolved(found[1], found[0], depth + 1) or found
        return found
    if isinstance(node, ast.Attribute):
        module = scope.module(dotted(node.value) or "")
        return module.value(node.attr) if module else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        holder = resolved(node.value, scope, depth + 1)
        if holder and isinstance(holder[1], ast.Dict):
            for key, value in zip(holder[1].keys, holder[1].values, strict=True):
                if isinstance(key, ast.Constant) and key.value == node.slice.value:
                    return holder[0], value
    return None


def _short_source(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 40 else text[:39] + "…"


@dataclass(frozen=True)
class PythonTree:
    """A piece of Python: its syntax tree, and the cell of a Jupyter notebook that it stands in."""

    module: ast.Module
    cell: int | None = None


@dataclass
class PythonFile:
    """One file: its trees in order, what does not compile, the notebooks it runs by `%run`, and the names of its module."""

    path: Path
    trees: list[PythonTree] = field(default_factory=list)
    broken: tuple[str, int, int | None] | None = None
    runs: list[Path] = field(default_factory=list)
    scope: NameScope = field(default_factory=NameScope)


class Repository:
    """Finds and reads Python files below a folder, each once."""

    def __init__(self, folder: Path, roots: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._roots = tuple(roots) or (folder,)
        self._read: dict[Path, PythonFile] = {}

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

    def read(self, file: Path) -> PythonFile:
        """The file's trees and names; empty for what is not Python."""
        if file not in self._read:
            found = self._read[file] = PythonFile(file)
            try:
                source = read_source(file)
            except (LakeletError, SyntaxError, OSError) as error:
                found.broken = (str(getattr(error, "what", error)), 1, None)
            else:
                self._parse(source, found)
                self._link(found)
        return self._read[file]

    def _parse(self, source: SourceCells, found: PythonFile) -> None:
        for cell in source.own() if source.language == "python" else ():
            try:
                for piece in pieces_of(source, cell, str(source.file)):
                    if isinstance(piece, PythonCode):
                        found.trees.append(PythonTree(_syntax_tree(piece.numbered(cell)), cell.number))
                    elif piece.name == "run" and (run := notebook_file(source.file, run_target(piece.rest)[0])) is not None:
                        found.runs.append(run)
            except (SyntaxError, ValueError, RecursionError) as error:
                line = getattr(error, "lineno", None) or 1
                found.broken = (str(getattr(error, "msg", error)), line, cell.number)

    def _link(self, found: PythonFile) -> None:
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

    def _import(self, found: PythonFile, node: ast.AST, name: str, module: str) -> None:
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


def _syntax_tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those about the user's escapes
        return ast.parse(text)
