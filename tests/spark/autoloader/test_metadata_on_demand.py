"""Rows of Auto Loader have `_metadata` where something asks for it, and are read without it elsewhere (AL-22)."""

from __future__ import annotations

import textwrap

import pytest

from lakelet.autoloader.auto_loader_source import AutoLoaderSource

pytestmark = pytest.mark.spark

READ = """
    import dlt
    from lakelet import transforms
    from pyspark.sql import functions as F

    def landed():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.schemaHints", "id BIGINT").load(spark.conf.get("landing")))
"""


@pytest.fixture
def asked(monkeypatch):
    """Whether `_metadata` was in the rows of each stream that was opened, in their order."""
    found, opened = [], AutoLoaderSource.read_stream

    def noted(source, *words, metadata, **more):
        found.append(metadata)
        return opened(source, *words, metadata=metadata, **more)

    monkeypatch.setattr(AutoLoaderSource, "read_stream", noted)
    return found


def run(project, source):
    p = project(textwrap.dedent(READ) + textwrap.dedent(source))
    p.arrive("a.json", {"id": 1}, {"id": 2})
    return p.run()


@pytest.mark.parametrize(
    "query",
    ["landed()", "landed().where('id > 0').select('*', F.lit(1).alias('one'))", "landed().withColumn('_metadata', F.lit('mine'))"],
)
def test_a_query_that_does_not_name_it_reads_rows_without_it(project, asked, query):
    p = run(project, f"@dlt.table\ndef rows():\n    return {query}")
    assert (p.rows("rows", "id"), asked) == ([1, 2], [False])


@pytest.mark.parametrize(
    "query",
    [
        "landed().select('id', F.col('_metadata.file_name').alias('file'))",
        "landed().where(\"_metadata.file_name = 'a.json'\").select('id', F.lit('a.json').alias('file'))",
        "landed().select('id', F.regexp_extract(F.input_file_name(), '[^/]*$', 0).alias('file'))",
        "landed().alias('x').selectExpr('id', 'x._metadata.file_name AS file')",
        "landed().transform(transforms.add_source_file(name='file', path=None))",
    ],
)
def test_a_query_that_names_it_gets_it(project, asked, query):
    p = run(project, f"@dlt.table\ndef rows():\n    return {query}")
    assert (p.rows("rows", "id", "file"), asked) == ([(1, "a.json"), (2, "a.json")], [True])


def test_each_source_of_a_query_is_judged_alone(project, asked):
    p = run(
        project,
        """
    @dlt.view
    def named():
        return landed().select("id", F.col("_metadata.file_name").alias("file"))

    @dlt.table
    def rows():
        return landed().withColumn("file", F.lit("none")).select("id", "file").union(dlt.read_stream("named"))
""",
    )
    assert p.rows("rows", "id", "file") == [(1, "a.json"), (1, "none"), (2, "a.json"), (2, "none")]
    assert sorted(asked) == [False, True]


@pytest.mark.parametrize(
    "decorators",
    [
        """@dlt.expect_or_drop("named", "_metadata.file_name = 'a.json'")""",
        """@dlt.table(table_properties={"lakelet.quarantine": "true"})\n@dlt.expect_or_drop("some", "id > 0")""",
    ],
)
def test_rules_and_a_quarantine_have_it_where_the_query_does_not_name_it(project, asked, decorators):
    table = "" if "dlt.table" in decorators else "@dlt.table\n"
    p = run(project, f"{table}{decorators}\ndef rows():\n    return landed()")
    assert (p.rows("rows", "id"), asked) == ([1, 2], [True])


def test_a_source_that_a_query_has_twice_is_read_with_it_if_one_of_them_names_it(project, asked):
    p = run(
        project,
        """
    @dlt.table
    def rows():
        files = landed()
        named = files.select("id", F.col("_metadata.file_name").alias("file"))
        return named.union(files.select("id", F.lit("none").alias("file")))
""",
    )
    assert p.rows("rows", "id", "file") == [(1, "a.json"), (1, "none"), (2, "a.json"), (2, "none")]
    assert asked == [True]


def test_a_rule_of_a_view_has_it_where_no_query_names_it(project, asked):
    p = run(
        project,
        """
    @dlt.view
    @dlt.expect_or_drop("named", "_metadata.file_name = 'a.json'")
    def named():
        return landed()

    @dlt.table
    def rows():
        return dlt.read_stream("named")
""",
    )
    assert (p.rows("rows", "id"), asked[-1]) == ([1, 2], True)


def test_a_query_that_names_it_only_when_it_runs_gets_it(project, asked):
    p = run(
        project,
        """
    calls = []

    @dlt.table
    def rows():
        calls.append(1)
        return landed().withColumn("file", F.lit("") if len(calls) == 1 else F.col("_metadata.file_name"))
""",
    )
    assert (p.rows("rows", "id", "file"), asked) == ([(1, "a.json"), (2, "a.json")], [False, True])


def test_the_place_of_a_broken_record_is_known_without_it(project, asked):
    p = project(textwrap.dedent(READ) + "@dlt.table\ndef rows():\n    return landed()")
    p.arrive("a.json", {"id": 1}, '{"id": ', {"id": "two"})
    p.run()
    assert asked == [False]
    (found,) = [event.body for event in p.events if event.event_type == "source_records"]
    assert (found["records"], found["corrupt"], found["rescued"], found["first_line"]) == (3, 1, 1, 2)
    assert found["first_file"].endswith("/a.json")
