"""What waits, who is affected and which input was bad: as values and in SQL, with equal numbers."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from lakelet.inspection import inspector
from lakelet.storage.eventlog.bad_input import PROBLEMS, bad_input
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.freshness import affected_datasets, dataset_freshness, source_freshness
from lakelet.storage.eventlog.views import event_view
from tests.event_logs import Log, shop, store

RAW, CLEAN, DAILY = "main.s.raw", "main.s.clean", "main.s.daily"


def chain(log: Log):
    """An update of raw → clean → daily."""
    update = log.update()
    for name, reads in ((RAW, []), (CLEAN, [RAW]), (DAILY, [CLEAN])):
        update.define(name, reads=reads, owner=f"{name[7:]}@example.com")
    return update


def complete(update, names=(RAW, CLEAN, DAILY), rows: int = 10) -> None:
    for number, name in enumerate(names):
        update.flow(name, 1 + 10 * number, 5 + 10 * number, rows=rows)


def found(log: Log):
    history = reduce_events(log.rows)
    sources = source_freshness(history)
    return dataset_freshness(sources), [
        (a.cause, a.problem.value, a.failed_updates, a.dataset) for a in affected_datasets(history, sources)
    ]


def test_after_a_complete_update_nothing_waits_and_nobody_is_affected():
    log = Log()
    complete(chain(log))
    freshness, affected = found(log)
    assert affected == []
    assert {name: (one.lag_seconds, one.waiting_rows, one.behind_since) for name, one in freshness.items()} == {
        CLEAN: (0, 0, None),
        DAILY: (0, 0, None),
    }


def test_a_failure_in_the_middle_leaves_what_is_downstream_behind_by_what_the_first_tables_got():
    log = Log()
    complete(chain(log))
    for _ in range(2):
        update = chain(log)
        update.flow(RAW, 1, 5, rows=7)
        update.flow(CLEAN, 6, 9, status="FAILED", error=("FLOW_FAILED", "no"))
        update.flow(DAILY, None, 10, status="SKIPPED", why="clean failed")
    freshness, affected = found(log)
    assert affected == [(CLEAN, "failed", 2, DAILY)]
    hours = 2 * 6 * 3600
    for name in (CLEAN, DAILY):
        assert (freshness[name].lag_seconds, freshness[name].waiting_rows, freshness[name].waiting_for) == (hours, 14, (RAW,))


def test_a_dataset_that_was_left_out_is_late_and_so_is_what_reads_it():
    log = Log()
    complete(chain(log))
    update = chain(log)
    update.flow(RAW, 1, 5, rows=7)
    update.flow(CLEAN, None, 1, status="EXCLUDED")
    update.flow(DAILY, None, 1, status="EXCLUDED")
    freshness, affected = found(log)
    assert affected == [(CLEAN, "late", 0, DAILY)]
    assert freshness[DAILY].waiting_rows == 7


def test_the_next_complete_update_makes_up_for_it():
    log = Log()
    complete(chain(log))
    update = chain(log)
    update.flow(RAW, 1, 5, rows=7)
    update.flow(CLEAN, 6, 9, status="FAILED", error=("FLOW_FAILED", "no"))
    complete(chain(log))
    freshness, affected = found(log)
    assert affected == []
    assert freshness[DAILY].behind_since is None


def faulty_input() -> Log:
    log = Log()
    for number in range(2):
        update = chain(log)
        complete(update)
        records = {"source": "a", "corrupt": 3 + number, "left_out": 1, "rescued": 5, "passed_over": 2, "undecodable": 1}
        own = {"corrupt_file": "/in/a.json", "corrupt_line": 6, "corrupt_text": '{"id": 3'}
        place = {"first_file": "/in/a.json", "first_line": 4, "unit": "line", **own, "reason": "byte 0xFF at 3: latin-1?"}
        update.emit("source_records", {"flow_name": RAW, **records, **place}, dataset=RAW, flow=RAW, level="WARN")
        update.emit("late_records", {"flow_name": CLEAN, "dropped_by_watermark": 6}, dataset=CLEAN, flow=CLEAN, level="WARN")
    return log


def test_bad_input_has_its_kinds_with_numbers_over_the_updates_and_the_first_place():
    rows = {(b.dataset, b.problem.name): b for b in bad_input(reduce_events(faulty_input().rows))}
    assert {key: one.points for key, one in rows.items()} == {
        (RAW, "broken"): ((0, 2), (1, 3)),
        (RAW, "left out"): ((0, 1), (1, 1)),
        (RAW, "rescued"): ((0, 5), (1, 5)),
        (RAW, "unread text"): ((0, 2), (1, 2)),
        (RAW, "undecodable"): ((0, 1), (1, 1)),
        (CLEAN, "late"): ((0, 6), (1, 6)),
    }
    place = rows[RAW, "broken"].place
    assert place is not None
    assert (place.file, place.line, place.unit, place.text) == ("/in/a.json", 6, "line", '{"id": 3')
    assert rows[RAW, "undecodable"].remedy == "byte 0xFF at 3: latin-1?"
    assert rows[CLEAN, "late"].place is None


def test_the_view_says_the_same_causes_and_remedies():
    text = event_view("bad_input").query
    for problem in PROBLEMS:
        assert all(f"'{said}'" in text for said in (problem.name, problem.cause, problem.remedy)), problem


def moment(text: str | None) -> int | None:
    """A timestamp of SQL in whole milliseconds."""
    if text is None:
        return None
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc).timestamp() * 1000 + 1e-6)


def rows_of(storage, query: str):
    return list(inspector.run_sql(storage, query).rows)


@pytest.mark.parametrize("make", [shop, faulty_input, lambda: shop(3, seed=5)])
def test_sql_and_values_have_equal_numbers(tmp_path, make):
    log = make()
    store(tmp_path, log.rows)
    history = reduce_events(log.rows)
    sources = source_freshness(history)
    by_sql = {(r["dataset"], r["source"]): r for r in rows_of(tmp_path, "SELECT * FROM dataset_sources")}
    assert {(s.dataset, s.source): (s.distance, s.is_first, s.waiting_rows, s.changed_at, s.waiting_since) for s in sources} == {
        key: (r["distance"], r["is_first"], r["waiting_rows"], moment(r["source_changed_at"]), moment(r["waiting_since_at"]))
        for key, r in by_sql.items()
    }
    freshness = dataset_freshness(sources)
    assert {name: (round(one.lag_seconds, 1), one.waiting_rows, ", ".join(one.waiting_for) or None) for name, one in freshness.items()} == {
        r["dataset"]: (round(r["lag_s"], 1), r["waiting_rows"], r["waiting_for"])
        for r in rows_of(tmp_path, "SELECT * FROM dataset_freshness")
    }
    affected = {(a.cause, a.problem.value, a.failed_updates, a.dataset, a.distance) for a in affected_datasets(history, sources)}
    found = rows_of(tmp_path, "SELECT * FROM affected_datasets")
    assert affected == {tuple(r[key] for key in ("cause", "problem", "failed_updates", "dataset", "distance")) for r in found}
    places = {(b.dataset, b.problem.name): (b.place.file, b.place.line) if b.place else (None, None) for b in bad_input(history)}
    found = rows_of(tmp_path, "SELECT DISTINCT dataset, problem, file, line FROM bad_input")
    assert places == {(r["dataset"], r["problem"]): (r["file"], r["line"]) for r in found}
    bad = {(b.dataset, b.problem.name): sum(records for _, records in b.points) for b in bad_input(history)}
    summed = rows_of(tmp_path, "SELECT dataset, problem, sum(bad_records) AS n FROM bad_input GROUP BY dataset, problem")
    assert bad == {(r["dataset"], r["problem"]): r["n"] for r in summed}
