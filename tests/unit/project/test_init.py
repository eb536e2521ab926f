"""`lakelet init`: foreign repositories in, a report and a starter bundle out. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.cli.main import main
from lakelet.config.update_config import load_config
from lakelet.deploy.bundle import desired_state
from lakelet.deploy.desired_state import User
from lakelet.project.editor import stubs
from lakelet.project.init import report_lines, start
from lakelet.project.init.findings import CodeLocation, PathFound, prefix
from lakelet.project.init.sql_reading import names_of

BRONZE = """\
import dlt
from pyspark.sql.functions import col
from settings import LANDING

base = spark.conf.get("shop.base", "/Volumes/main/raw")
mode = spark.conf.get("shop.mode")

@dlt.table(comment="as it came from /mnt/comment/is/no/path")
def orders_raw():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(f"{base}/landing/orders")

@dlt.view
def customers():
    return spark.read.table("crm.sales.customers").join(spark.read.csv(LANDING + "/extra/*.csv"), "id")
"""
GOLD = """\
SET shop.floor = 10;
CREATE MATERIALIZED VIEW totals AS
WITH big AS (SELECT * FROM LIVE.orders_raw WHERE amount > ${shop.floor} AND day = '${shop.day}')
SELECT b.id, sum(b.amount) AS total FROM big b, customers c JOIN reference.rates r ON r.id = b.id
WHERE b.x IS NOT DISTINCT FROM c.y GROUP BY ALL;
"""


@pytest.fixture
def repository(tmp_path: Path):
    def make(**files: str) -> Path:
        for name, text in files.items():
            path = tmp_path / "shop" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "shop"

    return make


def shop(repository) -> Path:
    files = {"src/bronze/orders.py": BRONZE, "src/gold/totals.sql": GOLD, "src/bronze/settings.py": "LANDING = '/mnt/lake'\n"}
    return repository(**files)


def only(started):
    (pipeline,) = started.report.pipelines
    return pipeline


def test_datasets_inputs_and_parameters_of_a_repository_are_found_by_reading(repository):
    folder = shop(repository)
    found = only(start(folder, load=False))
    assert [(one.name, one.kind, str(one.location)) for one in found.datasets] == [
        ("orders_raw", "streaming_table", "src/bronze/orders.py:9"),
        ("customers", "view", "src/bronze/orders.py:13"),
        ("totals", "materialized_view", "src/gold/totals.sql:2"),
    ]
    assert [path for path, _, _ in found.paths] == [
        "/Volumes/main/raw",
        "/Volumes/main/raw/landing/orders",
        "/mnt/lake",
        "/mnt/lake/extra/*.csv",
    ]
    assert [form for _, form, _ in found.paths] == ["", "json", "", "csv"]
    assert [(one.name, one.made_by) for one in found.tables] == [("crm.sales.customers", None), ("reference.rates", None)]
    assert [(one.key, one.default) for one in found.parameters] == [
        ("shop.base", "/Volumes/main/raw"),
        ("shop.day", None),
        ("shop.mode", None),
    ]
    assert found.refused == ()
    assert found.missing == ()


def test_the_flags_to_add_name_each_volume_mount_and_table_once(repository):
    report = start(shop(repository), load=False).report
    assert report.maps == {"/Volumes/main/raw": "data/raw", "/mnt/lake": "data/lake"}
    assert report.tables == {"crm.sales.customers": "data/crm/sales/customers", "reference.rates": "data/reference/rates"}
    lines = list(report_lines(report))
    assert '  "/mnt/lake" = "data/lake"' in lines
    assert "  --table reference.rates=data/reference/rates" in lines


def test_the_bundle_loads_with_the_files_of_the_pipeline_and_its_parameters(repository):
    folder = shop(repository)
    started = start(folder, load=False)
    assert started.written == folder / "databricks.yml"
    config = load_config([str(folder)], environ={})
    assert [file.name for file in config.files] == ["orders.py", "totals.sql"]
    assert dict(config.parameters) == {"shop.base": "/Volumes/main/raw"}
    assert (config.name, str(config.namespace.catalog), config.target) == ("shop", "main", "dev")
    assert folder / "src/bronze" in config.import_roots
    text = started.written.read_text()
    assert 'shop.mode: "" # without default: src/bronze/orders.py:6' in text
    assert load_config([str(folder)], target="prod", environ={}).target == "prod"


def test_an_existing_bundle_is_left_as_it_is(repository, capsys):
    folder = repository(**{"databricks.yml": "bundle: {name: mine}\n", "a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1"})
    assert main(["init", str(folder)]) == 0
    out = capsys.readouterr()
    assert "databricks.yml is there already" in out.err
    assert "The project file stops an update:\n  [CONFIG_INVALID] the bundle declares no pipeline" in out.out
    assert "materialized view" in out.out
    assert (folder / "databricks.yml").read_text() == "bundle: {name: mine}\n"
    assert not (folder / "typings").exists()
    assert "Types for the editor: " in out.err
    assert "init --editor" in " ".join(out.err.split())
    assert main(["init", str(folder), "--report"]) == 0


def test_the_report_on_a_project_is_about_the_pipelines_of_its_own_bundle(repository):
    bundle = """
bundle: {name: mine}
resources:
  pipelines:
    first: {libraries: [{glob: {include: src/a.sql}}, {glob: {include: src/shared.sql}}]}
    second: {libraries: [{glob: {include: src/b.sql}}]}
"""
    sql = "CREATE MATERIALIZED VIEW {0} AS SELECT * FROM {1}"
    files = {"src/a.sql": sql.format("a", "x.y.z"), "src/b.sql": sql.format("b", "a"), "src/shared.sql": sql.format("s", "a")}
    folder = repository(**{"databricks.yml": bundle}, **files, **{"src/unused.sql": sql.format("u", "v")})
    report = start(folder).report
    assert {one.key: [dataset.name for dataset in one.datasets] for one in report.pipelines} == {"first": ["a", "s"], "second": ["b"]}
    assert {(one.key, table.name): table.made_by for one in report.pipelines for table in one.tables} == {
        ("first", "x.y.z"): None,
        ("second", "a"): "first",
    }


def test_the_report_has_the_values_that_the_bundle_gives_to_parameters(repository):
    bundle = """
bundle: {name: mine}
variables: {lake: {default: psp}}
resources:
  pipelines:
    one:
      configuration: {catalog: "${var.lake}", landing: "/Volumes/${var.lake}/in"}
      libraries: [{glob: {include: src/**}}]
    two:
      libraries: [{glob: {include: src/**}}]
      configuration: {catalog: other}
"""
    sql = "CREATE STREAMING TABLE ${catalog}.bronze.a AS SELECT * FROM STREAM read_files('${landing}/a/*.json', format => '${kind}');"
    code = 'import dlt\nLANDING = spark.conf.get("landing")\ndlt.table(lambda: spark.read.json(LANDING + "/b"), name="b")\n'
    report = start(repository(**{"databricks.yml": bundle, "src/a.sql": sql, "src/b.py": code})).report
    one, two = report.pipelines
    assert [dataset.name for dataset in one.datasets] == ["psp.bronze.a", "b"]
    assert [(path, form) for path, form, _ in one.paths] == [("/Volumes/psp/in/a/*.json", "{kind}")]
    assert [dataset.name for dataset in two.datasets] == ["other.bronze.a", "b"]
    assert [(p.key, p.default, p.configured) for p in one.parameters] == [
        ("catalog", "psp", True),
        ("kind", None, False),
        ("landing", "/Volumes/psp/in", True),
    ]
    assert any('catalog  set to "psp"' in line for line in report_lines(report))


def test_the_command_line_reports_on_stdout_and_writes_the_bundle_and_types_for_editors(repository, capsys):
    folder = shop(repository)
    before = set(folder.parent.rglob("*"))
    assert main(["init", str(folder), "--json"]) == 0
    out = capsys.readouterr()
    told = json.loads(out.out)
    assert [one["name"] for one in told["pipelines"][0]["datasets"]] == ["orders_raw", "customers", "totals"]
    assert told["written"] == str(folder / "databricks.yml")
    assert "Wrote" in out.err
    written = {f for f in set(folder.parent.rglob("*")) - before if f.is_file()}
    types = {folder / "typings" / path for path in stubs()}
    assert {stub.relative_to(folder).as_posix() for stub in types} >= {"typings/dlt/__init__.pyi", "typings/__builtins__.pyi"}
    assert written == {folder / "databricks.yml", *types}
    assert main(["init", str(folder), "--editor"]) == 0
    assert "are up to date" in capsys.readouterr().err


def test_a_folder_without_pipelines_is_an_error_that_says_what_was_looked_at(repository):
    folder = repository(**{"a.sql": "CREATE VIEW v AS SELECT 1; SELECT * FROM v; DROP VIEW v;", "b.py": "print(1)\n"})
    with pytest.raises(LakeletError) as error:
        start(folder)
    assert error.value.code == "NO_SOURCES"
    assert "a.sql: most of its statements declare nothing" in str(error.value)
    assert not (folder / "databricks.yml").exists()


def test_layers_are_one_pipeline_and_copies_of_it_in_other_folders_are_others(repository):
    layer = "CREATE STREAMING TABLE bronze_{0} AS SELECT * FROM STREAM read_files('/Volumes/c/s/v/{0}')"
    silver = "CREATE MATERIALIZED VIEW silver AS SELECT * FROM bronze_a"
    files = {
        f"{top}/{name}": text
        for top in ("demo-sql", "demo-python")
        for name, text in {"1-bronze/a.sql": layer.format("a"), "1-bronze/b.sql": layer.format("b"), "2-silver/s.sql": silver}.items()
    }
    folder = repository(**files)
    report = start(folder).report
    assert {one.key: [reading.file for reading in one.resource.group.files] for one in report.pipelines} == {
        "demo_python": ["demo-python/1-bronze/a.sql", "demo-python/1-bronze/b.sql", "demo-python/2-silver/s.sql"],
        "demo_sql": ["demo-sql/1-bronze/a.sql", "demo-sql/1-bronze/b.sql", "demo-sql/2-silver/s.sql"],
    }
    assert [load_config([key], cwd=folder, environ={}).namespace.schema for key in ("demo_sql", "demo_python")] == [
        "demo_sql",
        "demo_python",
    ]


def test_each_target_of_the_bundle_can_be_deployed_and_development_has_schemas_of_its_own(repository):
    table = "CREATE STREAMING TABLE raw_{1} AS SELECT * FROM STREAM read_files('/x/{1}');\n"
    table += "CREATE MATERIALIZED VIEW {1} AS SELECT * FROM main.{0}.raw_{1}"
    names = {"loans": "one", "rates": "one", "wiki": "two"}
    folder = repository(**{f"{name}/{name}.sql": table.format(schema, name) for name, schema in names.items()})
    start(folder, load=False)

    def deployed(target: str) -> dict[str, object]:
        desired = desired_state(folder, target, User("ada.l@example.com", "ada_l"), environ={}, cwd=folder)
        return {str(r.key): r.settings.get("schema") or r.settings["name"] for r in desired.resources}

    pipelines = {f"pipelines.{name}_pipeline": schema for name, schema in names.items()}
    assert deployed("prod") == pipelines
    own = {key: f"dev_ada_l_{schema}" for key, schema in pipelines.items()}
    assert deployed("dev") == {**own, "schemas.loans_pipeline_tables": "dev_ada_l_one", "schemas.wiki_pipeline_tables": "dev_ada_l_two"}


def test_examples_in_one_folder_that_are_chains_of_their_own_are_pipelines_of_their_own(repository):
    chain = "CREATE STREAMING TABLE {0}_raw AS SELECT * FROM STREAM read_files('/x/{0}');\n"
    chain += "CREATE MATERIALIZED VIEW {0} AS SELECT * FROM {0}_raw"
    folder = repository(**{f"examples/{name}.sql": chain.format(name) for name in ("wiki", "loans")})
    report = start(folder).report
    assert [one.key for one in report.pipelines] == ["loans", "wiki"]
    assert load_config(["wiki"], cwd=folder, environ={}).files == (folder / "examples/wiki.sql",)


def test_a_table_that_another_pipeline_of_the_repository_makes_is_no_input_to_map(repository):
    folder = repository(
        **{
            "loading/a.sql": "CREATE STREAMING TABLE lake.raw.a AS SELECT * FROM STREAM read_files('/x')",
            "reports/c.py": "import dlt\n@dlt.table\ndef c():\n    return spark.table('lake.raw.a').join(spark.table('other.raw.a'))\n",
        }
    )
    report = start(folder).report
    made = {(pipeline.key, one.name): one.made_by for pipeline in report.pipelines for one in pipeline.tables}
    assert made == {("reports_pipeline", "lake.raw.a"): "loading_pipeline", ("reports_pipeline", "other.raw.a"): None}
    assert report.tables == {"other.raw.a": "data/other/raw/a"}


def test_a_dataset_may_be_called_like_the_table_that_it_reads(repository):
    folder = repository(**{"a.sql": "CREATE MATERIALIZED VIEW orders AS SELECT * FROM samples.tpch.orders JOIN crm.s.orders"})
    found = only(start(folder))
    assert [one.name for one in found.tables] == ["crm.s.orders", "samples.tpch.orders"]
    assert load_config([str(folder)], environ={}).namespace.catalog == "main"


def test_the_information_schema_is_no_table_from_outside(repository):
    text = "SELECT * FROM system.information_schema.tables JOIN information_schema.columns JOIN crm.Information_Schema.own"
    folder = repository(**{"a.sql": f"CREATE MATERIALIZED VIEW listed AS {text}"})
    assert [one.name for one in only(start(folder)).tables] == ["crm.Information_Schema.own"]


def test_own_tables_read_by_full_name_tell_catalog_and_schema(repository):
    folder = repository(
        **{
            "a.py": "from pyspark import pipelines as dp\n@dp.table\ndef bronze():\n    return spark.readStream.table('samples.x.y')\n"
            "@dp.materialized_view\ndef gold():\n    return spark.read.table('workspace.shop.bronze')\n"
        }
    )
    start(folder)
    namespace = load_config([str(folder)], environ={}).namespace
    assert (namespace.catalog, namespace.schema) == ("workspace", "shop")


def test_a_dataset_may_be_called_like_the_table_that_it_is_made_of_by_way_of_others(repository):
    folder = repository(
        **{
            "stage.py": "import dlt\n@dlt.table(name='staged')\ndef staged():\n    return spark.read.table('crm.source.orders')\n"
            "@dlt.table\ndef clean():\n    return spark.read.table('staged')\n",
            "target.py": "import dlt\ndlt.create_streaming_table('orders')\n"
            "dlt.create_auto_cdc_flow(target='orders', source='clean', keys=['id'], sequence_by='at')\n",
        }
    )
    assert [one.name for one in only(start(folder)).tables] == ["crm.source.orders"]
    assert load_config([str(folder)], environ={}).namespace.catalog == "main"


def test_names_that_only_running_tells_are_learned_without_spark_and_without_writing(repository):
    code = (
        "import dlt\n"
        "def make(name):\n"
        "    @dlt.table(name=f'{name}_raw')\n"
        "    def query():\n"
        "        return spark.read.json('/mnt/x')\n"
        "for name in ['a', 'b']:\n"
        "    make(name)\n"
    )
    folder = repository(**{"p/a.py": code})
    assert [one.name for one in only(start(folder, write=False)).datasets] == ["a_raw", "b_raw"]
    (static,) = only(start(folder, write=False, load=False)).datasets
    assert (static.name, static.computed) == ("{name}_raw", True)
    (folder / "p/a.py").write_text(code + "open('evil.txt', 'w').write('x')\n")
    assert {one.name for one in only(start(folder, write=False)).datasets} == {"a_raw", "b_raw", "{name}_raw"}
    assert not list(folder.rglob("evil.txt"))


def test_what_is_not_supported_is_named_with_its_place(repository):
    folder = repository(
        **{
            "a.sql": "CREATE STREAMING TABLE t WITH ROW FILTER f ON (a) AS SELECT ai_query('m', a) FROM STREAM s;\n"
            "CREATE MATERIALIZED VIEW m AS SELECT ai_query('m', a) AS b FROM t;\nOPTIMIZE t;\n",
            "b.py": "import dlt\nimport no_such_package.inner\ntry:\n    import nothing_either\nexcept ImportError:\n    pass\n"
            "@dlt.table(row_filter='ROW FILTER f ON (a)')\ndef b():\n    return spark.readStream.format('kafka').load()\n"
            "@dlt.tabel\ndef c():\n    return b\n",
        }
    )
    found = only(start(folder))
    told = [(str(one.location), one.code) for one in found.refused]
    assert ("a.sql:1", "PROTECTION_REFUSED") in told
    assert ("a.sql:3", "SQL_STATEMENT_REFUSED") in told
    whats = {str(one.location): one.what for one in found.refused}
    assert "ai_query" in whats["a.sql:2"]
    assert "kafka" in whats["b.py:9"]
    assert "row_filter" in whats["b.py:7"]
    assert "has no tabel" in whats["b.py:10"]
    assert [(one.module, [str(location) for location in one.locations]) for one in found.missing] == [("no_such_package", ["b.py:2"])]


def test_notebooks_of_all_kinds_are_read(repository):
    notebook = {
        "cells": [
            {"cell_type": "markdown", "source": ["# import dlt"], "metadata": {}},
            {"cell_type": "code", "source": ["import dlt\n"], "metadata": {}, "outputs": []},
            {"cell_type": "code", "source": ["@dlt.table\n", "def a():\n", "    return spark.read.json('dbfs:/in/a')\n"], "metadata": {}},
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    folder = repository(
        **{
            "n/a.ipynb": json.dumps(notebook),
            "n/b.py": "# Databricks notebook source\n# MAGIC %run ./shared\n\n# COMMAND ----------\n\n@dlt.table\ndef b():\n"
            "    return dlt.read('a').join(spark.read.json(PLACE))\n",
            "n/shared.py": "# Databricks notebook source\nimport dlt\nPLACE = '/mnt/shared/x'\n",
            "n/c.sql": "-- Databricks notebook source\nCREATE LIVE TABLE c AS SELECT * FROM LIVE.b\n-- COMMAND ----------\n-- MAGIC %md\n",
        }
    )
    found = only(start(folder))
    assert [(one.name, str(one.location)) for one in found.datasets] == [("a", "n/a.ipynb:cell 3:2"), ("b", "n/b.py:7"), ("c", "n/c.sql:2")]
    assert [path for path, _, _ in found.paths] == ["/mnt/shared/x", "dbfs:/in/a"]


def test_file_names_with_signs_of_patterns_are_taken_as_they_are(repository):
    folder = repository(**{"p/[1] a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1", "p/other.py": "print(1)\n"})
    start(folder)
    assert load_config([str(folder)], environ={}).files == (folder / "p/[1] a.sql",)


def test_code_that_lies_below_another_project_stays_there(repository):
    sql = "CREATE MATERIALIZED VIEW {0} AS SELECT 1"
    folder = repository(**{"mine/a.sql": sql.format("a"), "theirs/databricks.yml": "bundle: {name: x}\n", "theirs/b.sql": sql.format("b")})
    report = start(folder).report
    assert [one.name for one in only(start(folder, write=False)).datasets] == ["a"]
    assert report.projects == ["theirs/databricks.yml"]


def test_a_file_of_event_hooks_belongs_to_the_pipeline_that_lies_nearest(repository):
    hook = "from pyspark import pipelines as dp\n@dp.on_event_hook(max_allowable_consecutive_failures=3)\ndef told(event): ...\n"
    view = "CREATE MATERIALIZED VIEW {0} AS SELECT 1"
    folder = repository(**{"a/t/gold/a.sql": view.format("x"), "b/t/gold/b.sql": view.format("x"), "b/t/watch/hooks.py": hook})
    report = start(folder).report
    assert [[one.file for one in p.resource.group.files] for p in report.pipelines] == [
        ["a/t/gold/a.sql"],
        ["b/t/gold/b.sql", "b/t/watch/hooks.py"],
    ]
    assert not report.left_out


def test_a_source_that_does_not_compile_is_left_aside_and_its_mistake_told(repository):
    folder = repository(**{"a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1", "b.py": "pimport dlt\n@dlt.table\ndef b(): ...\n"})
    assert start(folder).report.left_out == [("b.py", "the file does not compile: invalid syntax")]


def test_a_project_without_pipelines_is_said_to_have_none(repository):
    folder = repository(**{"databricks.yml": "bundle: {name: x}\n", "job.py": "print(1)\n"})
    assert list(report_lines(start(folder, write=False).report)) == [
        "no pipeline: the project file names no source file that declares a dataset"
    ]


def test_a_folder_with_nothing_but_other_projects_names_them(repository):
    folder = repository(**{"deep/shop/databricks.yml": "bundle: {name: x}\n", "deep/shop/b.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1"})
    with pytest.raises(LakeletError) as error:
        start(folder)
    assert f"deep/shop/databricks.yml: a project of its own; lakelet init {folder / 'deep/shop'}" in str(error.value)


def test_the_modules_that_lakelet_puts_in_place_are_not_missing(repository):
    lines = [
        "import databricks.pipelines as dp",
        "import databricks.other",
        "@dp.materialized_view",
        "def a():",
        "    return spark.range(1)",
    ]
    assert [one.module for one in only(start(repository(**{"a.py": "\n".join(lines)}))).missing] == ["databricks.other"]


@pytest.mark.parametrize(
    ("query", "tables", "paths"),
    [
        ("SELECT * FROM a, b AS x, LATERAL explode(c) AS d(e), f", ["a", "b"], []),
        ("SELECT * FROM (SELECT * FROM a) x JOIN LIVE.b USING (id) LEFT JOIN `c d`.e ON true", ["a", "LIVE.b", "`c d`.e"], []),
        ("WITH x AS (SELECT * FROM a), 1y (n) AS (SELECT 1) SELECT * FROM x, 1y WHERE i IN (SELECT i FROM z)", ["a", "z"], []),
        ("SELECT extract(day FROM d), trim(BOTH ' ' FROM s) FROM STREAM(cat.s.t) WHERE a IS NOT DISTINCT FROM b", ["cat.s.t"], []),
        ("SELECT * FROM STREAM read_files('in/x', format => 'csv')", [], ["in/x"]),
        ("SELECT * FROM cloud_files(\"/mnt/a\", 'json', map('x', 'y'))", [], ["/mnt/a"]),
        ("SELECT * FROM STREAM delta.`/mnt/d` UNION ALL FROM json.`s3://b/j`", [], ["/mnt/d", "s3://b/j"]),
        ("SELECT * FROM range(10) r, values_of v WHERE p = 'not/a/path' AND q = 'dbfs:/p'", ["values_of"], ["dbfs:/p"]),
        ("SELECT * FROM IDENTIFIER('c.s.t') TABLESAMPLE (10 PERCENT), u", ["c.s.t", "u"], []),
        ("TABLE", [], []),
        ("SELECT 'unclosed", [], []),
    ],
)
def test_tables_and_paths_of_a_query(query, tables, paths):
    found = names_of(query)
    assert [one.text for one in found.tables] == tables
    assert sorted(one.text for one in found.paths) == sorted(paths)
    assert all(
        query[one.start :].lstrip("`'\"").startswith(one.text.split(".")[0].strip("`")) for one in found.tables if "IDENT" not in query
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/Volumes/c/s/v/in/a.json", "/Volumes/c/s/v"),
        ("/Volumes/{catalog}/s/v", "/Volumes"),
        ("/Volumes/c/s/v{n}/x", "/Volumes/c/s"),
        ("dbfs:/mnt/lake/in/*.csv", "dbfs:/mnt/lake"),
        ("/dbfs/FileStore/x/y", "/dbfs/FileStore/x"),
        ("s3a://bucket/in/x", "s3a://bucket"),
        ("abfss://c@acc.dfs.core.windows.net/in", "abfss://c@acc.dfs.core.windows.net"),
        ("/databricks-datasets/retail-org/customers.csv", "/databricks-datasets/retail-org"),
    ],
)
def test_the_prefix_of_a_path_that_is_worth_a_mapping(path, expected):
    holes = [path.find(sign) for sign in "{*" if sign in path]
    assert prefix(PathFound(path, min(holes, default=len(path)), CodeLocation("a", 1))) == expected


def test_the_format_of_files_is_told_where_sql_says_it():
    query = "SELECT * FROM STREAM read_files('a', header => true, format => 'CSV'), cloud_files('b', 'json', map('x', 'y'))"
    query += ", delta.`/c`, read_files('d')"
    assert {one.text: one.format for one in names_of(query).paths} == {"a": "csv", "b": "json", "/c": "delta", "d": ""}
