"""Corpus V01–V08: the facts that must hold after each update."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest


@pytest.mark.slow
def test_V01_a_dataset_called_range_does_not_hide_the_function(case):
    c = case("V01").update()
    assert c.rows("range") == sorted(range(1000), key=repr), "range holds 0..999"
    doubles = c.table("double").to_pylist()
    assert len(doubles) == 1000, "double has a row for each row of range"
    assert all(row["double"] == 2 * row["id"] for row in doubles), "double is twice the id"
    assert sum(row["double"] for row in doubles) == 999_000, "sum of double"
    c.nothing_new()


@pytest.mark.slow
def test_V02_events_of_a_relative_folder_are_counted_by_type(case):
    c = case("V02").update()
    assert c.count("raw_events") == 6, "every event of the first file"
    assert c.rows("event_counts") == [("click", 3), ("purchase", 1), ("view", 2)], "counts after update 1"

    second = {"user_id": "u9", "ts": "2025-01-01T11:00:00"}
    c.arrive_json(c.project / "OSS-SDP-HelloWorld/data/events/second.json", [{"event_type": t, **second} for t in ("click", "refund")])
    c.update()
    assert c.count("raw_events") == 8, "the new file is read, the old one is not read again"
    assert Counter(dict(c.rows("event_counts"))) == {"click": 4, "view": 2, "purchase": 1, "refund": 1}, "counts after update 2"
    c.nothing_new()


@pytest.mark.slow
def test_V03_batch_json_with_a_rule_that_fails_the_update(case):
    c = case("V03")
    file = "wikipedia-datasets/data-001/clickstream/raw-uncompressed-json/2015_2_clickstream.json"
    c.maps["/databricks-datasets"] = str(c.inputs)
    spark = [_click("7", "Apache_Spark", n, f"Referrer_{n}") for n in range(1, 13)]
    others = [
        _click("8", "Apache_Kafka", 40, "Referrer_1"),
        _click("8", "Apache_Kafka", 50, "Referrer_2"),
        _click(None, "Lost", 3, "Referrer_3"),
    ]
    c.arrive_json(file, [*spark, *others])
    c.update()
    assert c.count("clickstream_raw") == c.count("clickstream_clean") == 15, "the rule that warns drops nothing"
    assert c.columns("top_spark_referrers") == ["referrer", "click_count"]
    assert c.rows("top_spark_referrers", "click_count") == sorted(range(3, 13), key=repr), "the ten largest"
    assert dict(c.rows("top_pages"))["Apache_Spark"] == 78, "clicks of the page"
    c.nothing_new()

    c.arrive_json(file, [*spark, *others, _click("7", "Apache_Spark", 0, "Referrer_13")])
    c.update(expect="FAILED")
    assert c.count("clickstream_raw") == 16, "what does not depend on the failed table is kept"
    assert c.count("clickstream_clean") == 15, "a row that breaks the rule fails the update, the table stays as it was"


def _click(page: str | None, title: str, n: int, referrer: str) -> dict[str, Any]:
    return {"curr_id": page, "curr_title": title, "n": str(n), "prev_id": None, "prev_title": referrer, "type": "other"}


def test_V04_latest_customers_from_changes_that_arrive_late(case):
    c = case("V04")
    c.params["source"] = str(c.inputs)
    first = [
        *(_customer(i, "APPEND", 1) for i in "abcd"),
        _customer("b", "UPDATE", 2, firstname="B2"),
        _customer("c", "DELETE", 3),
        _customer(None, "APPEND", 1),
        _customer("x", None, 1),
        _customer("e", "APPEND", 1, address=None),
    ]
    c.arrive_json("customers/1.json", first)
    c.update()
    assert c.count("customer_bronze") == len(first), "bronze holds every row"
    assert c.rows("customer_silver", "id") == ["a", "b", "d", "e"], "a row for each id; not the deleted one, none without id or operation"
    assert dict(c.rows("customer_silver", "id", "firstname"))["b"] == "B2", "the newer event of b counts"
    assert dict(c.rows("customer_silver", "id", "address"))["e"] is None, "the rule on the address only warns"
    assert sorted(c.columns("customer_silver")) == ["address", "email", "firstname", "id", "lastname"]
    assert c.published() == {"customer_bronze", "customer_silver"}, "the view with rules is not published"

    late = [
        _customer("c", "UPDATE", 2, firstname="late"),
        _customer("a", "UPDATE", 0, firstname="late"),
        _customer("d", "UPDATE", 5, firstname="D5"),
    ]
    c.arrive_json("customers/2.json", late)
    c.update()
    assert c.count("customer_bronze") == len(first) + len(late)
    names = dict(c.rows("customer_silver", "id", "firstname"))
    assert "c" not in names, "an update dated before the delete does not bring the row back"
    assert names["a"] == "first of a", "an update dated before the append changes nothing"
    assert names["d"] == "D5", "a newer update counts"
    c.nothing_new()


def _customer(key: Any, operation: str | None, hour: int, *, firstname: str | None = None, **changed: Any) -> dict[str, Any]:
    """A change event of one customer, `hour` hours after midnight of a day."""
    row = {
        "id": key,
        "firstname": firstname or f"first of {key}",
        "lastname": "l",
        "email": f"{key}@example.com",
        "address": f"{key} street",
    }
    return {**row, "operation": operation, "operation_date": f"03-04-2024 {hour:02}:00:00", **changed}


@pytest.mark.slow
def test_V05_latest_rows_and_history_of_customers_in_sql(case):
    c = case("V05")
    c.params.update(catalog="dev", schema="shop")
    c.maps["/Volumes/dev/shop/raw_data"] = str(c.inputs)
    first = [
        *(_customer(i, "APPEND", 1) for i in (1, 2, 3, 4)),
        _customer(2, "UPDATE", 2, firstname="B2"),
        _customer(3, "DELETE", 4),
        _customer(None, "APPEND", 1),
        _customer(9, None, 1),
        _customer(8, "NOOP", 1),
        _customer(5, "APPEND", 1, address=None),
    ]
    c.arrive_json("customers/1.json", first)
    c.update()
    assert c.published() == {"customers_cdc", "customers_cdc_clean", "customers", "SCD2_customers"}
    assert c.rows("customers", "id") == [1, 2, 4, 5], "a row for each id, not the deleted one, none without a known operation"
    assert dict(c.rows("customers", "id", "firstname"))[2] == "B2"
    assert _history(c) == {
        1: [(1, None, "first of 1")],
        2: [(1, 2, "first of 2"), (2, None, "B2")],
        3: [(1, 4, "first of 3")],
        4: [(1, None, "first of 4")],
        5: [(1, None, "first of 5")],
    }

    late = [
        _customer(3, "UPDATE", 2, firstname="late"),
        _customer(1, "UPDATE", 0, firstname="late"),
        _customer(4, "UPDATE", 5, firstname="D5"),
        _customer("abc", "APPEND", 1),
    ]
    c.arrive_json("customers/2.json", late)
    c.update()
    assert c.count("customers_cdc") == len(first) + len(late), "the row with the wrong type is kept in bronze"
    assert dict(c.rows("customers", "id", "firstname")) == {1: "first of 1", 2: "B2", 4: "D5", 5: "first of 5"}
    assert _history(c) == {
        1: [(0, 1, "late"), (1, None, "first of 1")],
        2: [(1, 2, "first of 2"), (2, None, "B2")],
        3: [(1, 2, "first of 3"), (2, 4, "late")],
        4: [(1, 5, "first of 4"), (5, None, "D5")],
        5: [(1, None, "first of 5")],
    }, "late events split intervals; a version ends where the next begins; no open row of a deleted id; rescued rows reach nothing"
    c.nothing_new()


def _history(c: Any) -> dict[int, list[tuple[int, int | None, str]]]:
    """Per id: (start hour, end hour, name) of every version, in order."""
    found: dict[int, list[tuple[int, int | None, str]]] = {}
    for key, start, end, name in sorted(c.rows("SCD2_customers", "id", "__START_AT", "__END_AT", "firstname"), key=lambda r: r[:2]):
        found.setdefault(key, []).append((_hour(start), _hour(end) if end else None, name))
    return found


def _hour(moment: str) -> int:
    return int(moment.split()[1][:2])


def test_V06_loans_good_and_quarantined_transactions(case):
    c = case("V06")
    c.maps["/Volumes/main__build/dbdemos_dlt_loan/raw_data"] = str(c.inputs)
    c.arrive_csv("historical_loans/1.csv", "accounting_treatment_id,revol_bal,addr_state", ["1,100,CA", "2,50,NY"])
    c.arrive_delta(
        "ref_accounting_treatment", pa.table({"id": pa.array([1, 2], pa.int32()), "accounting_treatment": ["amortised", "fair"]})
    )
    good = [_transaction(1, balance=100.0), _transaction(2, balance=20.5, treatment=2), _transaction(3, balance=7.25, country="FR")]
    bad = [_transaction(4, balance=0.0), _transaction(5, balance=-3.0), _transaction(6, arrears=-1.0)]
    old = _transaction(7, balance=1.0, date="2019-05-01", cost_center="CC2")
    c.arrive_json("raw_transactions/1.json", [*good, *bad, old, _transaction(8, treatment=99)])
    c.update()
    assert c.rows("cleaned_new_txs", "id") == [1, 2, 3, 7], "the good ones, and the one of 2019: its rule only warns"
    assert c.rows("quarantine_bad_txs", "id") == [4, 5, 6], "the others, but not the one with an unknown treatment"
    assert "new_txs" not in c.published(), "a streaming live view is not published"
    assert dict(c.rows("new_loan_balances_by_cost_center", "cost_center_code", "sum_balance")) == {"CC1": 127.75, "CC2": 1.0}
    assert sum(c.rows("new_loan_balances_by_cost_center", "sum_balance")) == sum(c.rows("cleaned_new_txs", "balance"))
    assert c.rows("historical_txs", "addr_state", "accounting_treatment") == [("CA", "amortised"), ("NY", "fair")]

    c.arrive_json("raw_transactions/2.json", [_transaction(9, balance=4.0)])
    c.update()
    assert c.rows("cleaned_new_txs", "id") == [1, 2, 3, 7, 9]
    assert sum(c.rows("new_loan_balances_by_cost_center", "sum_balance")) == 132.75
    c.nothing_new()

    c.arrive_json("raw_transactions/3.json", [_transaction(10, cost_center=None)])
    c.update(expect="FAILED")
    assert c.count("cleaned_new_txs") == 5, "a transaction without cost center fails the update and is not written"


def _transaction(
    number: int,
    *,
    treatment: int = 1,
    date: str = "2024-06-01",
    balance: float = 10.0,
    arrears: float = 1.5,
    cost_center: str | None = "CC1",
    country: str = "US",
) -> dict[str, Any]:
    return {
        "id": number,
        "accounting_treatment_id": treatment,
        "next_payment_date": date,
        "balance": balance,
        "arrears_balance": arrears,
        "cost_center_code": cost_center,
        "country_code": country,
        "count": 1,
    }


@pytest.mark.slow
def test_V07_bookstore_with_json_in_strings(case):
    c = case("V07")
    c.maps["dbfs:/mnt/demo-datasets/bookstore"] = str(c.inputs)
    c.arrive_json("customers-json/1.json", [_reader("c1", "Li", "China"), _reader("c2", "Ana", "France"), _reader("c3", "Wu", "China")])
    orders = [_order("o1", "c1", 3), _order("o2", "c1", 4), _order("o3", "c2", 5), _order("o4", "c9", 6), _order(None, "c1", 100)]
    c.arrive_json("orders-json-raw/1.json", orders)
    c.arrive_json("books-cdc/1.json", [_book("b1", "A"), _book("b2", "B"), _book("b3", "A"), _book("b2", "B", "DELETE", 5)])
    c.update()
    countries = dict(c.rows("orders_cleaned", "order_id", "country"))
    assert countries == {"o1": "China", "o2": "China", "o3": "France", "o4": None}, (
        "no order without number; an unknown customer has no country"
    )
    assert c.count("orders_cleaned") == 4, "a row for each raw order"
    assert set(c.rows("cn_daily_customer_books", "customer_id")) == {"c1"}, "only Chinese customers"
    assert sum(c.rows("cn_daily_customer_books", "books_counts")) == 7, "books of Chinese orders"
    assert sum(c.rows("fr_daily_customer_books", "books_counts")) == 5
    assert c.rows("books_silver", "book_id") == ["b1", "b3"], "the deleted book is absent"
    assert sorted(c.columns("books_silver")) == ["_rescued_data", "author", "book_id", "category", "price", "title"]
    assert c.rows("author_counts_state", "author", "books_count") == [("A", 2)]
    assert "books_sales" not in c.published(), "a live view across the two files is not published"

    c.arrive_json("orders-json-raw/2.json", [_order("o5", "c3", 8)])
    c.arrive_json("books-cdc/2.json", [_book("b4", "C", "INSERT", 6), _book("b1", "Z", "UPDATE", 7), _book("b2", "late", "UPDATE", 2)])
    c.update()
    assert sum(c.rows("cn_daily_customer_books", "books_counts")) == 15
    assert c.rows("books_silver", "book_id", "author") == [("b1", "Z"), ("b3", "A"), ("b4", "C")], (
        "a late update does not bring the book back"
    )
    assert sum(c.rows("author_counts_state", "books_count")) == c.count("books_silver") == 3
    c.nothing_new()


def _reader(key: str, name: str, country: str) -> dict[str, Any]:
    profile = {"first_name": name, "last_name": "X", "address": {"street": "s", "country": country}}
    return {"customer_id": key, "email": f"{key}@example.com", "profile": json.dumps(profile), "updated": "2024-01-01T00:00:00"}


def _order(number: str | None, customer: str, quantity: int) -> dict[str, Any]:
    books = [{"book_id": "b1", "quantity": quantity, "subtotal": 10}]
    return {
        "order_id": number,
        "order_timestamp": 1_700_000_000,
        "customer_id": customer,
        "quantity": quantity,
        "total": 10,
        "books": books,
    }


def _book(key: str, author: str, status: str = "INSERT", hour: int = 1) -> dict[str, Any]:
    book = {"book_id": key, "title": f"title {key}", "author": author, "category": "c", "price": 9.5}
    return {**book, "row_status": status, "row_time": f"2024-01-01T{hour:02}:00:00.000Z"}


def test_V08_quarantine_of_taxi_trips(case):
    c = case("V08")
    c.maps["/tmp/chp_03"] = str(c.inputs)
    good = [_trip(number) for number in (1, 2, 3, 4)]
    c.arrive_json("taxi_data/1.json", [*good, _trip(5, amount=-2.5), _trip(6, passengers=0), _trip(7, amount=None)])
    c.update()
    assert c.rows("yellow_taxi_quarantine", "trip_id") == [5, 6, 7], "a negative amount, no passengers, no amount: NULL is not valid"
    assert c.rows("yellow_taxi_passing", "trip_id") == [1, 2, 3, 4]
    _trips_are_divided(c, 7)

    c.arrive_json("taxi_data/2.json", [_trip(8), _trip(9, amount=0.0)])
    c.update()
    assert c.rows("yellow_taxi_quarantine", "trip_id") == [5, 6, 7, 9]
    _trips_are_divided(c, 9)
    c.nothing_new()


def _trips_are_divided(c: Any, raw: int) -> None:
    assert c.count("yellow_taxi_raw") == c.count("yellow_taxi_validated") == raw, "every trip is validated once"
    assert c.count("yellow_taxi_passing") + c.count("yellow_taxi_quarantine") == raw, "every trip is in one of the two tables"
    assert set(c.rows("yellow_taxi_passing", "is_valid")) == {True}
    assert set(c.rows("yellow_taxi_quarantine", "is_valid")) == {False}


def _trip(number: int, *, amount: float | None = 12.5, passengers: int = 2) -> dict[str, Any]:
    trip = {"trip_id": number, "taxi_number": 70 + number, "passenger_count": passengers, "trip_amount": amount}
    return {**trip, "trip_distance": 3.5, "trip_date": "2024-02-29"}
