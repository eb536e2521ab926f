"""The alerts that users copy (examples/alerts): what each of them sends, and that one that cannot send stops nothing."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from lakelet.base.names import Namespace
from lakelet.language.api import dlt_modules
from lakelet.language.registry import Registry, recording
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.update.hook_runner import hook_event
from tests.paths import ROOT

EXAMPLES = ROOT / "examples" / "alerts"

PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect("positive", "id > 4")
    @dlt.expect("known", "id IS NOT NULL")
    def numbers():
        return spark.range(10)

    @dlt.table(table_properties={"lakelet.owner": "sales@example.com"})
    @dlt.expect_or_fail("never", "id < 0")
    def broken():
        return spark.range(3)
"""


@pytest.fixture
def received():
    """A server on loopback, and what was posted to it."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook", posted
    server.shutdown()
    server.server_close()


def test_each_example_sends_what_it_says_and_one_that_cannot_stops_nothing(project, received, tmp_path):
    url, posted = received
    p = project(PIPELINE)
    for name in ("json_lines.py", "webhook.py", "slack_pass_rate.py"):
        p.write((EXAMPLES / name).read_text(), name)
    lines = tmp_path / "alerts.jsonl"
    p.parameters |= {"alerts.file": str(lines), "alerts.webhook_url": url, "alerts.slack_url": url, "alerts.min_pass_rate": "0.9"}
    p.run(expect="FAILED")

    errors, messages = [m for m in posted if "text" not in m], [m["text"] for m in posted if "text" in m]
    assert [(e["dataset"], e["owner"], e["error"]) for e in errors] == [
        ("main.default.broken", "sales@example.com", "EXPECTATION_VIOLATION"), (None, None, None)
    ]  # fmt: skip
    assert messages == [
        f"*test*: pass rate below 90% in update {p.result.update_id[:6]}\n"
        "• `main.default.broken` never (sales@example.com): 0.0% of 3 rows\n"
        "• `main.default.numbers` positive: 50.0% of 10 rows"
    ]
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(one["level"], one["dataset"]) for one in written] == [("ERROR", "main.default.broken"), ("ERROR", None)]

    p.write(PIPELINE.split("    @dlt.table(")[0])
    p.parameters |= {"alerts.slack_url": "http://127.0.0.1:9/closed"}
    p.run(full_refresh_all=True)
    failed = [e for e in p.events if e.event_type == "hook_progress"]
    assert [(e.level, e.body["name"], e.body["status"]) for e in failed] == [("WARN", "post_low_pass_rates", "FAILED")]
    assert len(p.rows("numbers")) == 10


def hook(name, **parameters):
    """The hook of an example, which reads the pipeline's parameters; it is fed events by hand."""
    settings = {f"alerts.{key}": value for key, value in parameters.items()}
    names, registry = {"spark": SimpleNamespace(conf=settings)}, Registry(Namespace())
    with dlt_modules(), recording(registry):
        exec(compile((EXAMPLES / name).read_text(), str(EXAMPLES / name), "exec"), names)
    (found,) = registry.definitions(complete=False).hooks
    return lambda event: found.function(hook_event(event))


def event(kind, body, *, level="INFO", pipeline="shop", update="0123456789"):
    return Event(kind, f"{kind} of {level}", Origin("p", pipeline, update, "main.shop.orders"), {kind: body}, level=level)


def batch(**rules):
    """The event of one micro-batch: passed and failed rows by rule."""
    counted = [{"name": n, "dataset": "main.shop.orders", "passed_records": p, "failed_records": f} for n, (p, f) in rules.items()]
    return event("flow_progress", {"status": "RUNNING", "data_quality": {"dropped_records": 0, "expectations": counted}})


def test_the_pass_rate_is_that_of_all_batches_of_an_update_and_one_that_is_the_limit_is_no_alert(received):
    url, posted = received
    feed = hook("slack_pass_rate.py", slack_url=url, min_pass_rate="0.9")
    ended = event("update_progress", {"state": "COMPLETED"})
    feed(event("update_progress", {"state": "RUNNING"}))
    feed(batch(falls=(10, 0), exact=(8, 2), below=(500, 100), recovers=(0, 1)))
    feed(batch(falls=(0, 10), exact=(10, 0), below=(399, 1), recovers=(99, 0)))
    feed(ended)
    head = "*shop*: pass rate below 90% in update 012345"
    assert [m["text"] for m in posted] == [
        f"{head}\n• `main.shop.orders` below: 89.9% of 1,000 rows\n• `main.shop.orders` falls: 50.0% of 20 rows"
    ]
    feed(batch(falls=(9, 1)))  # of the next update: what was counted before is forgotten
    feed(ended)
    assert len(posted) == 1


def test_names_in_a_slack_message_stay_names(received):
    url, posted = received
    feed = hook("slack_pass_rate.py", slack_url=url)
    rule = {"name": "<!channel> & <b>", "dataset": "main.shop.<!here>", "passed_records": 0, "failed_records": 1}
    feed(event("flow_progress", {"status": "RUNNING", "data_quality": {"expectations": [rule]}}))
    feed(event("update_progress", {"state": "FAILED"}, pipeline="<@U024BE7LH> & sons"))
    assert [m["text"] for m in posted] == [
        "*&lt;@U024BE7LH&gt; &amp; sons*: pass rate below 95% in update 012345\n"
        "• `main.shop.&lt;!here&gt;` &lt;!channel&gt; &amp; &lt;b&gt;: 0.0% of 1 rows"
    ]


def test_warnings_and_errors_become_lines_and_nothing_else_does(tmp_path):
    file = tmp_path / "alerts.jsonl"
    feed = hook("json_lines.py", file=str(file))
    for level in ("INFO", "WARN", "METRICS", "ERROR"):
        feed(event("source_records", {}, level=level))
    written = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one["level"], one["message"]) for one in written] == [
        ("WARN", "source_records of WARN"),
        ("ERROR", "source_records of ERROR"),
    ]
    assert {(one["pipeline"], one["update"], one["dataset"]) for one in written} == {("shop", "0123456789", "main.shop.orders")}
