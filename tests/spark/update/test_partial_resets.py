"""A full refresh of some of the tables that one flow streams from (docs/semantics/updates.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakelet.base.errors import LakeletError
from tests.spark.conftest import Project

TWO = """
    import dlt

    def landed(folder):
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
                .load(f"{spark.conf.get('landing')}/{folder}"))

    @dlt.table
    def one():
        return landed("one")

    @dlt.table
    def other():
        return landed("other")

    @dlt.table
    def both():
        return dlt.read_stream("one").union(dlt.read_stream("other"))

    @dlt.table
    def total():
        return dlt.read_stream("one").union(dlt.read_stream("other")).groupBy().agg({"id": "sum"}).toDF("total")
"""


@pytest.mark.long
def test_a_reset_of_one_of_two_sources_is_refused_with_what_to_do(project: Callable[..., Project]) -> None:
    made = project(TWO)
    made.arrive("a.json", {"id": 1}, folder="one")
    made.arrive("a.json", {"id": 2}, folder="other")
    made.run()
    with pytest.raises(LakeletError) as caught:
        made.run(full_refresh=("one",))
    (error,) = caught.value.errors  # type: ignore[attr-defined]
    assert (error.code, error.dataset) == ("RESET_INCOMPLETE", "main.default.both")  # `total` is replaced as a whole
    assert "--full-refresh main.default.one,main.default.both" in error.todo
    assert "--reset-checkpoint main.default.both" in error.todo
    assert made.run().rows("both") == [1, 2]  # nothing was reset

    made.run(full_refresh=("one", "both"))
    assert (made.rows("both"), made.rows("total")) == ([1, 2], [3])
    made.run(full_refresh=("one", "other"))  # no other source doubles: as with a single source
    assert made.rows("both") == [1, 1, 2, 2]
    made.run(full_refresh=("one",), reset_checkpoint=("both",))  # asked for
    assert made.rows("both") == [1, 1, 1, 2, 2, 2]
    made.run(full_refresh_all=True)
    assert (made.rows("both"), made.rows("total")) == ([1, 2], [3])
