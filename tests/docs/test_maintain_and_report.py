"""Executes the commands of docs/reference/maintain.md and docs/reference/report.md, and its steps for CI, in a small project."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakelet.cli.main import main
from lakelet.inspection.inspector import list_tables
from tests.docs.test_reference_blocks import COMMAND, blocks
from tests.paths import ROOT

PIPELINE = """\
import dlt

@dlt.table
def orders():
    schema = "id INT, amount INT"
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema(schema).load("landing")

@dlt.table(name="main.sales.large")
def large():
    return spark.read.table("orders").where("amount > 10")
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> Path:
    """A project that was not updated yet, as the current folder."""
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "pyproject.toml").write_text("[tool.lakelet]\nsources = ['pipeline.py']\n")
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "1.json").write_text('{"id": 1, "amount": 20}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(block: str) -> list[list[str]]:
    """The words of each command of a block, without its comments."""
    return [shlex.split(line, comments=True) for line in COMMAND.findall(block)]


@pytest.mark.slow
def test_the_commands_of_both_pages_keep_the_tables_and_publish_their_page(
    shop: Path, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (steps,) = (yaml.safe_load(block) for block in blocks("reference/report.md", "yaml"))
    for step in (step for step in steps if "run" in step):
        assert main(shlex.split(step["run"])[1:]) == 0, step
    (upload,) = [step for step in steps if "uses" in step]
    assert (shop / upload["with"]["path"] / "index.html").is_file()
    assert [step.get("if") for step in steps] == [None, "always()", "always()"]
    commands = [words for block in blocks("reference/report.md", "text") for words in typed(block) if words[0] == "report"]
    (shop / "public" / "quality").mkdir()
    assert [main(words) for words in commands] == [0, 0]
    assert (shop / ".lakelet" / "report" / "index.html").is_file()
    assert (shop / "public" / "quality" / "index.html").is_file()

    (path,) = [table.path for table in list_tables(shop / ".lakelet") if table.name == "main.default.orders"]
    spark.range(20).selectExpr("CAST(id AS INT) AS id", "5 AS amount").repartition(20).write.format("delta").mode("append").save(str(path))
    dry, whole, chosen = (words for block in blocks("reference/maintain.md", "text") for words in typed(block))
    before = files(path)
    assert main(dry) == 0
    assert files(path) == before
    capsys.readouterr()
    assert main([*dry, "--json"]) == 0
    told = {table["name"]: table for table in json.loads(capsys.readouterr().out)}
    assert set(told) == {"main.default.orders", "main.sales.large"}
    assert told["main.default.orders"]["optimize"] == "compact"
    page = (ROOT / "docs/reference/maintain.md").read_text(encoding="utf-8").split("## `--json`")[1]
    named = {name for row in re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert set(told["main.default.orders"]) == named
    assert main(whole) == 0
    assert spark.read.format("delta").load(str(path)).count() == 21
    assert len(spark.read.format("delta").load(str(path)).inputFiles()) == 1
    assert main(chosen) == 0
    assert "main.sales.large" in capsys.readouterr().out


def files(path: Any) -> set[str]:
    return {str(file) for file in Path(path).rglob("*.parquet")}
