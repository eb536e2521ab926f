"""Windows event logs: one stream of many kinds of events, every record once, fanned out into one table per kind.

Two keys of these logs hold spaces; nothing here says so.
"""

import dlt
from pyspark.sql import functions as F

# Channels in lower case: the recordings do not agree on theirs.
EVENT_IDS = {
    "microsoft-windows-sysmon/operational": "1 2 3 5 7 8 9 10 11 12 13 15 17 18 22 23 26",
    "security": (
        "4611 4622 4624 4627 4634 4648 4656 4657 4658 4660 4661 4663 4670 4672 4673 4674 4688 4689 4690 4697 4702 4703 "
        "4769 4798 4799 4945 4946 4957 5031 5140 5145 5154 5156 5158 5379 5441 5446 5447 5450"
    ),
    "windows powershell": "600 800",
    "microsoft-windows-powershell/operational": "4103 4104",
    "microsoft-windows-windows firewall with advanced security/firewall": "2004",
    "microsoft-windows-wmi-activity/operational": "5857",
    "microsoft-windows-taskscheduler/operational": "129",
    "system": "6 7040",
    "microsoft-windows-terminalservices-remoteconnectionmanager/operational": "263",
}


@dlt.table(spark_conf={"spark.databricks.sql.rescuedDataColumn.filePath.enabled": "false"})
def bronze():
    options = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    return spark.readStream.format("cloudFiles").options(**options).load(spark.conf.get("landing"))


@dlt.table(partition_cols=["event_type"])
def events():
    records = dlt.read_stream("bronze")
    # Of the values that are there: columns that come later do not change the hash of a record.
    record_hash = F.sha2(F.to_json(F.struct("*")), 256)
    event_type = F.concat_ws("/", F.lower("Channel"), "EventID")
    return records.select("*", event_type.alias("event_type"), record_hash.alias("record_hash")).dropDuplicates(["record_hash"])


def table_name(channel, event_id):
    return f"{channel.split('/')[0]}_{event_id}".replace(" ", "_").replace("-", "_")


def fan_out(name, event_type):
    @dlt.table(name=name)
    def events_of_type():
        return dlt.read_stream("events").where(F.col("event_type") == event_type)


TABLES = {f"{channel}/{event_id}": table_name(channel, event_id) for channel, ids in EVENT_IDS.items() for event_id in ids.split()}
for event_type, name in TABLES.items():
    fan_out(name, event_type)
