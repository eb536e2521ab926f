"""What a pipeline uses here is uploaded and found there, or the deployment is refused before anything is uploaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelet.base.errors import DefinitionErrors
from tests.unit.deploy.bundles import SOURCE, Folder

BUNDLE = """\
bundle: {name: shop}
resources:
  pipelines:
    p:
      root_path: src
      libraries: [{glob: {include: src/tables/**}}]
"""
IMPORTING = "from helpers.money import rate\n" + SOURCE


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path).put(
        {
            "src/tables/a.py": IMPORTING,
            "src/helpers/__init__.py": "",
            "src/helpers/money.py": "from . import tax\n",
            "src/helpers/tax.py": "",
        }
    )


def remarks(folder: Folder) -> list[str]:
    return [f"{where}: {text}" for text, where in folder.state().remarks]


def test_modules_below_root_path_are_covered(folder: Folder) -> None:
    assert remarks(folder.bundle(BUNDLE)) == []


def test_a_helper_module_that_sync_leaves_out_is_refused_with_its_import(folder: Folder) -> None:
    assert folder.bundle(BUNDLE + "sync: {exclude: [src/helpers/tax.py]}\n").mistakes() == [
        "FILE_NOT_COVERED src/helpers/money.py, line 1: src/helpers/tax.py is not uploaded, and is imported by src/helpers/money.py"
    ]


def test_a_file_is_named_once_and_what_to_add_fits_the_reason(folder: Folder) -> None:
    folder.put({"src/tables/b.py": IMPORTING.replace("orders", "more")}).bundle(BUNDLE + "sync: {paths: [src/tables]}\n")
    with pytest.raises(DefinitionErrors) as raised:
        folder.state()
    assert {error.todo for error in raised.value.errors} == {"Add its folder to sync.paths: - src/helpers"}
    assert len(raised.value.errors) == 3


def test_an_ignored_module_is_refused_too(folder: Folder) -> None:
    folder.put({".gitignore": "tax.py\n"}).bundle(BUNDLE)
    assert [error.split(" ")[0] for error in folder.mistakes()] == ["FILE_NOT_COVERED"]
    assert folder.bundle(BUNDLE + "sync: {include: [src/helpers/tax.py]}\n").state()


def test_a_module_outside_of_root_path_is_refused(folder: Folder) -> None:
    folder.put({"src/tables/a.py": "import common.names\n" + SOURCE, "common/names.py": ""}).bundle(BUNDLE)
    assert folder.mistakes() == [
        "FILE_NOT_COVERED src/tables/a.py, line 1: src/tables/a.py imports common.names, which Databricks does not find:"
        " the root_path of pipelines.p is src"
    ]


def test_a_pipeline_without_root_path_finds_no_modules(folder: Folder) -> None:
    assert "pipelines.p has no root_path" in folder.bundle(BUNDLE.replace("      root_path: src\n", "")).mistakes()[0]


def test_code_that_extends_the_import_path_itself_gets_a_remark(folder: Folder) -> None:
    folder.put({"src/tables/a.py": "import sys\nsys.path.append('../../common')\nimport names\n" + SOURCE, "common/names.py": ""})
    folder.put({"names.py": ""}).bundle(BUNDLE)
    assert remarks(folder)[0].startswith("src/tables/a.py, line 3: only here, unless sys.path is extended there too")


def test_a_project_that_the_environment_installs_brings_its_modules(folder: Folder) -> None:
    folder.put({"lib/pyproject.toml": '[project]\nname = "lib"\ndependencies = ["httpx>=1"]\n', "lib/src/shoplib/x.py": "import httpx\n"})
    folder.put({"src/tables/a.py": "import shoplib.x\n" + SOURCE})
    folder.bundle(BUNDLE + "      environment: {dependencies: ['-e ./lib']}\n")
    assert remarks(folder) == []
    files = folder.state().workspace.file_path
    assert folder.resource("pipelines.p").settings["environment"] == {"dependencies": [f"-e {files}/lib"]}


def test_rule_files_beside_a_module_that_looks_for_them_are_needed(folder: Folder) -> None:
    rules = "from pathlib import Path\n\nFOLDER = Path(__file__).parent\n"
    folder.put({"src/tables/a.py": "import rules\n" + SOURCE, "src/rules/__init__.py": rules, "src/rules/orders.yml": "datasets: {}\n"})
    folder.bundle(BUNDLE + "sync: {exclude: ['*.yml']}\n")
    assert folder.mistakes() == [
        "FILE_NOT_COVERED src/rules/__init__.py, line 1: src/rules/orders.yml is not uploaded, and is beside src/rules/__init__.py,"
        " which looks for files in its folder"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/more/b.sql", "CREATE OR REFRESH MATERIALIZED VIEW b AS SELECT 1"),
        ("src/more/b.py", SOURCE),
        ("src/more/b.py", "from pyspark import pipelines as dp\n\n\n@dp.table\ndef b():\n    return spark.range(1)\n"),
    ],
)
def test_a_source_that_no_pipeline_has_is_refused(folder: Folder, name: str, text: str) -> None:
    assert folder.put({name: text}).bundle(BUNDLE).mistakes() == [
        f"FILE_NOT_COVERED {name}, line 1: {name} declares datasets, and no pipeline of the bundle has it in its libraries"
    ]
    assert folder.bundle(BUNDLE + "sync: {exclude: [src/more]}\n").state()


def test_tests_and_explorations_are_not_expected_to_run(folder: Folder) -> None:
    folder.put({"tests/test_a.py": SOURCE, "tests/cases/b.py": SOURCE, "explorations/c.sql": "CREATE STREAMING TABLE c"}).bundle(BUNDLE)
    assert folder.state()


def test_a_notebook_that_is_run_is_needed(folder: Folder) -> None:
    notebook = "# Databricks notebook source\n# MAGIC %run ./setup\n# COMMAND ----------\n" + SOURCE
    folder.put({"src/tables/a.py": notebook, "src/tables/setup.py": "# Databricks notebook source\nX = 1\n"})
    folder.bundle(
        BUNDLE.replace("{glob: {include: src/tables/**}}", "{notebook: {path: src/tables/a}}") + "sync: {exclude: [src/tables/setup.py]}\n"
    )
    assert folder.mistakes() == [
        "FILE_NOT_COVERED src/tables/a.py, line 2: src/tables/setup.py is not uploaded, and is run by src/tables/a.py"
    ]


def test_a_package_that_nothing_installs_gets_a_remark_with_its_line(folder: Folder) -> None:
    code = "import yaml, json, requests\ntry:\n    import orjson\nexcept ImportError:\n    pass\n"
    folder.put({"src/tables/a.py": code + SOURCE}).bundle(BUNDLE)
    assert remarks(folder) == [
        "src/tables/a.py, line 1: yaml is imported, and environment.dependencies of pipelines.p do not name it; add: - pyyaml"
    ]
    folder.bundle(BUNDLE + "      environment: {dependencies: ['PyYAML>=6']}\n")
    assert remarks(folder) == []


def test_requirements_files_and_wheels_count(folder: Folder) -> None:
    folder.put(
        {
            "src/tables/a.py": "import yaml, my_lib\n" + SOURCE,
            "requirements.txt": "# pins\npyyaml==6.0\n",
            "dist/my_lib-1.0-py3-none-any.whl": "",
        }
    )
    folder.bundle(BUNDLE + "      environment: {dependencies: ['-r requirements.txt', ./dist/my_lib-1.0-py3-none-any.whl]}\n")
    assert remarks(folder) == []
    files = folder.state().workspace.file_path
    expected = [f"-r {files}/requirements.txt", f"{files}/dist/my_lib-1.0-py3-none-any.whl"]
    assert folder.resource("pipelines.p").settings["environment"]["dependencies"] == expected


def test_imports_in_jupyter_notebooks_count_and_are_named_by_their_cell(folder: Folder) -> None:
    prose = '{"cell_type": "markdown", "source": "import nothing"}'
    cell = '{"cell_type": "code", "source": ["%pip install x\\n", "import polars\\n", "import dlt\\n"]}'
    folder.put({"src/tables/n.ipynb": f'{{"cells": [{prose}, {cell}]}}'})
    libraries = "{notebook: {path: src/tables/n.ipynb}}, {file: {path: src/tables/a.py}}"
    folder.bundle(BUNDLE.replace("{glob: {include: src/tables/**}}", libraries))
    named = [one for one in remarks(folder) if "polars" in one]
    assert [one.partition(":")[0] for one in named] == ["src/tables/n.ipynb, cell 2, line 2"]


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("{file: {path: src/tables/b.py}}", "the file 'src/tables/b.py' does not exist → a.py"),
        ("{notebook: {path: src/tables/a.py}}", "src/tables/a.py is a file, not a notebook"),
        ("{glob: {include: src/tabels/**}}", "the folder 'src/tabels/**' does not exist → tables"),
        ("{glob: {include: ../else/**}}", "the folder '../else/**' does not exist"),
        ("{whl: ./dist/x.whl}", "the package './dist/x.whl' does not exist"),
    ],
)
def test_a_library_that_is_not_there(folder: Folder, library: str, expected: str) -> None:
    text = BUNDLE.replace("{glob: {include: src/tables/**}}", library)
    assert folder.bundle(text).mistakes()[0] == f"CONFIG_INVALID databricks.yml, line 6: {expected}"


def test_what_only_one_side_has_is_told_with_its_place(folder: Folder) -> None:
    folder.put(
        {
            "pyproject.toml": '[tool.lakelet]\nschema = "mine"\nmap = { "/Volumes/raw" = "data" }\n'
            '\n[tool.lakelet.parameters]\nday = "1"\n',
            "src/tables/a.py": SOURCE.replace("@dlt.table", '@dlt.table(table_properties={"lakelet.quarantine": "true"})'),
            "expectations/orders.yml": "datasets:\n  orders:\n    checks:\n      some: {rows: 3}\n",
        }
    ).bundle(BUNDLE + "      schema: shop\n      filters: {include: [x]}\n      configuration: {day: '2', pipelines.channel: preview}\n")
    assert remarks(folder) == [
        "pyproject.toml, line 3: only here: /Volumes/raw is mapped to data; there it must exist",
        "pyproject.toml, line 5: the parameter day has one value here, and another one in the configuration of pipelines.p",
        "pyproject.toml, line 2: the schema of names without one is mine here, and shop for pipelines.p",
        "databricks.yml, line 8: only there: filters of pipelines.p; a local run takes all source files",
        "databricks.yml, line 9: only there: pipelines.channel has no effect here: there is one engine, the version of Lakelet that is"
        " installed",
        "expectations/orders.yml, line 4: only here: 1 table check after each update; Databricks makes none",
        "src/tables/a.py, line 4: only here: rows that break a drop rule are kept in a quarantine; there they are dropped",
    ]


def test_a_value_that_a_local_run_refuses_is_refused(folder: Folder) -> None:
    folder.bundle(BUNDLE + "      configuration: {pipelines.numUpdateRetryAttempts: often}\n")
    assert folder.mistakes()[0].startswith("PROPERTY_INVALID databricks.yml, line 7: pipelines.numUpdateRetryAttempts is 'often'")
