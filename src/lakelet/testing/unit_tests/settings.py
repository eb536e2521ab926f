"""Settings of a unit test from its project: names, parameters, and the variables that its YAML may use."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import Namespace
from lakelet.config import source_files
from lakelet.config.bundle import Bundle, load_bundle
from lakelet.config.bundle_files import bundle_file
from lakelet.config.spark_pipeline_file import spark_file
from lakelet.config.yaml_tree import ConfigNode, read_yaml, shown_path

_VARIABLE = re.compile(r"\$\{\s*([^}]+?)\s*\}")


@dataclass(frozen=True)
class Settings:
    """Settings of one pipeline of the project, or of none: its folder, names and parameters.

    `variables`: values of `${…}` beside what the bundle knows, as text; `values`: those of them that are no texts.
    `lenient`: a cell may hold the text of an unknown variable.
    """

    root: Path
    pipeline: str | None = None
    namespace: Namespace = field(default_factory=Namespace)
    parameters: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    bundle: Bundle | None = None
    lenient: bool = False

    def over(self, nodes: Mapping[str, ConfigNode]) -> Settings:
        """These settings with further variables, which are parameters too."""
        if not nodes:
            return self
        more = {key: self.text(node) for key, node in nodes.items()}
        catalog, schema = more.get("catalog", self.namespace.catalog), more.get("pipeline_schema", self.namespace.schema)
        parameters, variables = {**self.parameters, **more}, {**self.variables, **more}
        values = {**{key: value for key, value in self.values.items() if key not in more}, **_no_texts(nodes, self.value)}
        return replace(self, namespace=Namespace(catalog, schema), parameters=parameters, variables=variables, values=values)

    def value(self, node: ConfigNode) -> Any:
        """A scalar; a variable that stands alone has the type of its value. Raises like `text`."""
        if not isinstance(node.value, str):
            return node.value
        try:
            text = self.text(node)
        except LakeletError:
            if self.lenient:
                return node.value
            raise
        alone = _VARIABLE.fullmatch(node.text)
        if alone is None or alone[1] in self.variables:
            return self.values.get(alone[1], text) if alone else text
        return text if self.bundle is None else _typed(self.bundle, node)

    def text(self, node: ConfigNode) -> str:
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


def settings_in(folder: Path) -> list[Settings]:
    """The settings of each pipeline that the project file in a folder declares; none without such a file. Raises CONFIG_INVALID."""
    file = bundle_file(folder)
    if file is not None:
        bundle = load_bundle(file, target=None, cwd=Path.cwd(), environ=os.environ)
        return [settings_of(bundle, key, node) for key, node in bundle.pipelines().items()] or [Settings(folder, bundle=bundle)]
    file = spark_file(folder)
    return [of_spark_file(file)] if file is not None else []


def chosen_bundle(file: Path, target: str | None, variables: Mapping[str, ConfigNode]) -> Bundle:
    """The bundle with a deployment target and values of variables that a test file names; both need no declaration in the bundle.

    Raises CONFIG_INVALID, also for a target that is not among the bundle's.
    """
    declared = read_yaml(file, shown=shown_path(file, Path.cwd())).get("targets")
    bundle = load_bundle(file, target=target if declared else None, cwd=Path.cwd(), environ=os.environ)
    return with_variables(replace(bundle, target=bundle.target or target), variables)


def with_variables(bundle: Bundle, variables: Mapping[str, ConfigNode]) -> Bundle:
    """The bundle with these values of variables, over those of its files and of the environment."""
    if not variables:
        return bundle
    tree, declared = bundle.tree, bundle.tree.get("variables")
    known = dict(declared.entries("variables")) if declared else {}
    known |= {name: replace(node, value={"value": node}) for name, node in variables.items()}
    environ = {key: value for key, value in bundle.environ.items() if key.removeprefix("BUNDLE_VAR_") not in variables}
    return replace(bundle, tree=replace(tree, value={**tree.value, "variables": replace(tree, value=known)}), environ=environ)


def of_spark_file(file: Path) -> Settings:
    """The settings in a project file of Spark's pipelines; libraries may be plain patterns."""
    tree = read_yaml(file, shown=shown_path(file, Path.cwd()))
    return replace(settings_of(Bundle(file.parent, tree, None, os.environ), file.parent.name, tree), lenient=True)


def settings_of(bundle: Bundle, key: str, pipeline: ConfigNode) -> Settings:
    """The settings of one pipeline."""

    def value(*names: str) -> str | None:
        node = next((found for name in names if (found := pipeline.get(name))), None)
        return bundle.partly(node) if node else None

    default = Namespace()
    namespace = Namespace(value("catalog") or default.catalog, value("schema", "database", "target") or default.schema)
    configuration = pipeline.get("configuration")
    nodes = configuration.entries("configuration") if configuration else {}
    parameters = {name: bundle.partly(node) for name, node in nodes.items()}
    name = value("name") or key
    return Settings(
        root=bundle.root,
        pipeline=name,
        namespace=namespace,
        parameters=parameters,
        variables={**parameters, **_names(namespace, name)},
        values=_no_texts(nodes, functools.partial(_typed, bundle)),
        folders=tuple(_libraries(bundle, pipeline)),
        bundle=bundle,
    )


def _no_texts(nodes: Mapping[str, ConfigNode], value: Callable[[ConfigNode], Any]) -> dict[str, Any]:
    """The values that are numbers, dates and switches."""
    found = {name: value(node) for name, node in nodes.items()}
    return {name: one for name, one in found.items() if not isinstance(one, str)}


def _typed(bundle: Bundle, node: ConfigNode) -> Any:
    """A scalar; a reference that stands alone has the type of what it refers to."""
    return bundle.filled(node).value


def _names(namespace: Namespace, pipeline: str | None) -> dict[str, str]:
    names = {"catalog": namespace.catalog, "pipeline_schema": namespace.schema}
    return {**names, "pipeline_name": pipeline} if pipeline else names


def _libraries(bundle: Bundle, pipeline: ConfigNode) -> Sequence[Path]:
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
