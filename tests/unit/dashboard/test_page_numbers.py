"""The page, the console and the events give the same numbers, whatever rules and rows an update had."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.cli.tally import Tally
from lakelet.storage.eventlog.events import Event, Origin
from tests.event_logs import Log, site

COUNTS = st.integers(0, 500)
BATCH = st.fixed_dictionaries(
    {"rows": COUNTS, "dropped": COUNTS, "rules": st.dictionaries(st.sampled_from(["a", "b", "c"]), st.tuples(COUNTS, COUNTS), min_size=1)}
)
UPDATE = st.dictionaries(st.sampled_from(["main.s.one", "main.s.two", "main.s.three"]), st.lists(BATCH, max_size=3), min_size=1)


def tally_of(log: Log) -> Tally:
    """What the console shows of the newest update."""
    tally = Tally()
    for row in log.rows:
        origin = {k: row["origin"].get(k) for k in ("pipeline_id", "pipeline_name", "update_id", "dataset_name", "flow_name")}
        moment = datetime.fromisoformat(row["timestamp"].replace("Z", "+00:00"))
        tally.feed(Event(row["event_type"], row["message"], Origin(**origin), row["details"], id=row["id"], timestamp=moment))
    return tally


@settings(max_examples=60, deadline=None)
@given(st.lists(UPDATE, min_size=1, max_size=3))
def test_page_console_and_events_agree(updates) -> None:
    log = Log()
    for flows in updates:
        update = log.update()
        for name, batches in flows.items():
            update.define(name, rules={rule: ("true", "warn") for batch in batches for rule in batch["rules"]})
            for second, batch in enumerate(batches):
                update.flow(name, 1, second + 2, status="RUNNING", **batch)
            update.flow(name, 1, 9)
        update.state("COMPLETED", 10)
    shown, tally = site(log), tally_of(log)
    number = len(updates) - 1
    page = shown.update(number)
    assert (page["state"], page["rows"], page["dropped"]) == (tally.state, tally.rows, tally.dropped)
    assert page["broken"] == sum(dataset.failed for dataset in tally.datasets.values())
    rules = {(shown.views[d].name if isinstance(d, int) else d, rule): [passed, failed] for d, rule, passed, failed in page["rules"]}
    assert rules == {rule: [count.passed, count.failed] for rule, count in tally.rules.items()}
    items = {item["name"]: item for item in shown.overview()["datasets"]}
    for name, dataset in tally.datasets.items():
        item = items[name]
        assert (item["update"], item["state"], item["wrote"], item["dropped"]) == (number, dataset.state, dataset.rows, dataset.dropped)
        measured = {r["rule"]: r["points"][-1] for r in shown.quality()["rows"] if shown.views[r["d"]].name == name and r["points"]}
        assert {rule: point[1:] for rule, point in measured.items() if point[0] == number} == {
            rule: [count.passed, count.failed] for (about, rule), count in tally.rules.items() if about == name
        }
