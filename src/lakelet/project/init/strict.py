"""Expressions that stop an update in ANSI mode and that older runtimes turned into NULL, as far as their text shows. No Spark."""

from __future__ import annotations

import ast
from collections.abc import Callable

from lakelet.language.sql_text.tokens import OpenToken, closing, tokens
from lakelet.project.init.sqltexts import SqlName

_FUNCTIONS = {
    "to_date": "try_to_date",
    "to_timestamp": "try_to_timestamp",
    "unix_timestamp": "try_to_timestamp",
    "to_unix_timestamp": "try_to_timestamp",
    "element_at": "try_element_at",
    "make_date": "try_make_timestamp",
    "make_timestamp": "try_make_timestamp",
    "mod": "try_mod",
    "pmod": "try_mod",
}
_NEVER_FAILS = frozenset({"string", "str", "stringtype", "varchar", "char", "binary", "binarytype", "variant"})
_COLUMNS = frozenset({"col", "column", "sum", "avg", "count", "max", "min", "lit"})

Constant = Callable[[ast.expr | None], str | None]


def strict_call(node: ast.expr, constant: Constant) -> str | None:
    """The function that gives NULL where this expression of Python would fail on a row; None for one that does not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mod):
        divided = _is_column(node.left) or _is_column(node.right)
        fixed = isinstance(node.right, ast.Constant)
        return ("try_divide" if isinstance(node.op, ast.Div) else "try_mod") if divided and not fixed else None
    if not isinstance(node, ast.Call):
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    if called in ("cast", "astype") and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return None if _kind(node.args[0], constant) in _NEVER_FAILS else "try_cast"
    return _FUNCTIONS.get(called) if node.args else None


def _kind(node: ast.expr, constant: Constant) -> str:
    """The name of the type that a cast is to, in lower case."""
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None
    return (constant(node) or name or "").lower().split("(")[0]


def _is_column(node: ast.expr) -> bool:
    """Whether a call in the expression makes a column."""
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return bool({one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls} & _COLUMNS)


def strict_texts(text: str) -> list[SqlName]:
    """The expressions of a text of SQL, each with the function that gives NULL (as `format`) and its character."""
    try:
        words = tokens(text)
    except OpenToken:
        return []
    found = []
    for at, word in enumerate(words):
        name, following = word.value.lower(), words[at + 1].upper if at + 1 < len(words) else ""
        if word.kind == "word" and following == "(" and (name == "cast" or name in _FUNCTIONS):
            end = closing(words, at + 1)
            kind = words[end - 1].value.lower() if name == "cast" and end < len(words) else ""
            whole = " ".join(text[word.start : words[min(end, len(words) - 1)].start + 1].split())
            found += [] if kind in _NEVER_FAILS else [SqlName(whole, word.start, _FUNCTIONS.get(name, "try_cast"))]
        elif word.value == "/" and at and following and not following[0].isdigit():
            found.append(SqlName(f"{words[at - 1].value} / {words[at + 1].value}", words[at - 1].start, "try_divide"))
    return found
