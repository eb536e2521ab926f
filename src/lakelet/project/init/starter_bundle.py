"""The starter `databricks.yml`, as text. Pure."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lakelet.config import source_files
from lakelet.project.init.findings import ParameterFound
from lakelet.project.init.grouping import PipelineFiles, slug

_HEAD = """\
# A start, made by `lakelet init` from what the code says. Run it here with `lakelet run{key}`, deploy it with `databricks bundle deploy`.
bundle:
  name: {name}

variables:
  catalog:
    description: Where names without a catalog live
    default: {catalog}
  {schema}:
    description: {what}
    default: {value}

resources:
  pipelines:
"""
_DEVELOPMENT = """\

targets:
  # Each developer's tables lie in schemas of their own, made by the deployment, with the user's name in front.
  dev:
    mode: development
    default: true
    resources:
"""
_PRODUCTION = """\
  prod:
    mode: production
    workspace:
      root_path: /Workspace/Shared/.bundle/${bundle.name}/${bundle.target}
"""


@dataclass(frozen=True)
class BundlePipeline:
    """One pipeline of the bundle. `catalog`, `schema`: what its code says of the tables that it writes, None where it says nothing."""

    group: PipelineFiles
    catalog: str | None
    schema: str | None
    root: Path
    parameters: tuple[ParameterFound, ...]


def bundle_text(folder: Path, resources: list[BundlePipeline]) -> str:
    """The whole file: a resource for each pipeline, and two targets."""
    several = len(resources) > 1
    only = resources[0]
    schema_line = (
        ("schema_prefix", "In front of each pipeline's schema", '""')
        if several
        else ("schema", "The tables' schema", only.schema or "default")
    )
    catalogs = {resource.catalog for resource in resources} - {None}
    shared = catalogs.pop() if len(catalogs) == 1 else None
    head = _HEAD.format(
        key=f" {only.group.key}" if several else "",
        name=slug(folder.name) or "pipelines",
        catalog=_scalar(shared or "main"),
        schema=schema_line[0],
        what=schema_line[1],
        value=schema_line[2] if several else _scalar(schema_line[2]),
    )
    parts = [line for resource in resources for line in _resource(folder, resource, several, shared)]
    development = "\n".join(_own_schemas(resources, several, shared)) + "\n"
    return head + "\n".join(parts) + "\n" + _DEVELOPMENT + development + _PRODUCTION


def _own_schemas(resources: list[BundlePipeline], several: bool, shared: str | None) -> Iterator[str]:
    """What the development target has: schemas that are not those of another target, and the pipelines that use them."""
    places = {resource.group.key: (_catalog(resource, shared), _schema(resource, several)) for resource in resources}
    keys: dict[tuple[str, str], str] = {}
    for key, place in places.items():
        keys.setdefault(place, f"{key}_tables")
    yield "      schemas:"
    for (catalog, schema), key in keys.items():
        yield from (f"        {key}:", f"          catalog_name: {catalog}", f"          name: {schema}")
    yield "      pipelines:"
    for key, place in places.items():
        yield from (f"        {key}:", f"          schema: ${{resources.schemas.{keys[place]}.name}}")


def _catalog(resource: BundlePipeline, shared: str | None) -> str:
    return _scalar(resource.catalog) if resource.catalog not in (None, shared) else "${var.catalog}"


def _schema(resource: BundlePipeline, several: bool) -> str:
    return "${var.schema_prefix}" + _plain(resource.schema or resource.group.key) if several else "${var.schema}"


def _resource(folder: Path, resource: BundlePipeline, several: bool, shared: str | None) -> Iterator[str]:
    group = resource.group
    yield f"    {group.key}:"
    yield f"      name: {group.key}"
    yield f"      catalog: {_catalog(resource, shared)}"
    yield f"      schema: {_schema(resource, several)}"
    yield "      serverless: true"
    yield f"      root_path: {_scalar(_relative(resource.root, folder))}"
    yield "      libraries:"
    for entry in libraries(folder, group):
        yield from (f"        {line}" for line in entry)
    yield from _configuration(resource.parameters)


def libraries(folder: Path, group: PipelineFiles) -> list[list[str]]:
    """The pipeline's files as library entries: the whole folder where nothing else lies in it, else file by file."""
    files = [reading.path for reading in group.files]
    below = source_files.matching("**", group.folder)
    if set(below) <= set(files) and not glob.has_magic(str(group.folder.relative_to(folder))):
        return [["- glob:", f"    include: {_scalar(_relative(group.folder, folder).rstrip('/') + '/**')}"]]
    names = [_relative(file, folder) for file in files]
    if any(glob.has_magic(name) for name in names):  # a pattern, where a name is meant
        return [["- file:", f"    path: {_scalar(name)}"] for name in names]
    return [["- glob:", f"    include: {_scalar(name)}"] for name in names]


def _configuration(parameters: Iterable[ParameterFound]) -> Iterator[str]:
    given = [one for one in parameters if one.default is not None]
    open_ones = [one for one in parameters if one.default is None]
    if given:
        yield "      configuration:"
    elif open_ones:
        yield "      # configuration:"
    for one in given:
        yield f"        {_scalar(one.key)}: {json.dumps(one.default, ensure_ascii=False)} # the code's own default, {one.location}"
    for one in open_ones:
        yield f'      #   {_scalar(one.key)}: "" # without default: {one.location}'


def _origin(one: ParameterFound) -> str:
    return f"as {one.location.file} says" if one.configured else f"the code's own default, {one.location}"


def _relative(path: Path, folder: Path) -> str:
    inner = path.relative_to(folder).as_posix()
    return "." if inner == "." else f"./{inner}"


def _plain(text: str) -> str:
    return text.replace('"', "")


def _scalar(text: str | None) -> str:
    """The text as a YAML value that is a string."""
    text = text or ""
    plain = all(part.isalnum() or part in "_./-" for part in text) and text[:1].isalpha() and text.lower() not in _WORDS
    path = text.startswith("./") and all(part.isalnum() or part in "_./-*" for part in text)
    return text if plain or path or text == "." else json.dumps(text, ensure_ascii=False)


_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
