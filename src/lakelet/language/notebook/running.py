"""Runs source files: their Python cells as one module, their SQL cells as declarations.

Cells that a pipeline does not execute are left out as on Databricks, each with a notice; only Markdown needs none. Where a
declaration raises, the rest of the source runs.
"""

from __future__ import annotations
import __future__ as futures

import ast
import builtins
import inspect
import linecache
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.user_code import cell_filename
from lakelet.language import api
from lakelet.language.failed_parts import root_name
from lakelet.language.notebook.cells import (
    NOTEBOOK_SUFFIXES,
    PYTHON,
    SQL,
    MagicCommand,
    NotebookCell,
    SourceCells,
    notebook_file,
    packages,
    pieces_of,
    read_source,
    run_target,
)
from lakelet.language.registry import active_registry

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_FUTURES = sum(getattr(futures, name).compiler_flag for name in futures.all_feature_names)
_QUIET = frozenset({"md", "md-sandbox", "skip"})
_MAKES = frozenset({"sh", "bash", "fs", "sql", "scala", "r", "python", "writefile", "environment", "conda", "!"})
"""Commands whose cells may make files, tables or packages that later code needs."""


class NotebookExit(BaseException):
    """`dbutils.notebook.exit`: the rest of the file is not wanted. No `except Exception` of the user's stops it."""


@dataclass(frozen=True)
class ModuleFrame:
    """What a source file runs in: its module, and who takes the arguments that a `%run` hands on."""

    module: ModuleType
    arguments: Callable[[Mapping[str, str]], None]


@dataclass(frozen=True)
class CompiledPiece:
    """A piece of a source that is executed: its code, and the text and the flags that it was compiled from."""

    code: CodeType
    text: str
    flags: int


LeftOut = Callable[[SourceCells, Exception, ast.stmt, str, ModuleType], None]
"""Called for a declaration that raised, with the source, the error, the statement, the text of the piece and the module."""


@dataclass
class SourceRunner:
    """The source files of one pipeline, run in order, each once.

    Attributes:
        frame: makes what a file runs in: a module with the injected names.
        declare: takes the SQL of a source; returns whether all of it was understood.
        files: all source files, so that a notebook that another one runs does not run again.
        left_out: a declaration that raises is handed to it, and the file goes on behind it; None: the file breaks off.
    """

    frame: Callable[[Path], ModuleFrame]
    declare: Callable[[SourceCells], bool]
    files: Sequence[Path] = ()
    left_out: LeftOut | None = None
    _done: dict[Path, ModuleType] = field(default_factory=dict)
    _loop: AbstractEventLoop | None = None

    def run(self, file: Path) -> tuple[ModuleType, bool]:
        """Run one source file; its module, and whether it came to its end and all its SQL was understood.

        Raises what the file raises, SyntaxError before any of its cells runs, and LakeletError for what is not a source.
        """
        known = self._done.get(file.resolve())
        if known is not None:
            return known, True
        frame = self.frame(file)
        self._done[file.resolve()] = frame.module
        try:
            return frame.module, self._run(read_source(file), frame, (file.resolve(),))
        except NotebookExit:
            return frame.module, True

    def _run(self, source: SourceCells, frame: ModuleFrame, within: tuple[Path, ...]) -> bool:
        self._note_others(source)
        if source.language == SQL:
            return self.declare(source)
        linecache.cache.pop(str(source.file), None)
        understood = True
        for step in _compiled(source):
            if isinstance(step, CompiledPiece):
                self._execute(source, step, frame)
            else:
                understood &= self._include(source, *step, frame, within)
        return understood

    def _execute(self, source: SourceCells, step: CompiledPiece, frame: ModuleFrame) -> None:
        """Run a piece of code. Behind a declaration that raises it goes on: the others in the piece are declared all the same."""
        code: CodeType | None = step.code
        while code is not None:
            try:
                self._run_code(code, frame)
                return
            except Exception as error:
                found = declaration_at(error, code, step.text, vars(frame.module)) if self.left_out is not None else None
                if found is None or self.left_out is None:
                    raise
                self.left_out(source, error, found[0], step.text, frame.module)
                rest = ast.Module(found[1], [])
                code = compile(rest, code.co_filename, "exec", flags=step.flags, dont_inherit=True) if found[1] else None

    def _run_code(self, code: CodeType, frame: ModuleFrame) -> None:
        """Run code; one that waits (`await` outside of functions, in notebooks) runs on an event loop of the sources' own."""
        if not code.co_flags & inspect.CO_COROUTINE:
            exec(code, vars(frame.module))
            return
        if self._loop is None:
            import asyncio  # takes 30 ms, and few notebooks wait

            self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(eval(code, vars(frame.module)))

    def close(self) -> None:
        """End the event loop, if the notebooks had one."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _include(self, source: SourceCells, cell: NotebookCell, magic: MagicCommand, frame: ModuleFrame, within: tuple[Path, ...]) -> bool:
        """Run the notebook that a `%run` names, in the module of the one that names it."""
        where = source.where(cell, cell.line + magic.line - 1)
        path, given = run_target(magic.rest)
        file = _notebook_of_run(source.file, path, where)
        if file in within:
            shown = " → ".join(one.name for one in (*within, file))
            raise LakeletError("NOTEBOOK_NOT_FOUND", f"%run {path} comes back to a notebook that is running", where=where, why=shown)
        if file in self._done:
            taken = {name: value for name, value in vars(self._done[file]).items() if not name.startswith("__")}
            vars(frame.module).update({name: value for name, value in taken.items() if name != "dbutils"})
            return True
        if file in {one.resolve() for one in self.files}:
            self._done[file] = frame.module
            text = f"%run {path}: the notebook is a source of the pipeline itself; it runs here, and not a second time"
            active_registry().note(text, where)
        frame.arguments(given)
        return self._run(read_source(file), frame, (*within, file))

    @staticmethod
    def _note_others(source: SourceCells) -> None:
        """One notice for each kind of cell that is left out, at the first of them."""
        own = {PYTHON: "Python", SQL: "SQL"}[source.language]
        others: dict[str, list[NotebookCell]] = {}
        for cell in source.cells:
            if cell.language not in (source.language, *_QUIET):
                others.setdefault(cell.language, []).append(cell)
        for language, (first, *more) in others.items():
            rest = ", ".join(f"cell {cell.number}" if cell.number else f"line {cell.line}" for cell in more)
            which = f"{len(more) + 1} cells are left out, the others at {rest}" if more else "the cell is left out"
            text = f"%{language}: {which}; of this notebook a pipeline executes the {own} cells only"
            active_registry().note(text, source.where(first), magic=f"%{language}" if language in _MAKES else None)


def _notebook_of_run(source: Path, path: str, where: Location) -> Path:
    """The notebook that a `%run` in `source` means: relative to it, with or without extension. Raises NOTEBOOK_NOT_FOUND."""
    base = Path(os.path.normpath(source.resolve().parent / path))
    hit = notebook_file(source.resolve(), path)
    if hit is not None:
        return hit.resolve()
    beside = [one.stem for one in base.parent.iterdir() if one.suffix in NOTEBOOK_SUFFIXES] if base.parent.is_dir() else []
    absolute = path.startswith("/")
    raise LakeletError(
        "NOTEBOOK_NOT_FOUND",
        f"%run {path}: there is no such notebook" if path else "%run names no notebook",
        where=where,
        why="It is a path in a workspace, which is not on this machine." if absolute else f"looked in {base.parent}",
        nearest=nearest_names(base.name, beside),
        todo="Name it relative to this notebook, as in %run ./helpers.",
    )


def _compiled(source: SourceCells) -> list[CompiledPiece | tuple[NotebookCell, MagicCommand]]:
    """All cells of a Python source, compiled: pieces of code, and between them the `%run` commands. Raises SyntaxError."""
    steps: list[CompiledPiece | tuple[NotebookCell, MagicCommand]] = []
    flags = 0
    if any(cell.uncommented for cell in source.own()):
        _keep_lines(str(source.file), _as_executed(source))
    for cell in source.own():
        filename = cell_filename(str(source.file), cell.number)
        if cell.number is not None:
            _keep_lines(filename, cell.text)
        for piece in pieces_of(source, cell, filename):
            if isinstance(piece, MagicCommand):
                if piece.name == "run":
                    steps.append((cell, piece))
                else:
                    magic = {"!": "!"}.get(piece.name, f"%{piece.name}") if piece.name in _MAKES else None
                    active_registry().note(_notice(piece), source.where(cell, cell.line + piece.line - 1), magic=magic)
                continue
            text = piece.numbered(cell)
            awaiting = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if source.notebook else 0
            code = compile(text, filename, "exec", flags=flags | awaiting, dont_inherit=True)
            steps.append(CompiledPiece(code, text, flags | awaiting))
            flags |= code.co_flags & _FUTURES
    return steps


def _notice(magic: MagicCommand) -> str:
    if magic.name == "pip":
        named = packages(magic.rest)
        what = f"packages come from this environment; the notebook asks for {', '.join(named)}" if named else "nothing is installed here"
        return f"%pip {magic.rest}: {what}"
    if magic.name == "!":
        return f"!{magic.rest}: shell commands are left out"
    return f"%{magic.name}: the command is left out"


def _as_executed(source: SourceCells) -> str:
    """The file's text with uncommented cells instead of their comments: what tracebacks and `inspect` should show."""
    lines = source.file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").split("\n")
    for cell in source.own():
        own = cell.text.split("\n")
        lines[cell.line - 1 : cell.line - 1 + len(own)] = own
    return "\n".join(lines)


def _keep_lines(filename: str, text: str) -> None:
    """Let `linecache` have the text: no file holds it in this form."""
    linecache.cache[filename] = (len(text), None, [line + "\n" for line in text.split("\n")], filename)


def new_module(file: Path, names: Mapping[str, Any]) -> ModuleType:
    """A module as source files run in. It is a real one: pickling by value and `inspect` look for one, and guards for `__main__` hold."""
    module = ModuleType("__main__")
    module.__file__ = str(file)
    vars(module).update(names, __builtins__=builtins)
    return module


_MODULES = frozenset({"dlt", "pyspark.pipelines", "databricks.pipelines"})
_USUAL = frozenset({"dlt", "dp"})
"""Names under which the language is imported: where such a name is missing, the import of a declaration was forgotten."""


def declaration_at(error: Exception, code: CodeType, text: str, names: Mapping[str, Any]) -> tuple[ast.stmt, list[ast.stmt]] | None:
    """Return the statement of a piece of code that raised, and those behind it, if it only was to declare something; else None.

    `text`: what the code was compiled from; `names`: what the names of the source mean.
    """
    line = next((line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code is code), None)
    if line is None:
        return None
    body = ast.parse(text).body
    for number, statement in enumerate(body):
        first = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", ()))])
        if first <= line <= (statement.end_lineno or statement.lineno):
            return (statement, body[number + 1 :]) if _declares(statement, names) else None
    return None


def _declares(statement: ast.stmt, names: Mapping[str, Any]) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return any(_is_language(root_name(decorator), names) for decorator in statement.decorator_list)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _is_language(root_name(statement.value), names)


def _is_language(name: str | None, names: Mapping[str, Any]) -> bool:
    """Whether a name means the module of the language or one of its functions, or would if it were imported."""
    found = names.get(name or "")
    if found is None:
        return name in _USUAL
    if isinstance(found, ModuleType):
        return found.__name__ in _MODULES
    return any(found is function for function in (*api.DLT.values(), *api.DP.values()))
