"""Bundles that make or change resources by Python, as a local run reads them (reference/bundle.md, decision 57)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.base.names import Namespace
from lakelet.config import bundle_python
from lakelet.config.bundle import load_bundle
from tests.bundles_double import environment, interpreters
from tests.unit.config.projects import Project

BUNDLE = """\
bundle: {name: shop}
python:
  venv_path: .venv
  resources: ["resources:load_resources"]
variables:
  catalog: {default: "${var.first}"}
  first: {default: main}
targets:
  dev: {default: true}
  prod: {variables: {catalog: live}}
"""
RESOURCES = """\
from databricks.bundles.core import Bundle, Resources
from databricks.bundles.pipelines import Pipeline

def load_resources(bundle: Bundle) -> Resources:
    made = Resources()
    made.add_pipeline("sales", Pipeline.from_dict({
        "name": f"sales of {bundle.variables['catalog']} in {bundle.target}",
        "catalog": "${var.catalog}",
        "schema": "gold",
        "libraries": [{"glob": {"include": "src/sales/**"}}],
        "configuration": {"landing": "${workspace.file_path}/landing"},
    }))
    return made
"""
MUTATORS = """\
from dataclasses import replace

from databricks.bundles.core import Bundle, pipeline_mutator
from databricks.bundles.pipelines import Pipeline

@pipeline_mutator
def by_target(bundle: Bundle, pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, schema=f"{pipeline.schema}_{bundle.target}")
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "shop").write("databricks.yml", BUNDLE).write("resources/__init__.py", RESOURCES).write("src/sales/a.py")
    environment(made.root / ".venv")
    return made


@interpreters
def test_a_pipeline_made_by_python_is_one_of_the_bundle(tmp_path: Path, interpreter: str) -> None:
    project = Project(tmp_path / "shop").write("databricks.yml", BUNDLE).write("resources/__init__.py", RESOURCES).write("src/sales/a.py")
    environment(project.root / ".venv", interpreter)
    for target, catalog in (("dev", "main"), ("prod", "live")):
        config = project.load(target=target)
        assert config.name == f"sales of {catalog} in {target}"
        assert config.namespace == Namespace(catalog, "gold")
        assert project.files(config) == ["src/sales/a.py"]
        assert config.parameters == {"landing": f"{project.root}/landing"}
    assert project.load("sales", environ={"BUNDLE_VAR_catalog": "own"}).namespace == Namespace("own", "gold")
    assert not list(project.root.rglob("__pycache__"))


@interpreters
def test_mutators_change_pipelines_of_files_and_of_python(tmp_path: Path, interpreter: str) -> None:
    text = (
        BUNDLE
        + 'resources: {pipelines: {stock: {name: stock, catalog: "${var.catalog}", schema: s, libraries: [{file: {path: src/a.py}}]}}}\n'
    )
    project = Project(tmp_path / "shop").write("databricks.yml", text.replace("\nvariables:", '\n  mutators: ["m:by_target"]\nvariables:'))
    project.write("resources/__init__.py", RESOURCES).write("m.py", MUTATORS).write("src/sales/b.py").write("src/a.py")
    environment(project.root / ".venv", interpreter)
    assert project.load("sales").namespace == Namespace("main", "gold_dev")
    stock = project.load("stock", target="prod")
    assert stock.namespace == Namespace("live", "s_prod")
    assert project.files(stock) == ["src/a.py"]


@interpreters
def test_what_a_mutator_leaves_keeps_its_place_and_its_paths(tmp_path: Path, interpreter: str) -> None:
    first = "libraries=[PipelineLibrary(file=FileLibrary(path='src/new.py')), *pipeline.libraries]"
    change = MUTATORS.replace('schema=f"{pipeline.schema}_{bundle.target}"', first)
    if interpreter == "double":
        change = change.replace("PipelineLibrary(file=FileLibrary(path='src/new.py'))", "{'file': {'path': 'src/new.py'}}")
    else:
        change = change.replace("import Pipeline\n", "import FileLibrary, Pipeline, PipelineLibrary\n")
    project = Project(tmp_path / "shop").write(
        "databricks.yml", "bundle: {name: shop}\ninclude: [resources/*.yml]\npython: {venv_path: .venv, mutators: ['m:by_target']}\n"
    )
    project.write("resources/x.yml", "resources:\n  pipelines:\n    stock:\n      libraries:\n      - file: {path: ../src/old.py}\n")
    project.write("m.py", change).write("src/new.py").write("src/old.py")
    environment(project.root / ".venv", interpreter)
    assert sorted(project.files(project.load())) == ["src/new.py", "src/old.py"]
    (project.root / "src/old.py").unlink()
    assert str(project.error().where) == "resources/x.yml, line 5"
    project.write("src/old.py")
    (project.root / "src/new.py").unlink()
    assert str(project.error().where) == "m.py, line 6"


@interpreters
def test_the_code_sees_paths_from_the_folder_of_the_bundle_and_may_change_the_case_of_a_text(tmp_path: Path, interpreter: str) -> None:
    change = MUTATORS.replace('schema=f"{pipeline.schema}_{bundle.target}"', 'schema=pipeline.schema.upper(), tags={"seen": SEEN}')
    seen = "pipeline.libraries[0].file.path" if interpreter == "real" else "pipeline.libraries[0]['file']['path']"
    project = Project(tmp_path / "shop").write(
        "databricks.yml", "bundle: {name: shop}\ninclude: [sub/*.yml]\npython: {venv_path: .venv, mutators: ['m:by_target']}\n"
    )
    project.write("sub/x.yml", "resources: {pipelines: {stock: {schema: gold, libraries: [{file: {path: ../src/a.py}}]}}}\n")
    project.write("m.py", change.replace("SEEN", seen)).write("src/a.py")
    environment(project.root / ".venv", interpreter)
    found = load_bundle(project.root / "databricks.yml", target=None, cwd=project.root, environ={}).pipelines()["stock"]
    assert [node.text for key in (("tags", "seen"), ("schema",)) if (node := found.get(*key))] == ["src/a.py", "GOLD"]
    assert project.files(project.load()) == ["src/a.py"]


@pytest.mark.parametrize("resources", ["resources: []", "resources: {pipelines: []}", "resources: {pipelines: {sales: }}"])
def test_resources_of_another_form_are_refused_and_empty_ones_are_made(project: Project, resources: str) -> None:
    project.write("databricks.yml", BUNDLE + resources + "\n")
    assert project.error().code == "CONFIG_INVALID" if "sales" not in resources else project.load().name == "sales of main in dev"


def test_code_that_ends_the_process_is_told(project: Project) -> None:
    project.write("resources/__init__.py", "import os\n\ndef load_resources():\n    os._exit(0)\n")
    assert (project.error().code, project.error().what) == ("BUNDLE_PYTHON_FAILED", "the bundle's Python ended without a result")


def test_the_environment_may_be_named_by_a_variable(project: Project) -> None:
    project.write(
        "databricks.yml",
        BUNDLE.replace("venv_path: .venv", "venv_path: ${var.env}").replace("variables:\n", "variables:\n  env: {default: .venv}\n", 1),
    )
    assert project.load().name == "sales of main in dev"


@interpreters
def test_an_error_of_the_code_says_its_line_and_what_happened(tmp_path: Path, interpreter: str) -> None:
    project = Project(tmp_path / "shop").write("databricks.yml", BUNDLE).write("src/sales/a.py")
    project.write("resources/__init__.py", RESOURCES.replace('"schema": "gold"', '"schemas": "gold"'))
    environment(project.root / ".venv", interpreter)
    error = project.error()
    assert (error.code, str(error.where)) == ("BUNDLE_PYTHON_FAILED", "resources/__init__.py, line 6")
    assert error.why == "ValueError: Unexpected field 'schemas' for class Pipeline"


@interpreters
def test_a_resource_of_a_file_and_of_python_is_declared_twice(tmp_path: Path, interpreter: str) -> None:
    text = BUNDLE + "resources: {pipelines: {sales: {name: mine, libraries: [{file: {path: src/a.py}}]}}}\n"
    project = Project(tmp_path / "shop").write("databricks.yml", text).write("resources/__init__.py", RESOURCES).write("src/sales/a.py")
    environment(project.root / ".venv", interpreter)
    error = project.error()
    assert (error.code, str(error.where)) == ("CONFIG_INVALID", "resources/__init__.py, line 6")
    assert error.what == "the resource pipelines.sales is declared twice, first in databricks.yml, line 11"


def test_warnings_of_the_code_are_told(project: Project) -> None:
    project.write(
        "resources/__init__.py", RESOURCES.replace("    return made", '    made.add_diagnostic_warning("sales is old")\n    return made')
    )
    assert [(text, str(where)) for text, where in project.load().remarks] == [("sales is old", "databricks.yml, line 2")]


def test_without_the_environment_pipelines_of_files_run_and_the_rest_is_said_to_be_left_out(project: Project) -> None:
    project.write(
        "databricks.yml", BUNDLE.replace(".venv", "gone") + "resources: {pipelines: {stock: {libraries: [{file: {path: src/a.py}}]}}}"
    )
    config = project.write("src/a.py").load()
    assert project.files(config) == ["src/a.py"]
    what = "the virtual environment 'gone' of the bundle's Python does not exist"
    todo = "Make it: python3 -m venv gone && gone/bin/pip install databricks-bundles"
    left_out = f"resources and changes that the bundle makes by Python are left out: {what}; {todo}"
    assert [(text, str(where)) for text, where in config.remarks] == [(left_out, "databricks.yml, line 3")]
    error = project.error("sales")
    assert (error.code, error.what, error.todo) == ("BUNDLE_PYTHON_MISSING", what, todo)


@pytest.mark.parametrize("venv", ["venv_path: gone", ""])
def test_the_package_beside_lakelet_serves_where_the_bundle_names_no_environment_or_one_that_is_not_there(
    project, monkeypatch, venv
) -> None:
    monkeypatch.setattr(bundle_python, "_own_interpreter", lambda: str(project.root / ".venv/bin/python"))
    assert project.write("databricks.yml", BUNDLE.replace("venv_path: .venv", venv)).load().name == "sales of main in dev"


def test_an_environment_without_the_package_is_said_to_lack_it(project: Project) -> None:
    python = project.root / ".venv/bin/python"
    python.write_text(python.read_text().replace("PYTHONPATH=", "IGNORED="))
    error = project.error()
    assert error.code == "BUNDLE_PYTHON_MISSING"
    assert error.todo == f"Type: {python} -m pip install databricks-bundles"


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("python: {resources: [load]}", "databricks.yml, line 2: 'load' names no function"),
        ("python: {resource: ['a:b']}", "databricks.yml, line 2: python has no key 'resource'"),
        (
            "python: {resources: ['a:b']}\nexperimental: {python: {resources: ['a:c']}}",
            "databricks.yml, line 3: the bundle has python and experimental.python",
        ),
        ("python: {resources: ['a:b'], venv_path: [x]}", "databricks.yml, line 2: python.venv_path is a single path"),
        ("experimental: {pydabs: {enabled: true}}", "databricks.yml, line 2: experimental.pydabs is read no more"),
    ],
)
def test_sections_of_another_form_are_refused(project: Project, section: str, expected: str) -> None:
    error = project.write("databricks.yml", f"bundle: {{name: shop}}\n{section}\n").error()
    assert (error.code, f"{error.where}: {error.what}") == ("CONFIG_INVALID", expected)


def test_code_does_not_run_where_the_environment_forbids_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_BUNDLE_RESTRICTED_CODE_EXECUTION", "1")
    assert (project.error().code, project.error().what) == ("BUNDLE_PYTHON_MISSING", "the bundle's Python may not run")


def test_the_older_section_is_read_too(project: Project) -> None:
    older = BUNDLE.replace("python:\n  venv_path: .venv\n  resources:", "experimental:\n  python:\n    venv_path: .venv\n    resources:")
    assert project.write("databricks.yml", older).load().name == "sales of main in dev"


def test_both_sections_may_say_the_same(project: Project) -> None:
    section = "{venv_path: .venv, resources: ['resources:load_resources']}"
    rest = BUNDLE[BUNDLE.index("\nvariables:") :]
    text = f"bundle: {{name: shop}}\npython: {section}\nexperimental: {{python: {section}}}{rest}"
    assert project.write("databricks.yml", text).load().name == "sales of main in dev"


def test_an_interpreter_that_cannot_be_started_and_a_folder_with_a_space_are_told(project: Project) -> None:
    (project.root / ".venv/bin/python").chmod(0o644)
    error = project.error()
    assert (error.code, error.todo) == ("BUNDLE_PYTHON_MISSING", "Make the virtual environment again.")
    error = project.write("databricks.yml", BUNDLE.replace("venv_path: .venv", "venv_path: my env")).error()
    assert error.todo == "Make it: python3 -m venv 'my env' && 'my env'/bin/pip install databricks-bundles"


def test_a_switch_within_a_text_is_written_as_yaml_writes_it(project: Project) -> None:
    project.write("resources/__init__.py", RESOURCES.replace('"name": f"', '"name": f"{bundle.variables[\'said\']} '))
    project.write(
        "databricks.yml", BUNDLE.replace("\nvariables:\n", "\nvariables:\n  on: {default: true}\n  said: {default: 'is ${var.on}'}\n")
    )
    assert project.load().name == "is true sales of main in dev"


def test_the_code_gets_what_is_in_a_list_of_a_variable(project: Project) -> None:
    project.write("resources/__init__.py", RESOURCES.replace('"name": f"', '"name": f"{bundle.variables[\'second\']} '))
    variables = (
        "\nvariables:\n  both: {default: {list: [first, 'second of ${bundle.target}']}}\n  second: {default: '${var.both.list[1]}'}\n"
    )
    project.write("databricks.yml", BUNDLE.replace("\nvariables:\n", variables))
    assert project.load().name == "second of dev sales of main in dev"
