"""Spark's errors say which line of user code called for what failed; Lakelet's own calls are not reported to Java."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest
from pyspark.errors import utils
from pyspark.sql import functions as F

from lakelet.spark.patches import session
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
        batch.select((F.lit(1) / F.col("id")).alias("share")).collect()

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
    captured = utils._capture_call_site

    def capture(depth: int) -> str:
        files = [line.partition(":")[0] for line in captured(3).splitlines()]
        reported.append(next(file for file in files[1:] if file != session.__file__))  # the first one is here
        return captured(depth)

    monkeypatch.setattr(utils, "_capture_call_site", capture)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))  # pyspark's own function is asked beside it alone
    p = project(QUERY.replace("- 1", "+ 1")).run()
    assert set(reported) == {f"{p.folder}/pipeline.py"}
    reported.clear()
    F.col("id")
    assert reported == [__file__]  # as pyspark does it outside of updates
