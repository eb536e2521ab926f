"""A mypy plugin that defines `spark`, `dbutils`, `display` and the like in every file, as in a pipeline's source files.

    [tool.mypy]
    mypy_path = "typings"
    plugins = "lakelet.project.editor.mypy_plugin"

Pylance and pyright read `__builtins__.pyi` by themselves; mypy does not: each file gets an import of those that it does not define.
"""

from __future__ import annotations

from collections.abc import Iterator

from mypy.nodes import AssignmentStmt, ClassDef, FuncDef, Import, ImportFrom, MypyFile, NameExpr, Statement
from mypy.plugin import Plugin

NAMES = ("spark", "sc", "dbutils", "display", "displayHTML", "getArgument", "sql", "table", "udf", "sqlContext")
_STUB = "__builtins__"
_IMPORTED = 10  # mypy's priority of a plain import at the top of a file


class PipelineNames(Plugin):
    """Adds the injected names to every source file that mypy reads itself."""

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Import the missing names into the file, and have mypy read their stub first."""
        if file.is_stub or "site-packages" in file.path:
            return []
        defined = {name for statement in file.defs for name in _names(statement)}
        missing: list[tuple[str, str | None]] = [(name, None) for name in NAMES if name not in defined]
        if not missing:
            return []
        statement = ImportFrom(_STUB, 0, missing)
        statement.set_line(1, 0)
        statement.is_top_level = True
        file.defs.insert(0, statement)
        file.imports.append(statement)
        return [(_IMPORTED, _STUB, 1)]


def _names(statement: Statement) -> Iterator[str]:
    """The names that a statement at the top of a file defines."""
    if isinstance(statement, AssignmentStmt):
        yield from (target.name for target in statement.lvalues if isinstance(target, NameExpr))
    elif isinstance(statement, FuncDef | ClassDef):
        yield statement.name
    elif isinstance(statement, Import):
        yield from ((alias or name).split(".")[0] for name, alias in statement.ids)
    elif isinstance(statement, ImportFrom):
        yield from (alias or name for name, alias in statement.names)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin class; mypy calls this with its version."""
    return PipelineNames
