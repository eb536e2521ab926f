"""Bronze: the change records of the agents' master data, as they landed."""

import dlt

COLUMNS = "agent_id STRING, name STRING, team STRING, site STRING, level BIGINT, op STRING, changed_at TIMESTAMP"


@dlt.table(comment="Every change record of an agent, repeated ones too.", table_properties={"quality": "bronze"})
def agent_changes():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.schema(COLUMNS).load(f"{spark.conf.get('landing')}/agent_changes")
