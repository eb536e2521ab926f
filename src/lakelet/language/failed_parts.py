"""What the sources may declare beyond what they did: the parts of them that did not run because of a mistake.

A name that nobody knows may stand in such a part. It is then a consequence of the mistake and not reported; every other one is. Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_HARMLESS = frozenset({"print", "display", "spark", "dbutils", "logging", "log", "logger", "warnings", "sys", "os"})
"""Roots of calls at the top of a file that declare nothing."""
_IN_SQL = re.compile(r"\b(?:TABLE|VIEW|FLOW|INTO)\s+(?:IF\s+NOT\s+EXISTS\s+)?([`\w.]+)", re.IGNORECASE)
_IN_PYTHON = re.compile(r"""^\s*def\s+(\w+)|\b(?:name|target)\s*=\s*["']([^"'{}]+)["']|\bcreate_\w+\(\s*["']([^"'{}]+)["']""", re.MULTILINE)
_BOUND = re.compile(r"^(?:def|class|async\s+def)\s+(\w+)|^(\w+)\s*=[^=]|^(?:from\s+\S+\s+)?import\s+(.+)$", re.MULTILINE)
_COMPUTED = re.compile(r"""\bname\s*=\s*(?!["'])|\bname\s*=\s*["'][^"']*\{|^%run\b|^#\s*MAGIC\s+%run\b""", re.MULTILINE)


@dataclass(frozen=True)
class FailedPart:
    """A part of a source that did not run.

    Attributes:
        file: the source, as locations name it.
        text: the part; of a file that broke off, all of it.
        names: last parts of the names of datasets and flows that it may declare, in lower case; None: any.
        bound: names of Python that it would have given a value.
        whole: the file broke off; else it went on behind the part.
    """

    file: str
    text: str
    names: frozenset[str] | None
    bound: frozenset[str] = frozenset()
    whole: bool = True


@dataclass
class FailedParts:
    """All such parts of the sources of one pipeline."""

    parts: list[FailedPart] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def may_declare(self, name: str) -> bool:
        """Whether a part may declare a dataset or flow of this name."""
        wanted = _last_part(name)
        return any(part.names is None or wanted in part.names for part in self.parts)

    def mentions(self, name: str) -> bool:
        """Whether a part names a dataset, or may do so by a computed name: the flow into it may stand there."""
        wanted = re.compile(rf"\b{re.escape(_last_part(name))}\b", re.IGNORECASE)
        return any(part.names is None or wanted.search(part.text) for part in self.parts)

    def excuses(self, file: str, error: BaseException | None) -> bool:
        """Whether what a function of a file raises may follow from a part of the file that did not run."""
        parts = [part for part in self.parts if part.file == file]
        if isinstance(error, NameError):
            return any(error.name in part.bound for part in parts)
        return any(part.whole for part in parts)


ANYTHING = FailedParts([FailedPart("", "", None)])
"""Parts that may declare anything."""


def failed_python(file: str, text: str, *, computed: bool = False) -> FailedPart:
    """A Python source that broke off. `computed`: what it imports may declare anything."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        names = {_last_part(name) for found in _IN_PYTHON.findall(text) for name in found if name}
        bound = {word for found in _BOUND.findall(text) for one in found for word in re.findall(r"\w+", one)}
        return FailedPart(file, text, None if computed or _COMPUTED.search(text) else frozenset(names), frozenset(bound))
    return FailedPart(file, text, None if computed else _names_declared(tree.body), frozenset(_names_bound(tree.body)))


def failed_declaration(file: str, text: str, statement: ast.stmt) -> FailedPart:
    """One statement of a Python source that was to declare something. `text`: the source."""
    shown = ast.get_source_segment(text, statement) or ""
    return FailedPart(file, shown, _names_declared([statement]), frozenset(_names_bound([statement])), whole=False)


def failed_sql(file: str, text: str) -> FailedPart:
    """A statement of a SQL source that was not understood, or all from it on where its end is not known."""
    head = re.split(r"\bAS\b|\(", text, maxsplit=1, flags=re.IGNORECASE)[0]
    names = {_last_part(name) for name in (*_IN_SQL.findall(text), *re.findall(r"[`\w.]+", head))}
    return FailedPart(file, text, None if "${" in head else frozenset(names), whole=False)


def _last_part(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip("`").lower()


def root_name(node: ast.expr) -> str | None:
    """The name at which an expression such as `dlt.table(name="x")` begins."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _names_declared(body: Iterable[ast.stmt]) -> frozenset[str] | None:
    """The names that statements may declare; None where they may declare any."""
    found: set[str] = set()
    for node in _outside_of_functions(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = [name for decorator in node.decorator_list for name in _names_given(decorator)]
            found |= {_last_part(name) for name in named if name is not None} or {node.name.lower()}
            if None in named:
                return None
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            names = list(_names_given(node.value))
            if None in names or (not names and root_name(node.value) not in _HARMLESS):
                return None
            found |= {_last_part(name) for name in names if name is not None}
    return frozenset(found)


def _outside_of_functions(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a file is loaded; functions with their decorators."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for nested in ("body", "orelse", "finalbody"):
                yield from _outside_of_functions(getattr(statement, nested, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _outside_of_functions(handler.body)


def _names_given(call: ast.expr) -> Iterator[str | None]:
    """The names that a call of the language gives to what it declares; None for a computed name. None at all where it has no name."""
    while isinstance(call, ast.Call):
        function = call.func
        called = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
        first = call.args[:1] if called.startswith("create_") else []
        given = [keyword.value for keyword in call.keywords if keyword.arg in ("name", "target")] or first
        yield from (one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else None for one in given)
        call = function


def _names_bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements give a value when a file is loaded."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
