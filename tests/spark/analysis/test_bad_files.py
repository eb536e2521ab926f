"""Source files, names of the language and options that are wrong: reported together, and nothing is written."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.language import api
from tests.spark.analysis.marked_mistakes import HEAD, NUMBERS, at, check, marks


def by_code(errors):
    return {e.code: e for e in errors}


def test_broken_files_are_reported_together_and_cause_no_errors_elsewhere(project):
    p = project(
        NUMBERS,
        syntax="import dlt\n\ndef x(:  #! SOURCE_FAILED\n    pass\n",
        raises="import dlt\n\nvalue = {}\nvalue['key']  #! SOURCE_FAILED\n",
        ends="import sys\nsys.exit(3)  #! SOURCE_FAILED\n",
        missing="import not_installed_here.sub  #! SOURCE_FAILED\n",
        typo="import dlt\n\n@dlt.tabel  #! SOURCE_FAILED\ndef t():\n    return 1\n",
        argument="import dlt\n\n@dlt.table(nme='x')  #! SOURCE_FAILED\ndef t():\n    return 1\n",
        imported="from dlt import tabel  #! SOURCE_FAILED\n",
        notebook="x = dbutils.widgets.get('a')  #! WIDGET_UNKNOWN\n",
        module_read="x = spark.table('numbers')  #! SOURCE_FAILED\n",
        outside="import dlt\n\nx = dlt.read('numbers')  #! OUTSIDE_PIPELINE\n",
        parameter="x = spark.conf.get('no.such.key')  #! SOURCE_FAILED\n",
        broken_helper="import dlt\nfrom helper_with_mistake import f\n",
        raising_helper="import dlt\nfrom helper_that_raises import f\n\nf()\n",
        reader="import dlt\n\n@dlt.table\ndef y():\n    return dlt.read('defined_after_the_mistake')\n",
        flow="import dlt\n\n@dlt.append_flow(target='also_there')\ndef z():\n    return dlt.read_stream('numbers')\n",
        sound="import dlt\n\n@dlt.table\ndef q():\n    return dlt.read('numbers').select('idd')  #! QUERY_FAILED_ANALYSIS\n",
    )
    p.helper("def f(:  #! SOURCE_FAILED\n", "helper_with_mistake.py")
    p.helper("def f():\n    raise KeyError('x')  #! SOURCE_FAILED\n", "helper_that_raises.py")
    errors = check(p)
    assert "not_installed_here" in at(errors, p, "sub", "missing.py").todo
    assert at(errors, p, "tabel", "typo.py").nearest[0] == "table"
    assert at(errors, p, "nme", "argument.py").nearest == ("name",)
    assert at(errors, p, "tabel", "imported.py").nearest[0] == "table"
    assert "--param no.such.key=" in at(errors, p, "no.such.key", "parameter.py").todo
    assert "inside a dataset's function" in at(errors, p, "numbers", "module_read.py").todo


def test_other_kinds_of_source_files_and_pipelines_without_tables_are_refused(project):
    p = project("import dlt\n\n@dlt.view\ndef only_a_view():\n    return spark.range(1)\n")
    (error,) = p.refused()
    assert (error.code, error.why.startswith("looked at "), "pipeline.py" in error.why) == ("EMPTY_PIPELINE", True, True)
    p.write("val x = 1", "tables.scala")
    assert [e.code for e in p.refused()] == ["SOURCE_KIND"]
    p.files = []
    assert [e.code for e in p.refused()] == ["NO_SOURCES"]


def test_a_foreign_dlt_that_is_already_imported_is_refused(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "dlt", ModuleType("dlt"))
    (error,) = project(NUMBERS).refused()
    assert error.code == "FOREIGN_DLT"


def test_a_declaration_outside_of_a_pipeline_says_how_to_run_it():
    with pytest.raises(LakeletError) as caught:
        api.table(lambda: None, name="x")
    assert (caught.value.code, Path(caught.value.where.file).name) == ("OUTSIDE_PIPELINE", "test_bad_files.py")
    assert "lakelet run" in caught.value.todo


def test_an_unknown_selection_is_refused_with_the_nearest_name(project):
    p = project(NUMBERS + "\n    @dlt.view\n    def seen():\n        return dlt.read('numbers')\n")
    for request in ({"select": ("numbrs",)}, {"full_refresh": ("numbrs",)}, {"select": ("seen",)}, {"select": ("a.b.c.d",)}):
        with pytest.raises(LakeletError) as caught:
            p.run(**request)
        assert caught.value.code == "UNKNOWN_SELECTION"
        assert caught.value.exit_code == ExitCode.INVALID
        if "numbrs" in str(request):
            assert caught.value.nearest == ("main.default.numbers",)
    assert not p.storage.root.exists()


CALLING = "import dlt\nfrom pyspark import pipelines as dp\n\ndef query(): return spark.range(1)\n\n"


WRONG_ARGUMENTS = [
    "dlt.table(name=5)(query)",
    "dlt.table(name='a.b.c.d')(query)",
    "dlt.table(name='')(query)",
    "dlt.table(lambda: spark.range(1))",
    "dlt.table(comment=5)(query)",
    "dlt.table(partition_cols='id')(query)",
    "dlt.table(cluster_by=[5])(query)",
    "dlt.table(partition_cols=['a'], cluster_by=['b'])(query)",
    "dlt.table(schema=5)(query)",
    "dlt.table(table_properties=['a'])(query)",
    "dlt.table(spark_conf='a')(query)",
    "dlt.table(lambda a: spark.range(a), name='takes_arguments')",
    "dp.materialized_view(refresh_policy='sometimes')(query)",
    "dlt.expect('only_a_name')(query)",
    "dlt.expect(5, 'id > 0')(query)",
    "dlt.expect('rule', 5)(query)",
    "dlt.expect('rule', 'id > 0')('numbers')",
    "dlt.expect_all(['id > 0'])(query)",
    "dlt.expect_all_or_drop({'rule': None})(query)",
    "dlt.append_flow()(query)",
    "dlt.append_flow(query)",
    "dlt.append_flow(target=5)(query)",
    "dlt.append_flow(target='t')(dlt.expect('rule', 'id > 0')(query))",
    "dlt.create_streaming_table(5)",
    "dlt.create_streaming_table('t', expect_all=['id > 0'])",
]


def test_wrong_arguments_are_refused_at_the_line_of_the_call(project):
    p = project(NUMBERS)
    for number, call in enumerate(WRONG_ARGUMENTS):
        p.write(f"{CALLING}{call}  #! ARGUMENT_INVALID\n", f"wrong_{number:02}.py")
    errors = p.refused()
    assert [(Path(e.where.file).name, e.code) for e in errors] == [(f, code) for f, _, code in marks(p)], "\n".join(map(str, errors))
    # a decorated function is shown where it is defined, every other call where it is made
    assert {e.where.line for e in errors} == {4, 6}


EXECUTED = {
    "append_flow", "apply_changes", "apply_changes_from_snapshot", "create_auto_cdc_flow", "create_auto_cdc_from_snapshot_flow",
    "create_sink", "create_streaming_live_table", "create_streaming_table", "create_table", "create_target_table", "create_view",
    "enable_local_execution", "expect",
    "expect_all", "expect_all_or_drop", "expect_all_or_fail", "expect_or_drop", "expect_or_fail", "foreach_batch_sink", "materialized_view",
    "on_event_hook", "read", "readStream", "read_stream", "replace_flow", "table", "temporary_view", "update_flow", "view",
}  # fmt: skip


LATER_ARGUMENTS = [
    "dp.table(query, format='parquet')",
    "dp.create_table('t', format='csv')",
    "dp.append_flow(target='t', import_checkpoint='/tmp/x')",
]


ROW_FILTERS = [
    "dlt.table(query, row_filter='ROW FILTER f ON (id)')",
    "dp.materialized_view(query, row_filter='f')",
    "dlt.create_streaming_table('t', row_filter='f')",
]


def test_every_name_of_the_language_is_executed_or_refused(project):
    assert set(api.DLT) == set(api.DP) == EXECUTED
    p = project(NUMBERS)
    for number, call in enumerate([*LATER_ARGUMENTS, *ROW_FILTERS]):
        code = "PROTECTION_REFUSED" if call in ROW_FILTERS else "NOT_SUPPORTED_YET"
        p.write(f"{CALLING}{call}  #! {code}\n", f"later_{number:02}.py")
    errors = p.refused()
    assert [(Path(e.where.file).name, e.code) for e in errors] == [(f, code) for f, _, code in marks(p)], "\n".join(map(str, errors))


def test_options_of_cloud_files_are_checked(project):
    p = project(
        HEAD
        + """
    def files(**options):
        given = {"cloudFiles.format": "json", **{f"cloudFiles.{k}": v for k, v in options.items()}}
        reader = spark.readStream.format("cloudFiles").options(**given)
        landing = spark.conf.get("landing")
        return reader.load(landing)  #! CF_UNKNOWN_OPTION_KEYS_ERROR #! CF_INVALID_SCHEMA_EVOLUTION_MODE #! CF_INVALID_OPTION_VALUE

    @dlt.table
    def unknown_key():
        return files(inferColumTypes="true")

    @dlt.table
    def mode():
        return files(schemaEvolutionMode="addNewColumn")

    @dlt.table
    def number():
        return files(maxFilesPerTrigger="many")

    @dlt.table
    def no_format():
        return spark.readStream.format("cloudFiles").load(spark.conf.get("landing"))  #! CF_INCORRECT_STREAM_USAGE

    @dlt.table
    def no_path():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load()  #! CF_SOURCE_DIRECTORY_PATH_REQUIRED

    @dlt.table
    def batch():
        return spark.read.format("cloudFiles").load("x")  #! CF_INCORRECT_BATCH_USAGE

    @dlt.table
    def one_file():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        return reader.load(spark.conf.get("landing") + "/a.json")  #! CF_PATH_IS_NOT_A_DIRECTORY
"""
    )
    p.arrive("a.json", {"id": 1})
    found = p.refused()
    assert sorted((e.where.line, e.code) for e in found) == sorted((line, code) for _, line, code in marks(p)), "\n".join(map(str, found))
    assert by_code(found)["CF_UNKNOWN_OPTION_KEYS_ERROR"].nearest == ("cloudFiles.inferColumnTypes",)
    assert by_code(found)["CF_INVALID_SCHEMA_EVOLUTION_MODE"].nearest[0] == "addNewColumns"


@pytest.mark.long
def test_a_stored_table_keeps_its_kind_and_its_types(project):
    p = project(
        NUMBERS
        + """
    @dlt.table
    def stream():
        return dlt.read_stream("numbers")

    @dlt.table
    def view():
        return dlt.read("numbers")
"""
    )
    p.run()
    p.write(
        NUMBERS
        + """
    @dlt.table  #! SCHEMA_INCOMPATIBLE
    def stream():
        return dlt.read_stream("numbers").selectExpr("CAST(id AS STRING) AS id")

    @dlt.table  #! KIND_CHANGED
    def view():
        return dlt.read_stream("numbers")
"""
    )
    p.run(expect="FAILED")
    errors = check(p, p.result.errors)
    assert "--full-refresh main.default.stream" in by_code(list(errors.values()))["SCHEMA_INCOMPATIBLE"].todo
    assert p.rows("stream") == [0, 1, 2]
