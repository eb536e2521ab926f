"""Which project and which pipeline the SOURCE arguments of a command mean, and its source files. No Spark.

In come the arguments, the working directory and the environment; out comes a `PipelineProject`, from which `update_config` makes the
configuration of an update.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.text import listed
from lakelet.config.bundle import Bundle, load_bundle
from lakelet.config.bundle_files import BUNDLE_FILES, PIPELINE_KEYS, bundle_file
from lakelet.config.libraries import library_files, owns, path_in_bundle, unmatched, unmatched_libraries
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.config.source_files import (
    MOST_FILES,
    SUFFIXES,
    FolderWalk,
    begin_a_project,
    glob_base,
    has_settings,
    in_folder,
    is_glob,
    is_shared,
    matching,
    shared_error,
)
from lakelet.config.spark_pipeline_file import SPARK_FILES, load_spark_file, spark_file
from lakelet.config.tool_settings import ToolSettings, read_tool_settings
from lakelet.config.yaml_tree import ConfigNode, Remark, shown_path
from lakelet.files.paths import AnyPath


@dataclass(frozen=True)
class PipelineProject:
    """The project that the sources belong to. `label`: name for files given as arguments; `pipeline`: (key, node)."""

    root: Path
    settings: ToolSettings
    bundle: Bundle | None
    pipeline: tuple[str, ConfigNode] | None
    files: tuple[Path, ...]
    label: str | None
    remarks: tuple[Remark, ...] = ()

    @property
    def synced(self) -> Path:
        """The folder whose files Databricks has: the project's, or one above it that the bundle syncs."""
        return self.bundle.synced if self.bundle else self.root

    @property
    def name(self) -> str:
        """The pipeline's name: what the bundle calls it, else that of its file or folder."""
        if self.bundle and self.pipeline:
            node = self.pipeline[1].get("name")
            return self.bundle.partly(node) if node else self.pipeline[0]
        return self.label or self.root.name or "pipeline"

    @property
    def partial(self) -> bool:
        """Whether files were named by hand that are not all of the bundle's pipeline."""
        if not (self.bundle and self.pipeline and self.label):
            return False
        return set(self.files) < set(library_files(self.bundle, self.pipeline[1]))

    def identity(self, files: Sequence[Path], storage: AnyPath) -> PipelineIdentity:
        """The pipeline's identity in a storage; `files`: its sources."""
        if self.bundle and self.pipeline:
            named = self.bundle.tree.get("bundle", "name") is not None
            return PipelineIdentity.of(self.pipeline[0], self.bundle.name if named else "", self.root, files, storage)
        return PipelineIdentity.of(self.name, None, self.root, files, storage)

    def files_and_roots(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The pipeline's source files, and the folders that their modules are imported from. Raises NO_SOURCES where there are none."""
        roots: list[Path] = []
        files = self.files
        if self.bundle and self.pipeline:
            key, spec = self.pipeline
            spec.refuse_unknown(PIPELINE_KEYS, f"the pipeline {key!r}")
            if not files:
                files = library_files(self.bundle, spec)
            managed = next((name for name in ("ingestion_definition", "gateway_definition") if spec.get(name)), None)
            if not files and managed:
                what = f"the pipeline {key!r} has no source files but an {managed}, which only a workspace runs"
                raise LakeletError("NO_SOURCES", what, where=spec.where, todo="Name another pipeline of the bundle.")
            if not files:
                what = f"the libraries of the pipeline {key!r} match no source file"
                raise LakeletError("NO_SOURCES", what, where=spec.where, why=unmatched_libraries(self.bundle, spec))
            root_path = spec.get("root_path")
            if root_path:
                roots += [folder] if (folder := path_in_bundle(self.bundle, root_path)).is_dir() else []
        return files, tuple(dict.fromkeys([*roots, *import_roots(files, self.root, self.synced)]))


@dataclass(frozen=True)
class SourceArguments:
    """The SOURCE arguments by kind: names of pipelines, project folders, and files (globs and folders expanded)."""

    names: tuple[str, ...] = ()
    projects: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    single: bool = False


def find_project(sources: Sequence[str], *, target: str | None, cwd: Path, environ: Mapping[str, str]) -> PipelineProject:
    selection = _source_arguments(sources, cwd)
    root = _root_of(selection, cwd)
    settings = read_tool_settings(root, cwd)
    files = selection.files
    label = _label_of_files(selection) if files else None
    if not files and not selection.names and settings.sources:
        files = _configured_files(settings, root)
    file = bundle_file(root)
    target = target or environ.get("LAKELET_TARGET") or settings.target
    of_spark = None if file or target else spark_file(root)
    if of_spark is not None:
        bundle, remarks = load_spark_file(of_spark, cwd=cwd, environ=environ)
        pipeline = _choose_pipeline(bundle, selection.names, files if label else (), cwd)
        return PipelineProject(root, settings, bundle, pipeline, files, label, remarks)
    if file is None:
        if selection.names:
            raise _unknown_source(selection.names[0], (), cwd)
        if target is not None:
            raise LakeletError("USAGE", f"the deployment target {target!r} needs a bundle; {root} has no databricks.yml")
        return PipelineProject(root, settings, None, None, files or _whole_project(root), label)
    bundle = load_bundle(file, target=target, cwd=cwd, environ=environ)
    pipeline = _choose_pipeline(bundle, selection.names, files if label else (), cwd)
    return PipelineProject(root, settings, bundle, pipeline, files, label, _python_remarks(bundle))


def _python_remarks(bundle: Bundle) -> tuple[Remark, ...]:
    """Warnings of the bundle's Python, or that it was left out."""
    left_out = bundle.without_python
    if left_out is None:
        return bundle.remarks
    text = f"resources and changes that the bundle makes by Python are left out: {left_out.what}; {left_out.todo}"
    return ((text, left_out.where or bundle.tree.where),)


def _label_of_files(selection: SourceArguments) -> str:
    folder = Path(os.path.commonpath(selection.folders)).name or "pipeline"
    return selection.files[0].stem if selection.single else folder


def _configured_files(settings: ToolSettings, root: Path) -> tuple[Path, ...]:
    selection = _source_arguments(settings.sources, root)
    if selection.names or selection.projects:
        wrong = [*selection.names, *map(str, selection.projects)][0]
        raise LakeletError("CONFIG_INVALID", f"'sources' in [tool.lakelet] names {wrong}, which is not a source file, folder or glob")
    return selection.files


def _source_arguments(sources: Sequence[str], cwd: Path) -> SourceArguments:
    names: list[str] = []
    projects: list[Path] = []
    files: list[Path] = []
    folders: list[Path] = []
    for source in sources:
        path = Path(os.path.normpath(cwd / Path(source).expanduser()))
        if path.name in (*BUNDLE_FILES, *SPARK_FILES) and _project_file(path.parent) == path:
            projects.append(path.parent)
        elif path.is_file():
            if path.suffix not in SUFFIXES:
                raise LakeletError("USAGE", f"{source} is not a source file", todo=f"Sources end in {', '.join(SUFFIXES)}.")
            files.append(path)
            folders.append(path.parent)
        elif path.is_dir() and _is_project(path):
            projects.append(path)
        elif path.is_dir() or is_glob(source):
            hits = in_folder(path) if path.is_dir() else matching(source, cwd)
            if not hits:
                raise _no_sources_error(source, path, cwd)
            files.extend(hits)
            folders.append(path if path.is_dir() else Path(os.path.normpath(cwd / glob_base(source))))
        else:
            names.append(source)
    if names and files:
        raise _unknown_source(names[0], (), cwd)
    if (projects and files) or len(projects) > 1 or len(names) > 1:
        raise LakeletError("USAGE", "sources of several kinds or projects in one update", why=" ".join(sources), todo="Name one project.")
    single = len(sources) == 1 and bool(files) and files[0].name == Path(sources[0]).name
    return SourceArguments(tuple(names), tuple(projects), tuple(dict.fromkeys(files)), tuple(folders), single)


def _no_sources_error(source: str, path: Path, cwd: Path, walk: FolderWalk | None = None) -> LakeletError:
    what = f"no pipeline source file in {source}" if path.is_dir() else f"no file matches {source}"
    if walk is None:
        why = None if path.is_dir() else unmatched(source, cwd)
        return LakeletError(
            "NO_SOURCES",
            what,
            why=why,
            todo="A source imports dlt or pyspark.pipelines, or holds CREATE STREAMING TABLE and the like.",
        )
    if not walk.deep:
        return shared_error(path)
    below = [one.parent.relative_to(path).as_posix() for one in walk.projects]
    why = f"Projects below it: {listed(below, 5)}" if below else None
    return LakeletError("NO_SOURCES", f"{path} is not a project: {what}", why=why, todo=begin_a_project())


def _project_file(folder: Path) -> Path | None:
    """The bundle file of a folder, else the project file of Spark's own tool."""
    return bundle_file(folder) or spark_file(folder)


def _is_project(folder: Path) -> bool:
    return _project_file(folder) is not None or (folder / "pyproject.toml").is_file()


def project_above(folder: Path) -> Path | None:
    """The nearest folder from `folder` upwards that holds a bundle or Spark's project file; else the nearest with a pyproject.toml."""
    line = [folder, *folder.parents]
    by_bundle = next((f for f in line if _project_file(f)), None)
    by_toml = next((f for f in line if (f / "pyproject.toml").is_file() and (not is_shared(f) or has_settings(f))), None)
    if by_bundle and by_toml and by_toml.is_relative_to(by_bundle) and by_toml != by_bundle:
        return by_toml if read_tool_settings(by_toml, folder).present else by_bundle
    return by_bundle or by_toml


def _root_of(selection: SourceArguments, cwd: Path) -> Path:
    if selection.projects:
        return selection.projects[0]
    if not selection.files:
        return project_above(cwd) or cwd
    common = Path(os.path.commonpath(selection.folders))
    return project_above(common) or (cwd if common.is_relative_to(cwd) else common)


def _whole_project(root: Path) -> tuple[Path, ...]:
    """All sources of the project in `root`. A folder that no project file marks is searched up to a limit, a shared one not deeply."""
    marked = project_above(root) is not None
    walk = FolderWalk(root, most=None if marked else MOST_FILES)
    files = in_folder(root, walk)
    if not files:
        raise _no_sources_error(str(root), root, root, None if marked else walk)
    return tuple(files)


def _choose_pipeline(bundle: Bundle, names: Sequence[str], files: Sequence[Path], cwd: Path) -> tuple[str, ConfigNode] | None:
    """The pipeline with that name, or the one all named files belong to (None: they are a pipeline of their own), or the only one."""
    pipelines = bundle.pipelines()
    if names:
        if names[0] not in pipelines:
            raise bundle.without_python or _unknown_source(names[0], pipelines, cwd)
        return names[0], pipelines[names[0]]
    if files:
        owners = [(key, spec) for key, spec in pipelines.items() if owns(bundle, spec, files)]
        return owners[0] if len(owners) == 1 else None
    if len(pipelines) == 1:
        return next(iter(pipelines.items()))
    if not pipelines:
        todo = "Add resources.pipelines, or name source files: lakelet run FILE…"
        raise bundle.without_python or bundle.tree.bad("the bundle declares no pipeline", todo=todo)
    todo = f"Name one behind the command, as in: lakelet run {next(iter(pipelines))}"
    raise bundle.tree.bad(f"the bundle declares {len(pipelines)} pipelines: {', '.join(pipelines)}", todo=todo)


def _unknown_source(name: str, pipelines: Iterable[str], cwd: Path) -> LakeletError:
    parent = (cwd / name).parent
    beside = [shown_path(p, cwd) for p in parent.iterdir()] if parent.is_dir() else []
    nearest = nearest_names(name, [*pipelines, *beside])
    return LakeletError("NO_SOURCES", f"{name} is not a file, folder, glob or pipeline of the bundle", nearest=nearest)


def import_roots(files: Sequence[Path], root: Path, synced: Path) -> list[Path]:
    """The folders that the modules of source files are imported from: of the project, of what the bundle syncs, and of each file."""
    folders = [root, root / "src", synced, synced / "src", *(file.parent for file in files), *_folders_above(files, root)]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _folders_above(files: Iterable[Path], root: Path) -> Iterator[Path]:
    """Where a repository of several pipelines keeps the modules of one: between the project folder and a source, or beside its folder
    `transformations`, which is Databricks' name for the sources in a pipeline's own folder."""
    for file in files:
        for folder in file.parents:
            if folder.name == "transformations":
                yield folder.parent
            if folder.is_relative_to(root):
                yield folder
