"""Files that change while an update works on them, in whole pipelines (docs/semantics/sources.md; each moment is in tests/unit)."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.conftest import Project

PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect_or_fail("right", "x <> 'wrong'")
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, x STRING")
                .load(spark.conf.get("landing")))
"""
COUNT = 40_000  # 4 MB, which are read in several parts


def lines(count: int, first: str) -> str:
    return "".join(json.dumps({"id": i, "x": "y" * 75 if i else first}) + "\n" for i in range(count))


@pytest.mark.long
def test_a_file_that_was_corrected_after_a_rule_refused_it_is_read_whole(project: Callable[..., Project]) -> None:
    made = project(PIPELINE)
    file = made.landing / "a.json"
    file.write_text(lines(COUNT, "wrong"))
    made.run(expect="FAILED")
    assert made.errors() == {"raw": "EXPECTATION_VIOLATION"}
    file.write_text(lines(COUNT, "a correction " * 400))
    made.run()
    assert made.rows("raw", "id") == sorted(range(COUNT), key=repr)
    assert made.quality() == {"right": (COUNT, 0)}
    made.run()
    assert made.statuses() == {"raw": "IDLE"}


@pytest.mark.slow
def test_a_log_that_grows_all_the_time_is_read_as_it_is_with_a_warning(project: Callable[..., Project]) -> None:
    made = project(PIPELINE)
    file = made.landing / "a.json"
    file.write_text(lines(COUNT, "right"))
    ended = threading.Event()
    writer = threading.Thread(target=_append, args=(file, ended))
    writer.start()
    try:
        made.run()
    finally:
        ended.set()
        writer.join()
    ids = made.rows("raw", "id")
    assert len(ids) >= COUNT
    assert sorted(ids) == list(range(len(ids)))  # a beginning of the file, without a gap
    (notice,) = [e.body["text"] for e in made.events if e.event_type == "notice" and "keep changing" in e.body["text"]]
    assert "cloudFiles.allowOverwrites" in notice


@pytest.mark.slow
def test_a_batch_that_was_committed_is_not_written_again_and_a_later_version_of_its_file_is_found(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(PIPELINE.replace(".load(", '.option("cloudFiles.allowOverwrites", "true").load('))
    file = made.landing / "a.json"
    file.write_text(lines(3, "right"))
    with monkeypatch.context() as patched:
        patched.setattr("lakelet.base.failpoints._hits", Counter())
        patched.setenv("LAKELET_FAILPOINT", "batch.committed:EIO")  # the table has the rows, and Spark does not know
        made.run(expect="FAILED")
    file.write_text(lines(5, "right"))
    made.run()
    assert made.rows("raw", "id") == [0, 0, 1, 1, 2, 2, 3, 4]
    assert made.quality() == {"right": (5, 0)}


def _append(file: Path, ended: threading.Event) -> None:
    number = COUNT
    with file.open("a", buffering=1) as stream:
        while not ended.wait(0.002):
            stream.write(json.dumps({"id": number, "x": "later"}) + "\n")
            number += 1
