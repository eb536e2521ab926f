"""Corpus V01–V08: the facts that must hold after each update."""

from __future__ import annotations

from collections import Counter


def test_V01_a_dataset_called_range_does_not_hide_the_function(case):
    c = case("V01").update()
    assert c.rows("range") == sorted(range(1000), key=repr), "range holds 0..999"
    doubles = c.table("double").to_pylist()
    assert len(doubles) == 1000, "double has a row for each row of range"
    assert all(row["double"] == 2 * row["id"] for row in doubles), "double is twice the id"
    assert sum(row["double"] for row in doubles) == 999_000, "sum of double"
    c.nothing_new()


def test_V02_events_of_a_relative_folder_are_counted_by_type(case):
    c = case("V02").update()
    assert c.count("raw_events") == 6, "every event of the first file"
    assert c.rows("event_counts") == [("click", 3), ("purchase", 1), ("view", 2)], "counts after update 1"

    second = {"user_id": "u9", "ts": "2025-01-01T11:00:00"}
    c.arrive_json(c.project / "OSS-SDP-HelloWorld/data/events/second.json", [{"event_type": t, **second} for t in ("click", "refund")])
    c.update()
    assert c.count("raw_events") == 8, "the new file is read, the old one is not read again"
    assert Counter(dict(c.rows("event_counts"))) == {"click": 4, "view": 2, "purchase": 1, "refund": 1}, "counts after update 2"
    c.nothing_new()
