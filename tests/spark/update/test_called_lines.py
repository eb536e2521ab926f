"""Spark's errors say which line of user code called for what failed; Lakelet's own calls are not reported to Java."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import FrameType

import pyspark
import pytest
from pyspark.errors import utils

from lakelet.spark.patches import session_patches as session_patches
from tests.spark.conftest import Project

QUERY = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def shares():
        return spark.range(3).select((F.lit(1) / (F.col("id") - 1)).alias("share"))
"""
HANDLER = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.foreach_batch_sink
    def shares(batch, number):
        shares = batch.select((F.lit(1) / F.col("id")).alias("share"))
        shares.collect()

    @dlt.append_flow(target="shares")
    def sent():
        return spark.readStream.schema("id LONG").json(spark.conf.get("landing"))
"""


@pytest.fixture(autouse=True)
def lines_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyspark decides it once for a process, and says no where no session was active then."""
    monkeypatch.setattr(utils, "_enable_debugging_cache", True)


def test_an_error_in_a_handler_of_batches_names_its_line(project: Callable[..., Project]) -> None:
    p = project(HANDLER)
    p.arrive("a.json", {"id": 0})
    p.run(expect="FAILED")
    assert f"{p.folder}/pipeline.py:7" in "\n".join(map(str, p.result.errors))


def test_lines_of_user_code_alone_are_reported(project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    frames = session_patches._calling_frames

    def looked_at(frame: FrameType | None) -> Iterator[FrameType]:
        names = [found.f_code.co_filename for found in frames(frame)]
        reported.append(next(name for name in names if os.path.dirname(pyspark.__file__) not in name))
        return frames(frame)

    monkeypatch.setattr(session_patches, "_calling_frames", looked_at)
    p = project(QUERY.replace("- 1", "+ 1")).run()
    assert set(reported) == {f"{p.folder}/pipeline.py"}
