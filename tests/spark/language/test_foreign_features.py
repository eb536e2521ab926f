"""What other people's pipelines use (the corpus of tests/conformance), in small pipelines of our own: these run everywhere."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake


def test_a_dataset_with_the_name_of_a_function_does_not_hide_the_function(project):
    p = project()
    p.write("CREATE OR REFRESH MATERIALIZED VIEW `range` AS SELECT id * 3 AS id FROM range(4)", "range.sql")
    p.write(
        "create or refresh materialized view halves as select id div 2 as half, (select count(*) from range(7)) as n from LIVE.range",
        "halves.sql",
    )
    p.run()
    assert p.rows("range") == [0, 3, 6, 9]
    assert p.rows("halves") == [(0, 7), (1, 7), (3, 7), (4, 7)]


@pytest.mark.long
def test_streams_of_plain_files_have_the_declared_columns_and_read_each_file_once(project):
    p = project(
        """
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import *
    import dlt

    spark = SparkSession.builder.appName("measurements").getOrCreate()

    @dlt.table(name="measured", comment="as they came")
    def measured():
        columns = "station INT, degrees FLOAT, day DATE"
        return spark.readStream.schema(columns).format("json").load(spark.conf.get("landing"))

    limits = {"warm": "degrees > 0.0", "known": "station >= 1"}

    @dlt.table(name="judged")
    def judged():
        return dlt.readStream("measured").withColumn("good", when(expr(" AND ".join(limits.values())), lit(True)).otherwise(lit(False)))

    @dlt.table(name="fit")
    def fit():
        return dlt.readStream("judged").where(expr("good == True"))

    @dlt.table(name="unfit")
    def unfit():
        return dlt.readStream("judged").where(expr("good == False"))
"""
    )
    now = {"station": 1, "degrees": 2.5, "day": "2024-02-29", "not declared": 1}
    p.arrive("a.json", now, {**now, "degrees": None}, {**now, "station": 0})
    p.run()
    assert p.table("measured").column_names == ["station", "degrees", "day"]
    assert (len(p.rows("fit")), len(p.rows("unfit"))) == (1, 2)
    p.arrive("b.json", {**now, "degrees": -1.0}, now)
    p.run()
    assert (len(p.rows("judged")), len(p.rows("fit")), len(p.rows("unfit"))) == (5, 2, 3)
    before = p.versions()
    p.run()
    assert p.versions() == before


@pytest.mark.slow
def test_a_broken_rule_that_fails_leaves_a_view_as_it_was(project):
    p = project(
        """
    import dlt
    from pyspark.sql.functions import desc, expr, sum

    @dlt.table(comment="raw", table_properties={"quality": "bronze"})
    def visits():
        return spark.read.option("inferSchema", "true").json(spark.conf.get("landing") + "/visits.json")

    @dlt.table
    @dlt.expect("has page", "page IS NOT NULL")
    @dlt.expect_or_fail("has visits", "n > 0")
    def clean():
        return dlt.read("visits").withColumn("n", expr("CAST(n AS INT)"))

    @dlt.table
    def top():
        return dlt.read("clean").groupBy("page").agg(sum("n").alias("visits")).sort(desc("visits")).limit(2)
"""
    )
    visits = [{"page": page, "n": n} for page, n in (("a", "5"), ("b", "2"), ("a", "1"), (None, "3"), ("c", "1"))]
    p.arrive("visits.json", *visits)
    p.run()
    assert len(p.rows("clean")) == 5
    assert p.rows("top") == [("a", 6), (None, 3)]
    p.arrive("visits.json", *visits, {"page": "d", "n": "0"})
    p.run(expect="FAILED")
    assert (len(p.rows("visits")), len(p.rows("clean")), p.rows("top")) == (6, 5, [("a", 6), (None, 3)])


@pytest.mark.slow
def test_a_view_with_rules_feeds_a_change_table_made_by_the_older_name(project):
    p = project(
        """
    # Databricks notebook source
    # MAGIC %md
    # MAGIC ### Members

    # COMMAND ----------

    # MAGIC %python
    # MAGIC displayHTML("<b>hello</b>")

    # COMMAND ----------

    # DBTITLE 1,Bronze
    import dlt
    from pyspark.sql.functions import *
    landing = spark.conf.get("landing")

    @dlt.table(name="events", comment = "as they came",
                      table_properties={"quality": "bronze"}
    )

    def events():
      return (spark.readStream.format("cloudFiles") \\
          .option("cloudFiles.format", "json") \\
          .option("cloudFiles.inferColumnTypes", "true") \\
          .load(f"{landing}/members"))

    # COMMAND ----------

    @dlt.view(name="good_events", comment="what members will be")

    @dlt.expect_or_drop("has id", "id IS NOT NULL")
    @dlt.expect("has town", "town IS NOT NULL")
    @dlt.expect_or_drop("has op", "op IS NOT NULL")

    def good_events():
      return dlt.read_stream("events").select("id", "town", "op", "at", "_rescued_data")

    # COMMAND ----------

    dlt.create_target_table(name="members", comment="latest", table_properties={"quality": "silver"})

    # COMMAND ----------

    dlt.apply_changes(
      target = "members",
      source = "good_events",
      keys = ["id"],
      sequence_by = col("at"),
      apply_as_deletes = expr("op = 'DELETE'"),
      except_column_list = ["op", "at", "_rescued_data"]
    )
"""
    )
    event: Any = {"id": "a", "town": "Rome", "op": "APPEND", "at": "02-01-2024 10:00:00"}
    gone = {**event, "id": "c", "op": "DELETE", "at": "02-01-2024 12:00:00"}
    first = [event, {**event, "id": "b", "town": None}, {**event, "id": "c"}, gone, {**event, "id": None}, {**event, "id": "d", "op": None}]
    p.arrive("a.json", *first, folder="members")
    p.run()
    assert len(p.rows("events")) == 6
    assert p.rows("members", "id", "town") == [("a", "Rome"), ("b", None)]
    assert sorted(p.table("members").column_names) == ["id", "town"]
    assert p.quality() == {"has id": (5, 1), "has town": (5, 1), "has op": (5, 1)}
    late = [
        {**event, "id": key, "op": "UPDATE", "town": "Pisa", "at": at}
        for key, at in (("a", "02-01-2024 09:00:00"), ("c", "02-01-2024 11:00:00"))
    ]
    p.arrive("b.json", *late, {**event, "id": "b", "op": "UPDATE", "town": "Bari", "at": "02-01-2024 11:00:00"}, folder="members")
    p.run()
    assert p.rows("members", "id", "town") == [("a", "Rome"), ("b", "Bari")], "late events neither win nor bring a deleted row back"
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}


LOANS = """\
-- Databricks notebook source
-- MAGIC %md-sandbox
-- MAGIC # Loans of a library

-- COMMAND ----------

-- DBTITLE 1,What comes in
CREATE STREAMING TABLE loans
  COMMENT "as they came"
AS SELECT * FROM STREAM read_files('${landing}/loans', format => 'json', inferColumnTypes => true)

-- COMMAND ----------

CREATE STREAMING TABLE kinds
  COMMENT "a Delta folder"
AS SELECT * FROM STREAM delta.`${landing}/kinds`

-- COMMAND ----------

-- once a week
CREATE STREAMING TABLE old_loans
  TBLPROPERTIES ("pipelines.trigger.interval"="6 hour")
  COMMENT "from paper"
AS SELECT * FROM STREAM read_files('${landing}/old', format => 'csv', inferColumnTypes => true)

-- COMMAND ----------

CREATE STREAMING LIVE VIEW known_loans
  COMMENT "with their kind"
AS SELECT l.*, k.kind as kind FROM stream(loans) l
  INNER JOIN kinds k ON l.kind_id = k.id

-- COMMAND ----------

CREATE STREAMING TABLE good_loans (
  CONSTRAINT `Loans should be recent` EXPECT (day > date('2020-12-31')),
  CONSTRAINT `Fees should be positive`  EXPECT (fee > 0 AND paid > 0) ON VIOLATION DROP ROW,
  CONSTRAINT `Desk must be known` EXPECT (desk IS NOT NULL) ON VIOLATION FAIL UPDATE
)
AS SELECT * from STREAM(known_loans)

-- COMMAND ----------

CREATE STREAMING TABLE bad_loans (
  CONSTRAINT `Fees should be positive` EXPECT (fee <= 0 OR paid <= 0) ON VIOLATION DROP ROW
)
AS SELECT * from STREAM(known_loans)

-- COMMAND ----------

CREATE MATERIALIZED VIEW fees
  TBLPROPERTIES ("pipelines.autoOptimize.zOrderCols" = "place")
AS SELECT sum(fee) AS fees, town AS place FROM old_loans GROUP BY town
  UNION SELECT sum(fee) AS fees, desk AS place FROM good_loans GROUP BY desk

-- COMMAND ----------

-- MAGIC %md that is all
"""


@pytest.mark.slow
def test_a_notebook_of_sql_without_semicolons(project):
    p = project().write(LOANS, "loans.sql")
    write_deltalake(str(p.landing / "kinds"), pa.table({"id": pa.array([1, 2], pa.int32()), "kind": ["book", "map"]}))
    p.arrive("a.csv", "town,fee", "Rome,1.5", "Pisa,2", folder="old")
    loan = {"id": 1, "kind_id": 1, "day": "2024-05-01", "fee": 2.0, "paid": 1.0, "desk": "north"}
    p.arrive(
        "a.json",
        loan,
        {**loan, "id": 2, "fee": 0.0},
        {**loan, "id": 3, "kind_id": 9},
        {**loan, "id": 4, "day": "2019-01-01"},
        folder="loans",
    )
    p.run()
    assert p.rows("good_loans", "id") == [1, 4]
    assert p.rows("bad_loans", "id") == [2]
    assert p.rows("fees", "place", "fees") == [("Pisa", 2.0), ("Rome", 1.5), ("north", 4.0)]
    assert p.quality("good_loans")["Loans should be recent"] == (2, 1)
    assert set(p.versions()) == {"loans", "kinds", "old_loans", "good_loans", "bad_loans", "fees"}
    p.arrive("b.json", {**loan, "id": 5, "desk": "south"}, folder="loans")
    p.run()
    assert p.rows("fees", "place", "fees") == [("Pisa", 2.0), ("Rome", 1.5), ("north", 4.0), ("south", 2.0)]
    before = p.versions()
    p.run()
    assert p.versions() == before
    p.arrive("c.json", {**loan, "id": 6, "desk": None}, folder="loans")
    p.run(expect="FAILED")
    assert p.rows("good_loans", "id") == [1, 4, 5]


LIBRARY = """\
-- Databricks notebook source
SET files.path=${landing};

-- COMMAND ----------

CREATE OR REFRESH STREAMING LIVE TABLE raw
COMMENT "lendings"
AS SELECT * FROM cloud_files("${files.path}/raw", "json",
                             map("cloudFiles.inferColumnTypes", "true"))

-- COMMAND ----------

CREATE OR REFRESH LIVE TABLE readers
AS SELECT * FROM json.`${files.path}/readers`

-- COMMAND ----------

CREATE OR REFRESH STREAMING LIVE TABLE lendings (
  CONSTRAINT numbered EXPECT (number IS NOT NULL) ON VIOLATION DROP ROW
)
AS
  SELECT number, n, l.reader, r.card:name as name, cast(from_unixtime(at, 'yyyy-MM-dd HH:mm:ss') AS timestamp) at, l.items,
         r.card:home:town as town
  FROM STREAM(LIVE.raw) l
  LEFT JOIN LIVE.readers r
    ON l.reader = r.reader

-- COMMAND ----------

CREATE LIVE TABLE of_rome
AS
  SELECT reader, name, date_trunc("DD", at) day, sum(n) items
  FROM LIVE.lendings
  WHERE town = "Rome"
  GROUP BY reader, name, date_trunc("DD", at)

-- COMMAND ----------


"""

BOOKS = """\
-- Databricks notebook source
SET files.path=${landing};

-- COMMAND ----------

CREATE OR REFRESH STREAMING LIVE TABLE book_events
AS SELECT * FROM cloud_files("${files.path}/books", "json")

-- COMMAND ----------

CREATE OR REFRESH STREAMING LIVE TABLE books;

APPLY CHANGES INTO LIVE.books
  FROM STREAM(LIVE.book_events)
  KEYS (book)
  APPLY AS DELETE WHEN status = "DELETE"
  SEQUENCE BY at
  COLUMNS * EXCEPT (status, at)

-- COMMAND ----------

CREATE LIVE TABLE authors
AS SELECT author, count(*) as n, current_timestamp() now
  FROM LIVE.books
  GROUP BY author

-- COMMAND ----------

CREATE LIVE VIEW lent
  AS SELECT b.title, l.n
    FROM (
      SELECT *, explode(items) AS item
      FROM LIVE.lendings) l
    INNER JOIN LIVE.books b
    ON l.item.book = b.book;
"""


@pytest.mark.slow
def test_notebooks_of_the_older_sql_share_live_views_and_reach_into_json_texts(project):
    p = project().write(LIBRARY, "library.sql").write(BOOKS, "books.sql")
    p.arrive(
        "a.json",
        *({"reader": r, "card": f'{{"name":"{r}","home":{{"town":"{t}"}}}}'} for r, t in (("x", "Rome"), ("y", "Pisa"))),
        folder="readers",
    )
    lending = {"number": "1", "reader": "x", "n": 2, "at": 1_700_000_000, "items": [{"book": "a"}]}
    p.arrive("a.json", lending, {**lending, "number": "2", "reader": "nobody"}, {**lending, "number": None}, folder="raw")
    book = {"book": "a", "title": "A", "author": "u", "price": 1, "status": "INSERT", "at": "2024-01-01T01:00:00Z"}
    p.arrive("a.json", book, {**book, "book": "b"}, {**book, "book": "b", "status": "DELETE", "at": "2024-01-01T02:00:00Z"}, folder="books")
    p.run()
    assert p.rows("lendings", "number", "town") == [("1", "Rome"), ("2", None)]
    assert p.rows("of_rome", "reader", "items") == [("x", 2)]
    assert sorted(p.table("books").column_names) == ["_rescued_data", "author", "book", "price", "title"]
    assert p.rows("authors", "author", "n") == [("u", 1)]
    assert "lent" not in p.versions()
    p.arrive("b.json", {**lending, "number": "3"}, folder="raw")
    p.arrive(
        "b.json",
        {**book, "book": "b", "status": "UPDATE", "at": "2024-01-01T01:30:00Z"},
        {**book, "book": "c", "author": "v"},
        folder="books",
    )
    p.run()
    assert p.rows("of_rome", "reader", "items") == [("x", 4)]
    assert p.rows("books", "book", "author") == [("a", "u"), ("c", "v")]
    p.run()
    computed = {name for name, status in p.statuses().items() if status != "IDLE"}
    assert computed == {"authors", "readers"}, "what shows the current time, and what reads files that have no versions"


def test_a_subquery_in_the_text_of_a_condition_reads_tables_of_the_pipeline(project):
    p = project("""
        import dlt

        @dlt.table
        def newest():
            return spark.read.table("numbers").where("id = (SELECT max(id) FROM main.default.numbers)")

        @dlt.table
        def known():
            few = dlt.read("numbers").alias("n").filter("n.id IN (SELECT id FROM LIVE.few AS f WHERE f.id = n.id)")
            most = "(SELECT max(main.default.numbers.id) FROM main.default.numbers) AS most"
            counted = few.selectExpr("id", most, "(SELECT count(*) FROM few) AS of")
            return counted.where("of > (SELECT min(id) FROM few)").select("id", "of")

        @dlt.table
        def numbers():
            return spark.range(5)

        @dlt.view
        def few():
            return spark.range(3, 9)
    """)

    p.run()

    assert p.rows("newest") == [4]
    assert p.rows("known") == [(3, 6), (4, 6)]


def test_a_subquery_in_a_column_reads_tables_of_the_pipeline(project):
    p = project("""
        import dlt
        from pyspark.sql import functions as F
        from pyspark.sql.functions import expr

        @dlt.table
        def known():
            is_few = expr("id IN (SELECT id FROM few)")
            counted = dlt.read("numbers").withColumn("few", is_few).withColumn("most", F.expr("(SELECT max(id) FROM LIVE.numbers) - id"))
            return counted.filter(F.expr("EXISTS (SELECT 1 FROM main.default.numbers WHERE main.default.numbers.id = 3)"))

        @dlt.table
        def streamed():
            others = dlt.read_stream("numbers").where(F.expr("id NOT IN (SELECT id FROM few)"))
            return others.withColumn("n", F.expr("(SELECT count(*) FROM few)"))

        @dlt.table
        def numbers():
            return spark.range(5)

        @dlt.view
        def few():
            return spark.range(3, 9)
    """)

    p.run()

    assert p.rows("known") == [(0, False, 4), (1, False, 3), (2, False, 2), (3, True, 1), (4, True, 0)]
    assert p.rows("streamed") == [(0, 6), (1, 6), (2, 6)]


def test_a_column_with_a_subquery_that_is_kept_from_call_to_call_is_refused(project):
    p = project("""
        import dlt
        from functools import cache
        from pyspark.sql import functions as F

        @cache
        def is_few():
            return F.expr("id IN (SELECT id FROM few)")

        dlt.table(lambda: spark.range(3, 9), name="few")
        dlt.table(lambda: spark.range(5).where(is_few()), name="known")
        dlt.table(lambda: spark.range(5).where(is_few()), name="again")
    """)

    [error] = p.refused()

    assert (error.code, str(error.dataset)) == ("QUERY_FAILED_ANALYSIS", "main.default.again")
    assert error.what == "the query has a column with a subquery that was made in another call of a function"


@pytest.mark.parametrize(
    "reads", ['spark.range(5).where("id = (SELECT max(id) FROM numbrs)")', 'spark.range(5).where(F.expr("id = (SELECT 1 FROM numbrs)"))']
)
def test_a_table_that_nobody_knows_in_the_text_of_a_condition_is_named(project, reads):
    p = project(f"""
        import dlt
        from pyspark.sql import functions as F

        @dlt.table
        def newest():
            return {reads}

        @dlt.table
        def numbers():
            return spark.range(5)
    """)

    [error] = p.refused()

    assert (error.code, error.nearest) == ("UNKNOWN_DATASET", ("main.default.numbers",))


def test_a_function_may_catch_that_a_table_is_not_there(project):
    p = project("""
        import dlt
        from pyspark.errors import AnalysisException

        def stored(read):
            try:
                return read()
            except AnalysisException as problem:
                return spark.createDataFrame([(problem.getCondition(),)], "id STRING")

        dlt.table(lambda: stored(lambda: spark.read.table("main.archive.old")), name="by_name")
        dlt.table(lambda: stored(lambda: spark.sql("SELECT id FROM main.archive.old")), name="by_text")
        dlt.table(lambda: stored(lambda: dlt.read("main.archive.old")), name="by_dlt")
    """)

    p.run()

    assert [p.rows(name) for name in ("by_name", "by_text", "by_dlt")] == [["TABLE_OR_VIEW_NOT_FOUND"]] * 3


def test_functions_of_a_package_that_is_not_here_say_which_one(project):
    p = project()
    p.write(
        "CREATE MATERIALIZED VIEW t AS SELECT from_avro(b, '{\"type\": \"int\"}', map()) AS n FROM (SELECT CAST('a' AS BINARY) AS b);",
        "t.sql",
    )
    (problem,) = p.refused()
    assert "spark-avro_2.13:4" in problem.todo
