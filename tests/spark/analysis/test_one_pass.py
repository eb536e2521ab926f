"""Everything that is wrong with a pipeline is found in one pass, and nothing that only follows from it."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors
from tests.spark.analysis.marked_mistakes import HEAD, NUMBERS, at, check


def codes(errors, file):
    """(line, code) of the errors in a file, in the order in which they are shown."""
    return [(error.where.line, error.code) for error in errors if error.where.file.endswith(file)]


def all_of(p):
    """The errors and warnings of `lakelet validate`."""
    with pytest.raises(DefinitionErrors) as caught:
        p.pipeline.check()
    return caught.value


def test_mistakes_of_every_kind_in_several_files_are_found_together_with_the_warnings(project):
    p = project(
        NUMBERS
        + """
    @dlt.table(path="/somewhere")
    @dlt.expect("typo", "idd > 0")  #! EXPECTATION_INVALID
    def judged():
        return dlt.read("numbers")

    @dlt.table
    def column():
        return dlt.read("numbers").select("idd")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def below():
        return dlt.read("column").select("nothing_of_it")

    @dlt.table
    def table():
        return dlt.read("numbrs")  #! UNKNOWN_DATASET
""",
        options=HEAD
        + """
    @dlt.table(partition_cols="id")  #! ARGUMENT_INVALID
    def partitioned():
        return dlt.read("numbers")

    dlt.create_streaming_table(name="events", cluster_by="id")  #! ARGUMENT_INVALID

    @dlt.table(nme="spelt")  #! SOURCE_FAILED
    def misspelt():
        return dlt.read("numbers")

    @dlt.append_flow(target="events")
    def into_the_second():
        return spark.readStream.table("numbers")

    @dlt.table
    def reads_them():
        return dlt.read("partitioned").join(dlt.read("events"), "id")

    @dlt.table
    def behind_them():
        return dlt.read("numbres")  #! UNKNOWN_DATASET
""",
        syntax="@dlt.table\ndef cannot_be_read()  #! SOURCE_FAILED\n    return 1\n",
        reads_syntax="import dlt\n\n@dlt.table\ndef reader():\n    return dlt.read('cannot_be_read')\n",
        imported="import nowhere_to_be_found  #! SOURCE_FAILED\nfrom pyspark.sql import functions as F\n",
    )
    p.write(
        """
        CREATE MATERIALIZED VIEW one AS SELECT idd FROM numbers;
        CREATE MATERIALISED VIEW two AS SELECT 1 AS id;
        CREATE MATERIALIZED VIEW three AS SELECT * FROM two;
        CREATE MATERIALIZED VIEW four AS SELECT * FROM nmbers JOIN twoo USING (id);
        CREATE MATERIALIZED VIEW five AS SELECT sum(id FROM numbers;
        CREATE MATERIALIZED VIEW six TBLPROPERTIES ('delta.appendOnly' = 'perhaps') AS SELECT id FROM five;
        """,
        "tables.sql",
    )
    found = all_of(p)
    in_sql = [e for e in found.errors if e.where.file.endswith(".sql")]
    assert codes(in_sql, ".sql") == [
        (2, "QUERY_FAILED_ANALYSIS"),
        (3, "SQL_SYNTAX"),
        (5, "UNKNOWN_DATASET"),
        (5, "UNKNOWN_DATASET"),
        (6, "SQL_SYNTAX"),
        (7, "PROPERTY_INVALID"),
    ]
    assert any("path has no effect here" in notice for notice in found.notices)
    p.files.remove(p.folder / "tables.sql")
    check(p)


def test_a_function_that_fails_does_not_hide_the_unknown_tables_behind_that_line(project):
    p = project(
        NUMBERS
        + """
    @dlt.table
    def wrong_column_first():
        a = dlt.read("numbers").select("idd")  #! QUERY_FAILED_ANALYSIS
        b = dlt.read("custmers")  #! UNKNOWN_DATASET
        return a.join(b, "id").join(spark.read.table("regoins"), "id")  #! UNKNOWN_DATASET

    @dlt.table
    def two_in_sql():
        return spark.sql(
            "SELECT * FROM numbers JOIN frst USING (id) "  #! UNKNOWN_DATASET
            "JOIN scnd USING (id)"
        )

    @dlt.table
    def only_perhaps():
        a = dlt.read("numbers").select("idd")  #! QUERY_FAILED_ANALYSIS
        b = dlt.read("only_there") if spark.conf.get("there", "") else a
        if spark.conf.get("there", ""):
            b = dlt.read("not_here")
        return b.join(dlt.read("behind_a_branch"), "id")

    @dlt.table
    def of_its_own():
        a = dlt.read("numbers").select("idd")  #! QUERY_FAILED_ANALYSIS
        a.createOrReplaceTempView("passing")
        return spark.table("passing")
"""
    )
    found = p.refused()
    assert [e.what.split('"')[1] for e in found if e.code == "UNKNOWN_DATASET"] == ["custmers", "regoins", "frst", "scnd"]
    assert at({("pipeline.py", e.where.line): e for e in found}, p, '"custmers"').where.source.count("custmers") == 1
    assert sum(e.code == "QUERY_FAILED_ANALYSIS" for e in found) == 3


STORED = (
    HEAD
    + """
    dlt.create_streaming_table("sales")

    @dlt.append_flow(target="sales")
    def sold():
        return spark.readStream.schema("id BIGINT").json(spark.conf.get("landing"))
"""
)


def test_two_definitions_of_a_table_that_has_rows_name_both_places_and_advise_nothing_that_loses_rows(project):
    p = project(STORED)
    p.arrive("1.json", {"id": 1})
    p.run()
    p.write(
        """
        import dlt

        @dlt.table(name="sales")
        @dlt.expect("big", "solde > 3")
        def again():
            return spark.range(3).selectExpr("id AS sold")
        """,
        "another.py",
    )
    p.write(
        """
        CREATE MATERIALIZED VIEW fits_the_old AS SELECT id FROM sales;
        CREATE MATERIALIZED VIEW fits_the_new AS SELECT sold FROM sales;
        CREATE MATERIALIZED VIEW fits_neither AS SELECT solld FROM sales;
        CREATE MATERIALIZED VIEW beside AS SELECT * FROM nobody;
        """,
        "readers.sql",
    )
    p.files.reverse()  # the new file is loaded first: that does not make the old one wrong
    found = p.refused()
    text = "\n".join(map(str, found))
    assert "full-refresh" not in text
    duplicate = next(e for e in found if e.code == "DUPLICATE_DATASET")
    assert "pipeline.py, line" in duplicate.why
    assert "another.py, line" in duplicate.why
    assert sorted((e.code, str(e.dataset).rsplit(".", 1)[-1]) for e in found) == [
        ("DUPLICATE_DATASET", "sales"),
        ("EXPECTATION_INVALID", "sales"),
        ("QUERY_FAILED_ANALYSIS", "fits_neither"),
        ("UNKNOWN_DATASET", "beside"),
    ]
    assert p.rows("sales") == [1]


def test_a_copied_file_is_one_mistake_for_each_of_its_tables(project):
    text = """
        import dlt

        @dlt.table(name="a")
        @dlt.expect("rule", "id > 0")
        def a():
            return spark.range(3)

        dlt.create_streaming_table("b")

        @dlt.append_flow(target="b", name="into_b")
        def into_b():
            return spark.readStream.table("a")
    """
    found = project(text, copy=text).refused()
    assert [(e.code, e.dataset) for e in found] == [("DUPLICATE_DATASET", "main.default.a"), ("DUPLICATE_DATASET", "main.default.b")]
