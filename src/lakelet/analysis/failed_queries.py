"""Queries that fail during analysis: which failures are errors in definitions, and which only an update can check (decision 0044).

In: the findings of an analysis, or what a function raised. Out: errors, notices. Tables that a function would have read behind the line
at which it failed are reported too, where they are unknown.
"""

from __future__ import annotations

import ast
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from pyspark.errors.exceptions.base import PySparkException

from lakelet.analysis.results import Findings
from lakelet.base.errors import LakeletError, Location, StateError
from lakelet.base.raised import pointed
from lakelet.base.user_code import code_location
from lakelet.jvm.errors import Py4JError
from lakelet.language.failed_parts import FailedParts
from lakelet.language.model import Flow
from lakelet.language.registry import Notice
from lakelet.spark.errors.missing_tables import MissingTable
from lakelet.spark.errors.user_errors import NO_ROWS, RUN_AGAIN

_RAISED = "USER_FUNCTION_FAILED"
_HAS_NOTICE = "SCHEMA_OUTGROWN"
"""Code of failures that the flow already has a notice about."""
_REMEDIES = {NO_ROWS: "Correct the function.", RUN_AGAIN: "Correct the function, or what it needs."}
"""Remedies for a function that raises without reading rows, by the remedy that the update would give."""
_OF_DATA = (OSError, PySparkException, Py4JError)
"""Classes of errors about data, files or services that the function needs. Wrong queries have a different code than `_RAISED`."""


class Unusable(Exception):
    """A dataset that is read cannot be used. Its own error has been recorded, or is `failure`, to be reported by the run."""

    def __init__(self, failure: LakeletError | None = None) -> None:
        super().__init__(failure)
        self.failure = failure


def fails_alone(error: LakeletError, *, stored: bool = True) -> bool:
    """Whether an update fails only the dataset of an error that analysis finds, and what reads it (decision 0068).

    The stored table, or a column that came with the data, does not fit one dataset; the definitions of the others are right.
    `stored`: whether the dataset has a table.
    """
    return error.code == "CDC_RESERVED_COLUMN" or (stored and isinstance(error, StateError))


def refused(found: Findings, lost: FailedParts) -> list[LakeletError]:
    """Return an error for each dataset that does not fit what is stored, or whose function raises whatever the data is.

    `lost`: what did not run of the sources; a missing name may be defined in it.
    """
    wrong = [e for key, e in found.failures.items() if _wrong(found, key, e)]
    shown = [e for e in wrong if e.where is None or not lost.excuses(e.where.file, e.__cause__)]
    return [error if fails_alone(error) else _as_definition_error(error) for error in shown]


def unchecked(found: Findings) -> tuple[Notice, ...]:
    """Return a notice for each dataset that only an update can check."""
    left = [(key, e) for key, e in found.failures.items() if e.code != _HAS_NOTICE and not _wrong(found, key, e)]
    notices = [Notice(_notice_text(e, _reason(found, key)), e.where) for key, e in left if e.where is not None]
    return tuple(dict.fromkeys(notices))


def _wrong(found: Findings, key: str, error: LakeletError) -> bool:
    if fails_alone(error):
        return key not in found.uncertain
    if error.code != _RAISED or _reads_rows(found, key):
        return False
    causes = list(_causes(error.__cause__))
    return not isinstance(error.__cause__, _OF_DATA) and not any(isinstance(cause, Unusable) for cause in causes)


def _reads_rows(found: Findings, key: str) -> bool:
    return key in found.reads_rows or key in found.uncertain


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, the error that it was raised from or while handling, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _as_definition_error(error: LakeletError) -> LakeletError:
    result = LakeletError(
        "QUERY_FAILED_ANALYSIS",
        error.what,
        where=error.where,
        dataset=error.dataset,
        why=error.why,
        todo=_REMEDIES.get(error.todo or "", error.todo),
        nearest=error.nearest,
    )
    result.__cause__ = error.__cause__
    return result


def _reason(found: Findings, key: str) -> str:
    if key in found.below_unknown:
        return "it reads a from_json without a schema, whose fields are known when its flow has run"
    return (
        "its function looks at rows, and there may be none yet"
        if _reads_rows(found, key)
        else "its data is not there yet, or cannot be read"
    )


def _notice_text(error: LakeletError, reason: str) -> str:
    facts = error.what + (f": {error.why.splitlines()[0]}" if error.why else "")
    return f"{error.dataset} is not checked; only an update can check it: {reason} ({facts})"


_READING = frozenset({"table", "read", "read_stream", "readStream"})
_STRAIGHT = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_MAYBE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def missing_later(flow: Flow, error: BaseException, opened: Callable[[str], object]) -> list[LakeletError]:
    """Return an error for each unknown table that the function of a flow names behind the line at which it raised `error`.

    Only names that stand there as text, on lines that would have run whatever the data is. `opened` reads a table.
    """
    found: list[LakeletError] = []
    known = {error.name} if isinstance(error, MissingTable) else set()
    for name, where in _names(flow, error):
        try:
            if name not in known:
                opened(name)
        except MissingTable as missing:
            if missing.code != "UNKNOWN_DATASET":
                continue  # the table that the function writes, which no update has created yet
            missing.where = pointed(where, name.rsplit(".", 1)[-1].strip("`"))
            found.append(missing)
        except Exception:  # what else is wrong with the table is reported where it is read
            pass
        known.add(name)
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


__all__ = ["Unusable", "fails_alone", "missing_later", "refused", "unchecked"]
