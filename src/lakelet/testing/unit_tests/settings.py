"""Settings of a unit test from its project: names, parameters, and the variables that its YAML may use."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakelet.base.errors import nearest_names
from lakelet.base.names import Namespace
from lakelet.config import source_files
from lakelet.config.bundle import Bundle, Node, bundle_file, load_bundle, read_yaml, shown_path
from lakelet.config.spark_pipeline_file import spark_file

_VARIABLE = re.compile(r"\$\{\s*([^}]+?)\s*\}")


@dataclass(frozen=True)
class Settings:
    """Settings of one pipeline of the project, or of none: its folder, names and parameters.

    `variables`: values of `${…}` beside what the bundle knows.
    """

    root: Path
    pipeline: str | None = None
    namespace: Namespace = field(default_factory=Namespace)
    parameters: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    bundle: Bundle | None = None

    def over(self, more: Mapping[str, str]) -> Settings:
        """These settings with further variables, which are parameters too."""
        if not more:
            return self
        catalog, schema = more.get("catalog", self.namespace.catalog), more.get("pipeline_schema", self.namespace.schema)
        parameters, variables = {**self.parameters, **more}, {**self.variables, **more}
        return replace(self, namespace=Namespace(catalog, schema), parameters=parameters, variables=variables)

    def text(self, node: Node) -> str:
        """A scalar as text, its `${…}` resolved. Raises CONFIG_INVALID for another value, and for an unknown variable."""
        if isinstance(node.value, dict | list):
            raise node.bad("a single value is expected here")
        text = _VARIABLE.sub(lambda found: self.variables.get(found[1], f"${{{found[1]}}}"), node.text)
        if self.bundle is not None and "${" in text:
            text = self.bundle.partly(replace(node, text=text))
        left = _VARIABLE.search(text)
        if left:
            near = nearest_names(left[1], self.variables)
            raise node.bad(f"the variable {left[0]} has no value", nearest=near, todo="Set it in the pipeline's configuration.")
        return text


def project_settings(file: Path, top: Path) -> list[Settings]:
    """The settings of the pipelines to whose code a test file belongs: those with a library in or above its folder, else the only one.

    The project is the nearest one above the file, not above `top`. Settings of no pipeline where there is none.
    """
    for folder in (file.parent, *file.parent.parents):
        found = settings_in(folder)
        if found:
            beside = [one for one in found if any(file.is_relative_to(library) for library in one.folders)]
            return beside or (found if len(found) == 1 else [replace(found[0], pipeline=None, parameters={}, namespace=Namespace())])
        if folder == top:
            break
    return [Settings(top, variables=_names(Namespace(), None))]


def settings_in(folder: Path, *, target: str | None = None, variables: Mapping[str, str] | None = None) -> list[Settings]:
    """The settings of each pipeline that the project file in a folder declares; none without such a file.

    `target`: deployment target of the bundle; `variables`: values over those of the bundle. Raises CONFIG_INVALID.
    """
    file = bundle_file(folder)
    if file is not None:
        environ = {**os.environ, **{f"BUNDLE_VAR_{name}": value for name, value in (variables or {}).items()}}
        bundle = load_bundle(file, target=target, cwd=Path.cwd(), environ=environ)
        return [settings_of(bundle, key, node) for key, node in bundle.pipelines().items()] or [Settings(folder, bundle=bundle)]
    file = spark_file(folder)
    return [of_spark_file(file)] if file is not None else []


def of_spark_file(file: Path) -> Settings:
    """The settings in a project file of Spark's pipelines; libraries may be plain patterns."""
    tree = read_yaml(file, shown=shown_path(file, Path.cwd()))
    return settings_of(Bundle(file.parent, tree, None, os.environ), file.parent.name, tree)


def settings_of(bundle: Bundle, key: str, pipeline: Node) -> Settings:
    """The settings of one pipeline."""

    def value(*names: str) -> str | None:
        node = next((found for name in names if (found := pipeline.get(name))), None)
        return bundle.partly(node) if node else None

    default = Namespace()
    namespace = Namespace(value("catalog") or default.catalog, value("schema", "database", "target") or default.schema)
    configuration = pipeline.get("configuration")
    parameters = {name: bundle.partly(node) for name, node in (configuration.entries("configuration") if configuration else {}).items()}
    name = value("name") or key
    return Settings(
        root=bundle.root,
        pipeline=name,
        namespace=namespace,
        parameters=parameters,
        variables={**parameters, **_names(namespace, name)},
        folders=tuple(_libraries(bundle, pipeline)),
        bundle=bundle,
    )


def _names(namespace: Namespace, pipeline: str | None) -> dict[str, str]:
    names = {"catalog": namespace.catalog, "pipeline_schema": namespace.schema}
    return {**names, "pipeline_name": pipeline} if pipeline else names


def _libraries(bundle: Bundle, pipeline: Node) -> Sequence[Path]:
    """The folders in which the pipeline's sources lie, as far as its libraries name them without a pattern."""
    libraries, folders = pipeline.get("libraries"), []
    for entry in libraries.items("libraries") if libraries else ():
        node = entry if not isinstance(entry.value, dict) else next(iter(entry.value.values()))
        node = node.get("include") or node.get("path") or node
        if isinstance(node.value, dict | list):
            continue
        text = bundle.partly(node)
        base = source_files.glob_base(text) if source_files.is_glob(text) else text
        folder = Path(os.path.normpath(node.file.parent / base))
        folders.append(folder.parent if folder.is_file() else folder)
    root = pipeline.get("root_path")
    if not folders and root:
        folders.append(Path(os.path.normpath(root.file.parent / bundle.partly(root))))
    return folders
