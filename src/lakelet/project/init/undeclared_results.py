"""Source files that declare no dataset: what they compute with Spark, and the lines that make a dataset of it. Reads, runs nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.language.notebook import read_source
from lakelet.project.init.findings import CodeLocation
from lakelet.project.init.grouping import slug
from lakelet.project.init.python_files import Repository, assignments

_FRAMES_OF_SPARK = frozenset({"read", "readStream", "table", "sql", "createDataFrame", "range"})
_NO_FRAMES = frozenset(
    (
        *("count", "collect", "first", "head", "take", "show", "display", "toPandas", "toArrow", "isEmpty"),
        *("printSchema", "explain", "foreach", "write", "writeTo", "writeStream", "rdd", "save", "saveAsTable", "start", "createTempView"),
        *("createOrReplaceTempView", "createGlobalTempView", "insertInto", "toTable"),
    )
)
_FACTS = frozenset({"schema", "columns", "dtypes"})
_WRITTEN = ("saveAsTable", "toTable", "insertInto")
_MADE = re.compile(
    r"\b(CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?|INSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?)([\w.`]+)",
    re.IGNORECASE,
)
_QUERY = re.compile(r"^\s*(SELECT|WITH)\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class PlainResult:
    """Something that a file computes and declares as no dataset.

    Attributes:
        name: of the dataset that it would be.
        location: of the function, of the data frame's last assignment, or of the statement.
        what: `function`, `frame` or `query`.
        symbol: name of the function or data frame; the words of SQL that a declaration replaces, empty without.
    """

    name: str
    location: CodeLocation
    what: str
    symbol: str

    def advice(self) -> Sequence[str]:
        """The change that makes a dataset of it, as lines."""
        at, head = self.location, ["  import dlt", "", "  @dlt.table", f"  def {self.name}():"]
        if self.what == "function":
            return [f"{at}: put a decorator above the function {self.symbol}", *head]
        if self.what == "frame":
            first = f"{at}: put the lines that make {self.symbol} into a function, without those that show or write it"
            return [first, *head, "      ...", f"      return {self.symbol}"]
        words = f"instead of {self.symbol}" if self.symbol else "above the query"
        return [f"{at}: declare the result of the query, {words}", f"  CREATE OR REFRESH MATERIALIZED VIEW {self.name} AS"]


def plain_results(folder: Path, files: Sequence[Path]) -> list[PlainResult]:
    """The result of each file that seems to compute one: its last function or data frame, or its query."""
    repository, found = Repository(folder), []
    for file in files:
        one = _of_sql(file, repository) if _speaks_sql(file) else _of_python(file, repository)
        if one is not None:
            found.append(one)
    return found


def _speaks_sql(file: Path) -> bool:
    try:
        return read_source(file).language == "sql"
    except (LakeletError, SyntaxError, OSError):
        return False


def _of_sql(file: Path, repository: Repository) -> PlainResult | None:
    for cell in read_source(file).own():
        for pattern in (_MADE, _QUERY):
            found = pattern.search(cell.text)
            if found:
                line = cell.line + cell.text.count("\n", 0, found.start(1))
                words = found[1].strip() + f" {found[2]}" if pattern is _MADE else ""
                name = found[2].replace("`", "").rpartition(".")[2] if pattern is _MADE else slug(file.stem)
                return PlainResult(name, repository.location(file, line, cell.number), "query", words)
    return None


def _of_python(file: Path, repository: Repository) -> PlainResult | None:
    functions: list[PlainResult] = []
    frames: dict[str, PlainResult] = {}
    known: set[str] = set()
    for tree in repository.read(file).trees:
        for node in _statements(tree.module.body):
            location = repository.location(file, getattr(node, "lineno", 1), tree.cell)
            if isinstance(node, ast.FunctionDef):
                if not _asked(node) and not node.name.startswith("_") and _returns_frame(node, known):
                    functions.append(PlainResult(node.name, location, "function", node.name))
                    known.add(node.name)
                continue
            for name, value in assignments(node):
                if value is not None and _is_frame(value, known):
                    known.add(name)
                    frames.pop(name, None)
                    frames[name] = PlainResult(name, location, "frame", name)
            written = _written(node, frames)
            if written is not None:
                symbol, name = written
                one = frames.pop(symbol)
                frames[symbol] = PlainResult(name or one.name, one.location, "frame", symbol)
    return functions[-1] if functions else next(reversed(frames.values()), None)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those below `if`, `with`, `for` and `try` included."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, []))


def _asked(function: ast.FunctionDef) -> bool:
    """Whether the function cannot be called without arguments."""
    arguments = function.args
    given = len(arguments.defaults)
    return len(arguments.posonlyargs) + len(arguments.args) > given or any(default is None for default in arguments.kw_defaults)


def _returns_frame(function: ast.FunctionDef, known: set[str]) -> bool:
    inner = set(known)
    for node in _statements(function.body):
        inner |= {name for name, value in assignments(node) if value is not None and _is_frame(value, inner)}
        if isinstance(node, ast.Return) and node.value is not None and _is_frame(node.value, inner):
            return True
    return False


def _chain(node: ast.expr) -> tuple[str, list[str]]:
    """The name at the beginning of `a.b(…).c`, and the names after it; empty for other expressions."""
    names: list[str] = []
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        node = node.func if isinstance(node, ast.Call) else node.value
    return (node.id, names[::-1]) if isinstance(node, ast.Name) else ("", [])


def _is_frame(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression is a data frame, as far as its text shows: it begins at `spark`, or at a data frame or function of the file."""
    first, names = _chain(node)
    if not first or not _NO_FRAMES.isdisjoint(names) or (not isinstance(node, ast.Call) and not _FACTS.isdisjoint(names[-1:])):
        return False
    return first in known or (first == "spark" and not _FRAMES_OF_SPARK.isdisjoint(names))


def _written(node: ast.stmt, frames: dict[str, PlainResult]) -> tuple[str, str] | None:
    """The data frame that a statement writes or shows last, and the name of the table that it writes; empty where it names none."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    call = node.value
    first, names = _chain(call)
    if first == "display" and call.args and isinstance(call.args[0], ast.Name) and call.args[0].id in frames:
        return call.args[0].id, ""
    if first not in frames or _NO_FRAMES.isdisjoint(names):
        return None
    table = call.args[0] if call.args and names[-1] in _WRITTEN else None
    text = table.value if isinstance(table, ast.Constant) and isinstance(table.value, str) else ""
    return first, slug(text.rpartition(".")[2])
