"""Bronze: what happened in the shop, as it arrived: one JSON object per line."""

import dlt


@dlt.table(comment="Every event as it arrived.", table_properties={"quality": "bronze"})
def events():
    return (
        spark.readStream.format("cloudFiles")
        .option("cloudFiles.format", "json")
        .option("cloudFiles.inferColumnTypes", "true")
        .option("cloudFiles.schemaHints", "happened_at TIMESTAMP, amount DECIMAL(10, 2)")
        .load(f"{spark.conf.get('landing')}/events")
    )
