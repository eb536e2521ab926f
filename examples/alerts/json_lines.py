"""Appends each warning and error of an update to a file, one JSON object per line."""

import json

from pyspark import pipelines as dp

FILE = spark.conf.get("alerts.file", "alerts.jsonl")


@dp.on_event_hook(max_allowable_consecutive_failures=3)
def write_json_line(event):
    if event["level"] not in ("WARN", "ERROR"):
        return
    origin = event["origin"]
    alert = {
        "timestamp": event["timestamp"],
        "level": event["level"],
        "pipeline": origin["pipeline_name"],
        "update": origin["update_id"],
        "dataset": origin.get("dataset_name"),
        "message": event["message"],
    }
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(alert) + "\n")
