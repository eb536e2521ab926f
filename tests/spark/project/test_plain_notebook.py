"""A notebook that only uses Spark becomes a pipeline by the change that `lakelet init` shows, and its table has the notebook's rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main

NOTEBOOK = """\
# Databricks notebook source
# MAGIC %md
# MAGIC # Sales per day

# COMMAND ----------

from pyspark.sql import functions as F

# COMMAND ----------

orders = spark.read.schema("day STRING, amount INT").json("/Volumes/main/raw/orders")
daily = orders.groupBy("day").agg(F.sum("amount").alias("amount"))

# COMMAND ----------

display(daily)
daily.write.mode("overwrite").saveAsTable("daily_sales")
"""


@pytest.mark.slow
def test_the_shown_change_makes_the_notebook_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "daily.py").write_text(NOTEBOOK)
    (tmp_path / "data" / "orders").mkdir(parents=True)
    rows = [{"day": "mon", "amount": 1}, {"day": "mon", "amount": 2}, {"day": "tue", "amount": 5}]
    (tmp_path / "data" / "orders" / "1.txt").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 2
    lines = [line.removeprefix("    ") for line in capsys.readouterr().err.splitlines()]
    at = lines.index("import dlt")
    change = lines[at : lines.index("    ...", at)]
    kept, moved, _ = NOTEBOOK.partition("orders = ")[0], "orders = " + NOTEBOOK.partition("orders = ")[2].partition("\n\n#")[0], None
    body = [f"    {line}" for line in moved.splitlines()]
    (tmp_path / "daily.py").write_text("\n".join([kept, *change, *body, lines[lines.index("    ...", at) + 1], ""]))
    assert main(["init"]) == 0
    capsys.readouterr()
    assert main(["run", "--map", "/Volumes/main/raw=data"]) == 0, capsys.readouterr()
    capsys.readouterr()
    assert main(["show", "daily_sales", "--json"]) == 0
    assert sorted((row["day"], row["amount"]) for row in json.loads(capsys.readouterr().out)) == [("mon", 3), ("tue", 5)]
