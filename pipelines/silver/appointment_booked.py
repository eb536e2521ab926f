"""Silver: appointments booked in a conversation. An event type in a file of its own, as a team of its own would add it."""

from pyspark import pipelines as dp

from pipelines.silver.event_table import event_table

event_table(
    dp,
    spark,
    "appointment_booked",
    "conversation_id STRING, appointment_id STRING, scheduled_for TIMESTAMP, price DOUBLE",
    comment="Appointments that a customer booked in a conversation.",
)
