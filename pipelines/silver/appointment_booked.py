"""Silver: appointments booked in a conversation. An event type in a file of its own, as a team of its own would add it."""

from pyspark import pipelines as dp

from expectations import rules
from pipelines.silver.event_rows import PROPERTIES, event_rows

COLUMNS = {"conversation_id": "STRING", "appointment_id": "STRING", "scheduled_for": "TIMESTAMP", "price": "DOUBLE"}


@dp.table(
    comment="Appointments that a customer booked in a conversation.",
    cluster_by=["event_date", "conversation_id"],
    table_properties=PROPERTIES,
)
@dp.expect_all(rules("appointment_booked", "warn", layer="silver", columns=COLUMNS))
@dp.expect_all_or_drop(rules("appointment_booked", "drop", layer="silver", columns=COLUMNS))
@dp.expect_all_or_fail(rules("appointment_booked", "fail", layer="silver", columns=COLUMNS))
def appointment_booked():
    return event_rows(spark.readStream.table("router_logs"), "appointment_booked", COLUMNS)
