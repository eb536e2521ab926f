"""The page, the console and the events give the same numbers, whatever rules and rows an update had."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.cli.summary import summary
from lakelet.storage.eventlog.fold import LiveUpdate
from lakelet.storage.eventlog.states import UpdateState
from lakelet.storage.eventlog.summaries import UpdateSummary
from tests.event_logs import Log, site

COUNTS = st.integers(0, 500)
BATCH = st.fixed_dictionaries(
    {"rows": COUNTS, "dropped": COUNTS, "rules": st.dictionaries(st.sampled_from(["a", "b", "c"]), st.tuples(COUNTS, COUNTS), min_size=1)}
)
UPDATE = st.dictionaries(st.sampled_from(["main.s.one", "main.s.two", "main.s.three"]), st.lists(BATCH, max_size=3), min_size=1)


def newest_of(log: Log) -> UpdateSummary:
    """What the console shows of the newest update."""
    update = LiveUpdate()
    for row in log.rows:
        update.feed(row)
    return update.value()


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
    shown, newest = site(log), newest_of(log)
    number = len(updates) - 1
    page = shown.update(number)
    assert (page["state"], page["rows"], page["dropped"]) == (newest.state, newest.total("rows"), newest.total("dropped"))
    assert page["violations"] == sum(dataset.total("violations") for dataset in newest.all_datasets.values())
    rules = {(shown.views[d].name if isinstance(d, int) else d, rule): [passed, failed] for d, rule, passed, failed in page["rules"]}
    assert rules == {rule: [count.passed, count.failed] for rule, count in newest.written_counts_by_rule.items()}
    items = {item["name"]: item for item in shown.overview()["datasets"]}
    for name, dataset in newest.all_datasets.items():
        item = items[name]
        counts = (dataset.total("rows"), dataset.total("dropped"))
        assert (item["update"], item["state"], item["wrote"], item["dropped"]) == (number, dataset.state, *counts)
        measured = {r["rule"]: r["points"][-1] for r in shown.quality()["rows"] if shown.views[r["d"]].name == name and r["points"]}
        assert {rule: point[1:] for rule, point in measured.items() if point[0] == number} == {
            rule: [count.passed, count.failed] for (about, rule), count in newest.written_counts_by_rule.items() if about == name
        }


def test_what_rules_counted_in_a_batch_that_was_not_written_is_in_the_sums_of_the_page_and_told_apart_everywhere() -> None:
    log = Log()
    update = log.update()
    update.define("main.s.orders", rules={"low": ("n < 9", "fail"), "known": ("id > 0", "drop")})
    update.flow("main.s.orders", 1, 2, status="RUNNING", rows=7, dropped=1, rules={"low": (8, 0), "known": (7, 1)})
    counts = [{"name": "low", "passed_records": 3, "failed_records": 1}, {"name": "known", "passed_records": 2, "failed_records": 2}]
    stopped = {"scope": "FAILED_BATCH", "dropped_records": 0, "expectations": counts}
    error = ("EXPECTATION_VIOLATION", "[EXPECTATION_VIOLATION] 1 of 4 rows")
    about = {"dataset": "main.s.orders", "flow": "main.s.orders", "level": "ERROR", "error": error}
    update.emit("flow_progress", {"status": "FAILED", "data_quality": stopped}, at=3, **about)
    update.state("FAILED", 4)

    def failed(counts) -> dict[str, tuple[int, int]]:
        return {rule: (count.passed, count.failed) for (_, rule), count in counts.items()}

    newest = newest_of(log)
    assert failed(newest.counts_by_rule) == {"low": (11, 1), "known": (9, 3)}
    assert failed(newest.unwritten_counts_by_rule) == {"low": (3, 1), "known": (2, 2)}
    assert failed(newest.written_counts_by_rule) == {"low": (8, 0), "known": (7, 1)}
    page = site(log).update(0)
    assert [rule[1:] for rule in page["rules"]] == [["known", 9, 3], ["low", 11, 1]]
    assert [rule[1:] for rule in page["unwritten"]] == [["known", 2, False], ["low", 1, False]]
    assert (page["rows"], page["dropped"], page["violations"]) == (7, 1, 4)
    text = [" ".join(line.text.split()) for line in summary(newest, UpdateState.FAILED)]
    at = text.index("Dropped rows")
    assert text[at : at + 6] == [
        *("Dropped rows", "orders known 1 of 8 rows", ""),
        *("Violations in failed batches", "orders known 2 of 4 rows", "orders low 1 of 4 rows"),
    ]
