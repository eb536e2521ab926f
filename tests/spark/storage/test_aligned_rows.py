"""Rows get a table's spelling, order and types before they are written; those that have them are not touched."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, LongType, StringType, StructType

from lakelet.storage.delta.schemas import aligned

TABLE = StructType().add("id", LongType()).add("Name", StringType()).add("price", DecimalType(10, 2))


@pytest.mark.parametrize("columns", ["1L AS id, 'a' AS Name, CAST(2.5 AS DECIMAL(10, 2)) AS price", "1L AS id, 'a' AS Name"])
def test_rows_with_columns_of_the_table_in_its_order_stay_the_same_frame(spark: SparkSession, columns: str) -> None:
    rows = spark.sql(f"SELECT {columns}")
    assert aligned(rows, TABLE) is rows


@pytest.mark.parametrize(
    "columns",
    [
        "'a' AS Name, 1L AS id, CAST(2.5 AS DECIMAL(10, 2)) AS price",  # another order
        "1L AS id, 'a' AS NAME, CAST(2.5 AS DECIMAL(10, 2)) AS price",  # another spelling
        "1L AS id, 'a' AS Name, 2.5BD AS price",  # another type
        "1L AS id, 'a' AS Name, CAST(2.5 AS DECIMAL(10, 2)) AS price, 7 AS more",  # a column that the table does not have
    ],
)
def test_others_become_the_columns_of_the_table(spark: SparkSession, columns: str) -> None:
    expected = spark.sql("SELECT 1L AS id, 'a' AS Name, CAST(2.5 AS DECIMAL(10, 2)) AS price")
    assert_df_equality(aligned(spark.sql(f"SELECT {columns}"), TABLE), expected, ignore_nullable=True)
