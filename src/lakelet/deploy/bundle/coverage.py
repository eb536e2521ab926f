"""Whether everything that a pipeline uses here is uploaded, and is found by Databricks as it is found here.

Databricks has none of Lakelet but a copy of the transformation library in the project; other imports of it are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakelet.base import VERSION
from lakelet.base.errors import LakeletError, Location
from lakelet.config.yaml_tree import Problems, Remark, shown_path
from lakelet.deploy.bundle.imports import (
    ModuleFiles,
    ModuleImport,
    SourceFacts,
    distribution_of,
    files_of_import,
    forget,
    installed_by,
    is_installed,
    is_provided,
    projects_of,
    source_facts,
)
from lakelet.deploy.bundle.paths import PipelineSources
from lakelet.deploy.bundle.uploads import SyncedFiles, is_notebook
from lakelet.deploy.desired_state import ResourceKey
from lakelet.language.notebook.cells import notebook_file
from lakelet.scaffold import LIBRARY, outdated

CODE = "FILE_NOT_COVERED"
_DATA = (".yml", ".yaml", ".sql", ".json", ".csv", ".txt", ".toml")
_DECLARES = {
    ".py": re.compile(r"^\s*(@(dlt|dp|sdp)\.|import\s+dlt\b|from\s+dlt\b|from\s+pyspark\s+import\s+.*\bpipelines\b)", re.MULTILINE),
    ".sql": re.compile(r"\bCREATE\s+(OR\s+\w+\s+)?((STREAMING|LIVE)\s+(LIVE\s+)?TABLE|MATERIALIZED\s+VIEW|FLOW)\b", re.IGNORECASE),
}
_APART = frozenset(
    ("test", "tests", "example", "examples", "docs", "doc", "explorations", "scratch", "benchmarks", "templates", "fixtures", "conformance")
)
"""Folders whose code is not meant to run in the pipelines of the bundle."""


@dataclass(frozen=True)
class BundleFolder:
    """Where a bundle lies and what of it is uploaded. `cwd`: files in messages are named relative to it."""

    root: Path
    base: Path
    uploaded: frozenset[Path]
    starts: tuple[Path, ...]
    cwd: Path

    @classmethod
    def of(cls, root: Path, synced: SyncedFiles, cwd: Path) -> BundleFolder:
        return cls(root, synced.base, frozenset(synced.files), synced.starts, cwd)

    def shown(self, file: Path) -> str:
        return shown_path(file, self.cwd)

    def below(self, file: Path) -> str:
        """The file as bundle files name it."""
        return file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else str(file)

    def todo(self, file: Path) -> str:
        """How to have a file uploaded."""
        if not file.is_relative_to(self.base):
            return f"Put its folder into sync.paths, or move it below {self.root}."
        if not any(file.is_relative_to(start) for start in self.starts):
            return f"Add its folder to sync.paths: - {self.below(file.parent)}"
        return f"Add it to the bundle: sync: {{include: [{self.below(file)}]}}; or take it out of sync.exclude and .gitignore."


def check_coverage(
    pipelines: Mapping[ResourceKey, PipelineSources], project: BundleFolder, used_by_jobs: Iterable[Path], problems: Problems
) -> list[Remark]:
    """Note each file that a pipeline needs and that is not uploaded or not found by Databricks; return remarks.

    Args:
        pipelines: what each takes from this machine.
        used_by_jobs: files that tasks of jobs run.
    """
    forget()
    remarks: list[Remark] = []
    covered, missing = set(used_by_jobs), set[Path]()
    for key, sources in pipelines.items():
        walk = _Walk(key, sources, project, problems, remarks, missing)
        walk.run()
        covered |= walk.seen
    if pipelines and not problems:  # with libraries that are wrong, everything else would be uncovered
        for file in sorted(project.uploaded - covered):
            if _declares(file, project):
                what = f"{project.shown(file)} declares datasets, and no pipeline of the bundle has it in its libraries"
                todo = f"Cover it: libraries: [{{file: {{path: {project.below(file)}}}}}] or a glob; or leave it out: sync.exclude."
                problems.add(LakeletError(CODE, what, where=Location(project.shown(file), 1), todo=todo))
    return remarks


def _declares(file: Path, project: BundleFolder) -> bool:
    """Whether a file declares datasets and lies where one would expect it to run."""
    pattern = _DECLARES.get(file.suffix)
    if pattern is None or file.name.startswith("test_") or file.name.endswith("_test.py") or file.name == "conftest.py":
        return False
    if _APART & set(file.relative_to(project.base).parts[:-1]):
        return False
    text = file.read_text(encoding="utf-8", errors="replace")
    return pattern.search(text) is not None and not (file.suffix == ".py" and "@" not in text)


@dataclass
class _Walk:
    """The files of one pipeline, from its sources along their imports. `missing`: those that have been noted, each once."""

    key: ResourceKey
    sources: PipelineSources
    project: BundleFolder
    problems: Problems
    remarks: list[Remark]
    missing: set[Path]
    seen: set[Path] = field(default_factory=set)
    _unreachable: list[LakeletError] = field(default_factory=list)
    _reported: set[str] = field(default_factory=set)
    _roots: dict[Path, list[Path]] = field(default_factory=dict)
    _moves_path: bool = False
    _installs_lakelet: bool = False
    _needs_lakelet: list[LakeletError] = field(default_factory=list)

    def run(self) -> None:
        self._installed = installed_by(self.sources.requirements)
        projects = projects_of(self.sources.requirements)
        self._import_path = [*([self.sources.root] if self.sources.root else []), *projects, *(one / "src" for one in projects)]
        for node in self.sources.requirements:
            if PACKAGE in installed_by([node]):
                self.problems.add(installs_lakelet(node.text, node.where))
        for file in self.sources.files:
            self._upload(file, None, f"a source of {self.key}")
        waiting = list(reversed(self.sources.files))
        while waiting:
            file = waiting.pop()
            if file not in self.seen:
                self.seen.add(file)
                waiting += self._needs(file)
        unsure = self._moves_path or self.sources.root_elsewhere
        for error in self._unreachable:
            if unsure:
                self.remarks.append((f"only here, unless sys.path is extended there too: {error.what}", error.where or Location("", 0)))
            else:
                self.problems.add(error)
        for error in self._needs_lakelet:
            if unsure or self._installs_lakelet:
                self.remarks.append((f"only here, unless something else puts it there: {error.what}", error.where or Location("", 0)))
            else:
                self.problems.add(error)

    def _needs(self, file: Path) -> Iterator[Path]:
        """The local files that a file needs, each noted if it is not uploaded."""
        found = source_facts(file)
        self._moves_path = self._moves_path or found.changes_path
        self._installs_lakelet = self._installs_lakelet or found.installs_lakelet
        for name, line, cell in found.notebooks:
            yield from self._notebook(file, name, self._where(file, line, cell))
        for one in found.imports:
            if is_of_lakelet(one) and self._of_runtime(file, one):
                continue
            place = files_of_import(one, file, self._local_roots(file))
            if place is not None and all(part.is_relative_to(self.project.base) for part in place.files):
                yield from self._module(file, one, place)
            elif place is not None:
                self._outside(file, one, place)
            elif not one.level:
                self._package(file, one)
        if found.uses_file and file not in self.sources.files and file in self.project.uploaded:
            self._data_beside(file, found)

    def _local_roots(self, file: Path) -> list[Path]:
        """Folders in which a local run finds modules, those of Databricks first."""
        if file.parent not in self._roots:
            self._roots[file.parent] = self._roots_of(file)
        return self._roots[file.parent]

    def _roots_of(self, file: Path) -> list[Path]:
        root = self.project.root
        above = [folder for folder in file.parents if folder.is_relative_to(root)]
        beside = [folder.parent for folder in file.parents if folder.name == "transformations"]
        of_sources = [source.parent for source in self.sources.files]
        return list(dict.fromkeys([*self._import_path, root, root / "src", *above, *beside, *of_sources]))

    def _where(self, file: Path, line: int, cell: int | None = None) -> Location:
        return Location(self.project.shown(file), line, cell=cell)

    def _upload(self, file: Path, where: Location | None, how: str) -> None:
        if file not in self.project.uploaded and file not in self.missing:
            self.missing.add(file)
            what = f"{self.project.shown(file)} is not uploaded, and is {how}"
            self.problems.add(LakeletError(CODE, what, where=where or self._where(file, 1), todo=self.project.todo(file)))

    def _module(self, file: Path, one: ModuleImport, place: ModuleFiles) -> Iterator[Path]:
        where = self._where(file, one.line, one.cell)
        for needed in place.files:
            if not one.optional:
                self._upload(needed, where, f"imported by {self.project.shown(file)}")
            if needed not in self.missing or one.top != PACKAGE:  # one file stands for all of the library
                yield needed
        if is_of_lakelet(one):
            self._copy(place.root)
        if one.level or one.optional or place.root in self._import_path:
            return
        if place.root == file.parent:
            if not is_notebook(file) and one.top not in self._reported:
                self._reported.add(one.top)
                text = f"{one} is imported from the file's own folder, which Databricks does not promise; root_path: is on its import path"
                self.remarks.append((text, where))
            return
        what = f"{self.project.shown(file)} imports {one}, which Databricks does not find: {self._searched()}"
        todo = f"Add it to the pipeline: root_path: {self.project.below(place.root)} (relative to its YAML file)"
        self._unreachable.append(LakeletError(CODE, what, where=where, todo=todo))

    def _searched(self) -> str:
        if self.sources.root is None:
            return f"{self.key} has no root_path"
        return f"the root_path of {self.key} is {self.project.shown(self.sources.root)}"

    def _outside(self, file: Path, one: ModuleImport, place: ModuleFiles) -> None:
        first = next(part for part in place.files if not part.is_relative_to(self.project.base))
        what = f"{self.project.shown(file)} imports {one} from {first}, which lies outside of what is deployed"
        self.problems.add(LakeletError(CODE, what, where=self._where(file, one.line, one.cell), todo=self.project.todo(first)))

    def _package(self, file: Path, one: ModuleImport) -> None:
        """An import of somebody else's package, which the runtime or the environment should have."""
        if is_provided(one.top) or is_installed(one.top, self._installed) or one.optional or one.top in self._reported:
            return
        self._reported.add(one.top)
        if one.top == PACKAGE:
            self._needs_lakelet.append(self._without_copy(file, one))
            return
        name = distribution_of(one.top)
        text = f"{one.top} is imported, and environment.dependencies of {self.key} do not name it; add: - {name}"
        self.remarks.append((text, self._where(file, one.line, one.cell)))

    def _of_runtime(self, file: Path, one: ModuleImport) -> bool:
        """Note each name of an import that is Lakelet's own; return whether there is any."""
        where, names = self._where(file, one.line, one.cell), [*beyond_library(one)]
        self._needs_lakelet += [needs_runtime(self.project.shown(file), name, where) for name in names]
        return bool(names)

    def _without_copy(self, file: Path, one: ModuleImport) -> LakeletError:
        root = self.sources.root or self.project.root
        folder = root / LIBRARY
        covered = any(folder.is_relative_to(start) for start in self.project.starts)
        sync = "" if covered else self.project.below(folder)
        return needs_copy(self.project.shown(file), self._argument(root), sync, self._where(file, one.line, one.cell))

    def _copy(self, root: Path) -> None:
        """Remark on a copy of the library that is not the installed one, once."""
        copy = root / LIBRARY
        if str(copy) not in self._reported and copy.is_dir():
            self._reported.add(str(copy))
            text = age_of_copy(root, self.project.shown(copy), self._argument(root))
            if text:
                self.remarks.append((text, Location(self.project.shown(copy / "__init__.py"), 1)))

    def _argument(self, root: Path) -> str:
        """The folder as `lakelet new transforms` takes it; "" for its default, the project's."""
        return "" if root == self.project.root else self.project.shown(root)

    def _notebook(self, file: Path, name: str, where: Location) -> Iterator[Path]:
        hit = notebook_file(file, name)
        if hit is not None:
            self._upload(hit.resolve(), where, f"run by {self.project.shown(file)}")
            yield hit.resolve()

    def _data_beside(self, file: Path, found: SourceFacts) -> None:
        """A module that reads files beside itself, as a folder of rules does, needs them there, too."""
        line = next((one.line for one in found.imports), 1)
        for beside in sorted(file.parent.iterdir()):
            if beside.suffix in _DATA and beside.is_file():
                self._upload(beside, self._where(file, line), f"beside {self.project.shown(file)}, which looks for files in its folder")


PACKAGE = "lakelet"
_TRANSFORMS = f"{PACKAGE}.{LIBRARY.name}"
_WHY = "Databricks has no Lakelet, and installing it there would replace Databricks' own Spark"


def is_of_lakelet(one: ModuleImport) -> bool:
    """Whether a file that has no Lakelet fails at this import."""
    return one.top == PACKAGE and not one.level and not one.optional


def beyond_library(one: ModuleImport) -> Iterator[str]:
    """Names of modules and objects of Lakelet that the import needs and that are not of the library."""
    if one.module == PACKAGE and one.names:
        yield from (f"{PACKAGE}.{name}" for name in one.names if name != LIBRARY.name)
    elif one.module != _TRANSFORMS and not one.module.startswith(f"{_TRANSFORMS}."):
        yield one.module


def needs_runtime(file: str, name: str, where: Location) -> LakeletError:
    """The error for an import of Lakelet itself."""
    what = f"{file} imports {name}, which Databricks does not have"
    return LakeletError(
        "DEPLOY_NEEDS_LAKELET",
        what,
        where=where,
        why=_WHY,
        todo="Take the import out of what is deployed, or let the code go on without it: try: … except ImportError: …",
    )


def needs_copy(file: str, folder: str, sync: str, where: Location) -> LakeletError:
    """The error for an import of the library where no copy is deployed.

    Args:
        folder: argument of the command that writes the copy; "" for the project's folder.
        sync: what has to be in `sync.paths` besides; "" for nothing.
    """
    what = f"{file} imports {_TRANSFORMS}, and the files of the deployment have no copy of it"
    besides = f", and add its folder to sync.paths (- {sync})" if sync else ""
    argument = f" {folder}" if folder else ""
    return LakeletError(
        "DEPLOY_NEEDS_LAKELET",
        what,
        where=where,
        why=_WHY,
        todo=f"Write a copy into the project{besides}: lakelet new transforms{argument}",
    )


def installs_lakelet(requirement: str, where: Location) -> LakeletError:
    """The error for a line of an environment that installs Lakelet."""
    return LakeletError(
        "DEPLOY_NEEDS_LAKELET",
        f"environment.dependencies: {requirement} installs Lakelet on Databricks",
        where=where,
        why="pip would replace Databricks' own Spark with the pyspark that Lakelet needs",
        todo="Take it out. For lakelet.transforms deploy a copy: lakelet new transforms",
    )


def age_of_copy(root: Path, shown: str, folder: str) -> str:
    """A sentence about a copy below `root` that is not the installed library; "" where it is.

    Args:
        shown: the copy's folder in messages.
        folder: as in `needs_copy`.
    """
    found = outdated(root)
    if not found:
        return ""
    names = ", ".join(file.path.name for file in found[:3]) + (" …" if len(found) > 3 else "")
    renew = f"lakelet new transforms {folder}".rstrip()
    return (
        f"{shown} is not the library of the installed Lakelet {VERSION} ({names}): local runs use the installed one, Databricks the copy;"
        f" to renew the copy: {renew} --overwrite"
    )
