"""`lakelet new table`: its files as texts. Spark has a part in it only for the profile (tests/spark/examples/test_starter.py)."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from lakelet.base.errors import LakeletError
from lakelet.cli.main import main
from lakelet.scaffold import NewTable, SourceTable, SuggestedRule, named_source, new_project, table_files, table_name
from lakelet.scaffold.tables import Language, example
from tests.paths import ROOT

COLUMNS = (("event_id", "string"), ("type", "string"), ("amount", "decimal(10,2)"), ("_rescued_data", "string"))
EVENTS = SourceTable("events", "main.shop.events", "bronze", streamable=True, columns=COLUMNS)
RULES = (SuggestedRule("drop", "has_type", "type IS NOT NULL"), SuggestedRule("warn", "amount_in_range", "amount BETWEEN 0 AND 12"))
RULES_TEXT = "datasets:\n  refunds:\n    drop:\n      has_type: type IS NOT NULL\n    warn:\n      amount_in_range: amount BETWEEN 0 AND 12"
REFUNDS = NewTable(
    table_name("silver.refunds"), EVENTS, "type = 'refund'", Language.PYTHON, RULES, RULES_TEXT, PurePosixPath("pipelines/silver")
)


def texts(new: NewTable) -> dict[str, str]:
    return {str(file.path): file.text for file in table_files(new)}


def test_a_python_table_has_its_query_its_rules_and_its_test() -> None:
    found = texts(REFUNDS)
    assert (
        found["pipelines/silver/refunds.py"]
        == '''\
"""Silver: refunds, from events."""

import dlt

from expectations import rules


@dlt.table(comment="Rows of events where type = 'refund'.", table_properties={"quality": "silver"})
@dlt.expect_all(rules("refunds", "warn"))
@dlt.expect_all_or_drop(rules("refunds", "drop"))
@dlt.expect_all_or_fail(rules("refunds", "fail"))
def refunds():
    return spark.readStream.table("events").where("type = 'refund'").select("event_id", "type", "amount")
'''
    )
    assert found["expectations/refunds.yml"].endswith(f"{RULES_TEXT}\n")
    assert 'COLUMNS = "event_id string, type string, amount decimal(10,2), _rescued_data string"' in found["tests/test_refunds.py"]
    assert len(found) == 3


def test_the_test_of_a_table_has_a_row_that_keeps_its_rules_and_says_what_to_change() -> None:
    found = texts(REFUNDS)["tests/test_refunds.py"]
    assert '    ("a", "a", Decimal(0), None),\n]' in found
    assert found.count("# change me") == 2
    assert ".count() == len(ROWS)" not in found
    every = texts(replace(REFUNDS, where=None))["tests/test_refunds.py"]
    assert "    assert refunds.count() == len(ROWS)\n" in every
    assert every.count("# change me") == 1


@pytest.mark.parametrize(
    ("kind", "constraint", "value"),
    [
        ("string", "x IN ('it''s', 'b')".replace("''", "\\'"), '"it\'s"'),
        ("string", "x IS NOT NULL", '"a"'),
        ("int", "x IS NULL OR (x BETWEEN -3 AND 9)", "-3"),
        ("int", "other BETWEEN -3 AND 9", "1"),
        ("double", "x BETWEEN 1.5E-7 AND 2", "1.5e-07"),
        ("decimal(3,3)", "x IS NOT NULL", "Decimal(0)"),
        ("date", "x >= DATE '2026-03-01'", "date(2026, 3, 1)"),
        ("timestamp", "x >= DATE '2026-03-01'", "datetime(2026, 3, 1, 12)"),
        ("struct<a:bigint,`b, c`:array<struct<d:int,e:int>>,f:decimal(10,2)>", "", "(1, [], Decimal(1))"),
        ("struct<a:struct<b:boolean>>", "", "((True,),)"),
        ("variant", "", "None"),
    ],
)
def test_the_value_of_a_row_is_one_that_a_rule_names_or_one_of_the_type(kind: str, constraint: str, value: str) -> None:
    assert example("x", kind, [constraint]) == value


def test_a_sql_table_has_its_rules_as_constraints() -> None:
    found = texts(replace(REFUNDS, language=Language.SQL))
    assert (
        found["pipelines/silver/refunds.sql"]
        == """\
-- Silver: refunds, from events.
CREATE OR REFRESH STREAMING TABLE refunds (
  CONSTRAINT has_type EXPECT (type IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT amount_in_range EXPECT (amount BETWEEN 0 AND 12)
)
COMMENT 'Rows of events where type = \\'refund\\'.'
TBLPROPERTIES ('quality' = 'silver')
AS SELECT event_id, type, amount
FROM STREAM(events)
WHERE type = 'refund';
"""
    )
    assert "expectations/refunds.yml" not in found


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({}, "spark.readStream.table"),
        ({"name": table_name("gold.refunds")}, "spark.read.table"),
        ({"source": replace(EVENTS, streamable=False)}, "spark.read.table"),
    ],
)
def test_gold_tables_and_those_of_changing_sources_are_read_as_a_whole(change: dict[str, object], read: str) -> None:
    assert f'return {read}("events")' in texts(replace(REFUNDS, **change))["pipelines/silver/refunds.py"]  # type: ignore[arg-type]


@pytest.mark.parametrize("where", [None, "type = 'refund'", 'type = "re\\fund" -- x\n AND amount > 0', "a" * 150 + " > 0"])
@pytest.mark.parametrize("wide", [False, True])
def test_what_is_written_is_clean_python_whatever_the_columns_and_the_condition(where: str | None, wide: bool, tmp_path: Path) -> None:
    odd = tuple((f"a column, number {i}", "struct<a:bigint,`b c`:array<date>,d:timestamp>") for i in range(12)) if wide else ()
    new = replace(REFUNDS, where=where, source=replace(EVENTS, columns=(*COLUMNS, *odd)))
    for name, text in texts(new).items():
        if name.endswith(".py"):
            ast.parse(text)
            (tmp_path / Path(name).name).write_text(text, encoding="utf-8")
    ruff = [str(Path(sys.executable).with_name("ruff")), "--config", str(ROOT / "examples/starter/pyproject.toml")]
    fits = where is None or len(where) < 100  # a text alone that is too long for a line stays so
    for command in (["check", "--no-cache"], *([["format", "--no-cache", "--check"]] if fits else [])):
        done = subprocess.run([ruff[0], *command, *ruff[1:], str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", ["bronze.events", "events", "EVENTS", "shop.events", "main.shop.events"])
def test_a_source_is_known_by_layer_schema_or_name(text: str) -> None:
    assert named_source(text, [replace(EVENTS, name="other", full_name="main.shop.other"), EVENTS]) is EVENTS


def test_a_source_that_no_file_declares_by_name_may_be_said_to_be_of_any_layer() -> None:
    made_in_a_loop = replace(EVENTS, layer="")
    assert named_source("silver.events", [made_in_a_loop]) is made_in_a_loop


def test_an_unknown_source_is_told_with_the_nearest_name() -> None:
    with pytest.raises(LakeletError) as caught:
        named_source("bronze.event", [EVENTS])
    assert (caught.value.code, caught.value.nearest) == ("UNKNOWN_TABLE", ("bronze.events",))


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["refunds"], "NAME_INVALID", "silver.refunds"),
        (["sliver.refunds"], "NAME_INVALID", 'Did you mean "silver"?'),
        (["silver.Re-Funds"], "NAME_INVALID", "For example: re_funds"),
        (["silver.class"], "NAME_INVALID", "not a Python keyword"),
        (["silver.orders"], "DUPLICATE_DATASET", "pipelines/silver/orders.py, line"),
        (["silver.refunds"], "UNKNOWN_TABLE", "lakelet run"),
        (["silver.refunds", "--sql", "--python"], "USAGE", "exclude each other"),
    ],
)
def test_what_cannot_become_a_table_is_refused_and_nothing_written(
    arguments: list[str], code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new_project(tmp_path / "shop").folder
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    assert main(["new", "table", *arguments, "--from", "bronze.events"]) == 2
    printed = capsys.readouterr().err
    assert f"[{code}]" in printed
    assert told in printed
    assert sorted(folder.rglob("*")) == before
