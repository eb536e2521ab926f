"""Timestamps are written as microseconds, which every reader takes for what they are (docs/semantics/storage.md, ST-12)."""

from __future__ import annotations

import pyarrow.parquet as pq

from lakelet.inspection.inspector import read_rows


def test_the_last_day_of_the_calendar_is_shown_as_it_is(project):
    p = project("""
        import dlt
        @dlt.table
        def moments():
            return spark.sql("SELECT TIMESTAMP '9999-12-31 00:00:00Z' AS at, TIMESTAMP_NTZ '0001-01-01 00:00:00' AS ntz")
    """)
    p.run()
    (file,) = p.path("moments").glob("*.parquet")
    assert [column.physical_type for column in pq.ParquetFile(file).schema] == ["INT64", "INT64"]
    assert list(read_rows(p.storage.root, "moments").rows) == [{"at": "9999-12-31T00:00:00Z", "ntz": "0001-01-01T00:00:00"}]
