"""Paths in resources: relative ones name local files, which lie below `workspace.file_path` in the workspace."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path
from types import MappingProxyType

from lakelet.base.errors import nearest_names
from lakelet.config.source_files import SUFFIXES, glob_base, is_glob, matching
from lakelet.config.yaml_tree import ConfigNode, Problems, changed, elements, names_beside, scalar, with_entries
from lakelet.deploy.bundle.uploads import is_notebook

_ABSOLUTE = re.compile(r"/|~|[A-Za-z][A-Za-z0-9+.-]*:")
_WHEEL = re.compile(r"(?P<path>.*\.whl)(\[[^\]]*\])?$")
_PIP_FOLDER = re.compile(r"(-e\s+|--editable[ =])(?P<path>\S+)$")
_PIP_FILE = re.compile(r"(-r\s+|--requirement[ =])(?P<path>\S+)$")

_FILES = (
    ("libraries", "*", "file", "path"),
    ("tasks", "*", "spark_python_task", "python_file"),
    ("tasks", "*", "sql_task", "file", "path"),
)
_NOTEBOOKS = (("libraries", "*", "notebook", "path"), ("tasks", "*", "notebook_task", "notebook_path"))
_PACKAGES = (
    ("libraries", "*", "whl"),
    ("libraries", "*", "jar"),
    ("tasks", "*", "libraries", "*", "whl"),
    ("tasks", "*", "libraries", "*", "jar"),
)
_GLOBS = (("libraries", "*", "glob", "include"),)
_FOLDERS = (("root_path",),)
_REQUIREMENTS = (("environment", "dependencies", "*"), ("environments", "*", "spec", "dependencies", "*"))
_LISTS = (("libraries",), ("tasks", "*", "libraries"), *(keys[:-1] for keys in _REQUIREMENTS))
"""Lists in which packages stand."""


@dataclass
class PipelineSources:
    """What a pipeline takes from the project, on this machine.

    Attributes:
        files: the source files of its libraries.
        root: folder of its `root_path`; None without one, or where it lies elsewhere in the workspace (`root_elsewhere`).
        requirements: its dependencies as they are written, local ones as absolute local paths.
    """

    files: list[Path] = field(default_factory=list)
    root: Path | None = None
    root_elsewhere: bool = False
    requirements: list[ConfigNode] = field(default_factory=list)


class WorkspacePaths:
    """Turns paths of resources into paths of the workspace, and back.

    Args:
        base: the local folder that lies at `file_path`.
        file_path: its absolute path in the workspace.
        built: files of artifacts, each with the file that is deployed instead of it.

    Attributes:
        packages: local wheels and jars that the resources name. They are uploaded even if `.gitignore` excludes them.
    """

    def __init__(self, base: Path, file_path: str, problems: Problems, built: Mapping[Path, Path] = MappingProxyType({})) -> None:
        self._base, self._file_path, self._problems, self._built = base, file_path, problems, built
        self.packages: set[Path] = set()

    def local(self, text: str) -> Path | None:
        """The local path of a path below `file_path`; None for any other."""
        if text != self._file_path and not text.startswith(self._file_path + "/"):
            return None
        return Path(os.path.normpath(self._base / text[len(self._file_path) :].lstrip("/")))

    def remote(self, local: Path, node: ConfigNode) -> str:
        """The path of a local file or folder in the workspace. A path outside of the deployed folder is noted as a problem."""
        if not local.is_relative_to(self._base):
            todo = "Put its folder into sync.paths, or move it into the bundle."
            self._problems.bad(node, f"{node.text} lies outside of the folder that is deployed, {self._base}", todo=todo)
            return node.text
        return posixpath.normpath(f"{self._file_path}/{local.relative_to(self._base).as_posix()}")

    def in_job(self, job: ConfigNode) -> tuple[ConfigNode, list[Path]]:
        """The job with its paths in the workspace, and the local files that it runs. Those of a Git repository are paths there."""
        sources = PipelineSources()
        return (job if job.get("git_source") is not None else self._translated(self._expanded(job), sources)), sources.files

    def in_pipeline(self, pipeline: ConfigNode) -> tuple[ConfigNode, PipelineSources]:
        """The pipeline with its paths in the workspace, and what it takes from this machine."""
        sources = PipelineSources()
        pipeline = self._expanded(pipeline)
        root = pipeline.get("root_path")
        if root is not None:
            sources.root = self._local_of(root)
            sources.root_elsewhere = sources.root is None
        dependencies = pipeline.get("environment", "dependencies")
        sources.requirements = [self._here(node) for node in elements(dependencies)]
        after = self._translated(pipeline, sources)
        return after, sources

    def _translated(self, resource: ConfigNode, sources: PipelineSources) -> ConfigNode:
        found = sources.files
        steps: Sequence[tuple[Sequence[tuple[str, ...]], Callable[[ConfigNode], ConfigNode]]] = (
            (_FILES, lambda node: self._file(node, found)),
            (_NOTEBOOKS, lambda node: self._notebook(node, found)),
            (_GLOBS, lambda node: self._glob(node, found)),
            (_FOLDERS, self._folder),
            (_PACKAGES, self._package),
            (_REQUIREMENTS, self._requirement),
        )
        for fields, change in steps:
            for keys in fields:
                resource = changed(resource, keys, change)
        return resource

    def _here(self, requirement: ConfigNode) -> ConfigNode:
        """A line for pip with a folder of the deployment as the local one that it comes from."""
        if self._file_path not in requirement.text:
            return requirement
        relative = os.path.relpath(self._base, requirement.file.parent)
        return scalar(requirement.text.replace(self._file_path, f"./{relative}"), requirement)

    def _local_of(self, node: ConfigNode) -> Path | None:
        """The local path that a node means; None for a path elsewhere in the workspace or in a repository."""
        text = node.text
        if "${" in text:
            return None
        return self.local(text) if _ABSOLUTE.match(text) else Path(os.path.normpath(node.file.parent / text))

    def _file(self, node: ConfigNode, found: list[Path]) -> ConfigNode:
        local = self._local_of(node)
        if local is None:
            return node
        if not local.is_file():
            self._missing(node, local, "file")
            return node
        if is_notebook(local):
            self._problems.bad(node, f"{node.text} is a notebook, not a file", todo="Name it as a notebook.")
        found.append(local)
        return scalar(self.remote(local, node), node)

    def _notebook(self, node: ConfigNode, found: list[Path]) -> ConfigNode:
        local = self._local_of(node)
        if local is None:
            return node
        choices = (local, *(local.with_name(local.name + suffix) for suffix in (*SUFFIXES, ".scala", ".r")))
        hit = next((choice for choice in choices if choice.is_file()), None)
        if hit is None:
            self._missing(node, local, "notebook")
            return node
        if not is_notebook(hit):
            todo = "Name it as a file, or begin it with the line of a notebook."
            self._problems.bad(node, f"{node.text} is a file, not a notebook", todo=todo)
        found.append(hit)
        return scalar(self.remote(hit.with_suffix(""), node), node)

    def _glob(self, node: ConfigNode, found: list[Path]) -> ConfigNode:
        local = self._local_of(node)
        if local is None:
            return node
        here = _ABSOLUTE.match(node.text) is None
        anchor, pattern = (node.file.parent, node.text) if here else (self._base, os.path.relpath(local, self._base))
        base = Path(os.path.normpath(anchor / (glob_base(pattern) if is_glob(pattern) else pattern)))
        hits = matching(pattern, anchor) if base.exists() else []
        if not base.exists():
            self._missing(node, base, "folder")
        elif not hits:
            self._problems.bad(
                node, f"{node.text} matches no source file", code="NO_SOURCES", todo=f"Sources end in {', '.join(SUFFIXES)}."
            )
        found.extend(hit for hit in hits if hit not in found)
        return scalar(self.remote(local, node), node)

    def _folder(self, node: ConfigNode) -> ConfigNode:
        local = self._local_of(node)
        if local is None:
            return node
        if not local.is_dir():
            self._missing(node, local, "folder")
        return scalar(self.remote(local, node), node)

    def _expanded(self, resource: ConfigNode) -> ConfigNode:
        for keys in _LISTS:
            resource = changed(resource, keys, self._each_package)
        return resource

    def _each_package(self, listed: ConfigNode) -> ConfigNode:
        """The list with a pattern for packages replaced by the packages that it matches."""
        return replace(listed, value=[one for item in elements(listed) for one in self._packages_of(item)]) if elements(listed) else listed

    def _packages_of(self, item: ConfigNode) -> list[ConfigNode]:
        kind = next((kind for kind in ("whl", "jar") if item.get(kind) is not None), None)
        node = item.value[kind] if kind is not None else item
        wheel = _WHEEL.match(node.text) if isinstance(node.value, str) and kind is None else None
        text = wheel["path"] if wheel is not None else node.text if kind is not None else ""
        local = self._local_of(scalar(text, node)) if is_glob(text) else None
        if local is None:
            return [item]
        beside = node.file.parent
        hits = sorted(glob(os.path.relpath(local, beside), root_dir=beside))
        if not hits:
            self._problems.bad(node, f"no package matches {node.text!r}", todo="Build it, or let artifacts of the bundle build it.")
        paths = [scalar(hit + node.text[len(text) :], node) for hit in hits]
        return [with_entries(item, **{kind: path}) for path in paths] if kind is not None else [_requirement(path) for path in paths]

    def _package(self, node: ConfigNode) -> ConfigNode:
        local = self._local_of(node)
        if local is None:
            return node
        if not local.is_file():
            self._missing(node, local, "package")
            return node
        return scalar(self._deployed(local, node), node)

    def _deployed(self, package: Path, node: ConfigNode) -> str:
        """The path in the workspace of a package of this machine."""
        local = self._built.get(package, package)
        if local.is_relative_to(self._base):
            self.packages.add(local)
        return self.remote(local, node)

    def _requirement(self, node: ConfigNode) -> ConfigNode:
        """A line for pip. What names a local folder, file of requirements or wheel names it in the workspace."""
        for local in local_requirements(node):
            written = str(local.written)
            if not local.path.exists():
                self._missing(node, local.path, "package")
                return node
            is_package = local.path.suffix == ".whl"
            path = self._deployed(local.path, node) if is_package else self.remote(local.path, node)
            return scalar(node.text.replace(written, path), node)
        return node

    def _missing(self, node: ConfigNode, path: Path, what: str) -> None:
        self._problems.bad(node, f"the {what} {node.text!r} does not exist", nearest=nearest_names(path.name, names_beside(path)))


def _requirement(path: ConfigNode) -> ConfigNode:
    """A path as a line for pip, which takes one without a folder for the name of a package."""
    return path if path.text.startswith(".") else scalar(f"./{path.text}", path)


@dataclass(frozen=True)
class LocalRequirement:
    """A line for pip that names something on this machine: as it is written, and where that is."""

    written: str
    path: Path


def local_requirements(node: ConfigNode) -> Iterator[LocalRequirement]:
    """The local path in a line for pip, if there is one."""
    text = node.text.strip()
    option = _PIP_FOLDER.match(text) or _PIP_FILE.match(text) or _WHEEL.match(text)
    written = option["path"] if option else text
    is_path = option is not None or written.startswith((".", "/"))
    if is_path and not _ABSOLUTE.match(written) and "${" not in written and "://" not in written:
        yield LocalRequirement(written, Path(os.path.normpath(node.file.parent / written)))
