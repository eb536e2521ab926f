"""Corpus V09–V12 and the smoke case: the facts that must hold after each update."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

UTC = timezone.utc


def test_smoke_a_table_of_ten_rows(case):
    c = case("smoke").update()
    assert c.count("my_table") == 10, "the table holds the ten rows of its query"
    c.nothing_new()


# --- V09 ------------------------------------------------------------------------------------------------------------------------------

_SALES = pa.schema(
    [(name, pa.int32()) for name in ("sales_id", "customer_id", "product_id", "quantity")]
    + [("amount", pa.decimal128(10, 2)), ("sale_timestamp", pa.timestamp("us", "UTC"))]
)
_SHOP = {
    "sales_east": _SALES,
    "sales_west": _SALES,
    "products": pa.schema(
        [
            ("product_id", pa.int32()),
            ("product_name", pa.string()),
            ("category", pa.string()),
            ("price", pa.decimal128(10, 2)),
            ("last_updated", pa.timestamp("us", "UTC")),
        ]
    ),
    "customers": pa.schema(
        [("customer_id", pa.int32()), ("customer_name", pa.string()), ("region", pa.string()), ("last_updated", pa.timestamp("us", "UTC"))]
    ),
}


def _typed(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return Decimal(str(value)) if pa.types.is_decimal(kind) else value


def _loads(ddl: Path, table: str) -> tuple[pa.Table, pa.Table]:
    """The rows that the repository's own script inserts into a table: those of its first statement, and all others."""
    schema = _SHOP[table]
    first, *others = re.findall(rf"INSERT INTO {table} VALUES\s*(.*?);", ddl.read_text(), re.DOTALL)

    def rows(text: str) -> pa.Table:
        values = zip(*ast.literal_eval(f"[{text}]"), strict=True)
        columns = [[_typed(v, field.type) for v in column] for column, field in zip(values, schema, strict=True)]
        return pa.table(columns, schema=schema)

    return rows(first), rows(", ".join(others))


def test_V09_a_shop_in_ten_files_follows_new_sales_products_and_customers(case):
    c = case("V09")
    loads = {table: _loads(c.project / "DDL_ingestion_queries", table) for table in _SHOP}
    for table, (first, _) in loads.items():
        c.tables[f"dltnishad.source.{table}"] = str(c.arrive_delta(table, first))
    c.update()
    assert c.count("sales_stg") == 10, "both append flows feed sales_stg"
    assert c.count("fact_sales") == 10, "one row for each sale"
    assert c.count("products_enriched") == 12, "one row for each product"
    assert c.count("customer_enriched") == 12, "one row for each customer"
    assert all(name == name.upper() for name in c.rows("customer_enriched", "customer_name")), "names are in upper case"
    assert _business(c) == {
        ("East", "Electronics"): 3020,
        ("East", "Furniture"): 2750,
        ("West", "Electronics"): 1320,
        ("West", "Furniture"): 650,
        ("West", "Stationery"): 2240,
    }, "sales by region and category after update 1"

    for table, (_, second) in loads.items():
        c.arrive_delta(table, second)
    c.update()
    assert c.count("sales_stg") == 14, "only the new sales are read"
    customers = {row["customer_id"]: row for row in c.table("customer_enriched").to_pylist()}
    assert len(customers) == c.count("customer_enriched") == 12, "still one row for each customer"
    assert customers[107]["customer_name"] == "GEORGE SMITH", "the correction of a name arrives"
    assert customers[103]["region"] == "Central", "the move of a customer arrives"
    assert c.count("dim_customers") == 14, "two customers have a second version"
    moved = datetime(2025, 8, 2, 8, 30, tzinfo=UTC)
    versions = {row["region"]: row for row in c.table("dim_customers").to_pylist() if row["customer_id"] == 103}
    assert set(versions) == {"East", "Central"}, "customer 103 has a version for each region"
    assert versions["East"]["__END_AT"] == moved, "the version of before the move is closed when the customer moves"
    assert (versions["Central"]["__START_AT"], versions["Central"]["__END_AT"]) == (moved, None), "the version of after the move is open"
    assert c.count("dim_products") == 14, "two products have a second version"
    assert _business(c) == {
        ("East", "Electronics"): 6220,
        ("Central", "Electronics"): 5000,
        ("East", "Furniture"): 2750,
        ("West", "Electronics"): 1470,
        ("West", "Furniture"): 1690,
        ("West", "Stationery"): 2840,
    }, "sales by region and category after update 2, over all versions of customers and products"
    c.nothing_new()


def _business(c: Any) -> dict[tuple[str, str], int]:
    return {(region, category): int(total) for region, category, total in c.rows("business_sales", "region", "category", "total_sales")}


# --- V10 ------------------------------------------------------------------------------------------------------------------------------

_HOUR = datetime(2025, 3, 1, 12, tzinfo=UTC)
_SENSORS = {"temperature": "temperature", "vibration": "vibration", "tilt": "tilt_angle"}


def _readings(column: str, rows: Iterable[tuple[int, int | None, float]]) -> pa.Table:
    """Readings as (device, minute of the hour, value)."""
    device, minute, value = zip(*rows, strict=True)
    times = [None if m is None else _HOUR + timedelta(minutes=m) for m in minute]
    kinds = [("device_id", pa.int32()), ("event_time", pa.timestamp("us", "UTC")), (column, pa.float64())]
    return pa.table([device, times, value], schema=pa.schema(kinds))


@pytest.mark.slow
def test_V10_notebooks_join_three_windowed_streams_of_sensors(case):
    c = case("V10")
    landing = "/Volumes/bridge_monitoring/00_landing"
    c.maps[landing] = str(c.inputs)
    usual = [(device, minute, device / 100 + minute / 1000) for device in (1, 2) for minute in (1, 5, 12, 31)]
    special = {"temperature": [(1, None, 5.0), (2, 7, 99.0), (9, 2, 5.0)]}
    for sensor, column in _SENSORS.items():
        c.arrive_delta(f"streaming/bridge_{sensor}", _readings(column, usual + special.get(sensor, [])))
    c.update()
    assert len([name for name in c.counts() if ".01_bronze." in name]) == 3, "tables of 01_bronze"
    assert len([name for name in c.counts() if ".02_silver." in name]) == 4, "tables of 02_silver"
    assert [name.rsplit(".", 2)[1:] for name in c.counts() if ".03_gold." in name] == [["03_gold", "bridge_metrics"]], "tables of 03_gold"
    assert c.count("02_silver.bridge_metadata") == 5, "bridges that the notebook lists"
    silver = c.table("02_silver.bridge_temperature").to_pylist()
    assert c.count("01_bronze.bridge_temperature") == 11, "bronze holds every reading"
    assert len(silver) == 10, "a reading without time is dropped"
    assert 99.0 in [row["temperature"] for row in silver], "a temperature out of range is kept"
    assert [row["name"] for row in silver if row["bridge_id"] == 9] == [None], "a device without bridge is kept, without name"
    _closed_windows_only(c, watermark=29)

    for sensor, column in _SENSORS.items():
        c.arrive_delta(f"streaming/bridge_{sensor}", _readings(column, [(device, 55, 1.0) for device in (1, 2)]))
    c.update()
    assert c.count("01_bronze.bridge_temperature") == 13, "only the new readings are read"
    windows = _closed_windows_only(c, watermark=53)
    assert {(bridge, minute) for bridge, minute in windows if bridge != 9} >= {(b, m) for b in (1, 2) for m in (0, 10)}, (
        "the windows that the first readings closed are there after the second update at the latest"
    )
    average = {key: row["avg_temperature"] for key, row in windows.items()}
    assert average[1, 0] == round((0.011 + 0.015) / 2, 2), "average of a window, with two decimals"
    assert average[2, 0] == round((0.021 + 0.025 + 99.0) / 3, 2), "the average includes what is only warned of"
    c.nothing_new()


def _closed_windows_only(c: Any, *, watermark: int) -> dict[tuple[int, int], dict[str, Any]]:
    """The rows of gold by bridge and first minute of the window; no window may be there twice or end behind the watermark."""
    rows = c.table("03_gold.bridge_metrics").to_pylist()
    found = {(row["bridge_id"], int((row["window_start"] - _HOUR).total_seconds() // 60)): row for row in rows}
    assert len(found) == len(rows), "one row at most for a bridge and a window"
    assert all(row["window_end"] <= _HOUR + timedelta(minutes=watermark) for row in rows), "only windows that ended are there"
    return found


# --- V11 ------------------------------------------------------------------------------------------------------------------------------


def test_V11_files_of_a_database_log_become_histories_of_four_tables(case):
    c = case("V11")
    c.params["data"] = str(c.inputs)
    day = [f"2024-01-0{n}T00:00:00Z" for n in range(1, 6)]
    stores = [f"I,1,north,{day[0]}", f"U,1,south,{day[1]}", f"D,1,south,{day[2]}", f"I,2,west,{day[0]}"]
    c.arrive_csv("stores/1.csv", "Op,store_id,name,dmsTimestamp", stores)
    c.arrive_csv("customers/1.csv", "Op,customer_id,email,dmsTimestamp", [f"I,1,a@b.c,{day[0]}"])
    c.arrive_csv("products/1.csv", "Op,product_id,label,dmsTimestamp", [f"I,1,chair,{day[0]}"])
    c.arrive_csv("transactions/1.csv", "transaction_id,amount,dmsTimestamp", [f"1,5,{day[0]}", f"2,7,{day[0]}"])
    c.update()
    assert c.published() == {"stores", "customers", "products", "transactions"}, "what is temporary is not published"
    _history_of_stores(c, north_until=2)
    for name, own in {"stores": ["store_id", "name"], "transactions": ["transaction_id", "amount"]}.items():
        assert c.columns(name) == [*own, "_ingest_file_name", "__START_AT", "__END_AT"], f"columns of {name}"
    assert c.rows("transactions", "transaction_id", "__END_AT") == [(1, None), (2, None)], "rows of a file without Op are inserts"

    c.arrive_csv("transactions/2.csv", "Op,transaction_id,amount,dmsTimestamp", [f"U,1,6,{day[1]}", f"D,2,7,{day[1]}"])
    c.arrive_csv("stores/2.csv", "Op,store_id,name,dmsTimestamp", ["U,1,late,2024-01-01T12:00:00Z"])
    c.update()
    _history_of_stores(c, north_until=1.5)
    found = {(row["transaction_id"], row["amount"]): row["__END_AT"] for row in c.table("transactions").to_pylist()}
    changed = datetime(2024, 1, 2, tzinfo=UTC)
    assert found == {(1, 5): changed, (1, 6): None, (2, 7): changed}, "the column Op of a later file counts from then on"
    assert c.columns("transactions")[:2] == ["transaction_id", "amount"], "Op is not a column of the target, though it came later"
    c.nothing_new()


def _history_of_stores(c: Any, *, north_until: float) -> None:
    versions = sorted((r for r in c.table("stores").to_pylist() if r["store_id"] == 1), key=lambda r: r["__START_AT"])
    ends = datetime(2023, 12, 31, tzinfo=UTC) + timedelta(days=north_until)
    assert (versions[0]["name"], versions[0]["__END_AT"]) == ("north", ends), "the first version ends where the next begins"
    assert versions[-1]["__END_AT"] == datetime(2024, 1, 3, tzinfo=UTC), "a deleted key has no open version"
    assert all(a["__END_AT"] == b["__START_AT"] for a, b in pairwise(versions)), "versions follow each other without a gap"
    assert len(versions) == (2 if north_until == 2 else 3), "a version for each change, the late one in between"
    others = [row["__END_AT"] for row in c.table("stores").to_pylist() if row["store_id"] == 2]
    assert others == [None], "the other key has one open version"


# --- V12 ------------------------------------------------------------------------------------------------------------------------------

_USER = "user_id,name,age,gender,email,registration_date,region,last_updated,operation"
_TRANSACTION = "transaction_id,user_id,product_id,quantity,transaction_price,transaction_date,store_id"


def _user(number: int, name: str, updated: str, operation: str) -> str:
    return f"{number},{name},30,F,{name}@x.org,2025-01-01,north,2025-02-{updated},{operation}"


def _transactions(rows: Iterable[tuple[int, int, int, int]]) -> list[str]:
    return [f"{t},{user},{product},1,{price},2025-03-01,7" for t, user, product, price in rows]


@pytest.mark.slow
def test_V12_csv_files_with_byte_order_marks_and_a_master_table(case):
    c = case("V12")
    c.params |= {"catalog_name": "workshop", "schema_name": "sales"}
    c.maps["/Volumes/workshop/sales/raw_data"] = str(c.inputs)
    products = {"product_id": [1, 2], "product_name": ["tea", "soap"], "category": ["food", "home"], "subcategory": ["drinks", "bath"]}
    numbers = {"price": [100, 200], "stock_quantity": [5, 5], "cost_price": [60, 90]}
    c.tables["workshop.sales.products_source"] = str(c.arrive_delta("products_source", pa.table({**products, **numbers})))
    users = [
        _user(1, "ann", "01", "INSERT"),
        _user(2, "bob", "01", "INSERT"),
        _user(3, "cid", "01", "INSERT"),
        _user(1, "anna", "03", "UPDATE"),
    ]
    c.arrive_csv("users/1.csv", _USER, [*users, _user(3, "cid", "02", "DELETE")], encoding="utf-8-sig")
    east, west = [(1, 1, 1, 100), (2, 2, 2, 200)], [(3, 1, 2, 400)]
    c.arrive_csv("transactions_east/1.csv", _TRANSACTION, _transactions(east), encoding="utf-8-sig")
    c.arrive_csv("transactions_west/1.csv", _TRANSACTION, _transactions(west), encoding="utf-8-sig")
    c.update()
    assert c.rows("users", "user_id", "name") == [(1, "anna"), (2, "bob")], "the latest row of each user; a deleted one is absent"
    assert c.columns("users")[0] == "user_id", "the byte order mark is not part of the first column's name"
    assert "operation" not in c.columns("users"), "the excluded column is absent"
    assert "_rescued_data_users" in c.columns("users"), "the rescued column has the name it was given"
    assert c.count("transactions") == 3, "rows of both flows"
    assert "users_cdf" not in c.published(), "a view is not published"
    _revenue(c, 700)

    later = [
        _user(1, "old", "02", "UPDATE"),
        _user(2, "bobby", "04", "UPDATE"),
        _user(3, "cid", "01", "UPDATE"),
        _user(4, "dora", "04", "INSERT"),
    ]
    c.arrive_csv("users/2.csv", _USER, later, encoding="utf-8-sig")
    c.arrive_csv("transactions_west/2.csv", _TRANSACTION, _transactions([(4, 4, 1, 50)]), encoding="utf-8-sig")
    c.update()
    assert c.rows("users", "user_id", "name") == [(1, "anna"), (2, "bobby"), (4, "dora")], "what is older than known changes nothing"
    assert c.count("transactions") == c.count("transactions_enriched") == 4, "only the new transaction is read"
    _revenue(c, 750)
    c.nothing_new()


def _revenue(c: Any, total: int) -> None:
    assert sum(c.rows("revenue_by_subcategory", "sum_revenue")) == total, "revenue of all subcategories"
    assert sum(c.rows("transactions_enriched", "transaction_price")) == total, "revenue of all transactions"
