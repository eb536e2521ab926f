"""Web events from CSV files to typed, partitioned tables. What is personal is masked before anything is stored."""

import dlt
from pyspark.sql import functions as F

from lakelet.transforms import (
    add_partition_columns,
    add_source_file,
    alter_types,
    drop,
    drop_duplicates,
    keyed_hash,
    mask_card,
    mask_email,
    mask_phone,
    parse_json,
    relationalize,
    rename,
    replace_in_names,
    tokenize,
    with_columns,
)

KEY = dbutils.secrets.get("web", "pii_key")

PROPERTIES = "query STRING, items ARRAY<STRUCT<sku: STRING, count: INT, tags: ARRAY<STRING>>>"


@dlt.view(comment="The files as they are, never stored: they name people.")
def web_event_files():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv")
    return reader.option("header", "true").option("escape", '"').load(spark.conf.get("landing")).transform(add_source_file(path=None))


@dlt.table(comment="Every web event once, typed and masked.", partition_cols=["event_date"])
@dlt.expect("time_known", "event_time IS NOT NULL")
def web_events():
    return (
        dlt.read_stream("web_event_files")
        .transform(replace_in_names())
        .transform(rename({"Event_Time": "event_time", "Page_URL": "page"}))
        .transform(tokenize("user", key=KEY, domain="user"))  # first: what tells duplicates is kept as the state of the stream
        .transform(drop_duplicates("event_id", "event_time", "user"))
        .transform(with_columns({"person": "email"}))
        .transform(keyed_hash("person", key=KEY))
        .transform(tokenize("ip", key=KEY, domain="ip", prefix="ip_", length=12))
        .transform(mask_email("email"))
        .transform(mask_phone("phone"))
        .transform(mask_card("card"))
        .transform(alter_types({"event_time": "TIMESTAMP", "duration_ms": "INT", "amount": "DECIMAL(10, 2)"}))
        .transform(parse_json("properties", PROPERTIES, into="details"))
        .transform(add_partition_columns("event_time", ["date"], prefix="event_"))
    )


@dlt.table(comment="Views, people and seconds per page and day.")
def pages_daily():
    views = dlt.read("web_events").where("type = 'page_view'")
    return views.groupBy("event_date", "page").agg(
        F.count("*").alias("views"),
        F.count_distinct("person").alias("people"),
        F.sum("duration_ms").alias("duration_ms"),
    )


def purchases():
    """The tables of purchases by name: one row each, one per item, one per tag of an item."""
    bought = dlt.read("web_events").where("type = 'purchase'").select("event_id", "event_time", "user", "amount", "details")
    return relationalize("purchases", keys=["event_id", "event_time", "user"])(
        bought.transform(with_columns({"items": "details.items"})).transform(drop("details"))
    )


for table in ("purchases", "purchases_items", "purchases_items_tags"):

    @dlt.table(name=table)
    def purchases_table(table=table):
        return purchases()[table]
