"""What is wrong in a bundle or on the command line is told with its file and line."""

from __future__ import annotations

import pytest

from tests.unit.config.projects import Project, bundle


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "shop")


BAD_PIPELINES = {
    "unknown key": ("schemas: x", 5, "the pipeline 'p' has no key 'schemas'", ("schema",)),
    "unknown library": ("libraries: [{files: {path: a.py}}]", 5, "a library has no key 'files'", ("file",)),
    "missing file": ("libraries: [{file: {path: ab.py}}]", 5, "the file 'ab.py' does not exist", ("a.py",)),
    "no path": ("libraries: [{file: {}}]", 5, "a library of kind 'file' needs 'path'", ()),
    "not a list": ("libraries: {file: a.py}", 5, "libraries must be a list", ()),
    "open reference": ("catalog: ${foo.bar}", 5, "${foo.bar} has no value in a local run", None),
    "undeclared variable": ("catalog: ${var.catlog}", 5, "the variable 'catlog' is not declared", ("catalog",)),
    "variable without value": ("catalog: ${var.catalog}", 5, "the variable 'catalog' has no value", ()),
    "circle": ("catalog: ${var.round}", 3, "${var.round} refers to itself", ()),
    "wrong configuration key": ("configuration: {a b: c}", 5, "the configuration key 'a b' may hold letters", ()),
    "wrong configuration value": ("configuration: {a: [c]}", 5, "the configuration value of 'a' must be text", ()),
    "template without quotes": ("catalog: {{ catalog }}", 5, "a key is a mapping or a list here", ()),
    "repeated key": ("name: a\n      name: b", 6, "the key 'name' is written twice, first in line 5", ()),
}


@pytest.mark.parametrize(("text", "line", "what", "nearest"), BAD_PIPELINES.values(), ids=BAD_PIPELINES.keys())
def test_what_is_wrong_in_a_pipeline_is_told_with_its_line(project, text, line, what, nearest):
    project.write("a.py").write("databricks.yml", "bundle: {name: b}\nresources:\n")
    libraries = "" if "libraries" in text else "\n      libraries: [{file: {path: a.py}}]"
    variables = 'variables: {catalog: {description: x}, round: {default: "${var.round}"}}'
    project.write("databricks.yml", f"bundle: {{name: b}}\nresources:\n  pipelines: # {variables}\n    p:\n      {text}{libraries}\n")
    if "var." in text:
        project.write("databricks.yml", f"bundle: {{name: b}}\nresources:\n  pipelines:\n    p:\n      {text}{libraries}\n{variables}\n")
        line = 7 if what.startswith("${var.round}") else line
    error = project.error()
    assert (error.code, str(error.where)) == ("CONFIG_INVALID", f"databricks.yml, line {line}")
    assert error.what.startswith(what)
    if nearest is not None:
        assert error.nearest[: len(nearest)] == nearest


@pytest.mark.parametrize(
    ("name", "text", "line", "what"),
    [
        ("databricks.yml", "bundle:\n  name: [", 2, "databricks.yml is not valid YAML"),
        ("databricks.yml", "bundle: {name: b}\nressources: {}\n", 2, "a bundle file has no key 'ressources'"),
        ("databricks.yml", "bundle: {name: b}\ninclude:\n  - resources/p.yml\n", 3, "the included file 'resources/p.yml' does not exist"),
        ("databricks.yml", "bundle: {name: b}\ntargets:\n  dev:\n    defualt: true\n", 4, "the target 'dev' has no key 'defualt'"),
        ("databricks.yml", "bundle: {name: b}\n", 1, "the bundle declares no pipeline"),
        ("databricks.yml", "variables: {a: {defualt: 1}}\n", 1, "the variable 'a' has no key 'defualt'"),
        ("databricks.yml", "targets:\n  dev:\n    variables:\n      x: 1\n", 4, "the variable 'x' is not declared"),
        ("pyproject.toml", "[tool.lakelet]\nstorage = 1\n", 2, "'storage' in [tool.lakelet] must be text"),
        ("pyproject.toml", '[project]\nname = "x"\n[tool.lakelet]\nstorge = "x"\n', 4, "[tool.lakelet] has no key 'storge'"),
        ("pyproject.toml", '[tool.lakelet]\npackages = "kafka"\n', 2, "'packages' in [tool.lakelet] must be a list of names"),
        ("pyproject.toml", '[tool.lakelet]\npublish = "thrift://h:1"\n', 2, "'publish' in [tool.lakelet] must be a table of addresses"),
        ("pyproject.toml", '[tool.lakelet.publish]\nhve = "thrift://h:1"\n', 1, "'publish' knows no catalog 'hve'"),
        ("pyproject.toml", '[tool.lakelet]\npublish = { uc = "http://[::1" }\n', 2, "'publish' has an address of 'uc' that is not one"),
        ("pyproject.toml", '[tool.lakelet]\npublish = { uc = "http://h?a=b" }\n', 2, "'publish' has an address of 'uc' that is not one"),
        ("pyproject.toml", '[tool.lakelet]\ncatalogs = { hve = "thrift://h:1" }\n', 2, "'catalogs' knows no catalog 'hve'"),
        ("pyproject.toml", '[tool.lakelet]\npublish = { hive = "h:9083" }\n', 2, "'publish' has an address of 'hive' that is not one"),
        (
            "pyproject.toml",
            '[tool.lakelet]\npublish = { hive = "thrift://ann:secret@h:9083" }\n',
            2,
            "'publish' has an address of 'hive' that is not one",
        ),
        ("pyproject.toml", '[tool.lakelet]\nschema = "x"\npackages = ["kafkaa"]\n', 3, "there is no package 'kafkaa'"),
        ("pyproject.toml", "[tool.lakelet]\nstorage = \n", 2, "pyproject.toml is not valid TOML"),
        ("pyproject.toml", "[tool.lakelet.parameters]\na = [1]\n", 1, "'parameters' in [tool.lakelet] must be a table of texts"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(project, name, text, line, what):
    error = project.write("a.py").write(name, text).error()
    assert (error.code, error.what, str(error.where)) == ("CONFIG_INVALID", what, f"{name}, line {line}")


def test_errors_name_included_files_too(project):
    bundle(project).write("resources/shop.pipeline.yml", "resources:\n  pipelines:\n    shop:\n      libary: []\n")
    error = project.error()
    assert (str(error.where), error.nearest) == ("resources/shop.pipeline.yml, line 4", ("libraries",))


@pytest.mark.parametrize(
    ("sources", "flags", "code", "what"),
    [
        (["nowhere.py"], {}, "NO_SOURCES", "nowhere.py is not a file, folder, glob or pipeline of the bundle"),
        (["*.sql"], {}, "NO_SOURCES", "no file matches *.sql"),
        (["empty"], {}, "NO_SOURCES", "no pipeline source file in empty"),
        (["a.txt"], {}, "USAGE", "a.txt is not a source file"),
        (["a.py"], {"target": "dev"}, "USAGE", "the deployment target 'dev' needs a bundle; {root} has no databricks.yml"),
        (["a.py"], {"params": {"a b": "c"}}, "USAGE", "--param a b=…: a key may hold letters, digits, '_', '-' and '.' only"),
        (
            ["a.py"],
            {"storage": "wasb://n/x"},
            "STORAGE_UNSUPPORTED",
            "no storage can lie at wasb://n/x",
        ),
        (
            ["a.py"],
            {"storage": "dbfs:/x"},
            "STORAGE_UNSUPPORTED",
            "no storage can lie at dbfs:/x",
        ),
    ],
)
def test_wrong_usage(project, sources, flags, code, what):
    project.write("a.py").write("a.txt").write("empty/x.txt")
    error = project.error(*sources, **flags)
    assert (error.code, error.what) == (code, what.format(root=project.root))


def test_an_unknown_target_is_told_with_the_known_ones(project):
    error = bundle(project).error(target="prd")
    assert (error.what, error.nearest, error.todo) == ("there is no deployment target 'prd'", ("prod",), "Known targets: dev, prod")


def test_libraries_that_are_not_supported_yet_are_refused(project):
    project.write("databricks.yml", "resources: {pipelines: {p: {libraries: [{maven: {coordinates: 'a:b:1'}}]}}}\n")
    assert project.error().code == "NOT_SUPPORTED_YET"


def test_a_pipeline_that_only_a_workspace_runs_is_told_as_that(project):
    text = "resources: {pipelines: {p: {ingestion_definition: {connection_name: crm, objects: []}}}}\n"
    project.write("databricks.yml", text)
    error = project.error()
    assert (error.code, "ingestion_definition, which only a workspace runs" in error.what) == ("NO_SOURCES", True)
