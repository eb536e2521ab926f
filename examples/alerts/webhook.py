"""Posts each error of an update to a URL, as JSON."""

import json
from urllib.request import Request, urlopen

from pyspark import pipelines as dp

URL = spark.conf.get("alerts.webhook_url")
owners = {}  # by dataset, as its definition says


@dp.on_event_hook(max_allowable_consecutive_failures=3)
def post_error(event):
    definition = event["details"].get("dataset_definition")
    if definition:
        owners[event["origin"]["dataset_name"]] = definition.get("owner")
    if event["level"] != "ERROR":
        return
    exceptions = (event["error"] or {}).get("exceptions") or []
    alert = {
        "pipeline": event["origin"]["pipeline_name"],
        "update": event["origin"]["update_id"],
        "dataset": event["origin"].get("dataset_name"),
        "owner": owners.get(event["origin"].get("dataset_name")),
        "message": event["message"],
        "error": exceptions[0]["class_name"] if exceptions else None,
    }
    request = Request(URL, json.dumps(alert).encode(), {"Content-Type": "application/json"})
    urlopen(request, timeout=10).close()
