"""Silver: who the agents are, from the change records of their master data.

Records come late, twice and out of order, and a delete may come before its insert: the change time decides, not the order of arrival.
"""

import dlt
from pyspark.sql import functions as F

dlt.create_streaming_table(
    "agents",
    comment="The agents there are now.",
    table_properties={"quality": "silver", "delta.enableChangeDataFeed": "true"},
)
dlt.apply_changes(
    target="agents",
    source="agent_changes",
    keys=["agent_id"],
    sequence_by=F.col("changed_at"),
    apply_as_deletes=F.expr("op = 'D'"),
    except_column_list=["op", "changed_at"],
)

dlt.create_streaming_table(
    "agents_history",
    comment="Who was in which team at which site, and when.",
    table_properties={"quality": "silver"},
)
dlt.create_auto_cdc_flow(
    target="agents_history",
    source="agent_changes",
    keys=["agent_id"],
    sequence_by="changed_at",
    apply_as_deletes="op = 'D'",
    except_column_list=["op", "changed_at"],
    stored_as_scd_type=2,
    track_history_column_list=["team", "site"],
)
