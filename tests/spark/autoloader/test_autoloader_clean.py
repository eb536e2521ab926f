"""cleanSource in updates of a pipeline (AL-25 to AL-27, case D12)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.long
def test_d12_files_move_away_in_an_update_without_news_and_trouble_is_a_warning(project: Callable[..., Any], tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    one = project(
        f"""
        from pyspark import pipelines as dp

        @dp.table
        def t():
            return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT")
                    .option("cloudFiles.cleanSource", "MOVE").option("cloudFiles.cleanSource.retentionDuration", "1 second")
                    .option("cloudFiles.cleanSource.moveDestination", {str(archive)!r}).load(spark.conf.get("landing")))
        """
    )

    def told() -> list[tuple[str, int, int]]:
        return [(e.level, e.body["files"], e.body["failed"]) for e in one.events if e.event_type == "clean_source"]

    one.arrive("a.json", {"id": 1}, folder="day=1")
    one.arrive("b.json", {"id": 2})
    archive.mkdir()
    (archive / "b.json").write_text("somebody else's")
    assert one.run().rows("t", "id") == [1, 2]
    assert told() == []
    time.sleep(1.1)
    one.run()
    assert one.statuses() == {"t": "IDLE"}
    assert told() == [("WARN", 1, 1)]
    assert (archive / "day=1" / "a.json").exists()
    assert (one.landing / "b.json").exists()
    assert (archive / "b.json").read_text() == "somebody else's"
    assert one.run().rows("t", "id") == [1, 2]
