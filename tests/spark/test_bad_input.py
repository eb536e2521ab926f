"""Bad input: what analysis finds is reported together and nothing is written; what only the run finds fails its own branch.

Lines that carry `#! CODE` are the ones an error must point at: no more errors than marks, each at its line, each with something to do.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lakelet.base.errors import CODES, ExitCode, LakeletError
from lakelet.language import api

HEAD = """
    import dlt
    from pyspark import pipelines as dp
    from pyspark.sql import functions as F
"""
NUMBERS = (
    HEAD
    + """
    @dlt.table
    def numbers():
        return spark.range(3)
"""
)


def marks(p):
    """(file, line, code) of every mark in the project's files."""
    found = []
    for file in sorted(p.folder.rglob("*.py")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found += [(file.name, number, code) for code in re.findall(r"#! (\w+)", line)]
    return sorted(found)


def check(p):
    """Refuse the project's update; its errors are exactly the marks. Returns them by line."""
    errors = p.refused()
    assert sorted((Path(e.where.file).name, e.where.line, e.code) for e in errors) == marks(p), "\n".join(map(str, errors))
    assert {CODES[e.code].exit_code for e in errors} == {ExitCode.INVALID}
    assert [str(e) for e in errors if not (e.todo or e.nearest)] == []
    return {(Path(e.where.file).name, e.where.line): e for e in errors}


def by_code(errors):
    return {e.code: e for e in errors}


def at(errors, p, mark, file="pipeline.py"):
    """The error at the line that holds the text `mark`."""
    lines = (p.folder / file).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if mark in line]
    return errors[file, number]


# ------------------------------------------------------------------------------------------------------------- queries


def test_mistakes_in_queries_are_found_at_their_lines_and_names_are_suggested(project):
    p = project(
        NUMBERS
        + """
    @dlt.table
    def column():
        df = dlt.read("numbers")
        return (
            df.where("id > 0")
            .select("idd")  #! QUERY_FAILED_ANALYSIS
        )

    @dlt.table
    def column_in_sql():
        return spark.sql("SELECT idd FROM numbers")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def attribute():
        return dlt.read("numbers").idd  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def wrong_argument():
        return dlt.read("numbers").withColumn("a", 5)  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def text_divided_by_text():
        return dlt.read("numbers").selectExpr("string(id) / string(id) AS one")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def sql_text():
        return spark.sql("SELEC * FROM numbers")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def sql_function():
        return spark.sql("SELECT nothing_like_it(id) FROM numbers")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def parameter():
        return dlt.read("numbers").where(spark.conf.get("no.such.key"))  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def command():
        spark.sql("INSERT INTO numbers VALUES (1)")  #! QUERY_FAILED_ANALYSIS
        return dlt.read("numbers")

    @dlt.table
    def table():
        return dlt.read("number")  #! UNKNOWN_DATASET

    @dlt.table
    def live_table():
        return spark.read.table("LIVE.numbrs")  #! UNKNOWN_DATASET

    @dlt.table
    def table_in_sql():
        return spark.sql("SELECT * FROM other.schema.numbers")  #! UNKNOWN_DATASET

    @dlt.table
    def stream():
        return spark.readStream.table("numberss")  #! UNKNOWN_DATASET

    @dlt.table
    def no_name():
        return dlt.read(numbers)  #! ARGUMENT_INVALID

    @dlt.table
    def below():
        return dlt.read("table").join(dlt.read("column"))
"""
    )
    errors = check(p)
    assert at(errors, p, '.select("idd")').nearest == ("id",)
    assert at(errors, p, "SELECT idd").nearest == ("id",)
    for remedy in ("Cast the columns", '"spark.sql.ansi.enabled": "false"'):
        assert remedy in at(errors, p, "string(id) / string(id)").todo
    assert "--param no.such.key=" in at(errors, p, "no.such.key").todo
    assert at(errors, p, 'dlt.read("number")').nearest == ("main.default.numbers",)
    assert at(errors, p, "other.schema.numbers").nearest == ("main.default.numbers",)
    assert at(errors, p, "dlt.read(numbers)").todo == 'Write dlt.read("numbers").'


def test_a_function_must_return_a_spark_data_frame(project):
    p = project(
        NUMBERS
        + """
    @dlt.table  #! QUERY_RETURNED_NO_DATAFRAME
    def nothing():
        dlt.read("numbers")

    @dlt.table(name="text")  #! QUERY_RETURNED_NO_DATAFRAME
    def some_text():
        return "numbers"

    @dlt.table  #! QUERY_RETURNED_NO_DATAFRAME
    def of_pandas():
        return dlt.read("numbers").toPandas()

    @dlt.view  #! QUERY_RETURNED_NO_DATAFRAME
    def looked_through():
        pass

    @dlt.table
    def reader():
        return dlt.read("looked_through")

    @dlt.table
    def other_reader():
        return dlt.read("looked_through")
"""
    )
    errors = check(p)
    assert {e.what for e in errors.values()} >= {
        "nothing() returned nothing instead of a Spark DataFrame",
        "some_text() returned a str instead of a Spark DataFrame",
        "of_pandas() returned a pandas DataFrame instead of a Spark DataFrame",
    }


def test_rules_are_checked_on_the_columns_of_their_dataset_each_mistake_once(project):
    p = project(
        NUMBERS
        + """
    @dlt.table
    @dlt.expect("good", "id > 0")
    @dlt.expect("typo", "idd > 0")  #! EXPECTATION_INVALID
    @dlt.expect_or_drop("number", "id + 1")  #! EXPECTATION_INVALID
    @dlt.expect_or_fail("unfinished", "id >")  #! EXPECTATION_INVALID
    @dlt.expect("a_column", F.col("idd") > 1)  #! EXPECTATION_INVALID
    @dlt.expect("sum", "sum(id) > 1")  #! EXPECTATION_INVALID
    @dlt.expect("empty", "")  #! EXPECTATION_INVALID
    def judged():
        return dlt.read("numbers")

    @dlt.view
    @dlt.expect_all({"of_view": "nothing > 1"})  #! EXPECTATION_INVALID
    def seen():
        return dlt.read("numbers")

    @dlt.table
    def one_reader():
        return dlt.read("seen")

    @dlt.table
    def other_reader():
        return dlt.read("seen").where("id > 1")

    dlt.create_streaming_table("two_flows", expect_all_or_drop={"of_table": "nothing > 1"})  #! EXPECTATION_INVALID

    @dlt.append_flow(target="two_flows")
    def flow():
        return dlt.read_stream("numbers")

    @dlt.append_flow(target="two_flows")
    def other_flow():
        return dlt.read_stream("numbers").where("id > 1")
"""
    )
    errors = check(p)
    assert at(errors, p, '"typo"').nearest == ("id",)
    assert at(errors, p, '"number"').what == "expectation 'number' is bigint, not boolean: id + 1"
    assert "PARSE_SYNTAX_ERROR" in at(errors, p, '"unfinished"').why


def test_what_loading_finds_and_what_analysis_finds_is_reported_together(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def numbers():
        return spark.range(3)

    @dlt.view(name="Numbers")  #! DUPLICATE_DATASET
    def again():
        return spark.range(4)

    dlt.create_streaming_table("events")

    @dlt.append_flow(target="events", name="first")
    def first():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="events", name="first")  #! DUPLICATE_FLOW
    def second():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="event")  #! UNKNOWN_TARGET
    def third():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="view")  #! UNKNOWN_TARGET
    def fourth():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="copy")  #! UNKNOWN_TARGET
    def fifth():
        return spark.readStream.table("numbers")

    @dlt.view
    def view():
        return dlt.read("numbers")

    @dlt.table
    def copy():
        return dlt.read("numbers")

    dlt.create_streaming_table("lonely")  #! DATASET_WITHOUT_FLOW

    @dlt.table
    @dlt.expect("rule", "id > 0")
    @dlt.expect_or_drop("rule", "id > 1")  #! DUPLICATE_EXPECTATION
    def judged():
        return dlt.read("numbers").select("idd")  #! QUERY_FAILED_ANALYSIS
""",
        second="""
    import dlt

    @dlt.table  #! DUPLICATE_DATASET
    def numbers():
        return spark.range(3)
""",
    )
    errors = check(p)
    assert at(errors, p, 'target="event")').nearest[0] == "main.default.events"
    assert "pipeline.py, line 6" in at(errors, p, 'name="Numbers"').why


def test_a_circle_is_told_with_its_path(project):
    p = project(
        HEAD
        + """
    @dlt.table  #! CYCLE
    def a():
        return dlt.read("b")

    @dlt.table
    def b():
        return spark.sql("SELECT * FROM c")

    @dlt.view
    def c():
        return dlt.read("a")

    @dlt.table  #! CYCLE
    def itself():
        return dlt.read("itself")

    @dlt.view  #! CYCLE
    def view():
        return dlt.read("view")

    @dlt.table
    def below():
        return dlt.read("a")
"""
    )
    found = [e.what.partition(": ")[2] for e in p.refused()]
    check(p)
    assert found[0] == "main.default.a → main.default.b → main.default.c → main.default.a"
    assert found[1:] == ["main.default.itself → main.default.itself", "main.default.view → main.default.view"]


def test_batch_and_stream_are_not_mixed_up(project):
    p = project(
        NUMBERS
        + """
    @dp.materialized_view  #! QUERY_KIND
    def materialized_view():
        return spark.readStream.table("numbers")

    @dp.temporary_view
    def stream_view():
        return spark.readStream.table("numbers")

    @dp.temporary_view
    def batch_view():
        return spark.read.table("numbers")

    @dlt.table
    def batch_of_stream():
        return spark.read.table("stream_view")  #! QUERY_KIND

    @dlt.table
    def stream_of_batch():
        return dlt.read_stream("batch_view")  #! QUERY_KIND

    @dlt.table
    def stream_of_batch_in_sql():
        return spark.sql("SELECT * FROM STREAM(batch_view)")  #! QUERY_KIND

    dlt.create_streaming_table("events")

    @dlt.append_flow(target="events")  #! QUERY_KIND
    def batch_flow():
        return spark.read.table("numbers")

    @dlt.table  #! STREAM_QUERY_REFUSED
    def sorted_stream():
        return spark.readStream.table("numbers").orderBy("id")
"""
    )
    assert {e.dataset for e in check(p).values()} >= {"main.default.batch_of_stream", "main.default.stream_of_batch"}


def test_columns_that_a_table_cannot_have_are_refused(project):
    p = project(
        HEAD
        + """
    @dlt.table(schema="id INT, nme STRING")  #! SCHEMA_MISMATCH
    def declared():
        return spark.range(3).withColumn("name", F.lit("x"))

    @dlt.table(schema="id INTT")  #! ARGUMENT_INVALID
    def declared_wrongly():
        return spark.range(3)

    @dlt.table(partition_cols=["idd"])  #! SCHEMA_MISMATCH
    def partitioned():
        return spark.range(3)

    @dlt.table(cluster_by=["idd"])  #! SCHEMA_MISMATCH
    def clustered():
        return spark.range(3)

    @dlt.table(partition_cols=["id"])  #! SCHEMA_MISMATCH
    def only_partitions():
        return spark.range(3)

    @dlt.table(partition_cols=["list"])  #! SCHEMA_MISMATCH
    def nested_partition():
        return spark.range(3).selectExpr("id", "array(id) AS list")

    @dlt.table  #! SCHEMA_MISMATCH
    def twice():
        return spark.range(3).selectExpr("id", "id AS ID")

    @dlt.table  #! SCHEMA_MISMATCH
    def interval():
        return spark.sql("SELECT INTERVAL '1' DAY AS i")

    @dlt.table(table_properties={"delta.columnMapping.mode": "none"})  #! SCHEMA_MISMATCH
    def characters():
        return spark.range(3).selectExpr("id AS `a b`")

    @dlt.table(spark_conf={"spark.sql.shuffle.partitions": "many"})  #! PROPERTY_INVALID
    def setting():
        return spark.range(3)
"""
    )
    errors = check(p)
    assert at(errors, p, 'partition_cols=["idd"]').nearest == ("id",)
    assert at(errors, p, 'schema="id INT, nme STRING"').why.splitlines() == [
        "id is declared int, the query returns bigint",
        "name is not declared, but the query returns it",
    ]


def test_column_names_with_spaces_work_with_the_property_that_the_remedy_names(project):
    p = project(
        HEAD
        + """
    @dlt.table(table_properties={"delta.columnMapping.mode": "name"})
    def spaces():
        return spark.range(2).selectExpr("id AS `a b`", "id AS `c.d`")
"""
    )
    p.run()
    assert p.spark.read.format("delta").load(str(p.path("spaces"))).columns == ["a b", "c.d"]


# --------------------------------------------------------------------------------------------------------------- files


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
    assert (caught.value.code, Path(caught.value.where.file).name) == ("OUTSIDE_PIPELINE", "test_bad_input.py")
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


# ------------------------------------------------------------------------------------------------------- the language

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
    "on_event_hook", "read", "readStream", "read_stream", "table", "temporary_view", "update_flow", "view",
}  # fmt: skip
LATER = {
    "replace_flow": "('t')",
}
LATER_ARGUMENTS = [
    "dp.table(query, replace_using=['id'])",
    "dp.table(query, sequence_by='id')",
    "dp.table(query, format='parquet')",
    "dp.materialized_view(query, refresh_policy='incremental_strict')",
    "dp.create_table('t', format='csv')",
    "dlt.apply_changes('t', 's', ['k'], 'at', stored_as_scd_type='bitemporal')",
    "dp.create_auto_cdc_flow('t', 's', ['k'], 'at', system_sequence_by='now')",
    "dp.append_flow(target='t', import_checkpoint='/tmp/x')",
]
ROW_FILTERS = [
    "dlt.table(query, row_filter='ROW FILTER f ON (id)')",
    "dp.materialized_view(query, row_filter='f')",
    "dlt.create_streaming_table('t', row_filter='f')",
]


def test_every_name_of_the_language_is_executed_or_refused(project):
    assert set(api.DLT) == set(api.DP) == EXECUTED | set(LATER)
    assert EXECUTED.isdisjoint(LATER)
    p = project(NUMBERS)
    calls = [f"{module}.{name}{arguments}" for module in ("dlt", "dp") for name, arguments in LATER.items()] + LATER_ARGUMENTS
    for number, call in enumerate([*calls, *ROW_FILTERS]):
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


# ------------------------------------------------------------------------------------------- against what is stored


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
    errors = check(p)
    assert "--full-refresh main.default.stream" in by_code(list(errors.values()))["SCHEMA_INCOMPATIBLE"].todo
    assert p.rows("stream") == [0, 1, 2]


# ------------------------------------------------------------------------------------------------ found at run time

BRANCHES = (
    NUMBERS
    + """
    def files(folder, **options):
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").options(**options)
        return reader.option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing") + "/" + folder)

    def causes():
        from pathlib import Path
        return Path(spark.conf.get("landing"), "causes").exists()

    @dlt.table
    def unreadable():
        return files("unreadable", **{"cloudFiles.schemaHints": "id BIGINT"})

    @dlt.table
    def missing():
        return files("missing")

    @dlt.table
    def missing_batch():
        return spark.read.schema("id BIGINT").json(spark.conf.get("landing") + "/missing")

    @dlt.table
    def empty():
        return files("empty")

    @dlt.table
    def function():
        if causes():
            raise ValueError("of the user")  # function
        return spark.range(1)

    @dlt.view
    def view():
        if causes():
            raise ValueError("of the view")  # view
        return spark.range(1)

    @dlt.table
    def reads_view():
        return dlt.read("view")

    def divided(x):
        return 1 // x  # worker

    @dlt.table
    def udf():
        start = 0 if causes() else 1
        return dlt.read("numbers").where(f"id >= {start}").select(F.udf(divided, "long")("id").alias("id"))

    @dlt.table
    def cast():
        return dlt.read("numbers").selectExpr(f"CAST({'concat(id, chr(97))' if causes() else 'id'} AS INT) AS id")

    @dlt.table
    @dlt.expect_or_fail("small", f"id < {2 if causes() else 3}")
    def fail_rule():
        return dlt.read_stream("numbers")

    @dlt.table
    def below():
        return dlt.read("unreadable").select("id").union(dlt.read("numbers"))

    @dlt.table
    def below_below():
        return dlt.read("below")

    @dlt.table
    def good():
        return files("good")

    @dlt.table
    def below_good():
        return dlt.read_stream("good").select("id")
"""
)
FAILED = {
    "unreadable": "FAILED_READ_FILE",
    "missing": "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
    "missing_batch": "FLOW_FAILED",
    "empty": "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
    "function": "USER_FUNCTION_FAILED",
    "view": "USER_FUNCTION_FAILED",
    "udf": "FLOW_FAILED",
    "cast": "FLOW_FAILED",
    "fail_rule": "EXPECTATION_VIOLATION",
}


def test_a_failure_at_run_time_stays_in_its_branch_and_the_next_update_repairs_it(project):
    p = project(BRANCHES)
    p.arrive("causes", "{}")
    p.arrive("a.json", {"id": 1}, folder="good")
    p.arrive("b.json", {"id": 7}, folder="unreadable")
    packed = p.landing / "unreadable" / "a.json.gz"
    packed.write_bytes(gzip.compress(b'{"id": 5}\n' * 1000)[:20])
    (p.landing / "empty").mkdir()
    p.run(expect="FAILED")

    assert p.errors() == FAILED
    ended = p.statuses()
    assert {name for name, status in ended.items() if status == "COMPLETED"} == {"numbers", "good", "below_good"}
    assert {name for name, status in ended.items() if status == "SKIPPED"} == {"below", "below_below"}
    assert p.rows("below_good") == [1]
    assert not any((p.path(name) / "_delta_log").exists() for name in ended if ended[name] in ("FAILED", "SKIPPED"))
    assert [str(e) for e in p.result.errors if not (e.where and e.todo)] == []
    errors = {str(e.dataset).rsplit(".", 1)[-1]: e for e in p.result.errors}
    lines = (p.folder / "pipeline.py").read_text().splitlines()
    assert lines[errors["function"].where.line - 1].endswith("# function")
    assert lines[errors["view"].where.line - 1].endswith("# view")
    assert lines[errors["udf"].where.line - 1].endswith("# worker")
    assert "spark.sql.ansi.enabled" in errors["cast"].todo
    assert "a.json.gz" in errors["unreadable"].what
    assert "Violated expectations: 'small'" in errors["fail_rule"].what

    (p.landing / "causes").unlink()
    packed.write_bytes(gzip.compress(b'{"id": 5}\n'))
    p.arrive("a.json", {"id": 2}, folder="missing")
    p.arrive("a.json", {"id": 3}, folder="empty")
    p.run()
    assert p.rows("unreadable", "id") == [5, 7]
    assert p.rows("below_below", "id") == [0, 1, 2, 5, 7]
    assert (p.rows("missing", "id"), p.rows("missing_batch"), p.rows("empty", "id")) == ([2], [2], [3])
    assert (p.rows("function"), p.rows("reads_view"), p.rows("udf"), p.rows("cast")) == ([0], [0], [0, 1], [0, 1, 2])
    assert p.rows("fail_rule") == [0, 1, 2]
    assert p.rows("below_good") == [1]


def test_a_file_that_vanishes_before_it_is_read_fails_its_table_until_it_is_back(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def bronze():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
        return reader.load(spark.conf.get("landing"))
"""
    )
    p.arrive("a.json", {"id": 1})
    packed = p.landing / "b.json.gz"
    packed.write_bytes(b"broken")
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert error.what.endswith("b.json.gz cannot be read"), str(error)
    packed.unlink()
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.what.endswith("b.json.gz is missing")) == ("FAILED_READ_FILE", True)
    assert "Put the file back" in error.todo
    packed.write_bytes(gzip.compress(b'{"id": 2}\n'))
    p.run()
    assert p.rows("bronze") == [1, 2]


def test_broken_lines_and_wrong_types_are_kept_counted_and_warned_about(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def bronze():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
        return reader.option("cloudFiles.schemaHints", "id BIGINT, _corrupt_record STRING").load(spark.conf.get("landing"))
"""
    )
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.arrive("b.json", {"id": 3}, '{"id": 4', {"id": "five"}, "no json at all")
    p.run()
    assert sorted(p.rows("bronze", "id"), key=repr) == [1, 2, 3, None, None, None]
    kept = " ".join(map(str, p.rows("bronze", "_corrupt_record") + p.rows("bronze", "_rescued_data")))
    assert all(text in kept for text in ('{"id": 4', "five", "no json at all"))
    (warning,) = [e for e in p.events if e.event_type == "source_records"]
    body = warning.body
    assert (body["corrupt"], body["rescued"], body["first_line"]) == (2, 1, 2)
    assert body["first_file"].endswith("/b.json")
    assert warning.level == "WARN"
    assert "2 broken and 1 partly rescued" in warning.message
