"""A pipeline of notebooks: Databricks' Python and SQL formats and Jupyter's, run as they are (DS-25)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

BRONZE = """
    # Databricks notebook source
    # MAGIC %md
    # MAGIC # Orders, as they come

    # COMMAND ----------

    # MAGIC %pip install great-lib

    # COMMAND ----------

    # MAGIC %run ./shared/settings $layer="bronze"

    # COMMAND ----------

    import dlt
    from helper import folders

    dbutils.widgets.text("region", "nowhere")
    display(spark.range(1))

    # COMMAND ----------

    for name in folders(landing):
        @dlt.table(name=f"{layer}_{name}", comment=dbutils.widgets.get("region"))
        def raw(name=name):
            return spark.readStream.format("json").schema("id INT, amount INT, region STRING").load(f"{landing}/{name}")
"""
SETTINGS = """
    # Databricks notebook source
    landing = spark.conf.get("landing")
    layer = dbutils.widgets.get("layer")
"""
HELPER = """
    from databricks.sdk.runtime import dbutils


    def folders(root):
        return [entry.name.rstrip("/") for entry in dbutils.fs.ls(root) if entry.isDir()]
"""
SILVER = (
    "%md\nCleaning",
    "%sql\nSELECT * FROM bronze_orders",
    "import dlt\nfrom pyspark.sql import functions as F\n\nwanted = F.udf(lambda amount: amount * factor, 'int')\nfactor = 2",
    "@dlt.table\n@dlt.expect_or_drop('positive', 'amount > 0')\ndef silver_orders():\n"
    "    return dlt.read_stream('bronze_orders').withColumn('amount', wanted('amount'))",
)
GOLD = """
    -- Databricks notebook source
    -- MAGIC %md
    -- MAGIC Totals

    -- COMMAND ----------

    -- MAGIC %python
    -- MAGIC not python at all

    -- COMMAND ----------

    CREATE OR REFRESH MATERIALIZED VIEW gold_totals AS
    SELECT region, sum(amount) AS total FROM LIVE.silver_orders GROUP BY region

    -- COMMAND ----------

    CREATE OR REFRESH MATERIALIZED VIEW gold_rest AS
    SELECT * FROM gold_totals WHERE region <> '${region}'
"""


def jupyter(*cells: str) -> str:
    listed = [{"cell_type": "code", "metadata": {}, "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": listed, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def notebooks(project: Callable[..., Any]) -> Any:
    """Bronze as a Databricks notebook with a helper notebook and a helper module, silver as a Jupyter notebook."""
    p = project(BRONZE)
    (p.folder / "shared").mkdir()
    p.helper(SETTINGS, "shared/settings.py")
    p.helper(HELPER, "helper.py")
    p.write(jupyter(*SILVER), "silver.ipynb")
    p.parameters |= {"region": "eu"}
    p.arrive("1.json", {"id": 1, "amount": 5, "region": "eu"}, {"id": 2, "amount": -1, "region": "eu"}, folder="orders")
    return p


@pytest.mark.long
def test_notebooks_of_three_kinds_are_one_pipeline_and_go_on_where_they_stopped(notebooks):
    p = notebooks.write(GOLD, "gold.sql").run()
    assert p.rows("bronze_orders", "id") == [1, 2]
    assert p.rows("silver_orders", "id", "amount") == [(1, 10)]
    assert p.rows("gold_totals") == [("eu", 10)]
    assert p.rows("gold_rest") == []
    p.arrive("2.json", {"id": 3, "amount": 1, "region": "us"}, folder="orders")
    p.run()
    assert p.rows("silver_orders", "id", "amount") == [(1, 10), (3, 2)]
    assert p.rows("gold_rest") == [("us", 2)]
    assert set(p.run().statuses().values()) <= {"IDLE", "SKIPPED", "COMPLETED"}
    assert p.rows("silver_orders", "id") == [1, 3]


def test_what_a_pipeline_does_not_execute_is_told_in_the_event_log_with_its_place(notebooks):
    p = notebooks.run()
    texts = [e.body["text"] for e in p.events if e.event_type == "notice"]
    places = [e.body["where"].rsplit("/", 1)[-1] for e in p.events if e.event_type == "notice"]
    told = dict(zip(places, texts, strict=True))
    assert "asks for great-lib" in told["pipeline.py, line 8"]
    assert told["pipeline.py, line 20"] == "display shows nothing in a pipeline"
    assert told["silver.ipynb, cell 2, line 1"].startswith("%sql: the cell is left out")


def test_an_error_in_a_cell_of_a_notebook_is_told_with_cell_and_line(notebooks):
    p = notebooks.write(
        jupyter("import dlt", "\n@dlt.table\ndef broken():\n    return dlt.read('bronze_orders').select('idd')"), "broken.ipynb"
    )
    (error,) = p.refused()
    assert (error.code, error.where.cell, error.where.line) == ("QUERY_FAILED_ANALYSIS", 2, 4)
    assert "broken.ipynb, cell 2, line 4" in str(error)


@pytest.mark.long
def test_an_error_in_a_python_function_on_a_worker_is_told_with_cell_and_line(notebooks):
    p = notebooks.write(
        jupyter(
            "import dlt\nfrom pyspark.sql import functions as F",
            "@F.udf('int')\ndef divided(x):\n    return 1 // (x - x)",
            "@dlt.table\ndef fails():\n    return dlt.read('silver_orders').select(divided('id').alias('x'))",
        ),
        "worker.ipynb",
    )
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.where.cell, error.where.line) == (2, 3)
