"""The alerts that users copy (examples/alerts): what each of them sends, and that one that cannot send stops nothing."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.spark

PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect("positive", "id > 4")
    @dlt.expect("known", "id IS NOT NULL")
    def numbers():
        return spark.range(10)

    @dlt.table
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
        p.write((ROOT / "examples" / "alerts" / name).read_text(), name)
    lines = tmp_path / "alerts.jsonl"
    p.parameters |= {"alerts.file": str(lines), "alerts.webhook_url": url, "alerts.slack_url": url, "alerts.min_pass_rate": "0.9"}
    p.run(expect="FAILED")

    errors, messages = [m for m in posted if "text" not in m], [m["text"] for m in posted if "text" in m]
    assert [(e["dataset"], e["error"]) for e in errors] == [("main.default.broken", "EXPECTATION_VIOLATION"), (None, None)]
    assert messages == [
        f"*test*: pass rate below 90% in update {p.result.update_id[:6]}\n• `main.default.numbers` positive: 50.0% of 10 rows"
    ]
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(one["level"], one["dataset"]) for one in written] == [("ERROR", "main.default.broken"), ("ERROR", None)]

    p.write(PIPELINE.split("    @dlt.table\n    @dlt.expect_or_fail")[0])
    p.parameters |= {"alerts.slack_url": "http://127.0.0.1:9/closed"}
    p.run(full_refresh_all=True)
    failed = [e for e in p.events if e.event_type == "hook_progress"]
    assert [(e.level, e.body["name"], e.body["status"]) for e in failed] == [("WARN", "post_low_pass_rates", "FAILED")]
    assert len(p.rows("numbers")) == 10
