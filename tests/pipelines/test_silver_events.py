"""Silver: one table per event type, made by a factory. One drop of log entries in, the rows of one type out."""

import re
from datetime import date, datetime, timezone
from pathlib import Path

import pytest
from chispa import assert_df_equality

FILE = "pipelines/silver/event_types.py"
DAY = date(2026, 3, 1)
EIGHT = datetime(2026, 3, 1, 8, tzinfo=timezone.utc)
COMMON = "event_id STRING, event_at TIMESTAMP, event_date DATE, insert_id STRING"


@pytest.fixture
def logs(spark):
    """Rows of router_logs whose payload has the given fields; each row gives the payload's values after its event type."""

    def make(fields, *rows):
        payload = f"STRUCT<event_id: STRING, event_datetime: STRING{fields and ', ' + fields}>"
        schema = f"insertId STRING, event_date DATE, event_type STRING, jsonPayload {payload}"
        entries = [(f"i{n}", DAY, kind, (f"e{n}", "2026-03-01T08:00:00.000Z", *values)) for n, (kind, *values) in enumerate(rows, 1)]
        return spark.createDataFrame(entries, schema)

    return make


def test_a_table_holds_its_own_type_and_its_own_columns(spark, load_pipeline, logs):
    rows = logs(
        "conversation_id: STRING, agent_id: STRING, queue: STRING, wait_seconds: BIGINT, shard: BIGINT",
        ("conversation_assigned", "c1", "a1", "sales", 12, 7),
        ("service_heartbeat", None, None, None, None, 7),
    )
    p = load_pipeline(FILE, inputs={"router_logs": rows})

    expected = spark.createDataFrame(
        [("e1", EIGHT, DAY, "i1", "c1", "a1", "sales", 12)],
        f"{COMMON}, conversation_id STRING, agent_id STRING, queue STRING, wait_seconds BIGINT",
    )
    assert_df_equality(p["conversation_assigned"](), expected)


def test_a_value_that_does_not_cast_is_null(spark, load_pipeline, logs):
    rows = logs("turns: STRING", ("assistant_resolved", "4"), ("assistant_resolved", "n/a"))  # inferred from a file with both
    p = load_pipeline(FILE, inputs={"router_logs": rows})

    expected = spark.createDataFrame([("e1", 4), ("e2", None)], "event_id STRING, turns BIGINT")
    assert_df_equality(p["assistant_resolved"]().select("event_id", "turns"), expected, ignore_row_order=True)


def test_a_whole_number_field_takes_no_fraction_whatever_was_inferred(spark, load_pipeline, logs):
    rows = logs("turns: DOUBLE", ("assistant_resolved", 4.0), ("assistant_resolved", 4.5))
    p = load_pipeline(FILE, inputs={"router_logs": rows})

    expected = spark.createDataFrame([("e1", 4), ("e2", None)], "event_id STRING, turns BIGINT")
    assert_df_equality(p["assistant_resolved"]().select("event_id", "turns"), expected, ignore_row_order=True)


@pytest.mark.parametrize("inferred", ["BOOLEAN", "STRUCT<low: INT>", "ARRAY<INT>", "MAP<STRING, INT>"])
def test_a_field_inferred_as_something_else_is_null_and_the_query_still_analyses(spark, load_pipeline, logs, inferred):
    value = {"B": True, "S": (1,), "A": [1], "M": {"low": 1}}[inferred[0]]
    p = load_pipeline(
        "pipelines/silver/appointment_booked.py", inputs={"router_logs": logs(f"price: {inferred}", ("appointment_booked", value))}
    )

    expected = spark.createDataFrame([("e1", None)], "event_id STRING, price DOUBLE")
    assert_df_equality(p["appointment_booked"]().select("event_id", "price"), expected)


def test_a_field_that_no_entry_has_brought_yet_is_null_of_its_type(spark, load_pipeline, logs):
    p = load_pipeline(FILE, inputs={"router_logs": logs("conversation_id: STRING", ("message_received", "c1"))})

    expected = spark.createDataFrame([("c1", None)], "conversation_id STRING, sentiment_score DOUBLE")
    assert_df_equality(p["message_received"]().select("conversation_id", "sentiment_score"), expected)


def test_nested_fields_become_columns(spark, load_pipeline, logs):
    rows = logs("exception: STRUCT<class: STRING, message: STRING>", ("message_failed", ("TimeoutError", "no answer")))
    p = load_pipeline(FILE, inputs={"router_logs": rows})

    expected = spark.createDataFrame([("TimeoutError", "no answer")], "exception_class STRING, exception_message STRING")
    assert_df_equality(p["message_failed"]().select("exception_class", "exception_message"), expected)


def test_an_event_type_in_a_file_of_its_own(spark, load_pipeline, logs):
    rows = logs(
        "conversation_id: STRING, appointment_id: STRING, scheduled_for: STRING, price: BIGINT",  # so far only whole prices came
        ("appointment_booked", "c1", "p1", "2026-03-01T08:00:00Z", 40),
        ("appointment_booked", "c2", "p2", "next week", 55),
    )
    p = load_pipeline("pipelines/silver/appointment_booked.py", inputs={"router_logs": rows})

    expected = spark.createDataFrame(
        [("e1", EIGHT, DAY, "i1", "c1", "p1", EIGHT, 40.0), ("e2", EIGHT, DAY, "i2", "c2", "p2", None, 55.0)],
        f"{COMMON}, conversation_id STRING, appointment_id STRING, scheduled_for TIMESTAMP, price DOUBLE",
    )
    assert_df_equality(p["appointment_booked"](), expected, ignore_row_order=True)


def test_rules_come_from_the_table_its_layer_and_its_columns(load_pipeline):
    p = load_pipeline(FILE)

    assert {name: (rule.action.value, rule.text) for name, rule in p.expectations["survey_answered"].items()} == {
        "event_at_known": ("warn", "event_at IS NOT NULL"),
        "has_event_id": ("drop", "event_id IS NOT NULL"),
        "has_conversation": ("drop", "conversation_id IS NOT NULL"),
        "rating_in_range": ("drop", "rating BETWEEN 1 AND 5"),
    }
    assert set(p.expectations["agent_status_changed"]) == {"event_at_known", "has_event_id"}


def test_every_table_has_the_columns_of_the_contract(load_pipeline, logs, pytestconfig):
    contract = dict(
        re.findall(r"^\| ([a-z_]+) \| (.* STRING.*) \|$", Path(pytestconfig.rootpath, "docs/system-a.md").read_text(), re.MULTILINE)
    )
    assert len(contract) == 14
    nothing = {"router_logs": logs("")}
    tables = {
        **load_pipeline(FILE, inputs=nothing).functions,
        **load_pipeline("pipelines/silver/appointment_booked.py", inputs=nothing).functions,
    }

    found = {name: ", ".join(f"{c} {t.upper()}" for c, t in function().dtypes) for name, function in tables.items()}
    assert found == {name: f"{COMMON}, {columns}" for name, columns in contract.items()}
