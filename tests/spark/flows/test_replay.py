"""A micro-batch that was committed, but not marked as done before the process ended, is seen again by the next update."""

from __future__ import annotations

import pytest

READ = """(spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
                .option("cloudFiles.schemaHints", "at TIMESTAMP").load(spark.conf.get("landing")))"""
QUERIES = {
    "nothing remembered": READ,
    "all keys remembered": f"{READ}.dropDuplicates(['id'])",
    "keys within a watermark remembered": f"{READ}.withWatermark('at', '1 hour').dropDuplicatesWithinWatermark(['id'])",
    "keys remembered, a watermark beside": f"{READ}.withWatermark('at', '1 hour').dropDuplicates(['id'])",
}


def forget_last_batch(p):
    """Take away the mark of the last micro-batch that wrote something, and all traces of empty ones behind it."""
    (offsets,) = (p.storage.root / "checkpoints").rglob("offsets")
    for number in sorted((int(f.name) for f in offsets.iterdir() if f.name.isdigit()), reverse=True):
        (offsets.parent / "commits" / str(number)).unlink()
        if number == 0:
            break
        (offsets / str(number)).unlink()


@pytest.mark.parametrize("query", QUERIES)
def test_a_batch_that_was_committed_is_neither_lost_nor_doubled_when_it_is_replayed(query, project):
    p = project(f"""
    import dlt

    @dlt.table
    @dlt.expect("small", "id < 2")
    def seen():
        return {QUERIES[query]}
""")
    p.arrive("a.json", {"id": 1, "at": "2026-03-01T10:00:00Z"}, {"id": 2, "at": "2026-03-01T10:30:00Z"})
    p.run()
    forget_last_batch(p)
    p.arrive("b.json", {"id": 2, "at": "2026-03-01T10:30:00Z"}, {"id": 3, "at": "2026-03-01T10:40:00Z"})
    p.run()
    assert p.rows("seen", "id") == ([1, 2, 2, 3] if query == "nothing remembered" else [1, 2, 3])
    counts = sorted(
        (e["passed_records"], e["failed_records"])
        for row in p.logged(event_type="flow_progress")
        for e in row["details"]["flow_progress"].get("data_quality", {}).get("expectations", [])
    )
    assert counts == ([(0, 2), (1, 1)] if query == "nothing remembered" else [(0, 1), (1, 1)])
    p.run()
    assert p.statuses() == {"seen": "IDLE"}
