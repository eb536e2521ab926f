"""`lakelet new table`: which stored tables the new one may read as a stream. No Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.base.names import Namespace
from lakelet.cli.new_table import _stored_tables
from lakelet.config.update_config import PipelineConfig
from lakelet.language.model import Kind
from tests.event_logs import store_table


@pytest.mark.parametrize("folder", ["shop", "my shop", "café"])
def test_a_stream_reads_streaming_tables_but_none_that_change_events_update(tmp_path: Path, folder: str) -> None:
    storage = tmp_path / folder / ".lakelet"
    rows = pa.table({"id": [1]})
    store_table(storage, "main.default.events", rows)
    store_table(storage, "main.default.customers", rows)
    store_table(storage, "main.default.daily", rows, kind=Kind.MATERIALIZED_VIEW)
    (customers,) = storage.glob("tables/main/default/customers")
    (customers / "_changes").mkdir()
    config = PipelineConfig("shop", "p", tmp_path, (), (), Namespace("main", "default"), {}, storage)
    assert {table.name: table.streamable for table in _stored_tables(config, {})} == {"events": True, "customers": False, "daily": False}
