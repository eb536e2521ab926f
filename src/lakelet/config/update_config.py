"""Configuration of one update: source files, names, parameters, storage, gathered from bundle files, pyproject.toml, environment and flags.

No Spark. Later ones win: bundle < `[tool.lakelet]` < environment `LAKELET_*` < flags.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakelet.base import secrets
from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace, TableName
from lakelet.config import delta_properties, properties
from lakelet.config.bundle import Bundle
from lakelet.config.named_tables import NamedTable, named_tables
from lakelet.config.path_map import MAP_FORM, TABLE_FORM, PathMap, moved_folders, pairs_of
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.config.project_sources import PipelineProject, find_project, project_above
from lakelet.config.tool_settings import ToolSettings, read_tool_settings
from lakelet.config.yaml_tree import ConfigNode, Remark
from lakelet.files.paths import AnyPath, any_path
from lakelet.files.stores import stores_of

DEFAULT_STORAGE = ".lakelet"
_PARAMETER_KEY = re.compile(r"[A-Za-z0-9_.-]+")
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
    names of pipelines whose tables it takes over. `event_log`: a name for the event log, beside `event_log`.
    `synced`: the folders that hold the files of the repository.
    `packages`: names of the jars that Spark gets beside Delta's (`tool_settings.PACKAGES`).
    `publish`: addresses of catalogs that the tables are registered in, by kind (`tool_settings.CATALOGS`).
    `catalogs`: addresses of those in which tables of others are looked up, in their order.
    `only`: keys of the datasets that are analysed, as though the files declared no others; None for all.
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
    packages: tuple[str, ...] = ()
    publish: Mapping[str, str] = field(default_factory=dict)
    catalogs: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    development: bool | None = None
    continuous: bool = False
    paths: PathMap = field(default_factory=PathMap)
    tables: Mapping[str, NamedTable] = field(default_factory=dict)
    identity: PipelineIdentity | None = None
    partial: bool = False
    take_over: tuple[str, ...] = ()
    event_log: TableName | None = None
    synced: tuple[Path, ...] = ()
    only: frozenset[str] | None = None


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
    project = find_project(sources, target=target, cwd=cwd, environ=environ)
    files, roots = project.files_and_roots()
    name, where = project.name, _storage_root(storage, environ, project.settings, project.root, cwd)
    given = _parameters(project, params or {}, environ)
    parameters, without_secret = _with_secrets(project, given, environ)
    development = project.bundle.development(project.pipeline[1]) if project.bundle and project.pipeline else None
    namespace = _chosen_namespace(project, catalog, schema, environ)
    repository = tuple(dict.fromkeys((project.synced, project.root)))
    paths = replace(_path_map(project, maps, cwd, environ), kept=(str(where),), root=str(project.root), repository=repository)
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
        packages=project.settings.packages,
        publish=project.settings.publish,
        catalogs=project.settings.catalogs,
        remarks=(*project.remarks, *_property_remarks(project, parameters, given, development), *without_secret),
        development=development,
        continuous=_continuous(project) if continuous is None else continuous,
        paths=replace(paths, parameters=parameters, moved=moved_folders(moved, cwd)),
        tables=_named_tables(project, tables, namespace, cwd, environ),
        identity=project.identity(files, where),
        partial=project.partial,
        take_over=tuple(take_over),
        synced=repository,
        event_log=event_log_name(project.bundle, project.pipeline[1], namespace) if project.bundle and project.pipeline else None,
    )


def _chosen_namespace(project: PipelineProject, catalog: str | None, schema: str | None, environ: Mapping[str, str]) -> Namespace:
    """The catalog and schema of names without them: the flags, else the environment, the tool settings, the pipeline's declaration."""
    settings = project.settings
    declared = declared_namespace(project.bundle, project.pipeline[1]) if project.bundle and project.pipeline else Namespace()
    return Namespace(
        _first_given(catalog, environ.get("LAKELET_CATALOG"), settings.catalog, declared.catalog),
        _first_given(schema, environ.get("LAKELET_SCHEMA"), settings.schema, declared.schema),
    )


def find_storage(storage: str | None = None, *, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> AnyPath:
    """The storage root that a command without sources means: the flag, else the environment, else that of the current project."""
    cwd = Path(os.path.abspath(cwd or Path.cwd()))
    environ = os.environ if environ is None else environ
    root = project_above(cwd) or cwd
    return _storage_root(storage, environ, read_tool_settings(root, cwd), root, cwd)


def project_catalogs(cwd: Path) -> Mapping[str, str]:
    """What the setting `publish` of the project at or above a folder names. Raises CONFIG_INVALID."""
    return read_tool_settings(project_above(cwd) or cwd, cwd).publish


def project_packages(cwd: Path) -> tuple[str, ...]:
    """What the setting `packages` of the project at or above a folder names. Raises CONFIG_INVALID."""
    return read_tool_settings(project_above(cwd) or cwd, cwd).packages


def _continuous(project: PipelineProject) -> bool:
    node = project.pipeline[1].get("continuous") if project.pipeline else None
    return bool(node and project.bundle and project.bundle.switch(node))


def _parameters(project: PipelineProject, params: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    merged = {**_declared_values(project, "parameters"), **_declared_values(project, "configuration")}
    merged.update(project.settings.parameters)
    merged.update({k.removeprefix(_PARAMETER_PREFIX): v for k, v in environ.items() if k.startswith(_PARAMETER_PREFIX)})
    for key, value in params.items():
        if not _PARAMETER_KEY.fullmatch(key):
            raise LakeletError("USAGE", f"--param {key}=…: a key may hold letters, digits, '_', '-' and '.' only")
        merged[key] = value
    return merged


def _declared_values(project: PipelineProject, section: str) -> dict[str, str]:
    """The keys and values of a section of the pipeline: its `configuration`, or its `parameters`, which have defaults there."""
    declared = project.pipeline[1].get(section) if project.pipeline else None
    found: dict[str, str] = {}
    for key, node in declared.entries(section).items() if declared else ():
        if not _PARAMETER_KEY.fullmatch(key):
            raise node.bad(f"the {section} key {key!r} may hold letters, digits, '_', '-' and '.' only")
        if isinstance(node.value, (dict, list)):
            raise node.bad(f"the {section} value of {key!r} must be text")
        assert project.bundle is not None
        found[key] = project.bundle.partly(node)
    return found


def _with_secrets(
    project: PipelineProject, parameters: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Remark, ...]]:
    """The parameters with secrets in place of `{{secrets/scope/key}}`; where the variable is missing, the text stays, with a remark."""
    found, remarks = dict(parameters), []
    for key, value in parameters.items():
        asked = secrets.reference(value)
        if asked is None:
            continue
        where = _where_written(project, key, value)
        try:
            found[key] = secrets.secret(*asked, environ, where)
        except LakeletError as missing:
            text = f"the parameter {key!r} is read as {value}: {missing.what}; set the variable {secrets.variable(*asked)}"
            remarks.append((text, where))
    return found, tuple(remarks)


def _where_written(project: PipelineProject, key: str, value: str) -> Location:
    """Where a parameter got its value: in the bundle, in the tool settings, or by a flag or variable (line 0)."""
    declared = project.pipeline[1].get("configuration") if project.pipeline else None
    node = declared.entries("configuration").get(key) if declared else None
    if node is not None and project.bundle and project.bundle.partly(node) == value:
        return node.where
    settings = project.settings
    return settings.where if settings.where and settings.parameters.get(key) == value else Location("the configuration", 0)


def _property_remarks(
    project: PipelineProject, parameters: Mapping[str, str], given: Mapping[str, str], development: bool | None
) -> list[Remark]:
    """Settings `pipelines.*` that have no effect, where they are `given`. Raises PROPERTY_INVALID for a value that one cannot have."""
    remarks = []
    for key, value in parameters.items():
        where = _where_written(project, key, given[key])
        for setting in properties.examine({key: value}, of="pipeline", development=bool(development)):
            if setting.invalid:
                raise LakeletError("PROPERTY_INVALID", setting.text, where=where)
            remarks.append((setting.text, where))
        for remark in delta_properties.examine_default(key, value) if key.startswith(delta_properties.DEFAULTS) else ():
            if remark.code is not None:
                raise LakeletError(remark.code, remark.text, where=where, nearest=remark.nearest)
            remarks.append((remark.text, where))
    return remarks


def _storage_root(flag: str | None, environ: Mapping[str, str], settings: ToolSettings, root: Path, cwd: Path) -> AnyPath:
    given, base = (flag or environ.get("LAKELET_STORAGE"), cwd)
    if not given:
        given, base = (settings.storage or DEFAULT_STORAGE, root)
    text = given.removeprefix("file://") if given.startswith("file:///") else given.removeprefix("file:")
    if stores_of(text):
        return any_path(text)
    if _SCHEME.match(text):
        raise LakeletError(
            "STORAGE_UNSUPPORTED",
            f"no storage can lie at {given}",
            todo="Name a folder, or a path on a store: --storage s3a://<bucket>/<path>, gs://<bucket>/<path>, "
            "abfss://<container>@<account>.dfs.core.windows.net/<path> or hdfs://<host>:<port>/<path>",
        )
    return Path(os.path.normpath(base / Path(text).expanduser()))


def _path_map(project: PipelineProject, flags: Sequence[tuple[str, str]], cwd: Path, environ: Mapping[str, str]) -> PathMap:
    settings = project.settings
    below = PathMap.of(settings.maps, project.root, code="CONFIG_INVALID", where=settings.where)
    variable = pairs_of(_entries_of_variable(environ.get("LAKELET_MAP")), "LAKELET_MAP", **MAP_FORM)
    return PathMap.of(flags, cwd).over(PathMap.of(variable, cwd)).over(below)


def _named_tables(
    project: PipelineProject, flags: Sequence[tuple[str, str]], namespace: Namespace, cwd: Path, environ: Mapping[str, str]
) -> dict[str, NamedTable]:
    settings = project.settings
    below = named_tables(settings.tables, namespace, project.root, code="CONFIG_INVALID", where=settings.where)
    variable = pairs_of(_entries_of_variable(environ.get("LAKELET_TABLE")), "LAKELET_TABLE", **TABLE_FORM)
    return {**below, **named_tables(variable, namespace, cwd), **named_tables(flags, namespace, cwd)}


def _entries_of_variable(text: str | None) -> list[str]:
    """Entries of a variable: separated by semicolons or lines."""
    return [part.strip() for part in re.split(r"[;\n]", text or "") if part.strip()]


def _first_given(*choices: str | None) -> str:
    return next(choice for choice in choices if choice)


# --- names that a pipeline of a bundle declares -------------------------------------------------------------------------------------------


_EVENT_LOG_KEYS = frozenset({"catalog", "schema", "name"})


def declared_namespace(bundle: Bundle, pipeline: ConfigNode) -> Namespace:
    """The catalog and schema of the pipeline's tables; the defaults where it declares none."""
    default = Namespace()
    catalog = pipeline.get("catalog")
    schema = pipeline.get("schema") or pipeline.get("target")
    return Namespace(bundle.text(catalog) if catalog else default.catalog, bundle.text(schema) if schema else default.schema)


def event_log_name(bundle: Bundle, pipeline: ConfigNode, namespace: Namespace) -> TableName | None:
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
