"""`lakelet init` where code uses Spark and declares no dataset: it says which function or data frame to declare, and how."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.cli.main import main
from lakelet.project.init import start
from tests.terminals import on_terminal, screen

NOTEBOOK = """\
# Databricks notebook source
# MAGIC %md
# MAGIC # Daily sales

# COMMAND ----------

from pyspark.sql import functions as F

orders = spark.read.schema("day STRING, amount INT").json("data/orders")
kept = orders.columns
n = orders.count()

# COMMAND ----------

daily = orders.groupBy("day").agg(F.sum("amount").alias("amount"))
display(daily)
daily.write.mode("overwrite").saveAsTable("main.gold.daily_sales")
"""
SCRIPT = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()

def cleaned(df, floor=0):
    return df.where(f"amount > {floor}")

def orders():
    raw = spark.read.json("data/orders")
    if True:
        raw = cleaned(raw)
    return raw.select("id")

def main():
    orders().write.saveAsTable("orders")

if __name__ == "__main__":
    main()
"""
SLOW = """\
import dlt, os, time

time.sleep(3)
for name in os.environ.get("NOTHING", "a b").split():
    @dlt.table(name=name)
    def table():
        return 1
"""


def told(folder: Path, files: dict[str, str]) -> list[str]:
    """The lines of the error, without their indentation."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(LakeletError) as error:
        start(folder)
    assert error.value.code == "NO_SOURCES"
    assert not (folder / "databricks.yml").exists()
    return [line.strip() for line in error.value.lines()]


def jupyter(*cells: str) -> str:
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "metadata": {}, "outputs": []} for cell in cells]
    return json.dumps({"cells": made, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5})


def test_the_last_data_frame_of_a_notebook_is_shown_as_a_dataset_of_the_table_that_it_writes(tmp_path: Path) -> None:
    lines = told(tmp_path, {"daily.py": NOTEBOOK})
    at = lines.index("daily.py:15: put the lines that make daily into a function, without those that show or write it")
    assert lines[at + 1 : at + 7] == ["import dlt", "", "@dlt.table", "def daily_sales():", "...", "return daily"]
    assert lines[-1] == f"Then again: lakelet init {tmp_path}"


def test_a_function_that_returns_a_data_frame_gets_its_decorator(tmp_path: Path) -> None:
    lines = told(tmp_path, {"etl.py": SCRIPT})
    at = lines.index("etl.py:8: put a decorator above the function orders")
    assert lines[at + 1 : at + 5] == ["import dlt", "", "@dlt.table", "def orders():"]


def test_a_cell_of_jupyter_is_named_and_what_is_only_shown_counts(tmp_path: Path) -> None:
    cells = jupyter("a = spark.range(3)\nb = a.where('id > 1')", "%md\ntext", "a.show()")
    lines = told(tmp_path, {"explore.ipynb": cells})
    assert "explore.ipynb:cell 1:1: put the lines that make a into a function, without those that show or write it" in lines


def test_sql_that_makes_a_table_or_only_asks_becomes_a_materialized_view(tmp_path: Path) -> None:
    files = {"a.sql": "-- totals\nCREATE OR REPLACE TABLE main.gold.total AS\nSELECT 1 AS a", "b 1.sql": "SELECT 1 AS a\n"}
    lines = told(tmp_path, files)
    at = lines.index("a.sql:2: declare the result of the query, instead of CREATE OR REPLACE TABLE main.gold.total")
    assert lines[at + 1] == "CREATE OR REFRESH MATERIALIZED VIEW total AS"
    at = lines.index("b 1.sql:1: declare the result of the query, above the query")
    assert lines[at + 1] == "CREATE OR REFRESH MATERIALIZED VIEW b_1 AS"


def test_of_many_files_three_are_shown_and_the_others_named(tmp_path: Path) -> None:
    lines = told(tmp_path, {f"f{number}.py": f"x{number} = spark.range({number})\n" for number in range(5)})
    assert len([line for line in lines if "put the lines" in line]) == 3
    assert "2 more files like these: f3.py, f4.py" in lines


def test_code_without_spark_gets_the_sentence_about_sources(tmp_path: Path) -> None:
    lines = told(tmp_path, {"numbers.py": "def f(a):\n    return a + 1\n\nx = f(1)\nn = spark.read.json('a').count()\n"})
    assert lines[-1].startswith("A source imports dlt")


def test_with_the_advice_followed_the_folder_is_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(tmp_path, {"etl.py": SCRIPT})
    (tmp_path / "etl.py").write_text(SCRIPT.replace("def orders", "import dlt\n\n@dlt.table\ndef orders"))
    assert main(["init", str(tmp_path)]) == 0
    assert "orders" in capsys.readouterr().out
    assert (tmp_path / "databricks.yml").exists()


@pytest.mark.long
def test_a_terminal_shows_what_is_loaded_while_code_of_others_runs(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SLOW)
    command = [sys.executable, "-m", "lakelet", "init", "--report", str(tmp_path)]
    text = on_terminal((command, {**os.environ, "TERM": "xterm-256color"}))
    assert "Loading the code of" in text, text
    assert "Loading the code of" not in "\n".join(str(line) for line in screen(text))
