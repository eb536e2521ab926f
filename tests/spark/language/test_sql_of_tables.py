"""Prefixes of columns, versions and lengths: what SQL says of a table beyond its name (docs/semantics/language.md)."""

from __future__ import annotations

import pytest

from lakelet.inspection.inspector import run_sql
from tests.spark.conftest import codes

PREFIXES = """
    CREATE MATERIALIZED VIEW raw AS SELECT id, 'default.raw.id' AS text FROM range(2);
    CREATE MATERIALIZED VIEW one AS SELECT default.raw.id, live.raw.text FROM default.raw WHERE main.default.raw.id = 1;
    CREATE MATERIALIZED VIEW two AS SELECT `default`.raw.* FROM LIVE.raw JOIN default.one ON default.one.id = LIVE.raw.id -- default.raw.id
"""


@pytest.mark.slow
def test_columns_may_carry_the_schema_or_catalog_of_their_table(project):
    p = project()
    p.write(PREFIXES, "p.sql")

    p.run()

    assert p.rows("one") == [(1, "default.raw.id")]
    assert p.rows("two") == [(1, "default.raw.id")]


SAME_NAMES = """
    CREATE MATERIALIZED VIEW silver.raw AS SELECT explode(array(1, 2)) AS id;
    CREATE MATERIALIZED VIEW gold.raw AS SELECT explode(array(2, 3)) AS id;
    CREATE MATERIALIZED VIEW both AS SELECT silver.raw.id FROM silver.raw JOIN gold.raw ON silver.raw.id = gold.raw.id;
    CREATE MATERIALIZED VIEW one AS
    SELECT silver.raw.id FROM silver.raw WHERE NOT EXISTS (SELECT 1 FROM gold.raw WHERE gold.raw.id = silver.raw.id);
"""


def test_full_names_of_columns_tell_tables_of_one_name_in_two_schemas_apart(project):
    p = project()
    p.write(SAME_NAMES, "p.sql")

    p.run()

    assert (p.rows("both"), p.rows("one")) == ([2], [1])


VERSIONS = """
    import dlt
    dlt.view(lambda: spark.range(1), name="v")

    @dlt.table
    def raw():
        return spark.readStream.schema("id BIGINT").json(spark.conf.get("landing"))
"""
READERS = """
    @dlt.table
    def old():
        first = spark.sql("SELECT id FROM raw VERSION AS OF 1 AS r JOIN raw FOR SYSTEM_VERSION AS OF '2' USING (id)")
        return first.union(spark.sql("SELECT raw.id + 100 AS id FROM default.raw TIMESTAMP AS OF TIMESTAMP_MILLIS(MOMENT)"))
"""


@pytest.mark.long
def test_a_version_of_a_table_of_the_pipeline_is_read(project):
    p = project(VERSIONS)
    p.arrive("1.json", {"id": 1})
    p.run()
    first = p.version("raw")
    p.arrive("2.json", {"id": 2})
    p.run()
    newest = p.path("raw") / "_delta_log" / f"{p.version('raw'):020d}.json"
    moment = str(newest.stat().st_mtime_ns // 1_000_000)
    p.write(VERSIONS + READERS.replace("OF 1 ", f"OF {first} ").replace("OF '2'", f"OF '{first + 1}'").replace("MOMENT", moment))

    p.run()

    assert p.rows("old") == [1, 101, 102]
    rows = run_sql(p.storage.root, f"SELECT count(*) AS n FROM raw VERSION AS OF {first}", spark=p.spark).rows
    assert list(rows) == [{"n": 1}]
    rows = run_sql(p.storage.root, "SELECT 1 AS id, 2 AS id, 3 AS id_2", spark=p.spark).rows
    assert list(rows) == [{"id": 1, "id_3": 2, "id_2": 3}]


def test_a_view_has_no_versions(project):
    p = project(VERSIONS + '\n    dlt.table(lambda: spark.sql("SELECT * FROM v VERSION AS OF 0"), name="t")')

    (error,) = p.refused()

    assert error.code == "QUERY_KIND"
    assert "has no versions" in error.what


FIELDS = "T.StructType([T.StructField('name', T.VarcharType(2)), T.StructField('n', T.IntegerType())])"


@pytest.mark.parametrize("schema", ["'name VARCHAR(2), n INT'", FIELDS])
def test_a_declared_length_is_kept(project, schema):
    p = project(f"""
        import dlt
        from pyspark.sql import types as T

        @dlt.table(schema={schema})
        def named():
            return spark.readStream.schema("name STRING, n INT").json(spark.conf.get("landing"))
    """)
    p.arrive("1.json", {"name": "ab", "n": 1}, {"name": None, "n": 2})
    p.run()
    assert p.rows("named") == [("ab", 1), (None, 2)]
    p.arrive("2.json", {"name": "abc", "n": 3})

    p.run(expect="FAILED")

    assert p.errors() == {"named": "EXPECTATION_VIOLATION"}
    assert p.rows("named") == [("ab", 1), (None, 2)]


def test_lengths_within_other_types_and_char_are_refused_by_name(project):
    p = project()
    p.write("CREATE STREAMING TABLE a (x CHAR(3)); CREATE MATERIALIZED VIEW b (y ARRAY<VARCHAR(2)>) AS SELECT 1 AS y", "p.sql")

    errors = p.refused()

    assert codes(errors) == ["NOT_SUPPORTED_YET", "NOT_SUPPORTED_YET"]


def test_spark_stop_in_a_pipeline_file_stops_nothing_and_says_so(project):
    p = project("""
        import dlt
        dlt.table(lambda: spark.range(1), name="t")
        spark.stop()
        spark.sparkContext.stop()
    """)

    p.run()

    assert p.rows("t") == [0]
    assert [n.text.split(" has ")[0] for n in p.pipeline.check().notices] == ["spark.stop()", "spark.sparkContext.stop()"]
