"""Stubs of `dlt` and `pyspark.pipelines` for editors: the types, defaults and docstrings of the functions behind these modules."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from lakelet.language import api, argument_types

_INDENT = "    "
_DECORATED = "F | "
"""How the type of the first argument begins where a decorator is also written without parentheses."""


def generated_stubs() -> dict[str, str]:
    """Return the text of each stub by its path below the folder of stubs."""
    return {
        "dlt/__init__.pyi": _stub("import dlt", api.DLT),
        "pyspark/pipelines/__init__.pyi": _stub("from pyspark import pipelines", api.DP),
    }


def _stub(statement: str, names: Mapping[str, Any]) -> str:
    """A module: the types of the arguments, with private names, then each function, once where it has several names."""
    types = [one for one in ast.parse(inspect.getsource(argument_types)).body if isinstance(one, ast.Assign | ast.AnnAssign)]
    of_types = re.compile(rf"\b({'|'.join(ast.unparse(one.targets[0] if isinstance(one, ast.Assign) else one.target) for one in types)})\b")

    def private(code: str) -> str:
        return of_types.sub(r"_\1", code)

    head = (
        f'"""`{statement}`: everything that a pipeline on Databricks or Lakelet finds there."""',
        "from collections.abc import Callable, Mapping, Sequence",
        "from typing import Any, Literal, TypeAlias, TypeVar, overload",
        "from pyspark.sql import Column, DataFrame",
        "from pyspark.sql.types import StructType",
        *(private(ast.unparse(one)) for one in types),
    )
    seen: dict[Any, str] = {}
    parts = []
    for name, function in sorted(names.items(), key=lambda one: (one[0] != one[1].__name__, one[0])):
        code = [f"{name} = {seen[function]}\n"] if function in seen else [private(code) + text for code, text in _function(name, function)]
        parts += code
        seen.setdefault(function, name)
    return "\n".join([*head, "", *parts])


def _function(name: str, function: Any) -> Iterator[tuple[str, str]]:
    """The definitions of a function, each as its signature and its body: two for a decorator that is written without parentheses too."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and str(parameters[0].annotation).startswith(_DECORATED):
        first, *others = parameters
        yield f"@overload\ndef {name}({first.name}: F, *args: Any, **kwargs: Any) -> F:", " ...\n"
        called = first.replace(annotation=first.annotation.removeprefix(_DECORATED))
        gives = signature.return_annotation.removeprefix(_DECORATED)
        signature = signature.replace(parameters=[called, *others], return_annotation=gives)
        yield f"@overload\n{_head(name, signature)}", _documentation(function)
    else:
        yield _head(name, signature), _documentation(function)


def _head(name: str, signature: inspect.Signature) -> str:
    lines = []
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and "*" not in lines:
            lines.append("*")
        lines.append(f"{one.name}: {one.annotation}" + ("" if one.default is one.empty else f" = {one.default!r}"))
    arguments = "".join(f"\n{_INDENT}{line}," for line in lines) + ("\n" if lines else "")
    return f"def {name}({arguments}) -> {signature.return_annotation}:"


def _documentation(function: Any) -> str:
    return "\n" + textwrap.indent(f'"""{inspect.getdoc(function)}\n"""', _INDENT) + "\n"
