"""What a `stream_progress` event keeps of Spark's report (EL-15)."""

from __future__ import annotations

from lakelet.flows.metrics import reported

REPORT = {
    "id": "a",
    "batchId": 3,
    "numInputRows": 2,
    "inputRowsPerSecond": 1.0,
    "processedRowsPerSecond": 1.0,
    "durationMs": {"addBatch": 5},
    "sources": [{"description": "files", "endOffset": 1, "numInputRows": 2, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0}],
    "observedMetrics": {"lakelet_source_0": {"records": 2}, "mine": {"n": 1}},
}


def test_volatile_fields_and_counts_of_lakelet_are_left_out() -> None:
    assert reported(REPORT) == {
        "id": "a",
        "batchId": 3,
        "durationMs": {"addBatch": 5},
        "sources": [{"description": "files", "endOffset": 1}],
        "observedMetrics": {"mine": {"n": 1}},
    }
    assert "observedMetrics" not in reported({**REPORT, "observedMetrics": {"lakelet_source_0": {}}})
