"""The DLT language as people write it: decorators, loops, helper modules, sessions, settings (docs/semantics/datasets.md)."""

from __future__ import annotations

import sys
from datetime import date

import pyspark
import pytest
from pyspark.sql import SparkSession

HEAD = """
    import dlt
    from pyspark.sql import functions as F
"""


@pytest.mark.long
def test_decorators_work_with_and_without_parentheses_and_as_plain_calls_and_functions_stay_callable(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def bare():
        return spark.range(1)

    @dlt.table()
    def parentheses():
        return spark.range(2)

    @dlt.view
    @dlt.expect("rule", "id >= 0")
    def bare_view():
        return spark.range(3)

    def query():
        "What it is."
        return dlt.read("bare_view")

    called = dlt.table(query, name="called", comment="a plain call")
    again = dlt.table(name="again")(query)
    dlt.create_table(query, name="old_name")
    dlt.create_view(query, name="old_view_name")
    dlt.table(lambda: dlt.read("old_view_name"), name="of_lambda")

    assert called.__name__ == "query" and called.__doc__ == "What it is." and callable(again)
    assert bare().count() == 1 and bare.__wrapped__().count() == 1
    assert query is not called
"""
    )
    p.run()
    assert {n: len(p.rows(n)) for n in ("bare", "parentheses", "called", "again", "old_name", "of_lambda")} == {
        "bare": 1,
        "parentheses": 2,
        "called": 3,
        "again": 3,
        "old_name": 3,
        "of_lambda": 3,
    }


@pytest.mark.long
def test_loops_bind_late_as_on_the_service_and_default_arguments_and_factories_do_not(project):
    p = project(
        HEAD
        + """
    names = [row.name for row in spark.sql("SELECT explode(array('a', 'b')) AS name").collect()]

    for name in names:
        @dlt.table(name=f"late_{name}")
        def late():
            return spark.range(1).select(F.lit(name).alias("name"))

        @dlt.table(name=f"default_{name}")
        def with_default(name=name):
            return spark.range(1).select(F.lit(name).alias("name"))

    def factory(name):
        @dlt.table(name=f"made_{name}")
        @dlt.expect_all_or_drop({f"is_{name}": f"name = '{name}'"})
        def made():
            return dlt.read(f"late_{name}").union(dlt.read(f"default_{name}"))

    for name in names:
        factory(name)
"""
    )
    p.run()
    assert (p.rows("late_a"), p.rows("late_b")) == (["b"], ["b"])
    assert (p.rows("default_a"), p.rows("default_b")) == (["a"], ["b"])
    assert (p.rows("made_a"), p.rows("made_b")) == (["a"], ["b", "b"])


@pytest.mark.long
def test_helper_modules_declare_datasets_and_their_functions_work_on_workers(project):
    p = project(
        HEAD
        + """
    from helpers.words import loud
    from factory import declare

    declare("declared")

    @dlt.table
    def shouted():
        return dlt.read("declared").select(loud("word").alias("word"))

    @dlt.table
    def imported_late():
        from helpers.later import quiet

        def imported_on_the_worker(text):
            from helpers.marks import mark
            return mark(text)

        on_worker = F.udf(imported_on_the_worker, "string")
        return dlt.read("declared").select(quiet("word").alias("word"), on_worker("word").alias("marked"))

    @dlt.table
    def shouted_stream():
        return dlt.read_stream("declared").select(loud("word").alias("word"))
"""
    )
    p.helper(
        """
    import dlt
    from pyspark.sql import SparkSession

    def declare(name):
        @dlt.table(name=name)
        def declared():
            return SparkSession.builder.getOrCreate().sql("SELECT 'hey' AS word")
""",
        "factory.py",
    )
    (p.folder / "helpers").mkdir()
    p.helper("MARK = '!'\n\ndef mark(text):\n    return text + MARK\n", "helpers/marks.py")
    p.helper(
        """
    from pyspark.sql import functions as F
    from helpers.marks import mark

    def shout(text):
        return mark(text.upper())

    loud = F.udf(shout, "string")
""",
        "helpers/words.py",
    )
    p.helper(
        """
    from pyspark.sql import functions as F

    def whisper(text):
        return text.lower() + "..."

    quiet = F.udf(whisper, "string")
""",
        "helpers/later.py",
    )
    p.run()
    assert p.rows("imported_late") == [("hey...", "hey!")]
    assert (p.rows("shouted"), p.rows("shouted_stream")) == (["HEY!"], ["HEY!"])
    assert not [name for name in sys.modules if name.split(".")[0] in ("helpers", "factory")]


@pytest.mark.slow
def test_every_way_to_get_the_session_is_the_same_session(project):
    p = project(
        HEAD
        + """
    from pyspark.sql import SparkSession

    at_top = SparkSession.builder.appName("mine").getOrCreate()

    @dlt.table
    def numbers():
        return at_top.range(1)

    @dlt.table
    def built():
        return SparkSession.builder.getOrCreate().read.table("numbers")

    @dlt.table
    def active():
        return SparkSession.getActiveSession().readStream.table("numbers")

    @dlt.table
    def of_frame():
        return dlt.read("numbers").sparkSession.sql("SELECT * FROM LIVE.built")

    @dlt.table
    def made():
        return spark.createDataFrame([(0,)], "id long")
"""
    )
    p.run()
    assert [p.rows(n) for n in ("built", "active", "of_frame", "made")] == [[0], [0], [0], [0]]
    assert SparkSession.builder.getOrCreate() is p.spark
    assert SparkSession.getActiveSession() is p.spark


@pytest.mark.long
def test_parameters_defaults_and_settings_of_a_dataset_stay_where_they_belong(project):
    p = project(
        HEAD
        + """
    top = spark.conf.get("count")

    def seen(*more):
        values = [spark.conf.get("count"), spark.conf.get("own", "default"), spark.conf.get("spark.sql.ansi.enabled"), top, *more]
        return spark.createDataFrame([tuple(values)], ", ".join(f"c{i} STRING" for i in range(len(values))))

    @dlt.table(spark_conf={"own": "mine", "spark.sql.ansi.enabled": False})
    def with_settings():
        return seen().withColumn("cast", F.expr("CAST('x' AS INT)"))

    @dlt.table
    def first_format_that_fits():
        day = F.lit("2024-03-01")
        return spark.range(1).select(F.coalesce(F.to_timestamp(day, "M/d/yyyy"), F.to_timestamp(day, "yyyy-MM-dd")).cast("date").alias("d"))

    @dlt.table
    def without():
        return dlt.read("with_settings").select("c1").crossJoin(seen().select(F.col("c1").alias("own"), "c2"))

    @dlt.table
    def substituted():
        return spark.sql("SELECT ${count} AS count, '${count}' AS text")
"""
    )
    p.parameters["count"] = "3"
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert "CANNOT_PARSE_TIMESTAMP" in str(error.why)
    assert "try_to_timestamp" in error.todo
    assert p.rows("with_settings") == [("3", "mine", "false", "3", None)]
    assert p.rows("without") == [("mine", "default", "true")]

    p.parameters["spark.sql.ansi.enabled"] = "false"
    p.run()
    assert p.rows("first_format_that_fits") == [date(2024, 3, 1)]
    assert p.rows("without") == [("mine", "default", "false")]
    assert p.rows("substituted") == [(3, "3")]
    assert p.spark.conf.get("count", None) is None


@pytest.mark.slow
def test_sql_text_takes_arguments_of_every_kind_and_reads_the_pipelines_names(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def numbers():
        return spark.range(5)

    @dlt.table
    def named():
        return spark.sql("SELECT id FROM numbers WHERE id = :wanted", args={"wanted": 1})

    @dlt.table
    def positional():
        return spark.sql("SELECT id FROM LIVE.numbers WHERE id > ? AND id < ?", [1, 3])

    @dlt.table
    def formatted():
        query = "SELECT n.id FROM numbers n JOIN {frame} f ON n.id = f.id WHERE n.id > {least}"
        return spark.sql(query, frame=dlt.read("numbers"), least=3)

    @dlt.table
    def streamed():
        return spark.sql("SELECT id FROM STREAM(numbers) WHERE id = :wanted", {"wanted": 4})
"""
    )
    p.run()
    assert [p.rows(n) for n in ("named", "positional", "formatted", "streamed")] == [[1], [2], [4], [4]]


@pytest.mark.slow
def test_a_table_of_either_module_is_what_its_query_is(project):
    p = project(
        """
    from pyspark import pipelines as dp

    @dp.table
    def numbers():
        return spark.readStream.format("json").schema("n INT").load(spark.conf.get("landing"))

    @dp.table
    @dp.expect_or_drop("small", "total < 100")
    def totals():
        return spark.read.table("numbers").selectExpr("sum(n) AS total")

    @dp.table()
    def of_nothing_stored():
        return spark.range(2)
"""
    )
    p.arrive("a.json", {"n": 1}, {"n": 2})
    p.run()
    p.arrive("b.json", {"n": 3})
    p.run()
    kinds = {key.rsplit(".", 1)[-1]: d.kind for key, d in p.storage.registry().datasets.items()}
    assert kinds == {"numbers": "streaming_table", "totals": "materialized_view", "of_nothing_stored": "materialized_view"}
    assert (p.rows("numbers"), p.rows("totals"), p.rows("of_nothing_stored")) == ([1, 2, 3], [6], [0, 1])


def test_both_modules_work_in_one_pipeline_and_are_gone_afterwards(project):
    before = {name: sys.modules.get(name) for name in ("dlt", "pyspark.pipelines")}
    attribute = vars(pyspark).get("pipelines")
    p = project(
        """
    import dlt
    import pyspark.pipelines
    from pyspark import pipelines as dp
    from dlt import *

    @dp.materialized_view
    @dp.expect_or_drop("positive", "id > 0")
    def view():
        return spark.range(3)

    @dp.table
    def stream():
        return spark.readStream.table("view")

    @pyspark.pipelines.temporary_view
    def half_way():
        return read("view")

    dp.create_streaming_table("target")

    @dlt.append_flow(target="target")
    def into_target():
        return dp.read_stream("stream")

    if __name__ == "__main__":
        @dlt.table
        def as_main():
            return dlt.readStream("stream")
"""
    )
    p.run()
    assert [p.rows(n) for n in ("view", "stream", "target", "as_main")] == [[1, 2]] * 4
    assert {name: sys.modules.get(name) for name in before} == before
    assert vars(pyspark).get("pipelines") is attribute


@pytest.mark.slow
def test_names_of_several_parts_keep_datasets_apart(project):
    p = project(
        HEAD
        + """
    for number, name in enumerate(["events", "silver.events", "other.gold.events", "`with space`.`and.dot`"], 1):
        @dlt.table(name=name)
        def table(number=number):
            return spark.range(number)

    @dlt.table
    def counts():
        sizes = [spark.read.table(n).agg(F.count("*").alias("n")) for n in ("events", "silver.events", "other.gold.events")]
        quoted = spark.sql("SELECT count(*) AS n FROM `with space`.`and.dot` d JOIN main.default.events e ON e.id = d.id")
        return sizes[0].union(sizes[1]).union(sizes[2]).union(quoted)
"""
    )
    p.run()
    assert p.rows("counts") == [1, 1, 2, 3]
    assert set(p.storage.registry().datasets) == {
        "main.default.events",
        "main.silver.events",
        "other.gold.events",
        "main.with space.and.dot",
        "main.default.counts",
    }


@pytest.mark.slow
def test_temporary_and_private_tables_are_stored_and_marked(project):
    p = project(
        """
    import dlt
    from pyspark import pipelines as dp

    @dlt.table(temporary=True)
    def temporary():
        return spark.range(2)

    @dp.materialized_view(private=True)
    def private():
        return dlt.read("temporary")

    @dlt.table
    def public():
        return dlt.read("private")
"""
    )
    p.run()
    assert p.rows("public") == [0, 1]
    assert {d.name: d.private for d in p.storage.registry().datasets.values()} == {
        "main.default.temporary": True,
        "main.default.private": True,
        "main.default.public": False,
    }


@pytest.mark.slow
def test_functions_are_called_again_for_every_use_and_never_with_the_rows_of_another_update(project):
    p = project(
        HEAD
        + """
    calls = []

    @dlt.view
    def counted():
        calls.append(1)
        return spark.range(len(calls) and 2)

    @dlt.table
    def one():
        return dlt.read("counted")

    @dlt.table
    def two():
        return dlt.read("counted").union(dlt.read("counted"))

    @dlt.table
    def pandas_function():
        def double(frames):
            for frame in frames:
                yield frame * 2
        return dlt.read("one").mapInPandas(double, "id BIGINT")
"""
    )
    p.run()
    assert (p.rows("one"), p.rows("two"), p.rows("pandas_function")) == ([0, 1], [0, 0, 1, 1], [0, 2])
    p.run()
    assert p.statuses() == {"one": "IDLE", "two": "IDLE", "pandas_function": "COMPLETED"}


def test_a_file_that_only_calls_a_factory_of_a_helper_module_is_found_in_a_folder(tmp_path):
    from lakelet.config.source_files import in_folder

    (tmp_path / "factory.py").write_text("import dlt\n\ndef declare(name):\n    dlt.table(lambda: spark.range(1), name=name)\n")
    (tmp_path / "calls.py").write_text("from factory import declare\n\ndeclare('a')\n")
    (tmp_path / "plain.py").write_text("def f():\n    return 1\n")
    (tmp_path / "loops.py").write_text("import factory\n\nfor name in 'ab':\n    factory.declare(name)\n")
    (tmp_path / "script.py").write_text("from factory import declare\n\nif __name__ == '__main__':\n    declare('b')\n")
    (tmp_path / "uses.py").write_text("from factory import declare\n\ndef f():\n    declare('b')\n")
    (tmp_path / "test_calls.py").write_text("from factory import declare\n")
    assert [f.name for f in in_folder(tmp_path)] == ["calls.py", "factory.py", "loops.py"]


def test_display_of_a_data_frame_shows_nothing_and_says_so(project):
    p = project("""
        import dlt
        spark.range(3).display()

        @dlt.table
        def t():
            rows = spark.range(3)
            rows.display()
            return rows
    """)

    p.run()

    assert p.rows("t") == [0, 1, 2]
    told = [n.where.line for n in p.pipeline.check().notices if n.text == "display shows nothing in a pipeline"]
    assert told == [3, 8]


def test_a_file_that_registers_a_function_of_sql_is_found_in_a_folder(tmp_path):
    from lakelet.config.source_files import in_folder

    (tmp_path / "t.sql").write_text("CREATE MATERIALIZED VIEW t AS SELECT shout('a') AS text")
    (tmp_path / "functions.py").write_text("spark.udf.register('shout', lambda text: text.upper(), 'string')\n")
    (tmp_path / "script.py").write_text("spark = SparkSession.builder.getOrCreate()\nspark.udf.register('f', len)\n")
    (tmp_path / "later.py").write_text("def register():\n    spark.udf.register('f', len)\n")
    assert [f.name for f in in_folder(tmp_path)] == ["functions.py", "t.sql"]
