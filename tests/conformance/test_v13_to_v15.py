"""Corpus V13–V15: the facts that must hold after each update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# --- V13 ------------------------------------------------------------------------------------------------------------------------------

_OLIST: dict[str, tuple[str, Sequence[str]]] = {
    "customers": (
        "customer_id",
        [
            "customer_unique_id",
            "customer_city",
            "customer_state",
            "customer_zip_code_prefix",
            "customer_email",
            "customer_name",
            "customer_phone",
        ],
    ),
    "products": (
        "product_id",
        [
            "product_category_name",
            *(
                f"product_{what}"
                for what in ("name_lenght", "description_lenght", "photos_qty", "weight_g", "length_cm", "height_cm", "width_cm")
            ),
        ],
    ),
    "sellers": ("seller_id", ["seller_zip_code_prefix", "seller_city", "seller_state"]),
}


def _olist(c: Any, file: str, events: Sequence[tuple[str, int, int, str]]) -> None:
    """Land events (key, number in every other column, sequence, operation) for all three tables."""
    for what, (key, others) in _OLIST.items():
        lines = [",".join([name, *[str(value)] * len(others), str(sequence), operation]) for name, value, sequence, operation in events]
        c.arrive_csv(f"cdc/{what}/{file}", ",".join([key, *others, "sequence_number", "operation"]), lines)


def test_V13_deletes_that_are_spelled_differently_are_no_deletes(case):
    c = case("V13")
    c.params |= {"catalog": "olist_lakehouse", "layer_cdc": "cdc"}
    c.maps["/Volumes/olist_lakehouse/raw/olist"] = str(c.inputs)
    _olist(c, "1.csv", [("a", 1, 1, "insert"), ("a", 2, 2, "update"), ("a", 3, 3, "delete"), ("b", 5, 4, "insert"), ("", 9, 5, "insert")])
    c.update()
    targets = {
        "customers": ("cdc_customers_silver_actual", "cdc_customers_silver_hist"),
        "products": ("cdc_products_silver_actual", "cdc_products_silver_hist"),
        "sellers": ("cdc_sellers_actual_silver", "cdc_sellers_silver_hist"),
    }
    assert {f"olist_lakehouse.cdc.{name}" for pair in targets.values() for name in pair} <= set(c.counts()), (
        "targets lie where they are named"
    )
    for what, (actual, history) in targets.items():
        key, others = _OLIST[what]
        bronze = f"olist_lakehouse.cdc.cdc_{what}_bronze"
        assert c.rows(bronze, key) == ["a", "a", "a", "b"], f"{what} without id are dropped"
        assert set(c.rows(bronze, "operation")) == {"INSERT", "UPDATE", "DELETE"}, "bronze writes operations in upper case"
        current = c.rows(f"olist_lakehouse.cdc.{actual}", key, others[-1])
        assert [(k, int(v)) for k, v in current] == [("a", 3), ("b", 5)], f"{actual} keeps the key, with the values of the delete event"
        versions = c.table(f"olist_lakehouse.cdc.{history}")
        assert versions.schema.field("__START_AT").type == pa.int64(), f"__START_AT of {history} is a BIGINT"
        found = {(r[key], r["__START_AT"], r["__END_AT"]) for r in versions.to_pylist()}
        assert found == {("a", 1, 2), ("a", 2, 3), ("a", 3, None), ("b", 4, None)}, f"versions of {history}: the delete event is open"

    _olist(c, "2.csv", [("b", 6, 7, "update"), ("b", 7, 6, "update")])
    c.update()
    for what, (actual, history) in targets.items():
        key, others = _OLIST[what]
        current = c.rows(f"olist_lakehouse.cdc.{actual}", key, others[-1])
        assert [(k, int(v)) for k, v in current] == [("a", 3), ("b", 6)], f"{actual} follows the sequence, not the order of arrival"
        assert c.count(f"olist_lakehouse.cdc.{history}") == 6, f"{history} has two more versions"
    c.nothing_new()


# --- V14 ------------------------------------------------------------------------------------------------------------------------------

_PATIENT = "userid,gender,age,height,weight,smoker,familyhistory,cholestlevs,bp,risk"


@pytest.mark.slow
def test_V14_devices_and_users_of_a_cookbook(case):
    c = case("V14")
    c.maps["/databricks-datasets/iot-stream"] = str(c.inputs)
    patients = [
        "1,F,40,170,60,Y,N,Normal,High,5",
        "2,M,50,180,80,N,N,High,Low,20",
        "3,F,60,160,70,N,Y,Low,Low,-1",
        ",F,1,1,1,N,N,Low,Low,1",
    ]
    c.arrive_csv("data-user/1.csv", _PATIENT, patients)
    c.arrive_json("data-device/1.json", [_steps(1, 1, 10.5, 100), _steps(2, 1, 4.5, 50), _steps(3, 2, 1.0, 7, when=None)])
    c.update()
    prepared = c.table("user_data_prepared")
    assert sorted(prepared["user_id"].to_pylist()) == [1, 2, 3], "a user without id is dropped"
    assert set(prepared["gender"].to_pylist()) == {"Female", "Male"}, "genders are written out"
    assert prepared.schema.field("isSmoker").type == pa.bool_(), "isSmoker is a BOOLEAN"
    assert c.rows("user_data_prepared", "user_id", "isSmoker") == [(1, True), (2, False), (3, False)], "Y and N become true and false"
    assert c.count("device_data_prepared") == 3, "a reading without time is kept: the rule only warns"
    metrics = ("user_id", "totalCaloriesBurnt", "totalNumberOfSteps")
    assert c.rows("user_metrics", *metrics) == [(1, 15.0, 150), (2, 1.0, 7), (3, None, None)], (
        "sums over devices; a user without one is there"
    )

    c.arrive_json("data-device/2.json", [_steps(4, 3, 2.0, 20), _steps(5, 1, 1.0, 10)])
    c.update()
    assert c.count("device_data") == 5, "only the new file is read"
    assert c.rows("user_metrics", *metrics) == [(1, 16.0, 160), (2, 1.0, 7), (3, 2.0, 20)], "sums follow"
    c.nothing_new()


def _steps(number: int, user: int, calories: float, steps: int, when: str | None = "2025-01-01T00:00:00Z") -> dict[str, Any]:
    numbers = {"calories_burnt": calories, "miles_walked": 1.5, "num_steps": steps}
    return {"id": number, "device_id": number, "user_id": user, **numbers, "timestamp": when}


# --- V15 ------------------------------------------------------------------------------------------------------------------------------


_DAY = datetime(2024, 1, 1, tzinfo=timezone.utc)


def _snapshot(c: Any, hour: int, orders: Iterable[tuple[int, int, str]]) -> None:
    number, price, status = zip(*orders, strict=True)
    count = len(number)
    names = ("order_id", "price", "order_status", "order_date", "customer_id", "product_id")
    whole = pa.int32()
    kinds = (whole, whole, pa.string(), pa.timestamp("us", "UTC"), whole, whole)
    columns = [number, price, status, [_DAY] * count, [1] * count, [1] * count]
    folder = c.inputs / f"orders/2024-01-01 {hour:02}"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns, schema=pa.schema(list(zip(names, kinds, strict=True)))), folder / "part-0.parquet")


def test_V15_snapshots_by_the_hour_become_versions(case):
    c = case("V15")
    c.params["snapshot_path"] = str(c.inputs / "orders")
    _snapshot(c, 0, [(1, 10, "pending"), (2, 20, "pending"), (3, 30, "pending")])
    _snapshot(c, 1, [(2, 20, "shipping"), (3, 33, "pending"), (4, 40, "pending")])
    c.update()
    first, second, third = (f"2024-01-01 {hour:02}" for hour in range(3))
    assert _versions(c, 1) == [(10, "pending", first, second)], "an order that is gone has one version, closed by the next snapshot"
    assert _versions(c, 2) == [(20, "pending", first, second), (20, "shipping", second, None)], "a new status is a new version"
    assert _versions(c, 3) == [(33, "pending", first, None)], "a new price alone changes the open version"
    assert _versions(c, 4) == [(40, "pending", second, None)], "a new order starts at its snapshot"
    kinds = [c.table("orders").schema.field(name).type for name in ("__START_AT", "__END_AT")]
    assert all(pa.types.is_string(k) or pa.types.is_large_string(k) for k in kinds), "both system columns are strings"
    assert c.rows("order_status_count") == [("pending", 4), ("shipping", 1)], "counts over all versions"

    _snapshot(c, 2, [(2, 20, "shipping"), (3, 33, "pending"), (4, 40, "delivered")])
    c.update()
    assert _versions(c, 1) == [(10, "pending", first, second)], "earlier snapshots are not processed again"
    assert _versions(c, 4) == [(40, "pending", second, third), (40, "delivered", third, None)], "the update starts after the last version"
    assert c.rows("order_status_count") == [("delivered", 1), ("pending", 4), ("shipping", 1)], "counts over all versions"
    c.nothing_new()


def _versions(c: Any, order: int) -> list[tuple[int, str, str, str | None]]:
    rows = sorted((row for row in c.table("orders").to_pylist() if row["order_id"] == order), key=lambda row: row["__START_AT"])
    return [(row["price"], row["order_status"], row["__START_AT"], row["__END_AT"]) for row in rows]
