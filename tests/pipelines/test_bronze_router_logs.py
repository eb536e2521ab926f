"""Bronze on a handful of log entries. Each test: small frames in, one function of the pipeline file, the expected frame."""

from datetime import date, datetime, timezone

from chispa import assert_df_equality

FILE = "pipelines/bronze/router_logs.py"
ENTRY = (
    "insertId STRING, timestamp TIMESTAMP, receiveTimestamp TIMESTAMP, severity STRING, "
    "jsonPayload STRUCT<event_type: STRING, event_id: STRING>, _rescued_data STRING, source_file STRING"
)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def entry(insert_id, event_type, *, timestamp="2026-03-01T08:00", received="2026-03-01T08:01", file="a.json"):
    return (insert_id, at(timestamp), at(received), "INFO", (event_type, f"event of {insert_id}"), None, file)


BROKEN = (None, None, None, None, None, r'{"_corrupt_record":"{\"insertId\":\"i9\",\"times","_file_path":"file:/a.json"}', "a.json")
NO_TIME = ("i8", None, None, "INFO", ("message_sent", "e8"), '{"timestamp":"noon","_file_path":"file:/a.json"}', "a.json")


def test_raw_reads_the_landing_folder_and_names_the_source_file(spark, load_pipeline):
    files = spark.createDataFrame([("i1", ("drop-1.json",))], "insertId STRING, _metadata STRUCT<file_name: STRING>")
    p = load_pipeline(FILE, conf={"landing": "/data/landing"}, inputs={"/data/landing/router_logs": files})

    expected = spark.createDataFrame([("i1", "drop-1.json")], "insertId STRING, source_file STRING")
    assert_df_equality(p["router_logs_raw"]().drop("_metadata"), expected)


def test_quarantine_holds_what_is_no_entry_with_the_broken_text(spark, load_pipeline):
    raw = spark.createDataFrame([entry("i1", "message_sent"), BROKEN, NO_TIME], ENTRY)
    p = load_pipeline(FILE, inputs={"router_logs_raw": raw})

    expected = spark.createDataFrame([("a.json", '{"insertId":"i9","times'), ("a.json", None)], "source_file STRING, raw_line STRING")
    assert_df_equality(p["unparsed_lines"](), expected, ignore_row_order=True)


def test_a_redelivered_entry_is_there_once_and_broken_lines_are_not(spark, load_pipeline):
    again = entry("i1", "message_sent", received="2026-03-01T08:05", file="b.json")
    raw = spark.createDataFrame([entry("i1", "message_sent"), again, entry("i2", "cache_miss"), BROKEN, NO_TIME], ENTRY)
    p = load_pipeline(FILE, inputs={"router_logs_raw": raw})

    expected = spark.createDataFrame([("i1", "message_sent"), ("i2", "cache_miss")], "insertId STRING, event_type STRING")
    assert_df_equality(p["router_logs"]().select("insertId", "event_type"), expected, ignore_row_order=True)


def test_event_date_is_the_utc_day_of_the_timestamp(spark, load_pipeline):
    raw = spark.createDataFrame(
        [entry("i1", "x", timestamp="2026-03-01T23:59:59.999"), entry("i2", "x", timestamp="2026-03-02T00:00")], ENTRY
    )
    p = load_pipeline(FILE, inputs={"router_logs_raw": raw})

    expected = spark.createDataFrame([("i1", date(2026, 3, 1)), ("i2", date(2026, 3, 2))], "insertId STRING, event_date DATE")
    assert_df_equality(p["router_logs"]().select("insertId", "event_date"), expected, ignore_row_order=True)


def test_before_any_payload_has_arrived_the_event_type_is_null(spark, load_pipeline):
    raw = spark.createDataFrame([("i1", at("2026-03-01T08:00"))], "insertId STRING, timestamp TIMESTAMP")
    p = load_pipeline(FILE, inputs={"router_logs_raw": raw})

    expected = spark.createDataFrame([("i1", None)], "insertId STRING, event_type STRING")
    assert_df_equality(p["router_logs"]().select("insertId", "event_type"), expected)


def test_layout_and_rules_of_the_bronze_tables(load_pipeline):
    p = load_pipeline(FILE)

    assert p.datasets["router_logs"].partition_cols == ("event_date", "event_type")
    assert {name: rule.action.value for name, rule in p.expectations["router_logs"].items()} == {
        "known_severity": "warn",
        "has_event_type": "drop",
    }
    assert p.expectations["router_logs_raw"]["parsed"].text == "insertId IS NOT NULL AND timestamp IS NOT NULL"
    assert p.expectations["unparsed_lines"] == {}
