"""web_events on two rows of a CSV file: the types, the masks, and every event once."""

from datetime import date
from decimal import Decimal

import pytest

NAMES = ["event_id", "Event Time", "type", "user", "email", "phone", "ip", "Page URL", "duration_ms", "amount", "card", "properties"]
EVENT = [
    "e1",
    "2026-03-01T08:00:00Z",
    "purchase",
    "u1",
    "ann@example.com",
    "+1 202 555 0101",
    "10.0.0.1",
    "/cart",
    "12",
    "9.50",
    "4111 1111 1111 1234",
]
ITEMS = '{"items": [{"sku": "A-1", "count": 2, "tags": ["new"]}]}'


@pytest.fixture
def tables(spark, load_pipeline, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_WEB_PII_KEY", "only for the tests: 32 bytes at least")
    rows = spark.createDataFrame([[*EVENT, ITEMS], [*EVENT, ITEMS]], ", ".join(f"`{name}` STRING" for name in NAMES))
    return load_pipeline("pipelines/web_events.py", inputs={"web_event_files": rows})


def test_an_event_that_came_twice_is_there_once_typed_and_masked(tables):
    (row,) = tables["web_events"]().collect()
    assert (row.event_date, row.duration_ms, row.amount) == (date(2026, 3, 1), 12, Decimal("9.50"))
    assert (row.page, row.email, row.card) == ("/cart", "a***@example.com", "**** **** **** 1234")
    assert row.details["items"][0].sku == "A-1"
    assert row.user.startswith("tok_")
