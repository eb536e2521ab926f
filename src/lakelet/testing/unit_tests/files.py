"""Finds the unit tests in a file: `*.unit_tests.yml` beside the code, `*_pipeline_tests.yml` for a whole pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lakelet.config.bundle import Bundle, Node, bundle_file, read_yaml, shown_path
from lakelet.config.spark_pipeline_file import spark_file
from lakelet.testing.unit_tests.cases import UnitTest, plain, read_test
from lakelet.testing.unit_tests.settings import Settings, of_spark_file, project_settings, settings_in, settings_of
from lakelet.testing.yaml_names import SUFFIXES, is_pipeline_test_file

_FILE = frozenset({"tests", "log_level"})
_PIPELINE_FILE = frozenset({"suite", "log_level", "bundle", "pipeline", "defaults", "tests"})
_BUNDLE = frozenset({"file", "target", "variables"})
_PIPELINE = frozenset({"ref", "file", "key"})


def read_tests(file: Path, top: Path) -> Iterator[tuple[str, UnitTest]]:
    """The tests of a file with their names, which say the pipeline where the file belongs to several, and the file where it is another one.

    `top`: the highest folder that may be the project's. Raises CONFIG_INVALID with file and line.
    """
    tree = read_yaml(file, shown=shown_path(file, Path.cwd()))
    if is_pipeline_test_file(file):
        yield from _tests_of_pipeline(file, tree)
        return
    choices = project_settings(file, top)
    for settings in choices:
        for test in _tests(tree, file, settings):
            yield (f"{settings.pipeline}::{test.name}" if len(choices) > 1 else test.name), test


def _tests(tree: Node, file: Path, settings: Settings, known: frozenset[str] = _FILE) -> Iterator[UnitTest]:
    tree.refuse_unknown(known, "a file of unit tests")
    tests = tree.get("tests")
    for node in tests.items("tests") if tests else ():
        yield read_test(node, file.parent, settings)


def _tests_of_pipeline(file: Path, tree: Node) -> Iterator[tuple[str, UnitTest]]:
    """The tests in the file itself, then those beside the pipeline's code, all with what this file says of variables."""
    tree.refuse_unknown(_PIPELINE_FILE, "a file of pipeline tests")
    settings = _chosen(file, tree)
    defaults = tree.get("defaults")
    settings = settings.over({key: settings.text(node) for key, node in (defaults.entries("defaults") if defaults else {}).items()})
    for test in _tests(tree, file, settings, _PIPELINE_FILE):
        yield test.name, test
    beside = sorted({path for folder in settings.folders for suffix in SUFFIXES for path in folder.glob(f"**/*.unit_tests{suffix}")})
    for path in beside:
        for test in _tests(read_yaml(path, shown=shown_path(path, Path.cwd())), path, settings):
            yield f"{path.stem.removesuffix('.unit_tests')}::{test.name}", test


def _chosen(file: Path, tree: Node) -> Settings:
    """The settings of the pipeline that the file names."""
    bundle, pipeline = tree.get("bundle"), tree.get("pipeline")
    if pipeline is None:
        raise tree.bad("the file names no pipeline", todo="For example: pipeline: pipelines.orders")
    if bundle:
        bundle.refuse_unknown(_BUNDLE, "bundle")
    plain_settings = Settings(file.parent)
    named = bundle.get("file") if bundle else None
    folder = Path(os.path.normpath(file.parent / named.text)).parent if named else _bundle_above(file.parent)
    target, given = (bundle.get("target"), bundle.get("variables")) if bundle else (None, None)
    variables = {name: str(plain(node, plain_settings)) for name, node in (given.entries("variables") if given else {}).items()}
    choices = settings_in(folder, target=target.text if target else None, variables=variables) if folder else []
    if isinstance(pipeline.value, dict):
        pipeline.refuse_unknown(_PIPELINE, "pipeline")
        other, key = pipeline.get("file"), pipeline.get("key")
        if other is not None:
            return _in_file(Path(os.path.normpath(file.parent / other.text)), key, other, choices)
        pipeline = pipeline.get("ref") or pipeline
    wanted = pipeline.text.removeprefix("pipelines.")
    by_key = {} if not choices or choices[0].bundle is None else choices[0].bundle.pipelines()
    if wanted not in by_key or choices[0].bundle is None:
        raise pipeline.bad(f"the bundle has no pipeline {wanted!r}", why=f"It has {', '.join(by_key)}." if by_key else None)
    return settings_of(choices[0].bundle, wanted, by_key[wanted])


def _in_file(path: Path, key: Node | None, where: Node, choices: list[Settings]) -> Settings:
    """The settings in a file of Spark's pipelines, or of the pipeline `key` in a resource file of a bundle."""
    if not path.is_file():
        raise where.bad(f"there is no file {where.text!r}")
    if key is None:
        return of_spark_file(path)
    tree = read_yaml(path, shown=shown_path(path, Path.cwd()))
    found = tree.get("resources", "pipelines", key.text)
    if found is None:
        raise key.bad(f"{where.text} has no pipeline {key.text!r}")
    bundle = choices[0].bundle if choices and choices[0].bundle else None
    return settings_of(bundle or Bundle(path.parent, tree, None, os.environ), key.text, found)


def _bundle_above(folder: Path) -> Path | None:
    """The nearest folder, from this one upwards, that holds a project file."""
    return next((one for one in (folder, *folder.parents) if bundle_file(one) or spark_file(one)), None)
