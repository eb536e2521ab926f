"""DuckDB and Spark suggest the same rules for the same rows, whatever the types."""

# ruff: noqa: E501

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.rules.suggestions import suggest, suggest_for_new
from lakelet.rules.trial import try_rule
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from tests.query_corpus import FACTS

pytestmark = [pytest.mark.spark, pytest.mark.long]

MANY = """
    SELECT id, id % 950 AS nearly, CAST(id % 100 AS SMALLINT) AS rest, CAST(id % 50 AS TINYINT) AS tiny,
        CASE WHEN id % 200 = 0 THEN CONCAT('typo ', id) WHEN id % 3 = 0 THEN 'purchase' ELSE 'refund' END AS kind,
        CONCAT('customer ', id % 950) AS customer, IF(id % 150 = 0, NULL, ELT(1 + id % 3, 'DE', 'FR', 'PL')) AS country,
        IF(id % 250 = 0, -1.5D, id / 7) AS share, CAST(id / 3 AS FLOAT) AS single, CAST(id * 1e9 AS DOUBLE) AS large,
        CAST(id / 8 AS DECIMAL(12, 3)) AS amount, CAST(id AS DECIMAL(38, 10)) AS wide, id % 2 = 0 AS even,
        DATE '2026-01-01' + CAST(id % 40 AS INT) AS day, TIMESTAMP '2026-01-01 23:30:00Z' + make_interval(0, 0, 0, 0, 0, 0, id) AS moment,
        TIMESTAMP_NTZ '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, 0, id) AS local, CAST(NULL AS STRING) AS nothing, CAST(NULL AS DATE) AS never,
        CAST(CONCAT('x', id) AS BINARY) AS bytes, named_struct('a', id, 'b', array(id)) AS st, map('k', id) AS m, array(id) AS ar, 'one' AS constant
    FROM range(1000)
"""
PLAIN = """
    SELECT * FROM VALUES (1, 0.0D, double('NaN'), 1e-5D, -2), (2, -0.0D, 1.0D, 12345678.9D, -2), (3, -0.0D, 2.0D, 0.30000000000000004D, -1)
    AS t(id, zero, holes, far, below)
"""
TABLES = {
    "facts": f"SELECT * FROM VALUES {FACTS} AS t({', '.join(part.split()[0] for part in ['id', 'k', 'small', 's', 'word', 'd', 'price', 't', 'n', 'day', 'bin', 'f', 'fl', 'ok', 'st', 'ar', 'm', 'num'])})",
    "many": MANY,
    "plain": PLAIN,
    "empty": "SELECT * FROM range(0)",
    "nulls": "SELECT CAST(NULL AS INT) AS a, CAST(NULL AS STRING) AS b, CAST(NULL AS DOUBLE) AS c FROM range(5)",
    "odd": "SELECT id AS `odd name`, 'it''s' AS `größe`, CONCAT('x', id % 2) AS `select` FROM range(10)",
    "variants": "SELECT id, parse_json('{}') AS v FROM range(3)",
}
BY_DUCKDB = ("facts", "many", "plain", "empty", "nulls")


@pytest.fixture(scope="module")
def storage(spark, tmp_path_factory):
    root, datasets = tmp_path_factory.mktemp("profiles"), {}
    for name, query in TABLES.items():
        path = f"tables/main/shop/{name}"
        datasets[f"main.shop.{name}"] = StoredDataset(f"main.shop.{name}", "streaming_table", path)
        writer = spark.sql(query).write.format("delta")
        writer.option("delta.columnMapping.mode", "name").save(f"{root}/{path}") if name == "odd" else writer.save(f"{root}/{path}")
    Storage(root).save(StorageRegistry(namespace=Namespace("main", "shop"), datasets=datasets))
    return root


@pytest.mark.parametrize("table", TABLES)
def test_both_engines_suggest_the_same(spark, storage, tmp_path, table):
    notes = []
    found = suggest(storage, tmp_path, table, note=notes.append)
    assert found == suggest(storage, tmp_path, table, spark=spark)
    assert (notes == []) is (table in BY_DUCKDB), notes


def test_the_suggestions_say_what_the_rows_are(storage, tmp_path):
    found = {one.rule: (one.constraint, one.dropped) for one in suggest(storage, tmp_path, "many")}
    assert {rule: found.get(rule) for rule in ("kind_common", "country_known", "rest_in_range", "id_unique", "share_not_negative", "day_in_range", "moment_in_range", "large_in_range", "constant_known", "has_country")} == {
        "kind_common": ("kind IN ('purchase', 'refund')", 5),
        "country_known": ("country IS NULL OR (country IN ('DE', 'FR', 'PL'))", 0),
        "rest_in_range": ("rest BETWEEN 0 AND 99", 0),
        "id_unique": ("id", 0),
        "share_not_negative": ("share >= 0", 4),
        "day_in_range": ("day >= DATE '2026-01-01'", 0),
        "moment_in_range": ("moment >= DATE '2026-01-01'", 0),
        "large_in_range": ("large BETWEEN 0 AND 9.99E11", 0),
        "constant_known": ("constant IN ('one')", 0),
        "has_country": ("country IS NOT NULL", 7),
    }  # fmt: skip
    plain = {one.rule: one.constraint for one in suggest(storage, tmp_path, "plain")}
    assert (plain["zero_in_range"], plain["far_in_range"]) == ("zero BETWEEN 0 AND 0.0", "far BETWEEN 0 AND 1.23456789E7")
    assert (plain["below_in_range"], "holes_in_range" in plain) == ("below BETWEEN -2 AND -1", False)


@pytest.mark.parametrize("where", [None, "id > 500", "kind = 'refund' AND\n id < 900", "kind RLIKE 'typo.*'"])
def test_both_engines_suggest_the_same_for_a_new_table(spark, storage, where):
    notes = []
    found = suggest_for_new(storage, "many", "chosen", where, note=notes.append)
    assert found == suggest_for_new(storage, "many", "chosen", where, spark=spark)
    assert len(notes) == (1 if where and "RLIKE" in where else 0)


def test_a_rule_is_tried_without_spark_and_a_misspelt_column_of_a_condition_is_found_without_it(storage, tmp_path):
    notes = []
    trial = try_rule(storage, tmp_path, "share >= 0 AND kind <> 'refund'", "many", limit=2, note=notes.append)
    assert (trial.rows, trial.failed > 600, len(trial.examples), notes) == (1000, True, 2, [])
    with pytest.raises(LakeletError) as problem:
        suggest_for_new(storage, "many", "chosen", "sharee > 1", note=notes.append)
    assert (problem.value.code, problem.value.nearest, problem.value.where, notes) == ("UNKNOWN_COLUMN", ("share",), None, [])
