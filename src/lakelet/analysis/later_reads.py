"""Tables that a dataset's function would have read behind the line at which it failed: unknown ones are reported with the failure."""

from __future__ import annotations

import ast
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from lakelet.base.errors import LakeletError, Location
from lakelet.base.raised import pointed
from lakelet.base.user_code import code_location
from lakelet.language.model import Flow
from lakelet.spark.errors.missing_tables import MissingTable

_READING = frozenset({"table", "read", "read_stream", "readStream"})
_STRAIGHT = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_MAYBE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def missing_later(flow: Flow, error: BaseException, opened: Callable[[str], object]) -> list[LakeletError]:
    """Return an error for each unknown table that the function of a flow names behind the line at which it raised `error`.

    Only names that stand there as text, on lines that would have run whatever the data is. `opened` reads a table.
    """
    found: list[LakeletError] = []
    told = {error.name} if isinstance(error, MissingTable) else set()
    for name, where in _names(flow, error):
        try:
            if name not in told:
                opened(name)
        except MissingTable as missing:
            if missing.code != "UNKNOWN_DATASET":
                continue  # its own table, which no update has made yet
            missing.where = pointed(where, name.rsplit(".", 1)[-1].strip("`"))
            found.append(missing)
        except Exception:  # what else is wrong with the table is reported where it is read
            pass
        told.add(name)
    return found


def _names(flow: Flow, error: BaseException) -> Iterator[tuple[str, Location]]:
    code = getattr(flow.query, "__code__", None)
    at = next((line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code is code), None)
    function = _function(code.co_filename, code.co_firstlineno) if code is not None and at is not None else None
    if code is None or at is None or function is None:
        return
    calls = [call for statement in _straight(function) for call in _calls(statement)]
    made = {argument.value for call in calls if not _reads(call) for argument in call.args if isinstance(argument, ast.Constant)}
    for call in calls:
        argument = call.args[0] if call.args else None
        name = argument.value if isinstance(argument, ast.Constant) else None
        if argument is not None and isinstance(name, str) and _reads(call) and (call.end_lineno or 0) >= at and name not in made:
            yield name, replace(code_location(code.co_filename, argument.lineno), source=None)


def _function(file: str, line: int) -> ast.FunctionDef | None:
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
            if isinstance(node, ast.FunctionDef) and line == min([node.lineno, *(one.lineno for one in node.decorator_list)]):
                return node
    return None


def _straight(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements that run one after the other, up to the first that may go elsewhere."""
    for statement in function.body:
        if not isinstance(statement, _STRAIGHT):
            return
        yield statement
        if isinstance(statement, ast.Return):
            return


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls of a statement, without those that its conditions may leave out."""
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _MAYBE):
            yield from _calls(child)


def _reads(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _READING


__all__ = ["missing_later"]
