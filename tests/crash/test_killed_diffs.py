"""A process that dies while it shows what changed code would do has written nothing into the storage."""

from __future__ import annotations

import pytest

from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
    import dlt

    @dlt.table
    def loaded():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, v BIGINT")
                .load(spark.conf.get("landing")))

    @dlt.table
    @dlt.expect_or_drop("small", "v < 100")
    def copied():
        return spark.readStream.table("loaded")

    dlt.create_streaming_table("current")
    dlt.apply_changes(target="current", source="loaded", keys=["id"], sequence_by="v")

    @dlt.table
    def counted():
        return spark.read.table("copied").groupBy("id").count()
"""
POINTS = (
    *("environment.begun", "diff.begun", "environment.table_copied", "environment.flows_copied", "reset.recorded", "lease.acquired"),
    *("registry.written", "batch.files_written", "batch.committed", "changes.merged"),
    *("view.committed", "events.flushed", "update.before_terminal", "diff.computed", "diff.compared"),
)
SEEN: list[dict[str, bytes]] = []


def prepare(project: Project) -> None:
    project.write(PIPELINE)
    project.arrive("1.json", *({"id": n % 3, "v": n} for n in range(6)))
    project.run()
    SEEN.append(project.snapshot())
    project.write(PIPELINE.replace("v < 100", "v < 5"))


DIFF = Scenario(prepare, POINTS, (("diff", ("copied", "current")),))


@pytest.mark.in_ci("diff.begun", "batch.committed", "diff.compared")
@pytest.mark.parametrize("point", POINTS)
def test_a_storage_is_as_it_was_wherever_a_diff_was_killed(point: str, deaths: Deaths) -> None:
    left = deaths.left_at(DIFF, point).snapshot()
    assert left == SEEN[-1]
