"""`lakelet init` says only what an update would find: modules, tables, paths and settings of repositories. No Spark."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from lakelet.config.update_config import load_config
from lakelet.project.init import report_lines, start


@pytest.fixture
def repository(tmp_path: Path):
    def make(**files: str) -> Path:
        for name, text in files.items():
            path = tmp_path / "depot" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "depot"

    return make


def only(folder: Path, *, load: bool = True):
    (pipeline,) = start(folder, write=False, load=load).report.pipelines
    return pipeline


TABLE = "import dlt\n@dlt.table\ndef parcels():\n    return spark.range(1)\n"


@pytest.mark.parametrize(
    ("code", "module"),
    [
        (
            "import sys\nsys.path.append('/Workspace/Users/ada@example.com/depot/shared/lib')\nfrom weights import kg\n",
            "shared/lib/weights.py",
        ),
        (
            "import os, sys\nsys.path.insert(0, os.path.abspath(os.path.join(os.getcwd(), '..', 'tools')))\nimport weights\n",
            "tools/weights.py",
        ),
        ("import sys\nsys.path.append(spark.conf.get('code.path'))\nfrom weights.units import kg\n", "deep/down/weights/units.py"),
        ("from weights.units import kg\n", "packages/one/src/weights/units.py"),
        ("import sys\nsys.path.append(f'/Repos/{user}/depot/lib')\nimport weights.units as units\n", "lib/weights/units/__init__.py"),
    ],
)
def test_a_module_that_the_repository_holds_is_never_proposed_for_pip(repository, code, module):
    folder = repository(**{"flows/daily/a.py": code + TABLE, module: "kg = 1\n"})
    found = only(folder, load=False)
    assert found.missing == ()
    assert found.paths == ()


def test_pip_is_proposed_for_known_distributions_only(repository):
    code = "import depot_helpers, yaml_of_depot, weighing, requested_one, parcelwheel\nimport sklearn_is_not_this\n"
    code += "import great_expectations_of_nobody\nimport xgboost\nimport google.cloud.bigquery\nimport azure.nowhere\n"
    folder = repository(
        **{
            "a.py": code + TABLE,
            "requirements-dev.txt": "weighing>=2 # scales\n-e .\ndepot-helpers @ git+https://example.com/x.git\n",
            "pyproject.toml": '[project]\nname = "yaml-of-depot"\ndependencies = ["requested_one[all]~=1.0"]\n',
        }
    )
    (folder / "dist").mkdir()
    with zipfile.ZipFile(folder / "dist/parcelwheel-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("parcelwheel/__init__.py", "")
    found = {one.module: one.package for one in only(folder, load=False).missing}
    assert found.pop("xgboost", "xgboost") == "xgboost"
    assert {name: package for name, package in found.items() if name.startswith(("google", "azure"))} in (
        {"google": "google-cloud-bigquery", "azure": None},
        {"google.cloud": "google-cloud-bigquery", "azure": None},
    )
    assert {name: package for name, package in found.items() if not name.startswith(("google", "azure"))} == {
        "depot_helpers": None,
        "yaml_of_depot": None,
        "weighing": "weighing",
        "requested_one": "requested-one",
        "parcelwheel": "dist/parcelwheel-1-py3-none-any.whl",
        "sklearn_is_not_this": None,
        "great_expectations_of_nobody": None,
    }
    lines = {line.split()[0]: line for line in report_lines(start(folder, write=False, load=False).report) if line.strip()}
    assert " not found " in lines["depot_helpers"]
    assert " pip install weighing " in lines["weighing"]


def test_names_that_a_loop_or_a_helper_puts_together_are_those_that_an_update_reads(repository):
    code = (
        "import sys\nimport dlt\nfrom pyspark.sql import functions as F\n"
        "sys.path.append('/Workspace/depot/common')\nfrom reading import raw\n"
        "def make(name):\n"
        "    @dlt.table(name=f'clean_{name}')\n"
        "    def query():\n"
        "        frame = spark.read.table(f'erp.raw.{name}').filter(F.col('kg') > 0)\n"
        "        return frame.join(raw(spark, name), 'id').join(dlt.read('scales'), 'id')\n"
        "for name in ('boxes', 'pallets'):\n    make(name)\n"
        "@dlt.view\ndef scales():\n    return spark.sql(f'SELECT * FROM {SCALES}')\n"
    )
    helper = "def raw(spark, name):\n    return spark.read.format('csv').load(f'/Volumes/erp/in/{name}/*.csv')\n"
    folder = repository(
        **{
            "flows/daily/a.py": code.replace("import dlt", "import dlt\nSCALES = '.'.join(['erp', 'hall', 'scales'])"),
            "common/reading.py": helper,
        }
    )
    found = only(folder)
    assert [one.name for one in found.datasets] == ["clean_boxes", "clean_pallets", "scales"]
    assert [one.name for one in found.tables] == ["erp.hall.scales", "erp.raw.boxes", "erp.raw.pallets"]
    assert [(path, form) for path, form, _ in found.paths] == [
        ("/Volumes/erp/in/boxes/*.csv", "csv"),
        ("/Volumes/erp/in/pallets/*.csv", "csv"),
    ]
    assert not [line for line in report_lines(start(folder, write=False).report) if "{" in line]


@pytest.mark.parametrize(
    "made",
    [
        'f"/Volumes/{CATALOG}/raw/drop/parcels"',
        '"/Volumes/" + CATALOG + "/raw/drop/parcels"',
        '"/Volumes/{}/raw/drop/parcels".format(CATALOG)',
        'os.path.join("/Volumes", CATALOG, "raw", "drop", "parcels")',
        'f"{ROOT}{CATALOG}/raw/drop/parcels"',
        'str(Path("/Volumes") / CATALOG / "raw" / "drop" / "parcels")',
    ],
)
def test_the_beginning_of_a_path_is_no_path_of_its_own(repository, made):
    code = f"import os\nfrom pathlib import Path\nimport dlt\nCATALOG = 'depot'\nROOT = '/Volumes/'\nPLACE = {made}\n"
    code += "@dlt.table\ndef parcels():\n    return spark.read.json(PLACE)\n"
    report = start(repository(**{"a.py": code}), write=False, load=False).report
    assert [path for path, _, _ in report.pipelines[0].paths] == ["/Volumes/depot/raw/drop/parcels"]
    assert report.maps == {"/Volumes/depot/raw/drop": "data/drop"}


def test_own_tables_are_own_where_readers_add_the_catalog(repository):
    sql = "CREATE STREAMING TABLE hall.boxes AS SELECT * FROM STREAM read_files('/Volumes/a/b/c', format => 'csv');\n"
    sql += "CREATE MATERIALIZED VIEW desk.totals AS SELECT sum(kg) AS kg FROM lake.hall.boxes JOIN lake.erp.rates;\n"
    folder = repository(**{"a.sql": sql})
    started = start(folder)
    assert [one.name for one in started.report.pipelines[0].tables] == ["lake.erp.rates"]
    assert load_config([str(folder)], environ={}).namespace.catalog == "lake"
    assert "    catalog lake: in the bundle, or --catalog lake" in list(report_lines(started.report))


def test_a_table_of_another_catalog_with_the_name_of_the_dataset_that_reads_it_is_from_outside(repository):
    folder = repository(**{"a.sql": "CREATE MATERIALIZED VIEW hall.boxes AS SELECT * FROM erp.hall.boxes"})
    assert [one.name for one in only(folder).tables] == ["erp.hall.boxes"]


@pytest.mark.parametrize("catalog", ["lake", "${var.lake}"])
def test_own_tables_are_those_of_the_catalog_that_the_bundle_names(repository, catalog):
    bundle = f"""
bundle: {{name: depot}}
variables: {{lake: {{default: lake}}}}
resources: {{pipelines: {{boxes: {{catalog: "{catalog}", schema: hall, libraries: [{{glob: {{include: "*.sql"}}}}]}}}}}}
"""
    sql = "CREATE STREAMING TABLE boxes AS SELECT * FROM STREAM erp.raw.boxes;\n"
    sql += "CREATE MATERIALIZED VIEW totals AS SELECT * FROM lake.hall.boxes JOIN hall.boxes JOIN sea.hall.boxes\n"
    found = only(repository(**{"databricks.yml": bundle, "a.sql": sql}))
    assert [one.name for one in found.tables] == ["erp.raw.boxes", "sea.hall.boxes"]
    assert found.namespace == {}


SETTINGS = """{"name": "Boxes of the depot", "catalog": "lake", "%s": "hall", "continuous": false,
 "configuration": {"depot.drop": "/Volumes/lake/hall/drop/in", "depot.floor": "2"},
 "libraries": [%s]}"""


@pytest.mark.parametrize(
    ("library", "schema"),
    [
        ('{"notebook": {"path": "/Users/ada@example.com/depot/boxes"}}', "schema"),
        ('{"file": {"path": "/Workspace/Repos/ada/depot/jobs/boxes.py"}}', "target"),
        ('{"glob": {"include": "/Workspace/Shared/jobs/**"}}', "schema"),
    ],
)
def test_a_settings_file_beside_the_notebooks_is_the_pipeline(repository, library, schema):
    notebook = "# Databricks notebook source\nimport dlt\nDROP = spark.conf.get('depot.drop')\n\n"
    notebook += "@dlt.table\ndef boxes():\n    return spark.read.json(DROP)\n"
    folder = repository(
        **{"jobs/boxes.py": notebook, "jobs/pipeline.json": SETTINGS % (schema, library), "other.json": '{"libraries": [1]}'}
    )
    started = start(folder)
    (found,) = started.report.pipelines
    assert [(one.key, one.default, one.configured) for one in found.parameters] == [
        ("depot.drop", "/Volumes/lake/hall/drop/in", True),
        ("depot.floor", "2", True),
    ]
    assert started.report.maps == {"/Volumes/lake/hall/drop": "data/drop"}
    config = load_config([str(folder)], environ={})
    assert (str(config.namespace.catalog), str(config.namespace.schema)) == ("lake", "hall")
    assert dict(config.parameters) == {"depot.drop": "/Volumes/lake/hall/drop/in", "depot.floor": "2"}
    assert config.files == (folder / "jobs/boxes.py",)


def test_what_an_update_refuses_is_in_the_report(repository):
    bundle = "bundle: {name: depot}\nresources: {pipelines: {boxes: {catalog: '${var.lake}', libraries: [{file: {path: a.py}}]}}}\n"
    folder = repository(**{"databricks.yml": bundle, "a.py": TABLE})
    report = start(folder).report
    assert [error.code for error in report.errors] == ["CONFIG_INVALID"]
    assert "the variable 'lake' is not declared" in "\n".join(report_lines(report))
    (folder / "databricks.yml").unlink()
    (folder / "b.py").write_text("import dlt\nfor name in ['boxes', 'boxes']:\n    dlt.create_streaming_table(name)\n")
    refused = [(one.code, str(one.location)) for one in only(folder).refused]
    assert ("DUPLICATE_DATASET", "b.py:3") in refused


def test_the_first_expression_that_ansi_mode_may_stop_is_named_in_one_line_with_both_ways_out(repository):
    code = "import dlt\nfrom pyspark.sql import functions as F\n@dlt.table\ndef boxes():\n    frame = spark.read.table('erp.raw.boxes')\n"
    code += "    named = frame.select(F.col('kg').cast('string'), F.col('kg') / 2, F.to_date('day'))\n"
    code += "    return named.selectExpr('CAST(size AS INT) AS n').withColumn('each', F.col('kg') / F.col('pieces'))\n"
    sql = (
        "CREATE MATERIALIZED VIEW totals AS SELECT CAST(kg AS STRING) AS s, try_cast(kg AS INT) AS t,\n  kg / pieces AS each FROM boxes;\n"
    )
    folder = repository(**{"a.py": code, "b.sql": sql})
    found = only(folder, load=False)
    assert {(one.tolerant, str(one.location)) for one in found.strict} == {
        ("try_to_date", "a.py:6"),
        ("try_cast", "a.py:7"),
        ("try_divide", "a.py:7"),
        ("try_divide", "b.sql:2"),
    }
    (line,) = [line for line in report_lines(start(folder, write=False, load=False).report) if "spark.sql.ansi.enabled" in line]
    assert "(and 3 more expressions): write try_" in line
    (folder / "a.py").write_text(code.replace("@dlt.table", "spark.conf.set('spark.sql.ansi.enabled', 'false')\n@dlt.table"))
    assert only(folder, load=False).strict == ()
