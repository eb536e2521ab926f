"""silver.orders on three rows that can be checked by hand: no files, no update."""

from datetime import date, datetime
from decimal import Decimal

COLUMNS = "event_id STRING, type STRING, happened_at TIMESTAMP, customer_id STRING, amount DECIMAL(10, 2), currency STRING"
NOON = datetime(2026, 3, 1, 12)


def test_orders_are_the_events_of_type_order(spark, load_pipeline):
    events = [
        ("e-1", "order", NOON, "c-01", Decimal("12.50"), "EUR"),
        ("e-2", "refund", NOON, "c-01", Decimal("12.50"), "EUR"),
        ("e-3", "order", NOON, None, Decimal("-1.00"), "XXX"),
    ]
    p = load_pipeline("pipelines/silver/orders.py", inputs={"events": spark.createDataFrame(events, COLUMNS)})
    orders = p["orders"]().orderBy("order_id")
    assert [(row.order_id, row.day) for row in orders.collect()] == [("e-1", date(2026, 3, 1)), ("e-3", date(2026, 3, 1))]

    rules = p.expectations["orders"]
    broken = {name: [row.order_id for row in orders.where(f"NOT coalesce({rule.text}, false)").collect()] for name, rule in rules.items()}
    assert broken == {"known_currency": ["e-3"], "has_customer": ["e-3"], "positive_amount": ["e-3"]}
