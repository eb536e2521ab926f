"""The fixtures `spark`, `load_pipeline`, `lakelet` and unit tests in YAML, as pytest runs them in a project of somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main

BUNDLE = """
bundle: {name: shop}
variables: {catalog: {default: shop}}
include: ["resources/*.yml"]
"""
PIPELINE = """
resources:
  schemas: {silver: {name: shop_silver}}
  pipelines:
    shop:
      name: shop
      catalog: ${var.catalog}
      schema: gold
      configuration: {bronze_schema: bronze, silver_schema: "${resources.schemas.silver.name}"}
      libraries:
        - glob: {include: ../pipelines/**}
"""
PRODUCTS = """
CREATE OR REFRESH MATERIALIZED VIEW ${silver_schema}.products AS
SELECT CAST(p.id AS STRING) AS id, CAST(p.price AS DECIMAL(16, 2)) AS price, p.description
FROM ${bronze_schema}.raw_products p QUALIFY row_number() OVER (PARTITION BY p.id ORDER BY p.price DESC) = 1
"""
PRODUCTS_TESTS = """
tests:
  - name: maps the columns
    model: products.sql
    given:
      - table: ${catalog}.${bronze_schema}.raw_products
        rows: [{id: "1", price: "9.99"}, {id: "1", price: "3"}, {id: "2", price: "19.5"}]
    expect:
      rows: [{id: "2", price: 19.50}, {id: "1", price: 9.99}]
  - name: differs
    model: products.sql
    given:
      - {table: "${bronze_schema}.raw_products", rows: [{id: "1", price: "9.99"}]}
    expect:
      rows: [{id: "1", price: 9.98}]
"""
DOCUMENTS = "CREATE MATERIALIZED VIEW documents AS SELECT id, doc, doc:a::int AS a FROM STREAM(LIVE.raw)"
DOCUMENTS_TESTS = """
tests:
  - name: variant columns
    model: documents.sql
    given: [{table: raw, schema: {doc: variant, id: int}, rows: [{id: 1, doc: {a: 2, b: [x]}}, {id: 2, doc: null}]}]
    expect: {rows: [{id: 2, doc: null, a: null}, {id: 1, doc: {b: [x], a: 2}, a: 2}]}
"""
ORDERS = """
import dlt
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

own = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
BRONZE = own.conf.get("bronze_schema")

dp.create_streaming_table("customers", expect_all_or_drop={"has_name": "name IS NOT NULL"})
dp.create_auto_cdc_flow("customers", "changes", keys=["id"], sequence_by="seq", apply_as_deletes="op = 'd'", except_column_list=["op"])

@dp.temporary_view
def changes():
    return spark.readStream.table(f"{BRONZE}.changes")

@dlt.table(name="orders", table_properties={"lakelet.quarantine": "true"})
@dlt.expect_or_drop("has_id", "id IS NOT NULL")
@dlt.expect("cheap", "amount < 10")
def silver_orders():
    rows = spark.readStream.table(f"{BRONZE}.orders").withWatermark("at", "1 minute").dropDuplicatesWithinWatermark(["id"])
    return rows.withColumn("amount", F.col("amount") * 2)

@dlt.table
def total():
    return dlt.read("orders").groupBy().agg(F.sum("amount").alias("amount"))

@dlt.table
@dlt.expect_or_fail("one", "n = 1")
def files():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("n INT").load("/Volumes/main/raw/files")

def plain():
    return spark.table(f"{BRONZE}.orders").select("missing")
"""
FUNCTION_TESTS = """
tests:
  - name: reads another dataset of the file
    model: orders.py
    callable: total
    given: [{table: bronze.orders, schema: {at: timestamp}, rows: [{id: 1, amount: 2, at: "2024-01-01"}, {id: 2, amount: 3, at: null}]}]
    expect: {rows: [{amount: 10}]}
  - name: an error in the function
    model: orders.py
    callable: plain
    given: [{table: bronze.orders, rows: [{id: 1}]}]
  - name: a misspelt function
    model: orders.py
    callable: totl
  - name: an unknown column
    model: orders.py
    callable: total
    given: [{table: orders, rows: [{amount: 1}]}]
    expect: {rows: [{amuont: 1}]}
"""
UPDATE_TESTS = """
tests:
  - name: rules
    model: orders.py
    callable: silver_orders
    given:
      - {table: bronze.orders, rows: [{id: 1, amount: 2, at: 2024-01-01T00:00:00}, {id: null, amount: 7, at: 2024-01-01T00:00:00}]}
    expect:
      rows: [{id: 1, amount: 4}]
      rules: {has_id: 1, cheap: {passed: 1, failed: 1}}
      dropped: 1
      quarantined: 1
  - name: late events do not bring a row back
    model: orders.py
    callable: customers
    updates:
      - given:
          - {table: bronze.changes, rows: [{id: 1, seq: 1, op: u, name: a}, {id: 1, seq: 3, op: d, name: a}]}
          - {table: bronze.changes, rows: [{id: 2, seq: 1, op: u, name: b}]}
        expect: {rows: [{id: 2, name: b}]}
      - given: [{table: bronze.changes, rows: [{id: 1, seq: 2, op: u, name: late}]}]
        expect: {rows: [{id: 2, name: c}]}
  - name: rows behind the watermark
    model: orders.py
    callable: silver_orders
    updates:
      - given: [{table: bronze.orders, rows: [{id: 1, amount: 2, at: 2024-01-01T12:00:00}]}]
        expect: {rows: [{id: 1, amount: 4}], late: 0}
      - given:
          - {table: bronze.orders, rows: [{id: 2, amount: 3, at: 2024-01-01T11:00:00}, {id: 3, amount: 3, at: 2024-01-01T12:30:00}]}
        expect: {rows: [{id: 1, amount: 4}, {id: 3, amount: 6}], late: 1}
  - name: a wrong number of late rows
    model: orders.py
    callable: silver_orders
    given: [{table: bronze.orders, rows: [{id: 1, amount: 2, at: 2024-01-01T12:00:00}]}]
    expect: {late: 2}
  - name: files
    model: orders.py
    callable: files
    updates:
      - given: [{folder: /Volumes/main/raw/files, text: '{"n": 1}'}]
        expect: {rows: [{n: 1}]}
      - given: [{folder: /Volumes/main/raw/files, rows: [{n: 2}]}]
        expect: {error: EXPECTATION_VIOLATION}
"""
PYTHON_TESTS = """
def test_table_of_a_function(load_pipeline, spark):
    rows = spark.range(3).withColumnRenamed("id", "amount")
    p = load_pipeline("pipelines/orders.py", conf={"bronze_schema": "b"}, inputs={"orders": rows})
    assert p["total"]().first().amount == 3


def test_updates(lakelet):
    p = lakelet("pipelines", landing="/Volumes/main/raw")
    p.insert("bronze.raw_products", {"id": "1", "price": "9.99", "description": None})
    at = "2024-01-01T00:00:00"
    p.insert("bronze.orders", {"id": 1, "amount": 2, "at": at}, {"id": None, "amount": 3, "at": at}, schema={"at": "timestamp"})
    p.insert("bronze.changes", {"id": 1, "seq": 1, "op": "u", "name": "a"})
    p.arrive("/Volumes/main/raw/files/1.json", {"n": 1})
    p.update()
    assert p.rows("orders", "id", "amount") == [{"id": 1, "amount": 4}]
    assert p.metrics("orders").dropped_records == 1
    assert p.metrics("orders").expectations["cheap"].passed == 2
    assert p.metrics("customers").upserted_rows == 1
    p.matches_snapshot("shop_silver.products", "id", "price")
    p.arrive("files/2.json", {"n": 7})
    p.update(state="FAILED")
    assert [e.code for e in p.errors] == ["EXPECTATION_VIOLATION"]
    assert p.metrics("orders").output_rows == 0
    assert p.rows("orders", "id", "amount") == [{"id": 1, "amount": 5}]
"""

UNREAD_TESTS = """
tests:
  - name: gives wrong rows that nobody reads
    model: products.sql
    given:
      - {table: "${bronze_schema}.raw_products", rows: [{id: "1", price: "9.99"}]}
      - {table: other, rows: [{id: 1}, {id: [2]}]}
    expect: {rows: [{id: "1"}]}
  - name: gives them to an update
    model: products.sql
    given:
      - {table: "${bronze_schema}.raw_products", rows: [{id: "1", price: "9.99"}]}
      - {table: other, rows: [{id: 1}, {id: [2]}]}
    expect: {rows: [{id: "1"}], dropped: 0}
"""
OF_SPARK = {
    "spark-pipeline.yml": """
name: people
catalog: staff
database: gold
libraries: [{glob: {include: "transformations/**"}}]
configuration: {bronze: people_bronze, silver: people_silver}
""",
    "transformations/names.sql": """
CREATE OR REFRESH MATERIALIZED VIEW ${silver}.names (id STRING, name STRING) CLUSTER BY AUTO AS
SELECT CAST(id AS STRING) AS id, concat(first, ' ', last) AS name FROM ${bronze}.people;
""",
    "transformations/names.unit_tests.yml": """
tests:
  - name: joins the names
    model: names.sql
    given: [{table: "${bronze}.people", rows: [{id: 7, first: Ada, last: King}]}]
    expect: {rows: [{id: "7", name: Ada King}]}
""",
    "transformations/initials.py": """
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
NAMES = spark.conf.get("silver") + ".names"

def initials():
    return spark.read.table(NAMES).groupBy(F.left("name", F.lit(1)).alias("initial")).count()
""",
    "transformations/initials.unit_tests.yml": """
tests:
  - name: counts the initials
    model: initials.py
    given: [{table: "${catalog}.${silver}.names", rows: [{name: Ada}, {name: Alan}, {name: Grace}]}]
    expect: {rows: [{initial: G, count: 1}, {initial: A, count: 2}]}
""",
    "tests/people_pipeline_tests.yml": """
suite: people
log_level: DEBUG
pipeline: {file: ../spark-pipeline.yml}
defaults: {bronze: another_bronze}
tests:
  - name: inline
    model: ../transformations/names.sql
    given: [{table: another_bronze.people, rows: [{id: 1, first: Alan, last: T}]}]
    expect: {rows: [{name: Alan T}]}
""",
}


class Reports:
    """The outcome and the text of each test of a run."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome == "failed":
            self.found[report.nodeid.split("::", 1)[1]] = (report.outcome, report.longreprtext)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> Path:
    """A project; it is the current folder."""
    for name, text in {
        "databricks.yml": BUNDLE,
        "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
        "resources/shop.pipeline.yml": PIPELINE,
        "pipelines/products.sql": PRODUCTS,
        "pipelines/orders.py": ORDERS,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def outcomes(*arguments: str) -> dict[str, tuple[str, str]]:
    reports = Reports()
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:timeout", "-p", "no:sdp_test", *arguments], plugins=[reports])
    return reports.found


def test_unit_tests_beside_the_code_run_with_the_others_and_failing_ones_show_the_table(shop: Path) -> None:
    (shop / "pipelines" / "products.unit_tests.yml").write_text(PRODUCTS_TESTS)
    (shop / "pipelines" / "orders.unit_tests.yaml").write_text(FUNCTION_TESTS)
    (shop / "pipelines" / "documents.sql").write_text(DOCUMENTS)
    (shop / "pipelines" / "documents.unit_tests.yml").write_text(DOCUMENTS_TESTS)
    found = outcomes()
    assert found["variant columns"] == ("passed", "")
    assert found["maps the columns"] == ("passed", "")
    assert found["reads another dataset of the file"] == ("passed", "")
    assert found["differs"][1].splitlines()[1:] == [
        "products: 1 missing and 1 unexpected, 0 rows as expected",
        "              id   price",
        "  - expected  '1'  9.98",
        "  + found     '1'  9.99",
        "                   ^^^^",
    ]
    assert "orders.py:33: in plain" in found["an error in the function"][1]
    assert "`missing` cannot be resolved" in found["an error in the function"][1]
    assert "src/lakelet" not in found["an error in the function"][1]
    assert 'Did you mean "total"?' in found["a misspelt function"][1]
    assert "total has no column 'amuont'; did you mean amount?" in found["an unknown column"][1]


def test_given_rows_that_nobody_reads_are_checked_too(shop: Path) -> None:
    (shop / "pipelines" / "products.unit_tests.yml").write_text(UNREAD_TESTS)
    found = outcomes()
    assert {outcome for outcome, _ in found.values()} == {"failed"}
    for name, line in (("gives wrong rows that nobody reads", 7), ("gives them to an update", 13)):
        assert "[ROWS_INVALID] the values of the column 'id' are of several types" in found[name][1]
        assert f"products.unit_tests.yml, line {line}\n" in found[name][1]


def test_a_project_of_spark_has_tests_beside_its_code_and_in_a_file_of_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    for name, text in OF_SPARK.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    found = {name.rpartition("::")[2]: outcome for name, outcome in outcomes().items()}
    assert found == dict.fromkeys(("joins the names", "counts the initials", "inline"), ("passed", ""))


@pytest.mark.long
def test_rules_change_tables_arriving_files_and_watermarks_are_those_of_real_updates(shop: Path) -> None:
    (shop / "pipelines" / "orders.unit_tests.yml").write_text(UPDATE_TESTS)
    (shop / "tests" / "test_shop.py").write_text(PYTHON_TESTS)
    found = outcomes("--lakelet-update-snapshots")
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "rules": "passed",
        "rows behind the watermark": "passed",
        "a wrong number of late rows": "failed",
        "files": "passed",
        "late events do not bring a row back": "failed",
        "test_table_of_a_function": "passed",
        "test_updates": "failed",
    }, found
    assert found["late events do not bring a row back"][1].splitlines()[1:4] == [
        "after update 2:",
        "shop.gold.customers: 1 missing and 1 unexpected, 0 rows as expected",
        "              id  name",
    ]
    assert found["a wrong number of late rows"][1].splitlines()[1:] == ["late: expected 2, found 0"]
    text = found["test_updates"][1]
    assert "+ found     1   4" in text
    assert "src/lakelet" not in text
    snapshot = shop / "tests" / "snapshots" / "test_shop" / "test_updates-shop_silver.products.yml"
    assert snapshot.read_text() == "rows:\n- id: '1'\n  price: '9.99'\n"
    snapshot.write_text("rows: [{id: '2', price: 9.99}]")
    found = outcomes("-k", "test_updates")
    assert "shop_silver.products: 1 missing and 1 unexpected" in found["test_updates"][1]


@pytest.mark.long
def test_lakelet_test_ends_with_the_codes_of_the_other_commands(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test"]) == 2
    assert "no test was found" in capsys.readouterr().err
    (shop / "tests" / "test_numbers.py").write_text("def test_a(): assert 1 == 1\ndef test_b(): assert 1 == 2\n")
    assert main(["test", "-x"]) == 1
    assert main(["test", "-k", "test_a"]) == 0
    (shop / "helpers_of_shop").mkdir()
    (shop / "helpers_of_shop" / "numbers.py").write_text("TWO = 2\n")
    (shop / "tests" / "test_helpers_of_shop.py").write_text("from helpers_of_shop.numbers import TWO\ndef test_c(): assert TWO == 2\n")
    assert main(["test", "-k", "test_c"]) == 0
    (shop / "tests" / "a.unit_tests.yml").write_text("tests: [{modle: a.sql}]")
    assert main(["test", "tests/a.unit_tests.yml"]) == 1
    assert "a test has no model" in capsys.readouterr().out
