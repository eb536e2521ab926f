"""The mistakes of somebody's first day: each says in plain words what is wrong, where, and what to write."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors

PYTHON = """
from pyspark import pipelines as dp


@dp.table
def orders():
    return spark.range(3).selectExpr("id", "'DE' AS country", "id * 2 AS amount")


@dp.materialized_view
def no_import():
    return spark.read.table("orders").select(F.col("id"))


@dp.materialized_view
def no_import_of_one():
    return spark.read.table("orders").where(col("id") > 1)


@dp.materialized_view
def no_module():
    return spark.read.table("orders").withColumn("day", lit(datetime.now()))


@dp.materialized_view
def of_pandas():
    return pd.DataFrame()


@dp.materialized_view
def to_pandas():
    return spark.range(3).toPandas()


@dp.materialized_view
def nothing():
    spark.read.table("orders")


@dp.materialized_view
def collected():
    return spark.range(3).collect()


@dp.materialized_view
def grouped():
    return spark.read.table("orders").groupBy("country")


@dp.materialized_view
def written():
    return spark.read.table("orders").write


@dp.materialized_view
def text():
    return "orders"


@dp.materialized_view
def not_grouped():
    return spark.sql("SELECT country, sum(amount) AS total FROM orders")


@dp.materialized_view
def not_in_the_groups():
    return spark.sql("SELECT country, id, sum(amount) AS total FROM orders GROUP BY country")


@dp.materialized_view
def shown():
    found = spark.read.table("orders")
    found.show()
    return found


def forgotten():
    return spark.read.table("orders")


def forgotten_and_read():
    return spark.read.table("orders")


def helper():
    return spark.read.table("orders")


@dp.materialized_view
def sound():
    return helper()


@dp.materialized_view
def forgotten_and_read_too():
    return spark.read.table("forgotten_and_read")
"""
SQL = """
CREATE MATERIALIZED VIEW no_from AS SELECT amount;
CREATE MATERIALIZED VIEW form AS SELECT amount FORM orders;
CREATE MATERIALIZED VIEW wher AS SELECT amount FROM orders WHER amount > 3;
CREATE MATERIALIZED VIEW no_group AS SELECT country, year(current_date()) AS y, sum(amount) AS total FROM orders;
CREATE MATERIALIZED VIEW uper AS SELECT uper(country) AS c FROM orders;
CREATE MATERIALIZED VIEW of_others AS SELECT len2(country) AS a, group_concat(country) AS c FROM orders;
CREATE MATERIALIZED VIEW other AS SELECT group_concat(country) AS c FROM orders;
CREATE MATERIALIZED VIEW one_left AS SELECT country, amount, count(*) AS n FROM orders GROUP BY country;
"""
BESIDE = """
def in_a_file_of_its_own():
    return spark.read.table("orders")
"""
EXPECTED = {
    "no_import": "Write in the file: from pyspark.sql import functions as F",
    "no_import_of_one": "Write in the file: from pyspark.sql.functions import col",
    "no_module": "Write in the file: from ",
    "of_pandas": "Write in the file: import pandas as pd",
    "to_pandas": "spark.createDataFrame(df)",
    "nothing": "End the function with `return df`",
    "collected": "collect(), take() and the like give rows to Python",
    "grouped": ".agg(...)",
    "written": "Leave .write out",
    "text": "spark.read.table(NAME)",
    "not_grouped": "GROUP BY",
    "not_in_the_groups": "Write GROUP BY id, or aggregate it too: max(id).",
    "no_from": "Write FROM and the name of the table that has amount.",
    "form": 'Did you mean "FROM"?',
    "wher": 'Did you mean "WHERE"?',
    "no_group": "Write GROUP BY country, or aggregate it too: max(country).",
    "uper": 'Did you mean "upper"',
    "of_others": "there is no SQL function of that name",
    "other": "collect_list",
    "forgotten_and_read_too": 'the query reads "forgotten_and_read"',
    "one_left": "tables.sql, line 9, column 54",  # Spark's error has no position
}


def test_each_mistake_says_what_to_write_and_none_shows_a_search_path(project):
    p = project(PYTHON).write(SQL, "tables.sql")
    p.helper(BESIDE, "beside.py")
    with pytest.raises(DefinitionErrors) as caught:
        p.pipeline.check()
    found = {str(error.dataset).rsplit(".", 1)[-1]: str(error) for error in caught.value.errors}
    assert found.keys() == EXPECTED.keys()
    assert [f"{name}: {found[name]}" for name, text in EXPECTED.items() if text not in found[name]] == []
    assert [text for text in found.values() if "search path" in text or "line" not in text] == []
    assert "Did you mean" not in found["forgotten_and_read_too"]  # not its own name
    told = "\n".join(caught.value.notices)
    assert [name for name in ("forgotten()", "forgotten_and_read()", "in_a_file_of_its_own()", "show()") if name not in told] == []
    assert "helper()" not in told
