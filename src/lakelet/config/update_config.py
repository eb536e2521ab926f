"""Configuration of one update: source files, names, parameters, storage, gathered from bundle files, pyproject.toml, environment and flags.

No Spark. Later ones win: bundle < `[tool.lakelet]` < environment `LAKELET_*` < flags.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakelet.base import secrets
from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.names import Namespace, TableName
from lakelet.base.text import listed
from lakelet.config import delta_properties, properties
from lakelet.config import source_files as found
from lakelet.config.bundle import Bundle, load_bundle
from lakelet.config.bundle_files import BUNDLE_FILES, PIPELINE_KEYS, bundle_file
from lakelet.config.folder_walk import MOST_FILES, FolderWalk, begin_a_project, has_settings, is_shared, shared_error
from lakelet.config.libraries import library_files, owns, path_in_bundle, unmatched_libraries
from lakelet.config.named_tables import NamedTable, named_tables
from lakelet.config.path_map import MAP_FORM, TABLE_FORM, PathMap, moved_folders, pairs_of
from lakelet.config.pipeline_identity import Identity
from lakelet.config.spark_pipeline_file import SPARK_FILES, load_spark_file, spark_file
from lakelet.config.tool_settings import ToolSettings, read_tool_settings
from lakelet.config.unmatched import unmatched
from lakelet.config.yaml_tree import Node, Remark, shown_path
from lakelet.files.paths import AnyPath, any_path
from lakelet.files.remote import is_s3

DEFAULT_STORAGE = ".lakelet"
_KEY = re.compile(r"[A-Za-z0-9_.-]+")
_PARAMETER_PREFIX = "LAKELET_PARAM_"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


@dataclass(frozen=True)
class PipelineConfig:
    """Everything about a pipeline that is not in its source files.

    `files` are in load order; `import_roots` go on `sys.path` while they load; `namespace` is where unqualified names live;
    `pipeline_id` stays the same as long as name and storage do. `master` is the Spark master, None for this machine; `worker_python` the
    interpreter on its workers, None for this process's own. `remarks`: what the project file asks for without effect here.
    `development`: the mode that the bundle declares, None if it declares none; `continuous`: the update goes on until it is stopped.
    `identity` separates the pipeline from others with tables in the storage; `partial`: `files` are only some of its sources; `take_over`:
    names of pipelines whose tables are to be its own. `event_log`: a name for the event log, beside `event_log`.
    `synced`: the folders that hold the files of the repository.
    `only`: keys of the datasets that are looked at, as though the files declared no others; None for all.
    `paths` says where paths of the code lie here, `tables` which paths have a table's name (by key).
    """

    name: str
    pipeline_id: str
    root: Path
    files: tuple[Path, ...]
    import_roots: tuple[Path, ...]
    namespace: Namespace
    parameters: Mapping[str, str]
    storage: AnyPath
    target: str | None = None
    master: str | None = None
    worker_python: str | None = None
    remarks: tuple[Remark, ...] = ()
    development: bool | None = None
    continuous: bool = False
    paths: PathMap = field(default_factory=PathMap)
    tables: Mapping[str, NamedTable] = field(default_factory=dict)
    identity: Identity | None = None
    partial: bool = False
    take_over: tuple[str, ...] = ()
    event_log: TableName | None = None
    synced: tuple[Path, ...] = ()
    only: frozenset[str] | None = None


@dataclass(frozen=True)
class _Project:
    """The project that the sources belong to. `label`: name for files given as arguments; `pipeline`: (key, node)."""

    root: Path
    settings: ToolSettings
    bundle: Bundle | None
    pipeline: tuple[str, Node] | None
    files: tuple[Path, ...]
    label: str | None
    remarks: tuple[Remark, ...] = ()

    @property
    def synced(self) -> Path:
        """The folder whose files Databricks has: the project's, or one above it that the bundle syncs."""
        return self.bundle.synced if self.bundle else self.root


@dataclass(frozen=True)
class _Selection:
    """The SOURCE arguments by kind: names of pipelines, project folders, and files (globs and folders expanded)."""

    names: tuple[str, ...] = ()
    projects: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    single: bool = False


def load_config(
    sources: Sequence[str],
    *,
    target: str | None = None,
    params: Mapping[str, str] | None = None,
    storage: str | None = None,
    catalog: str | None = None,
    schema: str | None = None,
    master: str | None = None,
    maps: Sequence[tuple[str, str]] = (),
    tables: Sequence[tuple[str, str]] = (),
    continuous: bool | None = None,
    take_over: Sequence[str] = (),
    moved: Sequence[tuple[str, str]] = (),
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> PipelineConfig:
    """Return the configuration of the one pipeline that `sources` select.

    A source is a project folder, a file, a folder or a glob anywhere, or the key of a pipeline of the bundle; none means the current
    project. Raises CONFIG_INVALID (bundle files, pyproject.toml), NO_SOURCES, USAGE (flags), NOT_SUPPORTED_YET, STORAGE_UNSUPPORTED.
    """
    cwd = Path(os.path.abspath(cwd or Path.cwd()))
    environ = os.environ if environ is None else environ
    project = _find(sources, target=target, cwd=cwd, environ=environ)
    files, roots = _files_and_roots(project, cwd)
    name, where = _name(project), _storage(storage, environ, project.settings, project.root, cwd)
    given = _parameters(project, params or {}, environ)
    parameters, without_secret = _with_secrets(project, given, environ)
    development = project.bundle.development(project.pipeline[1]) if project.bundle and project.pipeline else None
    namespace = _chosen_namespace(project, catalog, schema, environ)
    repository = tuple(dict.fromkeys((project.synced, project.root)))
    paths = replace(_paths(project, maps, cwd, environ), kept=(str(where),), root=str(project.root), repository=repository)
    return PipelineConfig(
        name=name,
        pipeline_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"lakelet:{name}:{where}")),
        root=project.root,
        files=files,
        import_roots=roots,
        namespace=namespace,
        parameters=parameters,
        storage=where,
        target=project.bundle.target if project.bundle else None,
        master=master or environ.get("LAKELET_MASTER") or project.settings.master,
        worker_python=environ.get("LAKELET_WORKER_PYTHON") or project.settings.worker_python,
        remarks=(*project.remarks, *_property_remarks(project, parameters, given, development), *without_secret),
        development=development,
        continuous=_continuous(project) if continuous is None else continuous,
        paths=replace(paths, parameters=parameters, moved=moved_folders(moved, cwd)),
        tables=_tables(project, tables, namespace, cwd, environ),
        identity=_identity(project, files, where),
        partial=_partial(project),
        take_over=tuple(take_over),
        synced=repository,
        event_log=event_log_name(project.bundle, project.pipeline[1], namespace) if project.bundle and project.pipeline else None,
    )


def _chosen_namespace(project: _Project, catalog: str | None, schema: str | None, environ: Mapping[str, str]) -> Namespace:
    """The catalog and schema of names without them: the flags, else the environment, the tool settings, the pipeline's declaration."""
    settings = project.settings
    declared = declared_namespace(project.bundle, project.pipeline[1]) if project.bundle and project.pipeline else Namespace()
    return Namespace(
        _first(catalog, environ.get("LAKELET_CATALOG"), settings.catalog, declared.catalog),
        _first(schema, environ.get("LAKELET_SCHEMA"), settings.schema, declared.schema),
    )


def find_storage(storage: str | None = None, *, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> AnyPath:
    """The storage root that a command without sources means: the flag, else the environment, else that of the current project."""
    cwd = Path(os.path.abspath(cwd or Path.cwd()))
    environ = os.environ if environ is None else environ
    root = project_above(cwd) or cwd
    return _storage(storage, environ, read_tool_settings(root, cwd), root, cwd)


# --- which project, which pipeline ----------------------------------------------------------------------------------------------------


def _find(sources: Sequence[str], *, target: str | None, cwd: Path, environ: Mapping[str, str]) -> _Project:
    selection = _classified(sources, cwd)
    root = _root_of(selection, cwd)
    settings = read_tool_settings(root, cwd)
    files = selection.files
    label = _label(selection) if files else None
    if not files and not selection.names and settings.sources:
        files = _configured_files(settings, root)
    file = bundle_file(root)
    target = target or environ.get("LAKELET_TARGET") or settings.target
    of_spark = None if file or target else spark_file(root)
    if of_spark is not None:
        bundle, remarks = load_spark_file(of_spark, cwd=cwd, environ=environ)
        pipeline = _choose_pipeline(bundle, selection.names, files if label else (), cwd)
        return _Project(root, settings, bundle, pipeline, files, label, remarks)
    if file is None:
        if selection.names:
            raise _unknown_source(selection.names[0], (), cwd)
        if target is not None:
            raise LakeletError("USAGE", f"the deployment target {target!r} needs a bundle; {root} has no databricks.yml")
        return _Project(root, settings, None, None, files or _whole_project(root), label)
    bundle = load_bundle(file, target=target, cwd=cwd, environ=environ)
    pipeline = _choose_pipeline(bundle, selection.names, files if label else (), cwd)
    return _Project(root, settings, bundle, pipeline, files, label, _python_remarks(bundle))


def _python_remarks(bundle: Bundle) -> tuple[Remark, ...]:
    """Warnings of the bundle's Python, or that it was left out."""
    left_out = bundle.without_python
    if left_out is None:
        return bundle.remarks
    text = f"resources and changes that the bundle makes by Python are left out: {left_out.what}; {left_out.todo}"
    return ((text, left_out.where or bundle.tree.where),)


def _label(selection: _Selection) -> str:
    folder = Path(os.path.commonpath(selection.folders)).name or "pipeline"
    return selection.files[0].stem if selection.single else folder


def _configured_files(settings: ToolSettings, root: Path) -> tuple[Path, ...]:
    selection = _classified(settings.sources, root)
    if selection.names or selection.projects:
        wrong = [*selection.names, *map(str, selection.projects)][0]
        raise LakeletError("CONFIG_INVALID", f"'sources' in [tool.lakelet] names {wrong}, which is not a source file, folder or glob")
    return selection.files


def _classified(sources: Sequence[str], cwd: Path) -> _Selection:
    names: list[str] = []
    projects: list[Path] = []
    files: list[Path] = []
    folders: list[Path] = []
    for source in sources:
        path = Path(os.path.normpath(cwd / Path(source).expanduser()))
        if path.name in (*BUNDLE_FILES, *SPARK_FILES) and _project_file(path.parent) == path:
            projects.append(path.parent)
        elif path.is_file():
            if path.suffix not in found.SUFFIXES:
                raise LakeletError("USAGE", f"{source} is not a source file", todo=f"Sources end in {', '.join(found.SUFFIXES)}.")
            files.append(path)
            folders.append(path.parent)
        elif path.is_dir() and _is_project(path):
            projects.append(path)
        elif path.is_dir() or found.is_glob(source):
            hits = found.in_folder(path) if path.is_dir() else found.matching(source, cwd)
            if not hits:
                raise _nothing_in(source, path, cwd)
            files.extend(hits)
            folders.append(path if path.is_dir() else Path(os.path.normpath(cwd / found.glob_base(source))))
        else:
            names.append(source)
    if names and files:
        raise _unknown_source(names[0], (), cwd)
    if (projects and files) or len(projects) > 1 or len(names) > 1:
        raise LakeletError("USAGE", "sources of several kinds or projects in one update", why=" ".join(sources), todo="Name one project.")
    single = len(sources) == 1 and bool(files) and files[0].name == Path(sources[0]).name
    return _Selection(tuple(names), tuple(projects), tuple(dict.fromkeys(files)), tuple(folders), single)


def _nothing_in(source: str, path: Path, cwd: Path, walk: FolderWalk | None = None) -> LakeletError:
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


def _root_of(selection: _Selection, cwd: Path) -> Path:
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
    files = found.in_folder(root, walk)
    if not files:
        raise _nothing_in(str(root), root, root, None if marked else walk)
    return tuple(files)


def _choose_pipeline(bundle: Bundle, names: Sequence[str], files: Sequence[Path], cwd: Path) -> tuple[str, Node] | None:
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


def _name(project: _Project) -> str:
    if project.bundle and project.pipeline:
        node = project.pipeline[1].get("name")
        return project.bundle.partly(node) if node else project.pipeline[0]
    return project.label or project.root.name or "pipeline"


def _identity(project: _Project, files: Sequence[Path], storage: AnyPath) -> Identity:
    if project.bundle and project.pipeline:
        named = project.bundle.tree.get("bundle", "name") is not None
        return Identity.of(project.pipeline[0], project.bundle.name if named else "", project.root, files, storage)
    return Identity.of(_name(project), None, project.root, files, storage)


def _partial(project: _Project) -> bool:
    """Whether files were named by hand that are not all of the bundle's pipeline."""
    if not (project.bundle and project.pipeline and project.label):
        return False
    return set(project.files) < set(library_files(project.bundle, project.pipeline[1]))


# --- one pipeline of a bundle ---------------------------------------------------------------------------------------------------------


def _files_and_roots(project: _Project, cwd: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    roots: list[Path] = []
    files = project.files
    if project.bundle and project.pipeline:
        key, spec = project.pipeline
        spec.refuse_unknown(PIPELINE_KEYS, f"the pipeline {key!r}")
        if not files:
            files = library_files(project.bundle, spec)
        managed = next((name for name in ("ingestion_definition", "gateway_definition") if spec.get(name)), None)
        if not files and managed:
            what = f"the pipeline {key!r} has no source files but an {managed}, which only a workspace runs"
            raise LakeletError("NO_SOURCES", what, where=spec.where, todo="Name another pipeline of the bundle.")
        if not files:
            what = f"the libraries of the pipeline {key!r} match no source file"
            raise LakeletError("NO_SOURCES", what, where=spec.where, why=unmatched_libraries(project.bundle, spec))
        root_path = spec.get("root_path")
        if root_path:
            roots += [folder] if (folder := path_in_bundle(project.bundle, root_path)).is_dir() else []
    return files, tuple(dict.fromkeys([*roots, *import_roots(files, project.root, project.synced)]))


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


def _continuous(project: _Project) -> bool:
    node = project.pipeline[1].get("continuous") if project.pipeline else None
    return bool(node and project.bundle and project.bundle.switch(node))


def _parameters(project: _Project, params: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    merged = {**_declared(project, "parameters"), **_declared(project, "configuration")}
    merged.update(project.settings.parameters)
    merged.update({k.removeprefix(_PARAMETER_PREFIX): v for k, v in environ.items() if k.startswith(_PARAMETER_PREFIX)})
    for key, value in params.items():
        if not _KEY.fullmatch(key):
            raise LakeletError("USAGE", f"--param {key}=…: a key may hold letters, digits, '_', '-' and '.' only")
        merged[key] = value
    return merged


def _declared(project: _Project, section: str) -> dict[str, str]:
    """The keys and values of a section of the pipeline: its `configuration`, or its `parameters`, which have defaults there."""
    declared = project.pipeline[1].get(section) if project.pipeline else None
    found: dict[str, str] = {}
    for key, node in declared.entries(section).items() if declared else ():
        if not _KEY.fullmatch(key):
            raise node.bad(f"the {section} key {key!r} may hold letters, digits, '_', '-' and '.' only")
        if isinstance(node.value, (dict, list)):
            raise node.bad(f"the {section} value of {key!r} must be text")
        assert project.bundle is not None
        found[key] = project.bundle.partly(node)
    return found


def _with_secrets(
    project: _Project, parameters: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Remark, ...]]:
    """The parameters with secrets in place of `{{secrets/scope/key}}`; where the variable is missing, the text stays, with a remark."""
    found, remarks = dict(parameters), []
    for key, value in parameters.items():
        asked = secrets.reference(value)
        if asked is None:
            continue
        where = _written(project, key, value)
        try:
            found[key] = secrets.secret(*asked, environ, where)
        except LakeletError as missing:
            text = f"the parameter {key!r} is read as {value}: {missing.what}; set the variable {secrets.variable(*asked)}"
            remarks.append((text, where))
    return found, tuple(remarks)


def _written(project: _Project, key: str, value: str) -> Location:
    """Where a parameter got its value: in the bundle, in the tool settings, or by a flag or variable (line 0)."""
    declared = project.pipeline[1].get("configuration") if project.pipeline else None
    node = declared.entries("configuration").get(key) if declared else None
    if node is not None and project.bundle and project.bundle.partly(node) == value:
        return node.where
    settings = project.settings
    return settings.where if settings.where and settings.parameters.get(key) == value else Location("the configuration", 0)


def _property_remarks(project: _Project, parameters: Mapping[str, str], given: Mapping[str, str], development: bool | None) -> list[Remark]:
    """Settings `pipelines.*` that have no effect, where they are `given`. Raises PROPERTY_INVALID for a value that one cannot have."""
    remarks = []
    for key, value in parameters.items():
        where = _written(project, key, given[key])
        for setting in properties.examine({key: value}, of="pipeline", development=bool(development)):
            if setting.invalid:
                raise LakeletError("PROPERTY_INVALID", setting.text, where=where)
            remarks.append((setting.text, where))
        for remark in delta_properties.examine_default(key, value) if key.startswith(delta_properties.DEFAULTS) else ():
            if remark.code is not None:
                raise LakeletError(remark.code, remark.text, where=where, nearest=remark.nearest)
            remarks.append((remark.text, where))
    return remarks


def _storage(flag: str | None, environ: Mapping[str, str], settings: ToolSettings, root: Path, cwd: Path) -> AnyPath:
    given, base = (flag or environ.get("LAKELET_STORAGE"), cwd)
    if not given:
        given, base = (settings.storage or DEFAULT_STORAGE, root)
    text = given.removeprefix("file://") if given.startswith("file:///") else given.removeprefix("file:")
    if is_s3(text):
        return any_path(text)
    if _SCHEME.match(text):
        what = f"the storage {given} is neither a folder nor on S3"
        raise LakeletError("STORAGE_UNSUPPORTED", what, todo="Name a folder or an S3 path: --storage s3a://<bucket>/<path>")
    return Path(os.path.normpath(base / Path(text).expanduser()))


def _paths(project: _Project, flags: Sequence[tuple[str, str]], cwd: Path, environ: Mapping[str, str]) -> PathMap:
    settings = project.settings
    below = PathMap.of(settings.maps, project.root, code="CONFIG_INVALID", where=settings.where)
    variable = pairs_of(_listed(environ.get("LAKELET_MAP")), "LAKELET_MAP", **MAP_FORM)
    return PathMap.of(flags, cwd).over(PathMap.of(variable, cwd)).over(below)


def _tables(
    project: _Project, flags: Sequence[tuple[str, str]], namespace: Namespace, cwd: Path, environ: Mapping[str, str]
) -> dict[str, NamedTable]:
    settings = project.settings
    below = named_tables(settings.tables, namespace, project.root, code="CONFIG_INVALID", where=settings.where)
    variable = pairs_of(_listed(environ.get("LAKELET_TABLE")), "LAKELET_TABLE", **TABLE_FORM)
    return {**below, **named_tables(variable, namespace, cwd), **named_tables(flags, namespace, cwd)}


def _listed(text: str | None) -> list[str]:
    """Entries of a variable: separated by semicolons or lines."""
    return [part.strip() for part in re.split(r"[;\n]", text or "") if part.strip()]


def _first(*choices: str | None) -> str:
    return next(choice for choice in choices if choice)


# --- names that a pipeline of a bundle declares -------------------------------------------------------------------------------------------


_EVENT_LOG_KEYS = frozenset({"catalog", "schema", "name"})


def declared_namespace(bundle: Bundle, pipeline: Node) -> Namespace:
    """The catalog and schema of the pipeline's tables; the defaults where it declares none."""
    default = Namespace()
    catalog = pipeline.get("catalog")
    schema = pipeline.get("schema") or pipeline.get("target")
    return Namespace(bundle.text(catalog) if catalog else default.catalog, bundle.text(schema) if schema else default.schema)


def event_log_name(bundle: Bundle, pipeline: Node, namespace: Namespace) -> TableName | None:
    """The name under which the event log is published (`event_log: {catalog, schema, name}`), None where it is not.

    Without a catalog or schema it lives in `namespace`. Raises CONFIG_INVALID without a name, and for other keys.
    """
    node = pipeline.get("event_log")
    if node is None:
        return None
    node.refuse_unknown(_EVENT_LOG_KEYS, "event_log")
    name, catalog, schema = (node.get(key) for key in ("name", "catalog", "schema"))
    if name is None:
        raise node.bad("event_log has no name", todo="For example: event_log: {name: pipeline_events}")
    return TableName(
        bundle.text(catalog) if catalog else namespace.catalog,
        bundle.text(schema) if schema else namespace.schema,
        bundle.text(name),
    )
