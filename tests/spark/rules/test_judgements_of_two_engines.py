"""DuckDB and Spark judge stored rows alike, or DuckDB leaves it to Spark: counts, and conditions that no row can change (IF-11)."""

from __future__ import annotations

import pytest

from lakelet.base.names import Namespace
from lakelet.rules.judging import Judgement, judged_by_spark, judged_without_spark
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

pytestmark = pytest.mark.spark

ROWS = """
    SELECT * FROM VALUES
        (1L, 10.5D, 'a', DATE '2026-01-01', true, named_struct('n', 1), array(1)),
        (2L, NULL, 'b', DATE '2026-01-02', NULL, named_struct('n', 2), array()),
        (3L, 0.5D, NULL, NULL, true, NULL, NULL)
    AS t(id, amount, kind, day, ok, part, items)
"""
BY_DUCKDB = {
    "amount > 0": (2, None),
    "id IS NOT NULL": (3, None),
    "id BETWEEN 1 AND 3 -- all of them": (3, None),
    "amount IS NULL OR amount > 0": (3, None),
    "kind IN ('a', 'b') OR day IS NULL": (3, None),
    "day IS NULL OR day >= DATE '2026-01-01'": (3, None),
    "ok IS NULL OR ok": (3, None),
    "part IS NULL OR part.n > 1": (2, None),
    "id > 99": (0, None),
    "kind IS NULL OR length(kind) = 1": (3, None),
}
BY_SPARK = {
    "1 = 1": (3, True),
    "id > 1 AND false": (0, False),
    "id IS NULL OR id IS NOT NULL": (3, None),
    "kind = 'z'": (0, None),
    "size(items) > 9": (0, None),
}


@pytest.fixture(scope="module")
def storage(spark, tmp_path_factory):
    root, datasets = tmp_path_factory.mktemp("judged"), {}
    for name, rows in (("facts", ROWS), ("empty", f"{ROWS} WHERE id > 9"), ("strict", None), ("pending", None)):
        path = f"tables/main/shop/{name}"
        datasets[f"main.shop.{name}"] = StoredDataset(f"main.shop.{name}", "streaming_table", path)
        if rows is not None:
            spark.sql(rows).write.format("delta").save(f"{root}/{path}")
    spark.sql(f"CREATE TABLE delta.`{root}/tables/main/shop/strict` (id BIGINT NOT NULL, items ARRAY<INT>) USING delta")
    spark.sql(f"INSERT INTO delta.`{root}/tables/main/shop/strict` SELECT id, array(1) FROM range(2)")
    Storage(root).save(StorageRegistry(namespace=Namespace("main", "shop"), datasets=datasets))
    return Storage(root)


@pytest.mark.parametrize("condition", [*BY_DUCKDB, *BY_SPARK])
def test_both_engines_judge_the_same(spark, storage, condition):
    asked = {"main.shop.facts": [condition]}
    found = judged_by_spark(spark, storage, asked)
    held, decided = {**BY_DUCKDB, **BY_SPARK}[condition]
    assert found == {("main.shop.facts", condition): Judgement(3, held, decided)}
    assert judged_without_spark(storage, asked) == (found if condition in BY_DUCKDB else None)


def test_a_table_without_rows_is_judged_by_sample_rows_too(spark, storage):
    asked = {"main.shop.empty": ["amount > 0", "day IS NULL OR day < current_date()"], "main.shop.pending": ["amount > 0"]}
    found = judged_without_spark(storage, {**asked, "main.shop.empty": asked["main.shop.empty"][:1]})
    assert found == {("main.shop.empty", "amount > 0"): Judgement(0, 0, None)}
    assert judged_by_spark(spark, storage, asked)["main.shop.empty", "amount > 0"] == Judgement(0, 0, None)


def test_no_sample_row_has_null_where_the_column_has_none(spark, storage):
    for condition, decided in (("id IS NOT NULL", True), ("id >= 0", None)):
        asked = {"main.shop.strict": [condition]}
        found = judged_by_spark(spark, storage, asked)
        assert found == {("main.shop.strict", condition): Judgement(2, 2, decided)}
        assert judged_without_spark(storage, asked) == (None if decided else found)


def test_what_does_not_fit_the_stored_columns_is_not_judged(spark, storage):
    columns = {"main.shop.facts": ["Column<'(flag = maybe)'>"]}
    assert judged_by_spark(spark, storage, columns) == judged_without_spark(storage, columns) == {}
    missing = {"main.shop.facts": ["gone > 0", "amount > 0"]}
    assert [*judged_by_spark(spark, storage, missing)] == [("main.shop.facts", "amount > 0")]
    assert judged_without_spark(storage, missing) is None
