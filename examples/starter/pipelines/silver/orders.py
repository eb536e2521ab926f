"""Silver: the orders, without those that nobody could ship or bill."""

import dlt

from expectations import rules


@dlt.table(comment="One row per order.", table_properties={"quality": "silver"})
@dlt.expect_all(rules("orders", "warn"))
@dlt.expect_all_or_drop(rules("orders", "drop"))
@dlt.expect_all_or_fail(rules("orders", "fail"))
def orders():
    return (
        spark.readStream.table("events")
        .where("type = 'order'")
        .selectExpr("event_id AS order_id", "customer_id", "happened_at AS ordered_at", "to_date(happened_at) AS day", "amount", "currency")
    )
