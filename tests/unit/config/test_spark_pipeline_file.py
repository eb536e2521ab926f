"""Projects of Spark's own pipelines tool: `spark-pipeline.yml` says files, names and settings (DS-27)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.config.update_config import PipelineConfig, load_config

FULL = """
name: events
storage: file:///somewhere/else
catalog: lake
database: raw
configuration:
  spark.sql.shuffle.partitions: "8"
  day: 2024-01-01
libraries:
  - glob:
      include: transformations/**
  - glob:
      include: extra/one.sql
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("transformations/a.py", "transformations/deep/b.sql", "transformations/.hidden.py", "extra/one.sql", "extra/two.sql"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "spark-pipeline.yml").write_text(FULL.lstrip())
    return tmp_path


@pytest.fixture
def load(project: Path) -> Callable[..., PipelineConfig]:
    def load(*sources: str, cwd: Path | None = None, **options: str) -> PipelineConfig:
        return load_config(sources, cwd=cwd or project, environ={}, **options)

    return load


def names(config: PipelineConfig) -> list[str]:
    return [str(file.relative_to(config.root)) for file in config.files]


def test_the_file_says_name_files_namespace_and_parameters(load, project):
    config = load()
    assert (config.name, config.namespace, config.root) == ("events", Namespace("lake", "raw"), project)
    assert names(config) == ["transformations/a.py", "transformations/deep/b.sql", "extra/one.sql"]
    assert config.parameters == {"spark.sql.shuffle.partitions": "8", "day": "2024-01-01"}
    assert project in config.import_roots


@pytest.mark.parametrize("source", [".", "spark-pipeline.yml", "events"])
def test_folder_file_and_name_of_the_pipeline_mean_the_same(load, source):
    assert names(load(source)) == names(load())


def test_it_is_found_from_a_folder_below_and_for_a_file_of_the_pipeline(load, project):
    assert load(cwd=project / "transformations/deep").root == project
    assert load("transformations/a.py").name == "events"


def test_flags_and_local_settings_win(load, project):
    (project / "pyproject.toml").write_text('[tool.lakelet]\nschema = "mine"\nparameters = { day = "today" }\n')
    config = load(catalog="c")
    assert (config.namespace, config.parameters["day"]) == (Namespace("c", "mine"), "today")


def test_the_storage_of_sparks_tool_is_not_written_to_and_that_is_told(load, project):
    config = load()
    assert config.storage == project / ".lakelet"
    assert [(text.split(" is ")[0], str(where)) for text, where in config.remarks] == [
        ("storage: file:///somewhere/else", "spark-pipeline.yml, line 2")
    ]


def test_settings_that_set_up_spark_itself_are_left_out_and_told(load, project):
    text = "name: x\nconfiguration:\n  spark.sql.extensions: io.delta\n  spark.executor.memory: 4g\n  spark.sql.ansi.enabled: false\n"
    (project / "spark-pipeline.yml").write_text(text + "libraries: [{glob: {include: transformations/**}}]\n")
    config = load()
    assert config.parameters == {"spark.sql.ansi.enabled": "false"}
    assert [where.line for _, where in config.remarks] == [3, 4]


@pytest.mark.parametrize(
    ("text", "line", "nearest"),
    [
        ("name: x\nlibaries: []\n", 2, ("libraries",)),
        ("name: x\nlibraries:\n  - glbo: {include: a}\n", 3, ("glob",)),
        ("name: x\nlibraries:\n  - glob:\n      includes: a\n", 4, ("include",)),
        ("name: x\nlibraries:\n  - glob: {}\n", 3, ()),
        ("name: x\nlibraries:\n  - file: {path: a.py}\n", 3, ()),
        ("name: x\nlibraries: transformations\n", 2, ()),
        ("name: x\nschema: a\ndatabase: b\n", 2, ()),
        ("name: x\nconfiguration: [a]\n", 2, ()),
        ("name: x\nbad\n", 3, ()),
    ],
)
def test_mistakes_are_told_with_line_and_nearest_name(load, project, text, line, nearest):
    (project / "spark-pipeline.yml").write_text(text)
    with pytest.raises(LakeletError) as caught:
        load()
    error = caught.value
    assert (error.code, error.where.file, error.where.line, error.nearest) == ("CONFIG_INVALID", "spark-pipeline.yml", line, nearest)


def test_a_glob_without_files_and_a_target_are_refused(load, project):
    (project / "spark-pipeline.yml").write_text("name: x\nlibraries: [{glob: {include: nothing/**}}]\n")
    with pytest.raises(LakeletError) as caught:
        load()
    assert caught.value.code == "NO_SOURCES"
    with pytest.raises(LakeletError) as caught:
        load(target="prod")
    assert caught.value.code == "USAGE"


def test_both_spellings_in_one_folder_are_refused(load, project):
    (project / "spark-pipeline.yaml").write_text("name: y\n")
    with pytest.raises(LakeletError, match=r"spark-pipeline\.yml and spark-pipeline\.yaml"):
        load()


def test_a_bundle_in_the_same_folder_comes_first(load, project):
    (project / "databricks.yml").write_text(
        "resources: {pipelines: {of_bundle: {libraries: [{glob: {include: transformations/**}}]}}}\n",
    )
    assert load().name == "of_bundle"


def test_the_name_of_the_preview_counts_if_the_content_tells(load, project):
    (project / "spark-pipeline.yml").unlink()
    (project / "pipeline.yml").write_text("name: old\ndefinitions:\n  - glob: {include: transformations/**/*.py}\n")
    assert (load().name, names(load())) == ("old", ["transformations/a.py"])
    (project / "pipeline.yml").write_text("trigger: main\nsteps: []\n")
    (project / "transformations/a.py").write_text("import dlt\n")
    assert load().name == project.name
