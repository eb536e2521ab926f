"""Editor support for pipeline code: types of `dlt`, `pyspark.pipelines`, `spark`, `dbutils` and `display` in a project.

Writes stubs and settings of type checkers into a project. Lakelet's own files are replaced by those of this version, no others. The stubs
of `dlt` and `pyspark.pipelines` have the types, defaults and docstrings of the functions behind these modules.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lakelet.base import VERSION
from lakelet.base.errors import LakeletError
from lakelet.config.tool_settings import tomllib
from lakelet.files.durable import write_atomically
from lakelet.language import api, argument_types

_STUBS = Path(__file__).with_name("stubs")
"""Folder with the stubs of what has no functions of its own here, laid out as type checkers read them."""

TYPINGS = "typings"
_OWN = "# Written by lakelet "
_PYRIGHT = {"reportMissingModuleSource": "none", "reportWildcardImportFromLibrary": "none"}
_MYPY = {"mypy_path": TYPINGS, "plugins": "lakelet.project.editor.mypy_plugin"}
_MYPY_FILES = ("mypy.ini", ".mypy.ini")
_PYRIGHT_FILE = "pyrightconfig.json"


def write_settings(root: Path) -> list[Path]:
    """Make type checkers find the stubs in the project at `root`; return the files that were written, in order.

    The stubs go to `typings/`, where Pylance and pyright look by themselves. What else they and mypy need is added to `pyproject.toml`
    where there is one without a table for the checker. A repeated call writes nothing, unless Lakelet's version is different.
    Raises USAGE if there is no such folder, STORAGE_FAILED where the disk refuses.
    """
    if not root.is_dir():
        raise LakeletError("USAGE", f"{root} is not a folder", todo="Name the folder of the project.")
    written = [target for path, text in sorted(stubs().items()) if (target := _written_stub(root / TYPINGS / path, text)) is not None]
    project = root / "pyproject.toml"
    if project.is_file() and (tables := _missing_tables(root, project)):
        text = project.read_text(encoding="utf-8")
        write_atomically(project.resolve(), f"{text.rstrip()}\n{tables}")  # a link stays one
        written.append(project)
    return written


def stubs() -> dict[str, str]:
    """Return the text of each stub by its path below `typings/`, as type checkers look for it."""
    kept = {source.relative_to(_STUBS).as_posix(): source.read_text(encoding="utf-8") for source in _STUBS.rglob("*.pyi")}
    return {**kept, **generated_stubs()}


def _written_stub(target: Path, stub: str) -> Path | None:
    """Write a stub into the project; return its path, or None where it is up to date or the file is not Lakelet's."""
    text = f"{_OWN}{VERSION}. `lakelet init --editor` writes it again.\n{stub}"
    if target.exists() and (found := target.read_text(encoding="utf-8")) and (found == text or not found.startswith(_OWN)):
        return None
    write_atomically(target, text)
    return target


def _missing_tables(root: Path, project: Path) -> str:
    """TOML of the tables that the project's checkers lack. A checker that is set up elsewhere, or already, is left alone."""
    try:
        tools = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
    except tomllib.TOMLDecodeError:
        return ""
    tables = []
    if "pyright" not in tools and "basedpyright" not in tools and not (root / _PYRIGHT_FILE).exists():
        tables.append(_toml_table("pyright", _PYRIGHT))
    if "mypy" not in tools and not any((root / name).exists() for name in _MYPY_FILES):
        tables.append(_toml_table("mypy", _MYPY))
    return "".join(tables)


def _toml_table(name: str, values: dict[str, str]) -> str:
    return f"\n[tool.{name}]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items())


_INDENT = "    "
_DECORATED = "F | "
"""How the type of the first argument begins where a decorator is also written without parentheses."""


def generated_stubs() -> dict[str, str]:
    """Return the text of each stub by its path below the folder of stubs."""
    return {
        "dlt/__init__.pyi": _stub_of_module("import dlt", api.DLT),
        "pyspark/pipelines/__init__.pyi": _stub_of_module("from pyspark import pipelines", api.DP),
    }


def _stub_of_module(statement: str, names: Mapping[str, Any]) -> str:
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
        code = (
            [f"{name} = {seen[function]}\n"] if function in seen else [private(code) + text for code, text in _definitions(name, function)]
        )
        parts += code
        seen.setdefault(function, name)
    return "\n".join([*head, "", *parts])


def _definitions(name: str, function: Any) -> Iterator[tuple[str, str]]:
    """The definitions of a function, each as its signature and its body: two for a decorator that is written without parentheses too."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and str(parameters[0].annotation).startswith(_DECORATED):
        first, *others = parameters
        yield f"@overload\ndef {name}({first.name}: F, *args: Any, **kwargs: Any) -> F:", " ...\n"
        called = first.replace(annotation=first.annotation.removeprefix(_DECORATED))
        gives = signature.return_annotation.removeprefix(_DECORATED)
        signature = signature.replace(parameters=[called, *others], return_annotation=gives)
        yield f"@overload\n{_signature_text(name, signature)}", _documentation(function)
    else:
        yield _signature_text(name, signature), _documentation(function)


def _signature_text(name: str, signature: inspect.Signature) -> str:
    lines = []
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and "*" not in lines:
            lines.append("*")
        lines.append(f"{one.name}: {one.annotation}" + ("" if one.default is one.empty else f" = {one.default!r}"))
    arguments = "".join(f"\n{_INDENT}{line}," for line in lines) + ("\n" if lines else "")
    return f"def {name}({arguments}) -> {signature.return_annotation}:"


def _documentation(function: Any) -> str:
    return "\n" + textwrap.indent(f'"""{inspect.getdoc(function)}\n"""', _INDENT) + "\n"
