"""Packages that the code imports and this environment does not have, and what may be said about installing them. No Spark, no network.

Anybody may register an unused name in a public index. So `pip install` is proposed only for names that are known to be distributions:
those of `lakelet.config.packages`, and those that the repository itself requires. A module that the repository holds is never one of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lakelet.config.packages import DISTRIBUTIONS, normalized
from lakelet.config.source_files import SUFFIXES, FolderWalk
from lakelet.config.tool_settings import tomllib
from lakelet.project.init.findings import CodeLocation, PackageImport

_PROVIDED = frozenset(
    {"dlt", "pyspark", "databricks.sdk.runtime", "databricks.pipelines", "databricks.connect", "delta", "py4j", "dbruntime"}
)
_READ = (*SUFFIXES, ".txt", ".toml", ".cfg", ".yml", ".yaml")
_REQUIRED = re.compile(r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?:(?:[=<>!~]=?|===).*)?$")
_PIP = re.compile(r"(?:%|!|\b)pip3?\s+install\s+(?P<rest>[^\n\"'&|;]+)")
_DEPENDENCIES = re.compile(r"^(?P<indent>\s*)(?:-\s+)?(?:dependencies|pypi|pip)\s*:\s*$")
_PACKAGE = re.compile(r"^\s*(?:-\s+)?package\s*:\s*[\"']?(?P<rest>[^\"'\s]+)")
_SETUP = re.compile(r"(?:install_requires|extras_require)\s*=\s*[\[{](?P<rest>.*?)[\]}]", re.DOTALL)
_QUOTED = re.compile(r"[\"']([^\"']+)[\"']")


@dataclass(frozen=True)
class MissingPackage:
    """A package that the code imports and this environment does not have. `package`: what to install, None where that is not known."""

    module: str
    package: str | None
    locations: tuple[CodeLocation, ...]

    @property
    def remedy(self) -> str:
        return f"pip install {self.package}" if self.package else "not found"


class RepositoryPackages:
    """What the folders of a repository hold and require."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    @cached_property
    def _files(self) -> Sequence[tuple[Path, Path]]:
        return [(folder, file) for folder in self._folders for file in FolderWalk(folder).files(_READ)]

    @cached_property
    def modules(self) -> frozenset[str]:
        """The names of all modules and folders of modules, wherever the code puts them on its path."""
        names: set[str] = set()
        for folder, file in self._files:
            if file.suffix == ".py":
                names |= {file.stem, *file.relative_to(folder).parts[:-1]}
        return frozenset(names)

    @cached_property
    def wheels(self) -> Mapping[str, Path]:
        """The wheels that lie in the repository, by the modules that they install."""
        found: dict[str, Path] = {}
        for folder in self._folders:
            for wheel in FolderWalk(folder, generated=True).files((".whl",)):
                try:
                    names = zipfile.ZipFile(wheel).namelist()
                except (OSError, zipfile.BadZipFile):
                    continue
                found |= {name.split("/")[0].removesuffix(".py"): wheel for name in names if not name.split("/")[0].endswith("-info")}
        return found

    @cached_property
    def required(self) -> frozenset[str]:
        """The distributions that the repository requires, normalized."""
        found: set[str] = set()
        for _, file in self._files:
            for line in _requirements(file):
                match = _REQUIRED.match(line.split(";")[0].split(" #")[0].strip().strip("\"',"))
                found |= {normalized(match["name"])} if match else set()
        return frozenset(found)

    def missing(self, imports: Iterable[PackageImport]) -> list[MissingPackage]:
        """The packages that are not installed and that the repository does not hold."""
        locations: dict[tuple[str, str | None], set[CodeLocation]] = {}
        for one in imports:
            if one.guarded or not (absent := _absent(one.module)) or one.module.split(".")[0] in self.modules:
                continue
            locations.setdefault((absent, self._package(one.module, absent)), set()).add(one.location)
        return [MissingPackage(module, package, tuple(sorted(found))) for (module, package), found in sorted(locations.items(), key=str)]

    def _package(self, module: str, absent: str) -> str | None:
        wheel = self.wheels.get(module.split(".")[0])
        if wheel is not None:
            return os.path.relpath(wheel, self._folders[0])
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            if name in DISTRIBUTIONS:
                return DISTRIBUTIONS[name]
            if normalized(name) in self.required:
                return normalized(name)
        return None


def _absent(module: str) -> str | None:
    """The part of a module's name that is not installed; None where all is there."""
    first, *more = module.split(".")
    if first in sys.stdlib_module_names or {first, module} & _PROVIDED or module.startswith("databricks.sdk.runtime"):
        return None
    try:
        found = importlib.util.find_spec(first)
        if found is None:
            return first if first != "databricks" or not more else f"databricks.{more[0]}"
        shared = found.origin is None or first == "databricks"  # several distributions put modules into it
        if shared and more and importlib.util.find_spec(f"{first}.{more[0]}") is None:
            return f"{first}.{more[0]}"
    except (ImportError, ValueError):
        return first
    return None


# ------------------------------------------------------------------------------------------- what a repository requires


def _requirements(file: Path) -> Iterator[str]:
    """The requirements that a file states, as lines for pip."""
    text = _text(file)
    if file.suffix == ".txt" and file.name.startswith("requirements"):
        yield from (line for line in text.splitlines() if not line.startswith(("-", "#")))
    elif file.name == "pyproject.toml":
        yield from _of_toml(text)
    elif file.name in ("setup.py", "setup.cfg"):
        yield from (line for found in _SETUP.finditer(text) for line in _QUOTED.findall(found["rest"]))
    elif file.suffix in (".yml", ".yaml"):
        yield from _of_yaml(text)
    elif file.suffix in (".py", ".ipynb", ".sql"):
        yield from (word for found in _PIP.finditer(text) for word in found["rest"].replace("\\n", "").split() if not word.startswith("-"))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _of_toml(text: str) -> Iterator[str]:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    project = tree.get("project", {})
    optional, groups = project.get("optional-dependencies", {}), tree.get("dependency-groups", {})
    lists = [project.get("dependencies", []), *optional.values(), *groups.values()]
    yield from (line for one in lists for line in one if isinstance(line, str))
    poetry = tree.get("tool", {}).get("poetry", {})
    tables = [poetry, *poetry.get("group", {}).values()]
    yield from (name for table in tables for name, wanted in table.get("dependencies", {}).items() if isinstance(wanted, str))


def _of_yaml(text: str) -> Iterator[str]:
    """The items of lists called `dependencies`, and the packages of libraries; the file may be any."""
    indent: int | None = None
    for line in text.splitlines():
        package = _PACKAGE.match(line)
        if package:
            yield package["rest"]
        head = _DEPENDENCIES.match(line)
        if head:
            indent = len(head["indent"])
        elif indent is not None and line.strip():
            item = line.strip()
            if len(line) - len(line.lstrip()) < indent or not item.startswith("- "):
                indent = None
            else:
                yield item.removeprefix("- ").strip()
