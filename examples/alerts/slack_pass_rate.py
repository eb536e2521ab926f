"""Posts one message to a Slack webhook when an update has ended: the rules whose pass rate was below a limit in it, with their owners."""

import json
from collections import defaultdict
from urllib.request import Request, urlopen

from pyspark import pipelines as dp

URL = spark.conf.get("alerts.slack_url")
LIMIT = float(spark.conf.get("alerts.min_pass_rate", "0.95"))

owners = {}  # (dataset, rule): who answers for it, where the definition says so
counts = defaultdict(lambda: [0, 0])  # (dataset, rule): passed, failed; an update reports them batch by batch


@dp.on_event_hook(max_allowable_consecutive_failures=3)
def post_low_pass_rates(event):
    details = event["details"].get(event["event_type"], {})
    if event["event_type"] == "dataset_definition":
        owners.update({(event["origin"]["dataset_name"], rule["name"]): rule.get("owner") for rule in details.get("expectations") or []})
    for rule in (details.get("data_quality") or {}).get("expectations") or []:
        count = counts[rule["dataset"], rule["name"]]
        count[0] += rule["passed_records"]
        count[1] += rule["failed_records"]
    if event["event_type"] == "update_progress" and details["state"] in ("COMPLETED", "FAILED", "CANCELED"):
        ended, low = dict(counts), []
        counts.clear()
        for (dataset, rule), (passed, failed) in sorted(ended.items()):
            if failed and passed / (passed + failed) < LIMIT:
                owner = f" ({escaped(owners[dataset, rule])})" if owners.get((dataset, rule)) else ""
                low.append(f"• `{escaped(dataset)}` {escaped(rule)}{owner}: {passed / (passed + failed):.1%} of {passed + failed:,} rows")
        if low:
            head = (
                f"*{escaped(event['origin']['pipeline_name'])}*: pass rate below {LIMIT:.0%} in update {event['origin']['update_id'][:6]}"
            )
            post({"text": "\n".join([head, *low])})


def escaped(text):
    """As Slack wants it (https://docs.slack.dev/messaging/formatting-message-text): a rule called <!channel> notifies nobody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def post(message):
    urlopen(Request(URL, json.dumps(message).encode(), {"Content-Type": "application/json"}), timeout=10).close()
