"""Texts of Python code without running it: constants, f-strings, joined paths; parts that are not known become holes. No Spark."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lakelet.project.init.findings import Holes

_FIELD = re.compile(r"\{(\w*)\}")
_SAME = frozenset({"strip", "rstrip", "lstrip", "lower", "as_posix", "removesuffix", "expanduser", "resolve"})
_PATHS = frozenset({"Path", "PurePath", "PosixPath", "PurePosixPath"})
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
            for name, value in _assigned(statement):
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


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _target(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _target(statement.target, statement.value)
    elif isinstance(statement, ast.AugAssign | ast.For | ast.AsyncFor):
        yield from _target(statement.target, None)
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from _target(item.optional_vars, None)


def _target(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else [None] * len(target.elts)
        for one, part in zip(target.elts, parts, strict=True):
            yield from _target(one, part)


@dataclass
class ExpressionReader:
    """Says what an expression is as a text."""

    holes: Holes
    asked: Asked

    def text(self, node: ast.expr | None, scope: NameScope, depth: int = 0) -> str:
        """The text; a hole where it is not known."""
        if node is None or depth > _DEEPEST:
            return self.holes.token("…")
        known = self._known(node, scope, depth + 1)
        return self.holes.token(_short(node)) if known is None else known

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
        if isinstance(node.func, ast.Name) and node.func.id in (*_PATHS, "str") and node.args:
            return self._joined(node.args, scope, depth)
        if not isinstance(node.func, ast.Attribute):
            return None
        called = node.func.attr
        if called == "join" and dotted(node.func.value) in ("os.path", "posixpath", "path"):
            return self._joined(node.args, scope, depth)
        if called == "joinpath":
            return self._joined([node.func.value, *node.args], scope, depth)
        if called in _SAME:
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


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 40 else text[:39] + "…"
