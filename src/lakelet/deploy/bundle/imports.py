"""Imports of source files: the local files that they load, and packages of other people. Nothing is executed.

Of a package is known whether Databricks' runtime brings it, and whether a pipeline's environment installs it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.packages import DISTRIBUTIONS, normalized
from lakelet.config.tool_settings import tomllib
from lakelet.config.yaml_tree import ConfigNode
from lakelet.deploy.bundle.paths import local_requirements
from lakelet.language.notebook.cells import PYTHON, PythonCode, packages, pieces_of, read_source, run_target


@dataclass(frozen=True)
class ModuleImport:
    """One import.

    Attributes:
        line, cell: where it is written.
        level: leading dots.
        names: what comes from the module.
        optional: the code goes on without it.
    """

    module: str
    line: int
    cell: int | None = None
    level: int = 0
    names: tuple[str, ...] = ()
    optional: bool = False

    def __str__(self) -> str:
        return "." * self.level + self.module

    @property
    def top(self) -> str:
        """The first part of the module's name."""
        return self.module.partition(".")[0]


@dataclass(frozen=True)
class SourceFacts:
    """Facts about one source file.

    Attributes:
        imports: of the whole file, those in functions included, those for type checking not.
        notebooks: what `%run` names, with the line and cell.
        uses_file: the file looks for others beside itself (`__file__`).
        changes_path: it adds to `sys.path`.
        installs_lakelet: it is a notebook that installs Lakelet by `%pip`.
    """

    imports: tuple[ModuleImport, ...] = ()
    notebooks: tuple[tuple[str, int, int | None], ...] = ()
    uses_file: bool = False
    changes_path: bool = False
    installs_lakelet: bool = False


def source_facts(file: Path) -> SourceFacts:
    """Read a Python file or notebook. SQL, and what cannot be parsed, imports nothing: running it reports the syntax error."""
    return _source_facts(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=8192)
def _source_facts(file: Path, changed: int) -> SourceFacts:
    try:
        source = read_source(file)
    except (LakeletError, SyntaxError):
        return SourceFacts()
    imports: list[ModuleImport] = []
    notebooks: list[tuple[str, int, int | None]] = []
    code: list[str] = []
    installs_lakelet = False
    for cell in source.own() if source.language == PYTHON else ():
        with suppress(SyntaxError, ValueError):
            for piece in pieces_of(source, cell, str(file)):
                if isinstance(piece, PythonCode):
                    code.append(piece.text)
                    imports += _imports(ast.parse(piece.numbered(cell)).body, cell.number, optional=False)
                elif piece.name == "run" and (path := run_target(piece.rest)[0]):
                    notebooks.append((path, cell.line + piece.line - 1, cell.number))
                elif piece.name == "pip":
                    installs_lakelet |= any(re.search(r"\blakelet\b", name) is not None for name in packages(piece.rest))
    uses_file, changes_path = (any(name in text for text in code) for name in ("__file__", "sys.path"))
    return SourceFacts(tuple(imports), tuple(notebooks), uses_file, changes_path, installs_lakelet)


def _imports(body: Sequence[ast.AST], cell: int | None, *, optional: bool) -> Iterator[ModuleImport]:
    for node in body:
        match node:
            case ast.Import():
                yield from (ModuleImport(alias.name, node.lineno, cell, optional=optional) for alias in node.names)
            case ast.ImportFrom():
                yield ModuleImport(node.module or "", node.lineno, cell, node.level, tuple(alias.name for alias in node.names), optional)
            case ast.Try():
                yield from _imports(node.body, cell, optional=optional or _goes_on_without(node))
                yield from _imports([*node.handlers, *node.orelse, *node.finalbody], cell, optional=optional)
            case ast.If() if "TYPE_CHECKING" in ast.dump(node.test):
                yield from _imports(node.orelse, cell, optional=optional)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str() as name), *_]):
                yield ModuleImport(name, node.lineno, cell, optional=optional)
            case _:
                yield from _imports(list(ast.iter_child_nodes(node)), cell, optional=optional)


def _goes_on_without(node: ast.Try) -> bool:
    """Whether the code goes on when an import in the block fails."""
    caught = " ".join(ast.dump(handler.type) if handler.type else "ImportError" for handler in node.handlers)
    return any(name in caught for name in ("ImportError", "ModuleNotFoundError", "'Exception'"))


@dataclass(frozen=True)
class ModuleFiles:
    """Where an import is found: the folder that it is searched from, and the files that it loads."""

    root: Path
    files: tuple[Path, ...]


def files_of_import(one: ModuleImport, importer: Path, roots: Sequence[Path]) -> ModuleFiles | None:
    """The local files of an import; None for one that no root has.

    Args:
        importer: the file that holds it.
        roots: folders that modules are searched in, in order.
    """
    if one.level:
        base = importer.parents[one.level - 1] if one.level <= len(importer.parents) else importer.parent
        files = _files_of_module(base, [part for part in one.module.split(".") if part], one.names)
        return ModuleFiles(base, files) if files is not None else None
    parts = one.module.split(".")
    for root in roots:
        if _has_module(root, parts[0]):
            files = _files_of_module(root, parts, one.names)
            if files is not None:
                return ModuleFiles(root, files)
    return None


def _has_module(folder: Path, name: str) -> bool:
    return _is_file(folder / f"{name}.py") or _is_package(folder / name)


def _files_of_module(root: Path, parts: Sequence[str], names: Sequence[str]) -> tuple[Path, ...] | None:
    """The files that importing `names` from a module loads; None if there is no such module below the root."""
    found: list[Path] = []
    folder = root
    for at, part in enumerate(parts):
        module = folder / f"{part}.py"
        if _is_package(folder / part):
            folder = folder / part
            found += [folder / "__init__.py"] if _is_file(folder / "__init__.py") else []
        elif _is_file(module):
            return (*found, module) if at == len(parts) - 1 else None
        else:
            return None
    for name in names:
        if _is_file(folder / f"{name}.py"):
            found.append(folder / f"{name}.py")
        elif name != "*" and _is_file(folder / name / "__init__.py"):
            found.append(folder / name / "__init__.py")
    return tuple(found)


@lru_cache(maxsize=16384)
def _is_file(path: Path) -> bool:
    return path.is_file()


@lru_cache(maxsize=16384)
def _is_package(folder: Path) -> bool:
    return folder.is_dir() and (_is_file(folder / "__init__.py") or any(folder.glob("*.py")) or any(folder.glob("*/*.py")))


def forget() -> None:
    """Look at the files again: they may have changed since the last deployment of this process."""
    _is_file.cache_clear()
    _is_package.cache_clear()


_RUNTIME = frozenset(
    (
        *("IPython", "azure", "boto3", "botocore", "cachetools", "certifi", "cffi", "chardet", "charset_normalizer", "click"),
        *("cloudpickle", "cryptography", "cycler", "databricks", "dateutil", "dbruntime", "debugpy", "decorator", "delta", "dlt"),
        *("fastapi", "filelock", "fsspec", "git", "google", "grpc", "httplib2", "idna", "importlib_metadata", "ipykernel"),
        *("ipywidgets", "jinja2", "jmespath", "joblib", "kiwisolver", "markupsafe", "matplotlib", "mlflow", "numpy", "oauthlib"),
        *("packaging", "pandas", "patsy", "pexpect", "PIL", "pip", "pkg_resources", "platformdirs", "plotly", "prompt_toolkit"),
        *("protobuf", "psutil", "psycopg2", "py4j", "pyarrow", "pydantic", "pydantic_core", "pygments", "pyodbc", "pyparsing"),
        *("pyspark", "pytz", "requests", "s3transfer", "scipy", "seaborn", "setuptools", "six", "sklearn", "sqlparse"),
        *("statsmodels", "tenacity", "threadpoolctl", "tornado", "traitlets", "typing_extensions", "urllib3", "virtualenv"),
        *("wheel", "zipp"),
    )
)
"""Packages by their import names that the runtime has."""

_PACKAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_provided(module: str) -> bool:
    """Whether a top-level module comes with Python or with Databricks' runtime."""
    return module in sys.stdlib_module_names or module in _RUNTIME


def distribution_of(module: str) -> str:
    """The name that a top-level module probably has on the package index."""
    return DISTRIBUTIONS[module].lower() if module in DISTRIBUTIONS else module.replace("_", "-")


def installed_by(requirements: Iterable[ConfigNode]) -> frozenset[str]:
    """Normalized names of what lines for pip install; local files of requirements and local projects are read."""
    return frozenset(name for node in requirements for name in _installed_names(node))


def is_installed(module: str, installed: frozenset[str]) -> bool:
    """Whether one of the installed packages has the module, going by its name."""
    return bool({normalized(distribution_of(module)), normalized(module)} & installed) or any(
        name.startswith(normalized(module) + "-") for name in installed
    )


def projects_of(requirements: Iterable[ConfigNode]) -> list[Path]:
    """Folders of local projects that lines for pip install."""
    return [local.path for node in requirements for local in local_requirements(node) if local.path.is_dir()]


def _installed_names(node: ConfigNode) -> Iterator[str]:
    local = next(local_requirements(node), None)
    if local is None:
        yield from _package_of_line(node.text)
    elif local.path.is_dir():
        yield from _names_of_project(local.path)
    elif local.path.suffix == ".txt" and local.path.is_file():
        for line in local.path.read_text(encoding="utf-8", errors="replace").splitlines():
            yield from _package_of_line(line)
    else:
        yield normalized(local.path.name.split("-", 1)[0])


def _package_of_line(line: str) -> Iterator[str]:
    """The package that a line installs; nothing for an option or a comment."""
    text = line.strip()
    if text.endswith(".whl") or ".whl" in text.partition("@")[2]:
        yield normalized(text.rpartition("/")[2].split("-", 1)[0])
    elif (match := _PACKAGE_NAME.match(text)) is not None:
        yield normalized(match.group())


def _names_of_project(folder: Path) -> Iterator[str]:
    file = folder / "pyproject.toml"
    if not file.is_file():
        return
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    except tomllib.TOMLDecodeError:
        return
    for line in [project.get("name", ""), *project.get("dependencies", [])]:
        yield from _package_of_line(line)
