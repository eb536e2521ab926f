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


@pytest.mark.slow
def test_a_source_is_known_by_its_place_in_the_query_whatever_was_opened_before_it(project: Callable[..., Any], tmp_path: Path) -> None:
    """Its batches are counted apart; with the offset of another source it would clean files too early, or never have nothing to do."""
    p = project(
        f"""
        from pyspark import pipelines as dp

        def landed(folder):
            reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT")
            reader = reader.option("cloudFiles.cleanSource", "MOVE").option("cloudFiles.cleanSource.retentionDuration", "1 second")
            reader = reader.option("cloudFiles.cleanSource.moveDestination", {str(tmp_path / "archive")!r} + "/" + folder)
            return reader.option("cloudFiles.maxFilesPerTrigger", 1).load(spark.conf.get("landing") + "/" + folder)

        @dp.table
        def t():
            columns = landed("unread").columns
            later, first = landed("later"), landed("first")
            return first.union(later).select(columns)
        """
    )
    p.arrive("unread.json", {"id": 0}, folder="unread")
    p.arrive("first.json", {"id": 1}, folder="first")
    for number in (2, 3, 4):
        p.arrive(f"{number}.json", {"id": number}, folder="later")
    assert p.run().rows("t", "id") == [1, 2, 3, 4]

    time.sleep(1.1)
    p.run()

    assert p.statuses() == {"t": "IDLE"}
    assert sorted(file.name for file in (tmp_path / "archive").rglob("*.json")) == ["2.json", "3.json", "4.json", "first.json"]
    assert (p.landing / "unread" / "unread.json").exists()
    assert not [e.message for e in p.events if "could not clean" in e.message]
    p.arrive("more.json", {"id": 5}, folder="first")
    assert p.run().rows("t", "id") == [1, 2, 3, 4, 5]
