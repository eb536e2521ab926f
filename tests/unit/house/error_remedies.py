"""The remedies that the errors of each code name, read from the source code of Lakelet."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from tests.paths import ROOT

MOST = 3
"""Of a code that is raised in many places, only the reader of an error can be told what to do."""


@cache
def remedies() -> dict[str, tuple[str, ...]]:
    """By code the different texts of `todo`, what an error fills in as `…`; of at most `MOST` texts each."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for path in sorted((ROOT / "src" / "lakelet").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                for code, text in _said(call):
                    found[code][text] = None
    return {code: tuple(texts) for code, texts in found.items() if len(texts) <= MOST}


def _said(call: ast.Call) -> Iterator[tuple[str, str]]:
    """(code, text) of a call that makes an error."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    code = call.args[0] if call.args else given.get("code")
    if isinstance(code, ast.Constant) and isinstance(code.value, str) and code.value.isupper() and "todo" in given:
        yield from ((code.value, text.strip()) for text in _texts(given["todo"]) if not text.startswith("…"))


def _texts(node: ast.expr) -> list[str]:
    """What an expression can be, as far as it is written there."""
    if isinstance(node, ast.IfExp):
        return _texts(node.body) + _texts(node.orelse)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [left + right for left in _texts(node.left) for right in _texts(node.right)]
    return []


__all__ = ["remedies"]
