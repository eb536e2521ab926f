"""Resources that a bundle makes or changes by Python, as a deployment sees them (reference/bundle.md, decision 57)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundles_double import environment, interpreters
from tests.unit.deploy.bundles import SOURCE, Folder, one

BUNDLE = """\
bundle: {name: shop}
python: {venv_path: ../env, resources: ["made:load_resources"], mutators: ["made:tagged"]}
variables: {schema: {default: gold}}
targets:
  dev: {mode: development, default: true, variables: {schema: gold_dev}}
  prod: {mode: production, workspace: {root_path: /Workspace/Shared/shop}, run_as: {service_principal_name: robot}}
resources:
  pipelines:
    stock: {name: stock, serverless: true, catalog: main, schema: "${var.schema}", libraries: [{file: {path: a.py}}]}
"""
MADE = """\
from dataclasses import replace

from databricks.bundles.core import Bundle, Resources, pipeline_mutator
from databricks.bundles.pipelines import Pipeline

def load_resources(bundle: Bundle) -> Resources:
    made = Resources()
    made.add_pipeline("sales", Pipeline.from_dict({
        "name": "sales", "serverless": True, "catalog": "main", "schema": "${var.schema}", "libraries": [{"file": {"path": "src/b.py"}}],
    }))
    made.add_job("nightly", {
        "name": "nightly", "tasks": [{"task_key": "go", "pipeline_task": {"pipeline_id": "${resources.pipelines.sales.id}"}}],
    })
    return made

@pipeline_mutator
def tagged(bundle: Bundle, pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, tags={"team": f"shop-{bundle.variables['schema']}"})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "shop").put({"databricks.yml": BUNDLE, "made.py": MADE, "a.py": SOURCE, "src/b.py": SOURCE})


@interpreters
def test_resources_of_python_are_deployed_like_those_of_files(folder: Folder, tmp_path: Path, interpreter: str) -> None:
    environment(tmp_path / "env", interpreter)
    state = folder.state()
    assert [str(one.key) for one in state.resources] == ["pipelines.stock", "pipelines.sales", "jobs.nightly"]
    sales = one(state, "pipelines.sales")
    assert sales.settings["name"] == "[dev ada_l] sales"
    assert sales.settings["schema"] == "gold_dev"
    assert sales.settings["libraries"] == [{"file": {"path": f"{state.workspace.file_path}/src/b.py"}}]
    assert str(sales.where).startswith("made.py, line ")
    assert [one(state, f"pipelines.{key}").settings["tags"]["team"] for key in ("sales", "stock")] == ["shop-gold_dev"] * 2


@interpreters
def test_values_of_the_command_reach_the_code(folder: Folder, tmp_path: Path, interpreter: str) -> None:
    environment(tmp_path / "env", interpreter)
    state = folder.state("prod", variables={"schema": "other"})
    assert [one(state, f"pipelines.{key}").settings["tags"]["team"] for key in ("sales", "stock")] == ["shop-other"] * 2


def test_nothing_is_deployed_without_the_python_of_the_bundle(folder: Folder) -> None:
    assert folder.mistakes() == [
        "BUNDLE_PYTHON_MISSING databricks.yml, line 2: the virtual environment '../env' of the bundle's Python does not exist"
    ]


def test_a_development_target_may_not_write_what_a_pipeline_made_by_python_writes_in_production(folder: Folder, tmp_path: Path) -> None:
    environment(tmp_path / "env")
    folder.put({"databricks.yml": BUNDLE.replace("schema: gold_dev", "schema: gold"), "made.py": MADE.replace("${var.schema}", "silver")})
    owned = "a pipeline of this development target would write its tables to main.{}, which the target 'prod' owns"
    assert [text.split(": ", 1)[1] for text in folder.mistakes()] == [owned.format("gold"), owned.format("silver")]


@interpreters
def test_a_failure_of_the_code_is_reported_with_the_other_mistakes(folder: Folder, tmp_path: Path, interpreter: str) -> None:
    environment(tmp_path / "env", interpreter)
    folder.put(
        {"made.py": MADE.replace('"name": "sales"', '"nam": "sales"'), "databricks.yml": BUNDLE.replace("default: true", "defalt: true")}
    )
    assert [text.split(":")[0] for text in folder.mistakes()] == [
        "CONFIG_INVALID databricks.yml, line 5",
        "BUNDLE_PYTHON_FAILED made.py, line 8",
    ]
