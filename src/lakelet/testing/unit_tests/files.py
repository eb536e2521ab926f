"""Finds the unit tests of a file: `*.unit_tests.yml` beside the code, `*_pipeline_tests.yml`, or the definition of a pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.config.bundle import Bundle, load_bundle
from lakelet.config.bundle_files import BUNDLE_FILES, bundle_file
from lakelet.config.spark_pipeline_file import spark_file
from lakelet.config.yaml_tree import ConfigNode, read_yaml, shown_path
from lakelet.testing.unit_tests.cases import UnitTest, UnreadableTest, read_test, refuse_misspelt
from lakelet.testing.unit_tests.settings import (
    Settings,
    chosen_bundle,
    of_spark_file,
    project_settings,
    settings_in,
    settings_of,
    with_variables,
)
from lakelet.testing.yaml_names import SUFFIXES, is_definition_file, is_pipeline_test_file

_FILE = frozenset({"tests", "log_level"})
_PIPELINE_FILE = frozenset({"suite", "log_level", "bundle", "pipeline", "defaults", "tests"})
_BUNDLE = frozenset({"file", "target", "variables"})
_PIPELINE = frozenset({"ref", "file", "key"})


def read_tests(file: Path, top: Path) -> Iterator[tuple[str, UnitTest]]:
    """`all_tests` of a file without mistakes. Raises CONFIG_INVALID with file and line for the first one."""
    for name, test in all_tests(file, top):
        if isinstance(test, UnreadableTest):
            raise test.error
        yield name, test


def all_tests(file: Path, top: Path) -> Iterator[tuple[str, UnitTest | UnreadableTest]]:
    """The tests of a file with their names, which say the pipeline where the file belongs to several, and the file where it is another one.

    A test that cannot be read is given as such: the others count. `top`: the highest folder that may be the project's. Raises
    CONFIG_INVALID with file and line where the file as a whole cannot be read.
    """
    tree = read_yaml(file, shown=shown_path(file, Path.cwd()))
    if is_pipeline_test_file(file):
        yield from _tests_of_pipeline(file, tree)
        return
    if is_definition_file(file):
        for settings in _defined(file, tree):
            yield from ((f"{settings.pipeline}::{name}", test) for name, test in _tests_beside(settings))
        return
    choices = project_settings(file, top)
    for settings in choices:
        for test in _tests(tree, file, settings):
            yield (f"{settings.pipeline}::{test.name}" if len(choices) > 1 else test.name), test


def _tests(tree: ConfigNode, file: Path, settings: Settings, known: frozenset[str] = _FILE) -> Iterator[UnitTest | UnreadableTest]:
    refuse_misspelt(tree, known, "a file of unit tests")
    tests = tree.get("tests")
    for node in tests.items("tests") if tests else ():
        try:
            yield read_test(node, file.parent, settings)
        except LakeletError as error:
            name = node.value.get("name") if isinstance(node.value, dict) else None
            yield UnreadableTest(name.text if name is not None else f"line {node.where.line}", node.where, error)


def _tests_of_pipeline(file: Path, tree: ConfigNode) -> Iterator[tuple[str, UnitTest | UnreadableTest]]:
    """The tests in the file itself, then those beside the pipeline's code, all with what this file says of variables."""
    refuse_misspelt(tree, _PIPELINE_FILE, "a file of pipeline tests")
    defaults = tree.get("defaults")
    settings = _chosen(file, tree).over(defaults.entries("defaults") if defaults else {})
    for test in _tests(tree, file, settings, _PIPELINE_FILE):
        yield test.name, test
    yield from _tests_beside(settings)


def _defined(file: Path, tree: ConfigNode) -> list[Settings]:
    """The settings of the pipelines that a file defines: a bundle, one of its resource files, or a project file of Spark's pipelines."""
    if file.name in BUNDLE_FILES:
        return settings_in(file.parent)
    resources = tree.get("resources", "pipelines")
    if resources is None:
        return [of_spark_file(file)]
    above = _bundle_above(file.parent)
    whole = bundle_file(above) if above else None
    bundle = load_bundle(whole, target=None, cwd=Path.cwd(), environ=os.environ) if whole else Bundle(file.parent, tree, None, os.environ)
    return [settings_of(bundle, key, node) for key, node in resources.entries("pipelines").items()]


def _tests_beside(settings: Settings) -> Iterator[tuple[str, UnitTest | UnreadableTest]]:
    """The tests in the folders of a pipeline's code."""
    beside = sorted({path for folder in settings.folders for suffix in SUFFIXES for path in folder.glob(f"**/*.unit_tests{suffix}")})
    for path in beside:
        name = path.stem.removesuffix(".unit_tests")
        try:
            for test in _tests(read_yaml(path, shown=shown_path(path, Path.cwd())), path, settings):
                yield f"{name}::{test.name}", test
        except LakeletError as error:
            yield name, UnreadableTest(name, error.where or Location(path.name, 1), error)


def _chosen(file: Path, tree: ConfigNode) -> Settings:
    """The settings of the pipeline that the file names."""
    bundle, pipeline = tree.get("bundle"), tree.get("pipeline")
    if pipeline is None:
        raise tree.bad("the file names no pipeline", todo="For example: pipeline: pipelines.orders")
    if bundle:
        bundle.refuse_unknown(_BUNDLE, "bundle")
    project = _bundle_of(file, bundle)
    if isinstance(pipeline.value, dict):
        pipeline.refuse_unknown(_PIPELINE, "pipeline")
        other, key = pipeline.get("file"), pipeline.get("key")
        if other is not None:
            return _in_file(Path(os.path.normpath(file.parent / other.text)), key, other, project)
        pipeline = pipeline.get("ref") or pipeline
    wanted = pipeline.text.removeprefix("pipelines.")
    by_key = project.pipelines()
    if wanted not in by_key:
        raise pipeline.bad(f"the bundle has no pipeline {wanted!r}", why=f"It has {', '.join(by_key)}." if by_key else None)
    return settings_of(project, wanted, by_key[wanted])


def _bundle_of(file: Path, named: ConfigNode | None) -> Bundle:
    """The bundle that a file of pipeline tests names, else the nearest one above it, with target and variables; an empty one without."""
    where, target, values = (named.get(key) if named else None for key in ("file", "target", "variables"))
    variables = values.entries("variables") if values else {}
    above = Path(os.path.normpath(file.parent / where.text)).parent if where else _bundle_above(file.parent)
    found = bundle_file(above) if above else None
    if found is not None:
        return chosen_bundle(found, target.text if target else None, variables)
    empty = Bundle(above or file.parent, ConfigNode({}, named.where if named else Location(file.name, 1), file), None, os.environ)
    return with_variables(replace(empty, target=target.text if target else None), variables)


def _in_file(path: Path, key: ConfigNode | None, where: ConfigNode, project: Bundle) -> Settings:
    """The settings in a file of Spark's pipelines, or of the pipeline `key` in a resource file of a bundle."""
    if not path.is_file():
        raise where.bad(f"there is no file {where.text!r}")
    tree = read_yaml(path, shown=shown_path(path, Path.cwd()))
    if key is None:
        return settings_of(replace(project, root=path.parent), path.parent.name, tree)
    found = tree.get("resources", "pipelines", key.text)
    if found is None:
        raise key.bad(f"{where.text} has no pipeline {key.text!r}")
    return settings_of(project if project.pipelines() else replace(project, root=path.parent), key.text, found)


def _bundle_above(folder: Path) -> Path | None:
    """The nearest folder, from this one upwards, that holds a project file."""
    return next((one for one in (folder, *folder.parents) if bundle_file(one) or spark_file(one)), None)
