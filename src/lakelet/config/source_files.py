"""Finding pipeline source files: files, folders and globs; which folders a search enters, and how far it goes.

A file named outright is always taken. A folder is searched for files that speak the pipeline language, and for those that call functions
of such files, or register functions of SQL, while they load; a glob takes every source file.

A search stays in its project: it does not enter folders that are projects of their own, nor hidden or generated ones, and follows no
symbolic link to a folder. What cannot be read, or vanishes meanwhile, is left out.
"""

from __future__ import annotations

import ast
import glob
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.bundle_files import BUNDLE_FILES, bundle_file
from lakelet.config.spark_pipeline_file import SPARK_FILES, spark_file

MOST_FILES = 20_000
"""How many files are searched in a folder that no project file marks."""

_GENERATED = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "spark-warehouse"})
_PREVIEW = "pipeline.yml"
_SETTINGS = "pyproject.toml"


@dataclass
class FolderWalk:
    """One search.

    Attributes:
        folder: where it begins.
        generated: whether folders that tools write are entered too.
        deep: whether folders below are entered at all; None: where the folder is no shared one, or marked as a project.
        most: the number of files after which it stops with NO_SOURCES; None for no limit.
        projects: the project files of folders that were not entered, in order.
    """

    folder: Path
    generated: bool = False
    deep: bool | None = None
    most: int | None = None
    projects: list[Path] = field(default_factory=list)

    def files(self, suffixes: Sequence[str]) -> Iterator[Path]:
        """The files with these suffixes, folder by folder."""
        seen = 0
        for folder, below, names in os.walk(self.folder):
            seen += len(names) + len(below)
            if self.most is not None and seen > self.most:
                raise self._too_large()
            here = Path(folder)
            project = project_file_in(here, names)
            if here == self.folder:
                self.deep = not is_shared(here) or project is not None if self.deep is None else self.deep
            elif project is not None:
                self.projects.append(project)
                below.clear()
                continue
            below[:] = sorted(name for name in below if self.deep and self._is_entered(name))
            kept = [name for name in sorted(names) if name.endswith(tuple(suffixes)) and not name.startswith(".")]
            yield from (path for name in kept if (path := here / name).is_file())

    def _is_entered(self, name: str) -> bool:
        return not name.startswith(".") and (self.generated or name not in _GENERATED)

    def _too_large(self) -> LakeletError:
        what = f"{self.folder} is not a project, and too large to search: it holds more than {self.most} files"
        return LakeletError("NO_SOURCES", what, todo=begin_a_project())


def is_generated(name: str) -> bool:
    """Whether tools write the folders of this name."""
    return name in _GENERATED


def begin_a_project() -> str:
    """What to do in a folder that is no project."""
    return "Go to the folder of a project, name its folder or source files behind the command, or begin a project: lakelet new project NAME"


def project_file_in(folder: Path, names: Sequence[str]) -> Path | None:
    """The project file of a folder that holds files of these names; None where it is no project."""
    known = set(names)
    if known & {*BUNDLE_FILES, *SPARK_FILES, _PREVIEW}:
        return bundle_file(folder) or spark_file(folder)
    return folder / _SETTINGS if _SETTINGS in known and has_settings(folder) else None


def has_settings(folder: Path) -> bool:
    """Whether the pyproject.toml of a folder has settings of Lakelet."""
    try:
        return "[tool.lakelet" in (folder / _SETTINGS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def shared_error(folder: Path) -> LakeletError:
    """The error for a command that would take a folder of many purposes for a project."""
    why = "Such a folder holds many things, so the folders below it were not searched."
    return LakeletError("NO_SOURCES", f"{folder} is not a project", why=why, todo=begin_a_project())


def is_shared(folder: Path) -> bool:
    """Whether the folder holds the files of many purposes: the root, the home folder, those above it, the temporary folder."""
    home, temporary = Path.home().resolve(), Path(tempfile.gettempdir()).resolve()
    return folder.resolve() in {home, *home.parents, temporary, Path("/tmp"), Path("/var/tmp")}


SUFFIXES = (".py", ".sql", ".ipynb")

_PYTHON_DECLARES = re.compile(
    r"^(# MAGIC )?[ \t]*(import\s+dlt\b|from\s+dlt\b|from\s+(pyspark|databricks)\s+import\s+.*\bpipelines\b"
    r"|(import|from)\s+(pyspark|databricks)\.pipelines\b"
    r"|@(dlt|dp)\.\w)",  # the import may stand in a notebook that is named by %run
    re.MULTILINE,
)
_SQL_DECLARES = re.compile(
    r"\bCREATE\s+(OR\s+(REFRESH|REPLACE)\s+)?(PRIVATE\s+|TEMPORARY\s+|TEMP\s+)?"
    r"(STREAMING\s+(LIVE\s+)?(TABLE|VIEW)|MATERIALIZED\s+VIEW|(INCREMENTAL\s+)?LIVE\s+(TABLE|VIEW)|FLOW|VIEW)\b"
    r"|\b(APPLY\s+CHANGES|AUTO\s+CDC)\s+(ONCE\s+)?INTO\b",
    re.IGNORECASE,
)
_SQL_NOTEBOOK = "-- Databricks notebook source"


def speaks_pipeline(file: Path) -> bool:
    """Whether the text imports `dlt` or `pyspark.pipelines`, decorates with them, or holds a pipeline statement of SQL."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    if file.suffix == ".ipynb":
        text = text.replace("\\n", "\n").replace('"', "\n")
        return bool(_PYTHON_DECLARES.search(text) or _SQL_DECLARES.search(text))
    python = file.suffix == ".py" and not text.lstrip("\ufeff \n").startswith(_SQL_NOTEBOOK)
    return bool((_PYTHON_DECLARES if python else _SQL_DECLARES).search(text))


def in_folder(folder: Path, walk: FolderWalk | None = None) -> list[Path]:
    """Files below `folder` that speak the pipeline language, sorted, without hidden and generated folders, other projects, tests."""
    files = all_in_folder(folder, walk)
    speaking = {file for file in files if speaks_pipeline(file)}
    modules = {name for file in speaking for name in _module_names(file.relative_to(folder))}
    return [file for file in files if file in speaking or (file.suffix == ".py" and _calls_declarations(file, modules))]


def all_in_folder(folder: Path, walk: FolderWalk | None = None) -> list[Path]:
    """All source files below `folder`, also those that declare nothing; the same are left out. `walk`: a search with a limit."""
    return sorted(file for file in (walk or FolderWalk(folder)).files(SUFFIXES) if not _is_test(file))


def _module_names(file: Path) -> set[str]:
    """Names under which code below the same folder may import the file: `a/b.py` is `a.b` or `b`."""
    parts = file.with_suffix("").parts
    return {".".join(parts[i:]) for i in range(len(parts))}


def _calls_declarations(file: Path, modules: set[str]) -> bool:
    """Whether the file calls, while it loads, something it imported from one of `modules`, or `dlt`, or registers a function of SQL.

    Factories declare datasets in the first way, files that use `dlt` without an import (decision 59) in the second;
    `spark.udf.register`, of the `spark` that source files get, serves their queries.
    What stands in a function or below `if __name__ == "__main__"` does not count: such a file may be a script.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    imported: set[str] = set()
    others, assigned = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            others |= {a.asname or a.name.split(".")[0] for a in node.names}
        if isinstance(node, ast.ImportFrom):
            imported |= {a.asname or a.name for a in node.names if {node.module, f"{node.module}.{a.name}"} & modules}
        elif isinstance(node, ast.Import):
            imported |= {a.asname or a.name.split(".")[0] for a in node.names if a.name in modules}
        elif isinstance(node, ast.Assign):
            assigned |= {name.id for name in node.targets if isinstance(name, ast.Name)}
    calls = list(_calls_at_load(tree.body))
    declaring = imported if "dlt" in others | assigned else {*imported, "dlt"}
    if any(_root_name(call.func) in declaring for call in calls):
        return True
    return "spark" not in assigned and any(ast.unparse(call.func).startswith("spark.udf.register") for call in calls)


def _calls_at_load(body: Iterable[ast.AST]) -> Iterator[ast.Call]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Call):
            yield node
        yield from _calls_at_load(ast.iter_child_nodes(node))


def _root_name(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def matching(pattern: str, base: Path) -> list[Path]:
    """Source files that match the glob `pattern`, relative to `base`, sorted. A trailing `**` or `/` means everything below.

    A pattern without wildcards names one file, which is taken whatever it is.
    """
    named = Path(os.path.normpath(base / pattern))
    if not is_glob(pattern) and named.is_file():
        return [named]
    if pattern.endswith("/"):
        pattern += "**"
    if pattern.endswith("**"):
        pattern += "/*"
    fixed = glob_base(pattern)
    start = Path(os.path.normpath(base / fixed))
    rest = str(Path(pattern).relative_to(fixed)) if fixed != "." else pattern
    hits = [Path(hit) for hit in glob.glob(f"{glob.escape(str(start))}/{rest}", recursive=True)]
    return [file for file in _source_files(hits, start) if file.name != "__init__.py" or speaks_pipeline(file)]


def is_glob(text: str) -> bool:
    """Whether the text holds wildcards."""
    return glob.has_magic(text)


def glob_base(pattern: str) -> str:
    """The leading folders of a glob that hold no wildcard: `a/b/*.py` → `a/b`."""
    fixed: list[str] = []
    for part in Path(pattern).parts:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return str(Path(*fixed)) if fixed else "."


def _source_files(paths: Iterable[Path], base: Path) -> list[Path]:
    return sorted({path for path in paths if path.suffix in SUFFIXES and path.is_file() and not _skipped(path, base)})


def _skipped(path: Path, base: Path) -> bool:
    below = path.relative_to(base).parts if path.is_relative_to(base) else path.parts[-1:]
    return any(is_generated(part) or (part.startswith(".") and part not in (".", "..")) for part in below)


def _is_test(file: Path) -> bool:
    return file.name.startswith("test_") or file.name.endswith("_test.py") or file.name == "conftest.py"
