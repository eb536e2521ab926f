"""The declaration in a source at which its run stopped, so that what stands behind it can run."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Mapping
from types import CodeType, ModuleType
from typing import Any

from lakelet.language import api
from lakelet.language.lost import root_name

_MODULES = frozenset({"dlt", "pyspark.pipelines", "databricks.pipelines"})
_USUAL = frozenset({"dlt", "dp"})
"""Names under which the language is imported: one that is missing is a declaration whose import was forgotten."""


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


__all__ = ["declaration_at"]
