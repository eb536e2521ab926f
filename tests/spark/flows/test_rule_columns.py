"""Which columns rules see: those of the query first, then those that its last projections leave out or rename (EP-14)."""

from __future__ import annotations

import pytest

from tests.spark.analysis.marked_mistakes import HEAD, at, check

SOURCES = (
    HEAD
    + """
    @dlt.table
    def customers():
        return spark.createDataFrame([(1, "Rome"), (2, "Oslo"), (3, None)], "customer INT, city STRING")

    @dlt.table
    def orders():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        return reader.schema("id INT, customer INT, amount INT").load(spark.conf.get("landing"))
"""
)

PIPELINE = (
    SOURCES
    + """
    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect_or_drop("known", "customer < 9")
    @dlt.expect("early", "id < 3 AND number IS NOT NULL")
    @dlt.expect("small", "cust < 2")
    def renamed():
        numbered = dlt.read_stream("orders").withColumn("number", F.col("id") * 10)
        return numbered.drop("id", "amount").withColumnRenamed("customer", "cust")

    @dlt.table
    @dlt.expect_or_drop("of_the_result", "amount > 15")
    def output_first():
        return dlt.read_stream("orders").select("id", (F.col("amount") * 10).alias("amount"))

    @dlt.view
    @dlt.expect_or_drop("early", "id < 3")
    def early():
        return dlt.read("orders").select("customer")

    @dlt.table
    @dlt.expect_or_drop("of_rome", "city = 'Rome'")
    def semi():
        return dlt.read("customers").join(dlt.read("early"), "customer", "left_semi").select("customer")

    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect_or_drop("not_oslo", "city <> 'Oslo'")
    @dlt.expect("hidden_by_the_join", "orders.customer = customers.customer")
    @dlt.expect("both", "city = 'Rome' AND id = 1")
    def inner():
        return dlt.read("customers").join(dlt.read("orders"), "customer").sort("amount").select("id")

    @dlt.table
    @dlt.expect_or_fail("placed", "city IS NOT NULL")
    def failing():
        return dlt.read("customers").where("customer > 1").drop("city")

    @dlt.table
    @dlt.expect_or_drop("many", "number > 1")
    def of_groups():
        return dlt.read("orders").groupBy("customer").agg(F.count("*").alias("number")).select("customer")

    @dlt.view
    @dlt.expect_or_drop("early", "id < 3")
    def early_stream():
        return dlt.read_stream("orders").select("customer")

    dlt.create_sink("outside", "delta", {"path": spark.conf.get("landing") + "-sent"})

    @dlt.append_flow(target="outside")
    def send():
        return dlt.read_stream("early_stream")
"""
)

SQL = """
    CREATE OR REFRESH MATERIALIZED VIEW in_sql (CONSTRAINT known EXPECT (city IS NOT NULL) ON VIOLATION DROP ROW)
    AS SELECT customer AS number FROM customers
"""


@pytest.mark.long
def test_rules_are_judged_on_columns_that_the_query_leaves_out_or_renames_in_each_kind_of_dataset(project):
    p = project(PIPELINE).write(SQL, "more.sql")
    p.arrive("a.json", {"id": 1, "customer": 1, "amount": 1}, {"id": 2, "customer": 9, "amount": 2}, {"id": 3, "customer": 2, "amount": 3})
    p.run(expect="FAILED")
    assert p.errors() == {"failing": "EXPECTATION_VIOLATION"}
    assert '{"customer": 3}' in str(p.result.errors[0])
    assert p.table("renamed").column_names == ["cust", "number"]
    assert p.rows("renamed") == [(1, 10), (2, 30)]
    assert p.rows("renamed_quarantine", "cust", "number", "_broken_rules") == [(9, 20, ["known", "small"])]
    assert p.quality("renamed") == {"known": (2, 1), "early": (2, 1), "small": (1, 2)}
    assert p.rows("output_first") == [(2, 20), (3, 30)]
    assert p.rows("semi") == [1]
    assert p.quality("semi") == {"of_rome": (1, 0)}
    assert p.rows("inner") == [1]
    assert p.rows("inner_quarantine", "id", "_broken_rules") == [(3, ["not_oslo", "both"])]
    assert p.quality("inner") == {"not_oslo": (1, 1), "hidden_by_the_join": (2, 0), "both": (1, 1)}
    assert p.rows("of_groups") == []
    assert p.rows("in_sql") == [1, 2]
    sent = p.spark.read.format("delta").load(f"{p.landing}-sent").collect()
    assert sorted(row.customer for row in sent) == [1, 9]
    said = [notice.text for notice in p.pipeline.check().notices if "leaves out or renames" in notice.text]
    assert sum("main.default.renamed" in text for text in said) == 2


def test_rules_on_columns_of_several_rows_or_of_another_dataset_are_refused_in_analysis(project):
    p = project(
        SOURCES
        + """
    @dlt.table
    @dlt.expect("aggregated", "id > 0")  #! EXPECTATION_INVALID
    @dlt.expect("of_all_rows", "max(id) > 0")  #! EXPECTATION_INVALID
    def totals():
        return dlt.read("orders").groupBy("customer").agg(F.sum("amount").alias("amount")).select("amount")

    @dlt.table
    @dlt.expect("distinct", "id > 0")  #! EXPECTATION_INVALID
    def buyers():
        return dlt.read("orders").select("customer").dropDuplicates()

    @dlt.view
    def narrow():
        return dlt.read("customers").select("customer")

    @dlt.table
    @dlt.expect("of_the_view", "city = 'Rome'")  #! EXPECTATION_INVALID
    def reader():
        return dlt.read("narrow").select("customer")

    @dlt.table
    @dlt.expect("of_both", "city = 'Rome'")  #! EXPECTATION_INVALID
    def together():
        one = dlt.read("customers").select("customer")
        return one.union(one)

    @dlt.table
    @dlt.expect("number", "city")  #! EXPECTATION_INVALID
    @dlt.expect("renamed_number", "customer + 1")  #! EXPECTATION_INVALID
    @dlt.expect("good", "customer > 0")
    def of_types():
        return dlt.read("customers").withColumnRenamed("customer", "c")
"""
    )
    errors = check(p)
    aggregated = at(errors, p, '"aggregated"')
    assert aggregated.what == "expectation 'aggregated' names id, which the result of the query does not have: id > 0"
    assert aggregated.why == "id is a column of the rows that the query aggregates; a rule sees the groups: amount"
    assert aggregated.todo == "Let the query return id, or put the rule on a dataset that it reads."
    assert "makes distinct" in at(errors, p, '"distinct"').why
